"""A call is held, changed and sent on; its answer is held, too, and sent on as it came."""

import json

from .checks import decided, expect

HEADER_MISMATCH = -32020


def edited(stage):
    client, shell = stage.connect()
    shell.run("break", "add", "tool:echo")
    call = client.call("echo", {"message": "typed"})

    request = shell.held("request", "tools/call")
    expect("what the client said", request.raw["params"]["arguments"], {"message": "typed"})
    request.modify("$.params.arguments.message=edited")

    answer = shell.held("response", "tools/call")
    expect("which request is answered", answer.message["answers"], request.sequence)
    said = answer.raw["result"]["content"][0]["text"]
    expect("what the server got", said.lower(), "echo: edited")
    answer.forward()
    expect("what the client got", client.text(call), said)

    shell.run("save", "saved.json")
    stage.close()
    check(stage.recorded(), request, answer)
    check(saved(stage), request, answer)


def check(session, request, answer):
    """Both versions of the call, and one of the answer."""
    decided(session, request, "modified")
    expect("the call as it left", session[request.sequence]["raw"]["params"]["arguments"], {"message": "edited"})
    decided(session, answer, "forwarded")


def saved(stage):
    with open(f"{stage.home.path}/saved.json") as file:
        return {message["sequence"]: message for message in json.load(file)["messages"]}


def renamed(stage):
    """In 2026-07-28 headers repeat what a message says, and a server refuses it if they do not agree."""
    client, shell = stage.connect()
    shell.run("break", "add", "> tool:echo")
    call = client.call("echo", {"message": "typed"})
    into_add = ("$.params.name=add", '$.params.arguments={"a":2,"b":40}')

    mismatched = None
    if stage.cast.client_side == "http":
        mismatched = shell.held("request", "tools/call")
        mismatched.modify(*into_add, raw_headers=True)
    # After such a refusal both SDKs list the tools and call once more, by themselves.
    request = shell.held("request", "tools/call")
    request.modify(*into_add)
    expect("result of the other tool", json.loads(client.text(call)), {"sum": 42})

    stage.close()
    session = stage.recorded()
    decided(session, request, "modified")
    if mismatched:
        decided(session, mismatched, "modified")
        codes = [m["code"] for m in session.values() if m["answers"] == mismatched.sequence]
        expect("answer to headers that do not agree", codes, [HEADER_MISMATCH])
