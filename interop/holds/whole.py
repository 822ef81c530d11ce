"""Everything is held, from the client's first word on; then nothing is."""

from harness.processes import RunFailed

from .checks import decided, expect, expect_in

HANDSHAKE = {"legacy": "initialize", "modern": "server/discover"}


def connecting(stage):
    """A client connects while all is held. Its handshake goes on message by message, the rest at once."""
    stage.open()
    shell = stage.shell
    shell.instance()
    shell.run("hold", "on")
    client, method = stage.start_client(), HANDSHAKE[stage.cast.era]

    handshake = [shell.held("request", method)]
    handshake[0].forward()
    handshake.append(shell.held("response", method))
    if b"connected" in client.running.stdout:
        raise RunFailed("the client is connected while the answer to its handshake is held")
    handshake[1].forward()
    if stage.cast.era == "legacy":
        handshake.append(shell.held("notification", "notifications/initialized"))
    expect_in("hold off", "passes messages on", shell.run("hold", "off"))

    client.connected()
    expect("the first call", client.text(client.call("echo", {"message": "at last"})).lower(), "echo: at last")
    expect("what is held afterwards", shell.listed("held"), [])
    stage.close()
    session = stage.recorded()
    for held in handshake[:2]:
        decided(session, held, "forwarded")
    for held in handshake[2:]:
        expect("the last one", session[held.sequence]["outcome"], "released")


def switched(stage):
    """A connected client, whose call is held with all else."""
    client, shell = stage.connect()
    shell.run("hold", "on")
    call = client.call("echo", {"message": "wait"})
    request = shell.held("request", "tools/call")
    expect("why it is held", shell.listed("held")[0]["why"], "intercept")
    shell.run("hold", "off")
    expect("the call", client.text(call).lower(), "echo: wait")
    stage.close()
    expect("what became of it", stage.recorded()[request.sequence]["outcome"], "released")
