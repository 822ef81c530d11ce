"""What is compared of a server's documents, one of which was seen through the gateway. The rest is its own affair."""

import base64
import json
import re
import tempfile

from .names import LISTS

# Only one era has these in answers, or in what an SDK makes of them.
OF_ONE_ERA = {"resultType", "ttlMs", "cacheScope", "io.modelcontextprotocol/serverInfo", "execution"}
# Changed lists are told of when the gateway likes; and servers ask for roots when they begin, whoever is observed then.
HEARD_ANY_TIME = {f"notifications/{kind}/list_changed" for kind in ("tools", "resources", "prompts")} | {"roots/list"}
HOME = re.compile(rf"{re.escape(tempfile.gettempdir())}/mcp-interop-\w+")
HEARD_IN_ONE_ERA = {"notifications/subscriptions/acknowledged"}
# Server-everything lists these to clients that it can ask, and a server of the older era cannot ask one of the newer.
ASKING = re.compile("get-roots-list|trigger-.*")


def comparable(features, wanted, is_crossed, is_printed):
    """Between eras, and where a client prints what it likes of an answer, less is the same."""
    seen = {feature: compared(feature, features[feature], is_crossed) for feature in sorted(wanted & features.keys())}
    seen = without(seen, OF_ONE_ERA) if is_crossed or is_printed else seen
    return json.loads(HOME.sub("<home>", json.dumps(seen)))


def compared(feature, entry, is_crossed):
    observed, unheard = entry["observed"], HEARD_ANY_TIME
    match feature:
        case "tools-list" | "resources-list" | "resource-templates" | "prompts-list":
            observed = {kind: observed[kind] for kind in LISTS if kind in observed}  # not for how long they hold
        case "roots":
            observed = observed["results"]  # what was asked was asked when the servers began
            unheard = entry["heard"].keys()
        case "request-bytes":
            observed = re.sub(r'"(id|progressToken)":("[^"]*"|[\w-]+)', r'"\1":…', observed)
        case "progress":
            observed = with_any_token(observed)  # other requests went before; that it is the right one is seen as well
        case "link-read":
            observed = [timeless(content) for read in observed for content in read["contents"]]
        case "subscription":
            observed = without(observed, {"io.modelcontextprotocol/subscriptionId"})  # as with tokens; the SDK knows it
        case "cancellation":
            unheard = unheard | {"notifications/progress"}  # of a call that is over it tells nothing more
    if is_crossed:
        unheard = unheard | HEARD_IN_ONE_ERA | (set() if feature == "logging" else {"notifications/message"})
        observed = across(feature, observed)
    entry = {"observed": observed, "heard": entry.get("heard", {})} if is_crossed else entry | {"observed": observed}
    return entry | {"heard": {method: count for method, count in entry.get("heard", {}).items() if method not in unheard}}


def across(feature, observed):
    """What two eras have in common."""
    match feature:
        case "tools-list":
            return {kind: [tool for tool in tools if not ASKING.fullmatch(tool["name"])] for kind, tools in observed.items()}
        case "prompt-get" if isinstance(observed, list):
            return observed[:1]  # the others may be questions
        case "subscription":
            return [update["uri"] for update in observed["updates"]]
        case "protocol-error" if "error" in observed:
            return re.sub(r"^MCP error -?\d+: ", "", observed["error"]["message"])  # a missing resource has another code
        case "tool-error" if isinstance(observed, list):
            # The older SDK says the code in the message, too.
            return json.loads(re.sub(r"MCP error -?\d+: ", "", json.dumps(observed)))
        case "cancellation":
            return {key: value for key, value in observed.items() if key != "rejectedWith"}  # the SDK's own words
    return observed


def timeless(content):
    """Blobs of one server say when they were made."""
    if "blob" not in content:
        return content
    return content | {"blob": re.sub(r"\d{1,2}:\d\d:\d\d", "<time>", base64.b64decode(content["blob"]).decode())}


def with_any_token(observed):
    text = json.dumps(observed)
    for token in {json.dumps(update["progressToken"]) for update in observed["progress"]}:
        text = text.replace(f'"progressToken": {token}', '"progressToken": "…"')
    # One server answers with the token that it was given.
    return json.loads(re.sub(r'"text": "\d+"', '"text": "…"', text))


def without(value, names):
    if isinstance(value, list):
        return [without(item, names) for item in value]
    if not isinstance(value, dict):
        return value
    there = {k: without(v, names) for k, v in value.items() if k not in names}
    return {k: v for k, v in there.items() if not (k == "_meta" and v == {})}
