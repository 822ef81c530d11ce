"""Which client meets which server, in which era and over which pair of transports, and what has to be seen there."""

from dataclasses import dataclass, replace

from .compare import compare
from .exceptions import not_run
from .peers import CLIENTS, RAW_SERVER, SERVERS, TRANSPORTS
from .scene import Scene

MATRIX_SERVERS = ("everything", "py", "ts", "raw")
PAIRS = [(client_side, server_side) for client_side in TRANSPORTS for server_side in TRANSPORTS]

ALWAYS = set(
    "handshake roots tools-list tool-call tool-error structured protocol-error concurrent-calls large-message progress"
    " cancellation logging sampling elicitation resources-list resource-templates resource-read prompts-list prompt-get"
    " completion subscription list-changed".split()
)
BY_ERA = {"legacy": {"ping"}, "modern": {"discover", "rounds"}}
BY_SERVER = {
    ("py", "legacy"): {"rounds"},
    ("ts", "legacy"): {"rounds"},
    ("raw", "legacy"): {"request-bytes"},
    ("raw", "modern"): {"request-bytes", "header-parameters", "server-closes-subscription"},
}
AUTO = {"handshake", "roots", "tools-list", "tool-call"}
# The Inspector starts a process per method, so it does less where that takes long.
INSPECTOR = {"handshake", "structured", "prompt-get"}
INSPECTOR_QUICK = INSPECTOR | {"tool-error", "roots", "resource-read"}
INSPECTOR_IN_FULL = INSPECTOR_QUICK | {"tools-list", "resource-templates", "protocol-error", "logging"}


@dataclass(frozen=True)
class Cell:
    client: str
    server: str
    era: str
    client_side: str
    server_side: str
    features: frozenset

    @property
    def pair(self):
        return self.client_side, self.server_side

    @property
    def pairs(self):
        return {self.pair}

    def __str__(self):
        return f"{self.client} × {self.server} {self.era} {self.client_side}-{self.server_side}"

    def directly(self):
        """The same conversation without a proxy: the server speaks the client's transport."""
        return replace(self, server_side=self.client_side)

    def missing(self):
        """Why this cell cannot run here, if so."""
        if self.server == "raw" and not RAW_SERVER.is_file():
            return f"no {RAW_SERVER}; set MCP_SHARED"
        return None


    def scene(self):
        return Scene(self.server, self.era, self.server_side, ((self.client_side, client_words(self)),))

    def check(self, proxy, baselines, keep):
        """Raises what is wrong; otherwise says what was seen."""
        direct = baselines.get(self)
        excused = compare(self, direct, self.scene().play(proxy)[0], keep)
        return f"({len(direct['features'])} features{', less ' + str(len(excused)) + ' excused' if excused else ''})"


def client_words(cell):
    options = ["--era", cell.era, "--profile", SERVERS[cell.server].profile, "--features", ",".join(sorted(cell.features))]
    return [*CLIENTS[cell.client], *options]


def features_of(client, server, era):
    if era == "auto":
        return AUTO
    if client == "inspector":
        return {"everything": INSPECTOR_IN_FULL, "py": INSPECTOR}.get(server, INSPECTOR_QUICK)
    return ALWAYS | BY_ERA[era] | BY_SERVER.get((server, era), set())


def conversations():
    legacy = [(c, s, "legacy") for s in MATRIX_SERVERS for c in CLIENTS]
    modern = [(c, s, "modern") for s in MATRIX_SERVERS for c in CLIENTS if s != "everything" and c != "ts1"]
    # A client that has to find out the era first: towards a server of either.
    auto = [(c, s, "auto") for s in ("everything", "ts") for c in ("py", "ts2")]
    return legacy + modern + auto


def whole():
    """The full product."""
    return [Cell(c, s, era, *pair, frozenset(features_of(c, s, era))) for pair in PAIRS for c, s, era in conversations()]


# The Inspector costs as much as the other clients together, so on each pair it meets one server of each era, and
# over all pairs every server. Those that find out the era take turns alike.
ROTATION = {
    ("inspector", "legacy"): ["raw", "everything", "py", "ts"],
    ("inspector", "modern"): ["raw", "ts", "raw", "py"],
    ("py", "auto"): ["everything", "ts"],
    ("ts2", "auto"): ["ts", "everything"],
}


def is_in_turn(cell):
    turns = ROTATION.get((cell.client, cell.era), [cell.server])
    turn = turns[PAIRS.index(cell.pair) % len(turns)]
    return cell.server == turn


def matrix(is_whole):
    """The cells to run, and by reason those of them that cannot be."""
    cells, left_out = [], {}
    for cell in whole():
        if entry := not_run(cell):
            left_out.setdefault(entry.reason, []).append(cell)
        elif is_whole or is_in_turn(cell):
            cells.append(cell)
    return cells, left_out
