"""What the server asks is held on its way to the client, and what the client answers on its way back."""

from .checks import decided, expect, expect_in

ELICIT, SAMPLE = ("elicitation/create", "trigger-elicitation-request"), ("sampling/createMessage", "trigger-sampling-request")


def asked(client, call, method):
    """What the client was asked before the call was over. The server asks for other things, too."""
    return [question["params"] for question in client.outcome(call)["asked"] if question["method"] == method]


def questioned(stage):
    """The question is changed, and so is the answer."""
    client, shell = stage.connect()
    decisions = []
    for (method, tool), question, answer in (
        (ELICIT, "$.params.message=Who is it?", "$.result.content.name=Grace"),
        (SAMPLE, "$.params.messages[0].content.text=Who is it?", "$.result.content.text=Grace"),
    ):
        shell.run("break", "add", f"method:{method}")
        call = client.call(tool, {"prompt": "who"})
        for kind, change in (("request", question), ("response", answer)):
            held = shell.held(kind, method)
            held.modify(change)
            decisions.append(held)
        expect_in("what the server made of the answer", "Grace", client.text(call))
        expect_in("what the client was asked", "Who is it?", str(asked(client, call, method)))
    stage.close()
    session = stage.recorded()
    for held in decisions:
        decided(session, held, "modified")


def answered(stage):
    """The client is not asked at all: the first answer comes from the shell, and the second time it is an error."""
    client, shell = stage.connect()
    method, tool = ELICIT
    shell.run("break", "add", f"method:{method}")

    declined = client.call(tool)
    first = shell.held("request", method)
    first.answer({"action": "decline"})
    expect_in("what the server made of it", "declined", client.text(declined))

    failed = client.call(tool)
    second = shell.held("request", method)
    second.drop("-32002:nobody is here")
    expect_in("what the server made of an error", "nobody is here", str(client.outcome(failed)))
    expect("what the client was asked", asked(client, failed, method), [])

    stage.close()
    session = stage.recorded()
    decided(session, first, "answered")
    decided(session, second, "refused")


def rounds(stage):
    """In 2026-07-28 questions are results, and answers come with a call of their own. Some rounds are held, others pass."""
    client, shell = stage.connect()
    shell.run("break", "add", "status:input_required $.result.inputRequests.name", "--name", "question")
    shell.run("break", "add", "> $.params.inputResponses.colour", "--name", "answer")
    call = client.call("survey")

    question = shell.held("response", "tools/call")
    expect("status", question.message["status"], "input_required")
    question.modify("$.result.inputRequests.name.params.message=Who is it?")
    answer = shell.held("request", "tools/call")
    call_and_round = (answer.message["operation"], answer.message["round"])
    expect("operation and round while it is held", call_and_round, (question.message["answers"], 3))
    answer.modify("$.params.inputResponses.colour.content.colour=blue")

    expect("the result after all rounds", client.text(call), "Ada likes blue")
    messages = [params["message"] for params in asked(client, call, "elicitation/create")]
    expect("what the client was asked", messages, ["Who is it?", "Your colour?"])
    hits = {point["name"]: point["hits"] for point in shell.listed("break", "list")}
    expect("what was held", hits, {"question": 1, "answer": 1})
    stage.close()
    session = stage.recorded()
    for held in (question, answer):
        decided(session, held, "modified")
    calls = [(m["operation"], m["round"]) for m in session.values() if m["tool"] == "survey" and m["kind"] == "request"]
    expect("operation and round of each call", calls, [(question.message["answers"], number) for number in (1, 2, 3)])
