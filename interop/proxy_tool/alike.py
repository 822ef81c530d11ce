"""What two ways to the same thing have in common: what was read through the tool may be written otherwise."""

import base64
import json
import re

READ = {"text": json.loads, "blob": lambda data: TIME.sub(b"<time>", base64.b64decode(data, validate=True)).decode()}
TIME = re.compile(rb"\d{1,2}:\d\d:\d\d")


def same(value, key=None):
    """What it comes to: JSON in a resource may be spelled in several ways, and blobs say when they were made."""
    if isinstance(value, list):
        return [same(item) for item in value]
    if isinstance(value, dict):
        return {name: same(item, name) for name, item in value.items()}
    if key in READ:
        try:
            return READ[key](value)
        except ValueError:
            return value
    return value
