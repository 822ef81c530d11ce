"""The servers that stand behind one endpoint, of every transport and both eras, and what each of them has to show."""

from dataclasses import dataclass

from harness.peers import RAW_SERVER, SERVERS


@dataclass(frozen=True)
class Place:
    """A server behind the gateway."""

    id: str
    server: str     # of harness/peers.py
    side: str       # its transport
    eras: tuple     # that it speaks there
    started: str = "legacy"  # what it is told to speak, if it is told anything

    def command(self):
        return SERVERS[self.server].command(self.side, self.started)

    def profile(self):
        return SERVERS[self.server].profile

    def spoken_with(self, era):
        """The era in which a client of this era has to do with it, if it is the gateway that speaks with it."""
        return era if era in self.eras else self.eras[0]


LEGACY, MODERN, BOTH = ("legacy",), ("modern",), ("legacy", "modern")

LINEUP = [
    Place("everything", "everything", "stdio", LEGACY),
    Place("files", "filesystem", "stdio", LEGACY),
    Place("memory", "memory", "stdio", LEGACY),
    Place("kit", "py", "http", BOTH),
    Place("web", "everything", "http", LEGACY),
    Place("raw", "raw", "stdio", BOTH, started="dual"),
    Place("raw-old", "raw", "sse", LEGACY, started="legacy"),
    Place("raw-new", "raw", "http", MODERN, started="modern"),
]


def absent():
    """Why the line-up cannot be complete here, if so."""
    return None if RAW_SERVER.is_file() else f"no {RAW_SERVER}; set MCP_SHARED"


# -- what is observed of each ------------------------------------------------------------------------------

CALLS = set("tools-list tool-call tool-error structured".split())
READS = set("resources-list resource-read protocol-error subscription".split())
QUESTIONS = {"roots", "sampling", "elicitation", "rounds"}
WHOLE = CALLS | READS | QUESTIONS | set(
    "concurrent-calls large-message progress cancellation logging resource-templates prompts-list prompt-get completion"
    " list-changed".split()
)
OF_SERVER = {
    ("everything", "legacy"): (WHOLE | {"link-read"}) - {"rounds"},
    ("filesystem", "legacy"): CALLS,
    ("memory", "legacy"): CALLS | READS,
    ("py", "legacy"): WHOLE,
    ("py", "modern"): WHOLE,
    ("raw", "legacy"): (WHOLE | {"request-bytes"}) - {"rounds"},
    ("raw", "modern"): WHOLE | {"request-bytes", "header-parameters"},
}
# What it does by a clock it does on one transport only.
BY_CLOCK = {"logging", "subscription", "cancellation"}
# A process for each, so few of them.
INSPECTED = {
    "everything": READS - {"protocol-error", "subscription"} | CALLS - {"tool-call"} | {"prompts-list", "prompt-get"},
    "raw-new": {"structured", "prompt-get", "resource-read"},
}
INSPECTED_OF_OTHERS = {"structured"}


def features_of(client, place, era):
    """What a client of this era is to observe of a server. A server of the other one cannot ask it anything."""
    spoken = place.spoken_with(era)
    features = OF_SERVER[place.server, spoken]
    if place.id == "web":
        features = features - BY_CLOCK
    if spoken != era:
        features = features - QUESTIONS - {"request-bytes", "header-parameters"}
        if (place.server, era) == ("everything", "modern"):
            features = features - {"logging"}  # it logs by a clock, and a modern client hears what its own calls log
    return features & INSPECTED.get(place.id, INSPECTED_OF_OTHERS) if client == "inspector" else features
