"""What makes a verdict: documents of direct conversations, and the comparison with those through the proxy."""

import difflib
import json
import threading
from concurrent.futures import Future

from .exceptions import compared
from .processes import RunFailed

DIFF_LINES_MAX = 80


class Baselines:
    """Documents of direct conversations. Three pairs and more share each, so it is had only once."""

    def __init__(self):
        self._futures, self._lock = {}, threading.Lock()

    def get(self, cell):
        cell = cell.directly()
        with self._lock:
            is_mine = cell not in self._futures
            future = self._futures.setdefault(cell, Future())
        if is_mine:
            try:
                future.set_result(cell.scene().play(None)[0])
            except BaseException as failure:
                future.set_exception(failure)
        return future.result()


def uncovered(cell, document):
    """Declared features that the document says nothing about."""
    seen = document.get("features", {})
    return sorted(name for name in cell.features if not seen.get(name) or "observed" not in seen[name])


def text_of(document):
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False)


def difference(direct, proxied):
    before, after = text_of(direct).splitlines(), text_of(proxied).splitlines()
    diff = list(difflib.unified_diff(before, after, "direct", "proxied", lineterm="", n=4))
    if len(diff) > DIFF_LINES_MAX:
        diff[DIFF_LINES_MAX:] = [f"… {len(diff) - DIFF_LINES_MAX} more lines"]
    return "\n".join("  " + line[:300] for line in diff)


def compare(cell, direct, proxied, keep):
    """Raises unless both documents have all that the cell declares, and agree. Gives what was not compared."""
    for way, document in (("direct", direct), ("proxied", proxied)):
        if keep:
            (keep / f"{cell} {way}.json").write_text(text_of(document))
        if gaps := uncovered(cell, document):
            raise RunFailed(f"{way}: nothing observed of {', '.join(gaps)}")
    (direct, excused), (proxied, _) = compared(cell, direct), compared(cell, proxied)
    if direct != proxied:
        raise RunFailed("differs\n" + difference(direct, proxied))
    return excused
