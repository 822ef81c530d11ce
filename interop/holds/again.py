"""A call of the client is sent to its server once more, from the shell."""

from .checks import expect, expect_in


def again(stage):
    """With something changed. The answer is for the shell only."""
    client, shell = stage.connect()
    expect("the call", client.text(client.call("echo", {"message": "once"})).lower(), "echo: once")
    (first,) = (number for number, message in stage.recorded("> tool:echo").items())
    shown = shell.run("replay", "--live", f"#{first}", "--set", "$.params.arguments.message=again")
    expect_in("the answer to it", "cho: again", shown)
    expect("a call after it", client.text(client.call("echo", {"message": "on"})).lower(), "echo: on")
    stage.close()
    session = stage.recorded("> tool:echo").values()
    calls = [(message["raw"]["params"]["arguments"]["message"], message.get("origin")) for message in session]
    expect("calls in the session", calls, [("once", None), ("again", "proxy"), ("on", None)])
