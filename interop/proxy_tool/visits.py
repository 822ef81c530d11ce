"""One client that has nothing but the tool, and knows nothing but its annotations, observes every server in turn."""

from dataclasses import dataclass

from gateway.lineup import LINEUP, QUESTIONS, features_of
from gateway.visits import Visitor
from gateway.visits import visited as visited_by

from .alike import same

PLACES = [place for place in LINEUP if place.id in ("everything", "files", "memory", "kit")]
# What a tool can be the way to; what a client is told, subscribes to or takes back is its own affair.
REACHED = QUESTIONS | set(
    "tools-list tool-call tool-error structured link-read protocol-error concurrent-calls large-message progress"
    " resources-list resource-templates resource-read prompts-list prompt-get".split()
)


@dataclass(frozen=True)
class ToolVisitor(Visitor):
    def lineup(self):
        return PLACES

    def places(self):
        return PLACES

    def features(self, place):
        # In the newest revision a question is a result, which this client leaves to the SDK's own calls.
        unasked = QUESTIONS if self.era == "modern" else set()
        return (features_of(self.client, place, self.era) & REACHED) - unasked

    def configuration(self, entries):
        return {"servers": entries, "proxy_tool": {"mode": "instead"}}

    def words(self):
        return [*super().words(), "--through-tool", "proxy"]

    def alike(self, seen):
        return same(seen)


def visited(stage):
    """The play: as of any gateway, in which the visitor sees but one tool."""
    visited_by(stage)
