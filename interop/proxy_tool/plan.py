"""A call of every tool of three servers, in an order in which each finds what it needs, and of all else there is."""

from gateway.names import address, name, template

EVERYTHING = [
    ("echo", {"message": "hello \u00e9"}),
    ("get-annotated-message", {"messageType": "error", "includeImage": True}),
    ("get-env", {}),
    ("get-resource-links", {"count": 2}),
    ("get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
    ("get-resource-reference", {"resourceType": "Blob", "resourceId": 2}),
    ("get-structured-content", {"location": "Chicago"}),
    ("get-sum", {"a": 2, "b": 40}),
    ("get-sum", {"a": "two"}),
    ("get-tiny-image", {}),
    ("gzip-file-as-resource", {"name": "a.gz", "data": "data:text/plain,hello", "outputType": "resource"}),
    ("toggle-simulated-logging", {}),
    ("toggle-simulated-logging", {}),
    ("toggle-subscriber-updates", {}),
    ("toggle-subscriber-updates", {}),
    ("trigger-long-running-operation", {"duration": 0.2, "steps": 2}),
    ("get-roots-list", {}),
    ("trigger-elicitation-request", {}),
    ("trigger-url-elicitation", {"url": "https://example.com/", "message": "go", "elicitationId": "e", "errorPath": True}),
    ("trigger-sampling-request", {"prompt": "say something", "maxTokens": 20}),
    ("no-such-tool", {}),
]
FILES = [
    ("create_directory", {"path": "w/sub"}),
    ("write_file", {"path": "w/notes.txt", "content": "one\ntwo \u00e9\n"}),
    ("write_file", {"path": "w/pixel.png", "content": "no picture"}),
    ("edit_file", {"path": "w/notes.txt", "edits": [{"oldText": "one", "newText": "1"}]}),
    ("read_file", {"path": "w/notes.txt"}),
    ("read_text_file", {"path": "w/notes.txt", "head": 1}),
    ("read_text_file", {"path": "w/nothing"}),
    ("read_media_file", {"path": "w/pixel.png"}),
    ("read_multiple_files", {"paths": ["w/notes.txt", "w/nothing"]}),
    ("list_directory", {"path": "w"}),
    ("list_directory_with_sizes", {"path": "w"}),
    ("directory_tree", {"path": "w"}),
    ("move_file", {"source": "w/notes.txt", "destination": "w/sub/moved.txt"}),
    ("search_files", {"path": "w", "pattern": "**/*.txt"}),
    ("get_file_info", {"path": "w/sub/moved.txt"}),
    ("list_allowed_directories", {}),
]
ADA = {"name": "Ada", "entityType": "person", "observations": ["counts"]}
KNOWS = {"from": "Ada", "to": "Alan", "relationType": "knows"}
MEMORY = [
    ("create_entities", {"entities": [ADA, ADA | {"name": "Alan"}]}),
    ("create_relations", {"relations": [KNOWS]}),
    ("add_observations", {"observations": [{"entityName": "Ada", "contents": ["writes"]}]}),
    ("delete_observations", {"deletions": [{"entityName": "Ada", "observations": ["counts"]}]}),
    ("read_graph", {}),
    ("search_nodes", {"query": "ada"}),
    ("open_nodes", {"names": ["Alan"]}),
    ("delete_relations", {"relations": [KNOWS]}),
    ("delete_entities", {"entityNames": ["Alan"]}),
]
CALLS = {"everything": EVERYTHING, "files": FILES, "memory": MEMORY}
TASKS = {"everything": [("simulate-research-query", {"topic": "tea"})]}
PROMPTS = {
    "everything": [
        ("simple-prompt", {}),
        ("args-prompt", {"city": "Z\u00fcrich", "state": "ZH"}),
        ("args-prompt", {}),
        ("completable-prompt", {"department": "Sales", "name": "David"}),
        ("resource-prompt", {"resourceType": "Text", "resourceId": "2"}),
    ]
}


def plan(places):
    def named(table):
        return [{"name": name(place, tool), "arguments": given} for place in places for tool, given in table.get(place.id, [])]

    everything = next(place for place in places if place.id == "everything")
    expanded = [template(everything, f"demo://resource/dynamic/{kind}/7") for kind in ("text", "blob")]
    missing = address(everything, "demo://resource/nowhere")
    return {"calls": named(CALLS), "tasks": named(TASKS), "prompts": named(PROMPTS), "reads": [*expanded, missing]}
