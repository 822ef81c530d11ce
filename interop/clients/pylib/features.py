"""What the Python client does to a server, feature by feature; the counterpart of `lib/features.mjs`."""

import base64
import hashlib
import itertools
import time

import anyio
import mcp_types as types

from .journal import PATIENCE_SECONDS
from .session import plain

FEATURE_LIMIT_SECONDS = PATIENCE_SECONDS * 2
ASKED_OFTEN = 25
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
MODERN = "2026-07-28"
AFTER_FALLBACK = ("handshake", "roots", "tools-list", "tool-call")


def echo(profile, message):
    return {"name": profile["echo"], "arguments": {"message": message}}


def text_of(result):
    return result["content"][0]["text"]


async def succeed_each(session, calls):
    """Calls that have to work: two equal failures would otherwise pass for agreement."""
    results = []
    for call in calls:
        results.append(await session.call(call))
        if results[-1].get("isError"):
            raise RuntimeError(f"{call['name']} failed: {text_of(results[-1])}")
    return results


async def provoke(session, profile, call, what, is_heard):
    """Makes a call that has the server announce something, and waits until `is_heard`.

    One server acknowledges a subscription a moment before it keeps it, so that the first announcement can get
    lost. Then, and only then, ask again: over HTTP an announcement may also come later than the call's result.
    """
    tries = 5 if profile.get("acknowledges_early") else 1
    for left in reversed(range(tries)):
        result = await session.call(call)
        try:
            await session.journal.until(what, is_heard, PATIENCE_SECONDS / tries)
            return result
        except RuntimeError:
            if not left:
                raise


async def questions(session, calls):
    mark = len(session.asked)
    results = await succeed_each(session, calls)
    if len(session.asked) == mark:
        raise RuntimeError("the server asked nothing")
    return {"results": results, "asked": session.asked[mark:]}


async def handshake(session, _profile):
    client, answer = session.client, next(m["result"] for m in session.journal.received if "result" in m)
    return {
        "server": plain(client.server_info),
        "capabilities": plain(client.server_capabilities),
        "instructions": client.instructions,
        "version": client.protocol_version,
        "answer": answer,
    }


async def roots(session, profile):
    # One server asks by itself, a moment after the handshake, and logs what it got. Until then
    # its messages could land in any feature, so this one comes first. Of several behind one peer, all ask then.
    if phrase := profile["roots"].get("unsolicited_then_logged"):
        logged = lambda: sum(phrase in str(m["data"]) for m in session.logged)
        await session.journal.until("unsolicited roots", lambda: logged() >= session.unsolicited)
    results = await succeed_each(session, profile["roots"]["calls"])
    if not session.asked:
        raise RuntimeError("the server asked nothing")
    return {"results": results, "asked": session.asked[session.begin["asked"] :]}


async def ping(session, _profile):
    return plain(await session.client.send_ping())


async def discover(session, _profile):
    return await session.client.session.send_discover(MODERN)


async def tools_list(session, _profile):
    return plain(await session.client.list_tools())


async def request_bytes(session, profile):
    return base64.b64decode(text_of(await session.call(profile["request_bytes"]))).decode()


async def header_parameters(session, profile):
    return await succeed_each(session, [profile["header_parameters"]])


async def tool_call(session, profile):
    return await succeed_each(session, [*([echo(profile, "hello")] if "echo" in profile else []), *profile["calls"]])


async def link_read(session, profile):
    """Reads every resource that a result links to or has in it, under the address that is given there."""
    results = await succeed_each(session, profile["links"])
    contents = [content for result in results for content in result["content"]]
    links = [content.get("resource", content)["uri"] for content in contents if content["type"] in ("resource", "resource_link")]
    return [plain(await session.client.read_resource(uri)) for uri in links]


async def tool_error(session, profile):
    return [await session.refusal(session.call(call)) for call in profile["errors"]]


async def structured(session, profile):
    result = await session.call(profile["structured"])
    if not result.get("structuredContent"):
        raise RuntimeError("nothing structured")
    return result


async def protocol_error(session, profile):
    return await session.refusal(session.client.read_resource(profile["missing"]))


async def concurrent_calls(session, profile):
    texts = {}

    async def one(number):
        texts[number] = text_of(await session.call(echo(profile, f"call {number}")))

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(one, number)
    return [texts[number] for number in range(20)]


async def large_message(session, profile):
    text = text_of(await session.call(echo(profile, "0123456789abcdé " * 20_000)))
    return {"length": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()}


async def progress(session, profile):
    journal, plan = session.journal, profile["progress"]
    mark, delivered, result = len(journal.received), [], {}

    async def on_progress(done, total, message):
        delivered.append([done, total, message])
        journal.poke()

    async def run():
        result.update(await session.call(plan["call"], progress_callback=on_progress))

    on_wire = lambda: journal.notifications("notifications/progress", mark)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await journal.until("progress", lambda: len(on_wire()) >= plan["count"])
        if "release" in plan:
            await journal.until("progress callbacks", lambda: len(delivered) >= plan["count"])
            await session.call(plan["release"])
    tokens = [((m.get("params") or {}).get("_meta") or {}).get("progressToken") for m in journal.sent]
    if any(update["progressToken"] not in tokens for update in on_wire()):
        raise RuntimeError("progress of something that nobody called")
    # Without a release it is a matter of buffering whether the last update still finds its callback.
    return {"result": result, "progress": on_wire(), **({"delivered": delivered} if "release" in plan else {})}


async def logging(session, profile):
    plan = profile["logging"]
    if session.era == "legacy":
        await session.client.set_logging_level(plan["level"])
    mark = len(session.logged)
    meta = {LOG_LEVEL: plan["level"]} if session.era == "modern" else None
    for call in plan["calls"]:
        await session.call(call, meta=meta)
    await session.journal.until("log messages", lambda: len(session.logged) >= mark + plan["count"])
    for call in plan.get("after", []):
        await session.call(call)
    messages = session.logged[mark:]
    return [sorted(m) for m in messages] if plan.get("random") else messages


async def sampling(session, profile):
    return await questions(session, profile["sampling"])


async def elicitation(session, profile):
    return await questions(session, profile["elicitation"])


async def rounds(session, profile):
    return await questions(session, profile["rounds"])


async def resources_list(session, _profile):
    return plain(await session.client.list_resources())


async def resource_templates(session, _profile):
    return plain(await session.client.list_resource_templates())


async def resource_read(session, profile):
    return [plain(await session.client.read_resource(uri)) for uri in profile["reads"]]


async def prompts_list(session, _profile):
    return plain(await session.client.list_prompts())


async def prompt_get(session, profile):
    return [plain(await session.client.get_prompt(p["name"], p["arguments"])) for p in profile["prompts"]]


async def completion(session, profile):
    seen = []
    for c in profile["completions"]:
        kind = types.PromptReference if c["ref"]["type"] == "ref/prompt" else types.ResourceTemplateReference
        answer = await session.client.complete(kind(**c["ref"]), c["argument"], c.get("context"))
        seen.append(plain(answer))
    return seen


async def subscription(session, profile):
    client, plan = session.client, profile["subscription"]
    uri, touch = plan["uri"], plan["touch"]
    mark, wire_mark, seen = len(session.updated), len(session.journal.received), {}

    async def touch_and_see():
        on_wire = lambda: session.journal.notifications("notifications/resources/updated", wire_mark)
        await provoke(session, profile, touch[0], "a resource update", on_wire)
        await session.journal.until("its delivery", lambda: len(session.updated) > mark)
        for call in touch[1:]:
            await session.call(call)

    if session.era == "modern":
        async with client.listen(resource_subscriptions=[uri]) as listening:
            seen["granted"] = plain(listening.honored)
            await touch_and_see()
            seen["event"] = repr(await anext(listening))
        # The SDK tells the server from a task of its own; only after that is the end of the subscription certain.
        is_the_end = lambda m: (m.get("params") or {}).get("requestId") == listening.subscription_id
        await session.journal.until("the end of the subscription", lambda: any(map(is_the_end, session.journal.sent)))
    else:
        await client.subscribe_resource(uri)
        await touch_and_see()
        await client.unsubscribe_resource(uri)
    for call in [*plan.get("settle", []), *touch]:  # nobody listens any more
        await session.call(call)
    return {**seen, "updates": session.updated[mark:]}


async def server_closes_subscription(session, profile):
    is_answered = lambda: any(m.get("id") == listening.subscription_id for m in session.journal.received)
    async with session.client.listen(prompts_list_changed=True) as listening:
        await provoke(session, profile, profile["subscription"]["server_closes"], "the end of it", is_answered)
        events = [repr(event) async for event in listening]  # ends, rather than raises, on a graceful close
        return {"granted": plain(listening.honored), "events": events}


async def list_changed(session, profile):
    client, journal = session.client, session.journal
    kind, mark = profile["growth"]["kind"], len(session.journal.received)

    async def grow():
        is_announced = lambda: journal.notifications(f"notifications/{kind}/list_changed", mark)
        return await provoke(session, profile, profile["growth"]["call"], "a changed list", is_announced)

    if session.era == "modern":
        async with client.listen(**{f"{kind}_list_changed": True}):
            result = await grow()
    else:
        result = await grow()
    if kind == "tools":
        items = (await client.list_tools(cache_mode="refresh")).tools
    else:
        items = (await client.list_resources(cache_mode="refresh")).resources
    return {"result": result, kind: [{k: v for k, v in plain(item).items() if k in ("name", "uri", "_meta")} for item in items]}


async def call_and_cancel(session, profile):
    """A call that is cancelled once it runs, or as soon as that is likely. Gives its id."""
    journal, plan, scope = session.journal, profile["cancel"], anyio.CancelScope()
    mark = len(journal.received)

    async def ignore(*_progress):
        pass

    async def run():
        with scope:
            await session.call(plan["call"], progress_callback=ignore)
            raise RuntimeError("not cancelled")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        if plan["running"] == "progress":
            await journal.until("the call to run", lambda: journal.notifications("notifications/progress", mark))
        else:
            await session.call(echo(profile, "is it running?"))
        scope.cancel()
    is_the_call = lambda m: (m.get("params") or {}).get("name") == plan["call"]["name"]
    return next(m["id"] for m in reversed(journal.sent) if is_the_call(m))


async def testimony(session, profile):
    """What the server says about the cancellation, once it has heard of it."""
    witness, deadline = profile["cancel"]["witness"], time.monotonic() + PATIENCE_SECONDS
    for asked in itertools.count(1):
        said = text_of(await session.call(witness["call"]))
        if "at_least" not in witness:
            return said
        if int(said) >= witness["at_least"]:
            return witness["at_least"]
        if time.monotonic() > deadline:
            raise RuntimeError("the server never heard of it")
        # Over HTTP nothing keeps a call before its cancellation. One that was overtaken is ignored: try another.
        if asked % ASKED_OFTEN == 0:
            await call_and_cancel(session, profile)


async def cancellation(session, profile):
    journal, plan, seen = session.journal, profile["cancel"], {}
    call_id = await call_and_cancel(session, profile)
    if "witness" in plan:
        seen["witness"] = await testimony(session, profile)
    # A server that works on to the end must at least keep its answer to itself. Another call that takes as long, and
    # began later, tells when that would have come.
    if "outlast" in plan:
        await session.call(plan["outlast"])
    seen["afterwards"] = await session.call(echo(profile, "still there"))
    # Over HTTP one server ends the exchange with an error, which is allowed, and which the SDK ignores.
    if any(m.get("id") == call_id and "result" in m for m in journal.received):
        raise RuntimeError("answered all the same")
    seen["told"] = any(m.get("method") == "notifications/cancelled" for m in journal.sent)
    return seen


FEATURES = [  # name, the profile's key or the era it depends on, what to do
    ("handshake", None, handshake),
    ("roots", "roots", roots),
    ("ping", "legacy", ping),
    ("discover", "modern", discover),
    ("tools-list", None, tools_list),
    ("request-bytes", "request_bytes", request_bytes),
    ("header-parameters", "header_parameters", header_parameters),
    ("tool-call", "calls", tool_call),
    ("link-read", "links", link_read),
    ("tool-error", "errors", tool_error),
    ("structured", "structured", structured),
    ("protocol-error", "missing", protocol_error),
    ("concurrent-calls", "echo", concurrent_calls),
    ("large-message", "echo", large_message),
    ("progress", "progress", progress),
    ("logging", "logging", logging),
    ("sampling", "sampling", sampling),
    ("elicitation", "elicitation", elicitation),
    ("rounds", "rounds", rounds),
    ("resources-list", None, resources_list),
    ("resource-templates", None, resource_templates),
    ("resource-read", "reads", resource_read),
    ("prompts-list", None, prompts_list),
    ("prompt-get", "prompts", prompt_get),
    ("completion", "completions", completion),
    ("subscription", "subscription", subscription),
    ("server-closes-subscription", "server_closes", server_closes_subscription),
    ("list-changed", "growth", list_changed),
    # Last, because polling for its effect spends an unknown number of request ids.
    ("cancellation", "cancel", cancellation),
]


def innermost(error):
    """Task groups wrap what went wrong; the first leaf is what a reader wants."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def observe(session, profile, wanted=None):
    """Runs the features that are `wanted` (by default all) and have data in the profile; a failure names its feature."""
    has = {None, session.era, *profile}
    if session.era == "modern":
        has |= set(profile.get("subscription", {}))
    features, wanted = {}, profile.get("features", wanted)
    for name, needs, act in FEATURES:
        if needs not in has or (session.era == "auto" and name not in AFTER_FALLBACK):
            continue
        if wanted and name not in wanted:
            continue
        mark = len(session.journal.received)
        try:
            with anyio.fail_after(FEATURE_LIMIT_SECONDS):
                observed = await act(session, profile)
        except Exception as error:
            raise RuntimeError(f"{name}: {innermost(error)}") from error
        # What a server says right after the handshake may come before or after we look; all of it counts as roots.
        heard = {} if name == "handshake" else session.journal.summary(session.begin["received"] if name == "roots" else mark)
        features[name] = {"observed": observed, **heard}
    session.begin = {"asked": len(session.asked), "received": len(session.journal.received)}
    return features
