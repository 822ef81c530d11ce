"""What the gateway calls the things of its servers, there and back: so that what is seen through it can be compared."""

import base64
import json
import re

META = "io.github.mcp-proxy/"
RESOURCE, TEMPLATE = "proxy://resource/", "proxy://template/"
LISTS = ("tools", "resources", "resourceTemplates", "prompts")


def name(place, original):
    return f"{place.id}__{original}"


def address(place, uri):
    wrapped = json.dumps({"server": place.id, "uri": uri}, separators=(",", ":"), ensure_ascii=False)
    return RESOURCE + base64.urlsafe_b64encode(wrapped.encode()).decode().rstrip("=")


def template(place, text):
    return f"{TEMPLATE}{place.id}/{text}"


def is_question(prompt):
    return "input_required" in prompt["name"]


def given(place, profile, era):
    """A server's profile, as a client of this era has to use it through the gateway."""
    spoken = place.spoken_with(era)
    profile = {key: value for key, value in profile.items() if key not in ("legacy", "modern")} | profile.get(spoken, {})
    if spoken != era and "prompts" in profile:
        profile["prompts"] = [prompt for prompt in profile["prompts"] if not is_question(prompt)]

    def renamed(value, key=None):
        if isinstance(value, list):
            return [renamed(item) for item in value]
        if not isinstance(value, dict):
            return value
        if value.get("type") == "ref/resource":
            return value | {"uri": template(place, value["uri"])}
        there = {k: v if k in ("arguments", "argument", "context") else renamed(v, k) for k, v in value.items()}
        if "name" in there and ("arguments" in there or "type" in there):
            there["name"] = name(place, there["name"])
        if key == "subscription":
            there["uri"] = address(place, there["uri"])
        return there

    changed = renamed(profile)
    if "echo" in changed:
        changed["echo"] = name(place, changed["echo"])
    if "missing" in changed:
        changed["missing"] = address(place, changed["missing"])
    if "reads" in changed:
        # Where there are several, the last is one that a template describes: it is what that expands to.
        *listed, last = changed["reads"]
        changed["reads"] = [*(address(place, uri) for uri in listed), (template if listed else address)(place, last)]
    return changed


class NotItsOwn(Exception):
    """Something of another server, where it has no business."""


def original(place, text):
    """What the server itself says for a name or an address of the gateway."""
    if text.startswith(RESOURCE):
        wrapped = text.removeprefix(RESOURCE)
        wrapped = json.loads(base64.urlsafe_b64decode(wrapped + "=" * (-len(wrapped) % 4)))
        if wrapped["server"] != place.id:
            raise NotItsOwn(f"{wrapped} is not of {place.id}")
        return wrapped["uri"]
    if text.startswith(TEMPLATE):
        return text.removeprefix(template(place, ""))
    return text


def as_directly(place, value, key=None):
    """What was seen through the gateway, as it would have been seen directly: other servers' things left out."""
    if isinstance(value, str):
        if key == "name":
            return value.removeprefix(name(place, ""))
        if key == "message":  # of a client that says itself which tool failed
            return value.replace(f"Tool '{place.id}__", "Tool '", 1)
        if key == "event":  # how an SDK prints one
            return re.sub(r"proxy://resource/[\w-]+", lambda found: original(place, found[0]), value)
        return original(place, value)
    if isinstance(value, list):
        if key in LISTS and all(isinstance(item, dict) for item in value):
            value = [item for item in value if item.get("_meta", {}).get(META + "server") == place.id]
        return [as_directly(place, item) for item in value]
    if not isinstance(value, dict):
        return value
    there = {k: as_directly(place, v, k) for k, v in value.items() if not k.startswith(META)}
    return {k: v for k, v in there.items() if not (k == "_meta" and v == {} and value[k])}
