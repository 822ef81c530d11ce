"""Calls that nothing comes of: refused or dropped from the shell, or given up by the client while they are held."""

from harness.processes import RunFailed

from .checks import decided, expect

SOON_SECONDS = 1  # that a client waits for an answer which will not come


def refused(stage):
    """With an error, which the client gets, and then without a word."""
    client, shell = stage.connect()
    shell.run("break", "add", "> tool:echo", "--name", "gate")
    call = client.call("echo", {"message": "refuse me"})
    with_error = shell.held("request", "tools/call")
    with_error.drop("-32099:not today")
    error = client.outcome(call)["error"]
    expect("the client's error", (error["code"], "not today" in error["message"]), (-32099, True))

    call = client.call("echo", {"message": "drop me"})
    silently = shell.held("request", "tools/call")
    silently.drop()
    client.cancel(call)
    expect("what the user gets", client.outcome(call).get("cancelled"), True)
    still_works(client, shell)
    stage.close()
    session = stage.recorded()
    decided(session, with_error, "refused")
    decided(session, silently, "dropped")
    server_saw_none_of(session, "refuse me", "drop me")


def cancelled(stage):
    """By the user, and then because the client has waited long enough."""
    client, shell = stage.connect()
    shell.run("break", "add", "> tool:echo", "--name", "gate")

    call = client.call("echo", {"message": "never mind"})
    shell.held("request", "tools/call")
    client.cancel(call)
    expect("what the user gets", client.outcome(call).get("cancelled"), True)
    shell.until("nothing held after a cancellation", lambda: not shell.listed("held"))

    call = client.call("echo", {"message": "too slow"}, patience_seconds=SOON_SECONDS)
    expect("whether the client gave up", "error" in client.outcome(call), True)
    shell.until("nothing held after a timeout", lambda: not shell.listed("held"))

    still_works(client, shell)
    stage.close()
    session = stage.recorded()
    # Over HTTP leaving is a way to say so: the only one in 2026-07-28, and one of two before.
    ways = {"cancelled", "discarded"} if stage.cast.client_side == "http" else {"cancelled"}
    for text in ("never mind", "too slow"):
        (request,) = (m for m in session.values() if m["kind"] == "request" and text in str(m["raw"]))
        if request.get("outcome") not in ways:
            raise RunFailed(f"`{text}` was given up, and is {request.get('outcome')}")
    server_saw_none_of(session, "never mind", "too slow")


def unwanted(stage):
    """The answer is held when the client gives up. Whoever looks sees that nobody waits for it."""
    client, shell = stage.connect()
    shell.run("break", "add", "< tool:echo", "--name", "gate")
    call = client.call("echo", {"message": "late"})
    answer = shell.held("response", "tools/call")
    client.cancel(call)
    expect("what the user gets", client.outcome(call).get("cancelled"), True)
    shell.until("a mark that nobody waits", lambda: any(held["given_up"] for held in shell.listed("held")))
    answer.forward()
    still_works(client, shell)
    stage.close()
    decided(stage.recorded(), answer, "forwarded")


def still_works(client, shell):
    shell.run("break", "rm", "gate")
    expect("the next call", client.text(client.call("echo", {"message": "next"})).lower(), "echo: next")


def server_saw_none_of(session, *texts):
    """It would have echoed them."""
    for text in texts:
        echoed = [m for m in session.values() if m["direction"] == "server_to_client" and text in str(m["raw"])]
        expect(f"what the server made of `{text}`", echoed, [])
