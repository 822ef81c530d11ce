"""Arguments in, document out: what the Python client and the Inspector's driver have in common."""

import argparse
import json
import re
from pathlib import Path

PROFILES = Path(__file__).parents[2] / "profiles.json"

VOLATILE = [
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.I), "<uuid>"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"), "<time>"),
    (re.compile(r"\b\d{1,2}:\d\d:\d\d(\s[AP]M)?"), "<time>"),
]


def parse(arguments):
    """`--era ERA --profile NAME [--features A,B]`, then `-- COMMAND ARGS...` or `--transport http|sse --url URL`.

    With several names in `--profile`, all that they describe is behind the one peer, and is observed in turn.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--era", required=True)
    parser.add_argument("--profile", required=True, help="or several, comma-separated")
    parser.add_argument("--profiles", type=Path, default=PROFILES, help="the file with them")
    parser.add_argument("--features", type=lambda names: names.split(","), help="comma-separated; all by default")
    parser.add_argument("--transport", default="stdio", choices=("stdio", "http", "sse"))
    parser.add_argument("--url")
    parser.add_argument("--together", action="store_true", help="say CONNECTED on stderr, and go on when stdin ends")
    parser.add_argument("--through-tool", metavar="NAME", help="reach everything through this tool")
    parser.add_argument("--orders", action="store_true", help="do what is said on stdin, and print no document")
    parser.add_argument("command", nargs="*", help="after `--`")
    options = parser.parse_args(arguments)
    if bool(options.command) == bool(options.url):
        parser.error("need either -- COMMAND or --url")
    return options


def load_profile(name, options):
    """The data of one profile, with what only holds for this era laid over the rest."""
    profile, era = json.loads(options.profiles.read_text())[name], options.era
    eras = {key: profile.pop(key, {}) for key in ("legacy", "modern")}
    return profile | eras.get(era, {})


def canonical(value, key=None):
    """Replaces what differs between two runs of the same server."""
    if key == "requestState":
        return "<state>"  # sealed with a key of the process
    if isinstance(value, str):
        for pattern, mask in VOLATILE:
            value = pattern.sub(mask, value)
        return value
    if isinstance(value, list):
        return [canonical(item) for item in value]
    return {k: canonical(v, k) for k, v in value.items()} if isinstance(value, dict) else value


def print_document(client, options, visits):
    """What was observed, by profile."""
    documents = [{"client": client, "era": options.era, "profile": name, "features": seen} for name, seen in visits.items()]
    document = documents[0] if len(documents) == 1 else documents
    print(json.dumps(canonical(document), indent=1, sort_keys=True, ensure_ascii=False))
