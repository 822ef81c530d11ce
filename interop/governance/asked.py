"""A rule asks before anything is deleted, and whoever uses the client answers there; or somebody else is faster."""

import json

from harness.processes import RunFailed
from holds.checks import HAND, expect, expect_in

from .walk import refused

TOOL, MESSAGE = "github_delete_repo", "Deleting needs a yes."


def rules(**more):
    rule = {"name": "yes-first", "match": f"tool:{TOOL}", "verdict": "ask", "message": MESSAGE, **more}
    return json.dumps({"policy": {"rules": [rule]}})


def accept(decision):
    return {"action": "accept", "content": {"decision": decision}}


ONCE, SESSION, DENY = accept("allow once"), accept("allow for this session"), accept("deny")


def asked(stage):
    """Every answer there is. Only a yes lets a call go on, and one for the session is asked for once."""
    stage.write_rules(rules())
    client, _ = stage.connect()
    for form, why in (({"action": "decline"}, "said no"), ({"action": "cancel"}, "did not decide"), (DENY, "said no")):
        client.fill_in(form)
        expect_in(f"why {form} denies", why, refused(client, TOOL, {"name": "notes"})["message"])
    client.fill_in(ONCE)
    expect("what a yes does", client.text(client.call(TOOL, {"name": "notes"})), "deleted notes")
    client.fill_in(SESSION)
    expect("what another yes does", client.text(client.call(TOOL, {"name": "test-repo"})), "deleted test-repo")
    client.fill_in(DENY)
    last = client.outcome(client.call(TOOL, {"name": "nothing"}))
    if "result" not in last:
        raise RunFailed(f"a yes for the session did not last: {last}")
    questions = [question["params"]["message"] for question in last["asked"] if question["method"] == "elicitation/create"]
    expect("how often the client was asked", len(questions), 5)
    for wanted in ("yes-first", MESSAGE, TOOL, "(delete)", "notes"):
        expect_in("what the client was asked", wanted, questions[0])
    stage.close()
    expect("what reached the server", stage.journal(), [TOOL] * 3)
    expect("the audit", decisions(stage), [("deny", "client")] * 3 + [("allow", "client")] * 3)
    stage.shell.run("audit", "--verify")


def overtaken(stage):
    """Somebody at a shell answers while the form is open, and what the client says later does not count."""
    stage.write_rules(rules())
    client, shell = stage.connect()
    client.fill_in(None)
    call = client.call(TOOL, {"name": "notes"})
    answer(shell, "approve")
    if stage.cast.era == "modern":
        client.fill_in({"action": "cancel"})  # the call goes on when it comes again
    expect("what came of it", client.text(call), "deleted notes")
    client.fill_in(None)
    call = client.call(TOOL, {"name": "test-repo"})
    answer(shell, "deny", "--message", "not on Mondays")
    if stage.cast.era == "modern":
        client.fill_in(ONCE)
    expect_in("why it was denied", "not on Mondays", client.outcome(call).get("error", {}).get("message", ""))
    stage.close()
    expect("what reached the server", stage.journal(), [TOOL])
    verdicts = decisions(stage)
    expect("the verdicts", [verdict for verdict, _ in verdicts], ["allow", "deny"])
    for _, actor in verdicts:
        expect_in("who decided", HAND, actor)


def unanswered(stage):
    """Nobody answers in time."""
    stage.write_rules(rules(timeout="1s"))
    client, _ = stage.connect()
    client.fill_in(None)
    expect_in("why it was denied", "nobody answered in time", refused(client, TOOL, {"name": "notes"})["message"])
    stage.close()
    expect("what reached the server", stage.journal(), [])
    expect("the audit", decisions(stage), [("deny", "timeout")])


def deserted(stage):
    """The client is killed while its form is open."""
    stage.write_rules(rules())
    client, shell = stage.connect()
    client.fill_in(None)
    client.call(TOOL, {"name": "notes"})
    shell.held("request", "tools/call")
    client.running.popen.kill()
    if stage.cast.client_side == "stdio":
        shell.until("the end of the proxy", lambda: not shell.listed("ps"))
    else:
        shell.until("nothing that is held", lambda: not shell.listed("held"))
    stage.desert()
    expect("what reached the server", stage.journal(), [])
    if any(verdict == "allow" for verdict, _ in decisions(stage)):
        raise RunFailed(f"it was allowed: {decisions(stage)}")


def answer(shell, *words):
    held = shell.held("request", "tools/call")
    shell.run(words[0], f"#{held.sequence}", *words[1:])


def decisions(stage):
    """What was decided in the end, and by whom. That somebody was asked is no decision."""
    return [(line["verdict"], line["actor"]) for line in stage.decisions() if line["verdict"] != "ask"]
