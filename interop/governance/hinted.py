"""A server calls most of what writes destructive. Rules that deny deletes pass it, before the list and after it."""

import json

from harness.processes import RunFailed
from holds.checks import expect

from .walk import DENIED

RULES = json.dumps({"fs": {"read": "allow", "write": "allow", "delete": "deny"}})


def calls(moved):
    return [
        ("write_file", {"path": "note", "content": "one"}),
        ("edit_file", {"path": "note", "edits": [{"oldText": "one", "newText": "two"}]}),
        ("move_file", {"source": "note", "destination": moved}),
        ("create_directory", {"path": "made"}),
        ("read_text_file", {"path": moved}),
    ]


def hinted(stage):
    """All that writes passes; a delete by its name is denied, whether or not the server has it."""
    stage.write_rules(RULES)
    client, _ = stage.connect()
    used(client, "before")
    tools = {tool["name"]: tool.get("annotations", {}) for tool in client.list_tools()}
    destructive = {name for name, hints in tools.items() if hints.get("destructiveHint")}
    expect("what the server calls destructive", destructive, {"write_file", "edit_file", "move_file"})
    used(client, "after")
    stage.close()
    operations = {line["tool"]: line["operation"] for line in stage.decisions()}
    expect("the operations", {operations[tool] for tool in destructive}, {"write"})


def used(client, moved):
    for tool, arguments in calls(moved):
        outcome = client.outcome(client.call(tool, arguments))
        if "error" in outcome or outcome["result"].get("isError"):
            raise RunFailed(f"{tool} did not pass: {outcome}")
    error = client.outcome(client.call("delete_file", {"path": "moved"})).get("error", {})
    expect("what a delete gets", error.get("code"), DENIED)
