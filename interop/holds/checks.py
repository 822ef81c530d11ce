"""What has to be so, and how to say that it is not."""

from harness.processes import RunFailed

HAND = "command line"  # how a recording names whoever acts from a shell


def expect(what, seen, wanted):
    if seen != wanted:
        raise RunFailed(f"{what}: {seen!r} instead of {wanted!r}")


def expect_in(what, wanted, seen):
    if wanted not in seen:
        raise RunFailed(f"{what}: no {wanted!r} in {seen!r}")


def decided(recorded, held, outcome):
    """Whether the session has what became of a held message: who decided, and what it was before and after."""
    message = recorded.get(held.sequence)
    if not message:
        raise RunFailed(f"#{held.sequence} is not in the session")
    name = f"#{held.sequence} in the session"
    expect(f"{name}: outcome", message.get("outcome"), outcome)
    expect_in(f"{name}: who decided", HAND, message.get("decided_by", ""))
    expect(f"{name}: is modified", message["modified"], outcome == "modified")
    if outcome != "modified":
        return expect(f"{name}: as it came", message["raw"], held.raw)
    expect(f"{name}: as it came", message.get("original_raw"), held.raw)
    if message["raw"] == held.raw:
        raise RunFailed(f"{name}: nothing is modified in {held.raw}")
