"""The terminal face as somebody sees and works it: rows of the list, the editor, the title."""

import re
from dataclasses import dataclass

from harness.processes import RunFailed

ROW = re.compile(r"│(?P<sign>.) {0,2}#(?P<sequence>\d+) (?:\d\d:\d\d:\d\d )?(?P<arrow>[→←]) (?P<words>[^│]*)│")
VIEWS = ["JSON", "Tree", "Raw", "Diff", "Headers", "Policy", "Pair"]
VIEW = re.compile(rf"\[({'|'.join(VIEWS)})\]")
STEPS_MAX, STEP_SECONDS = 200, 0.5
HELD, EDITED = "⏸", "✎"


@dataclass(frozen=True)
class Row:
    sequence: int
    is_to_server: bool
    is_held: bool
    words: str

    @property
    def is_edited(self):
        return EDITED in self.words


def rows(screen):
    found = (ROW.search(line) for line in screen.splitlines())
    return [Row(int(m["sequence"]), m["arrow"] == "→", m["sign"] == HELD, m["words"].strip()) for m in found if m]


class Face:
    def __init__(self, terminal):
        self.terminal = terminal

    def drawn(self):
        """Waits until it is there and knows how things stand."""
        self.terminal.until("the screen to be drawn", re.compile(r"(?s)\d+ msgs.*┌ Messages").search)

    def row(self, what, is_it):
        """The newest row that is as it should be, once there is one."""
        return self.terminal.until(what, lambda screen: next((r for r in reversed(rows(screen)) if is_it(r)), None))

    def held(self, tool, is_to_server=True):
        """The row of a call of this tool that is held, or of its answer."""
        what = f"a held {'call' if is_to_server else 'answer'} of {tool}"
        return self.row(what, lambda row: row.is_held and row.is_to_server == is_to_server and f"[{tool}]" in row.words)

    def select(self, sequence):
        """Walks through the list to a message. While it follows what comes, a step may lead to where it was."""
        selected = re.compile(r"Detail #(\d+) ")
        for _ in range(STEPS_MAX):
            at = int(self.terminal.until("a selected message", selected.search)[1])
            if at == sequence:
                return
            self.terminal.press("k" if at > sequence else "j")
            self.terminal.glimpse(lambda screen: f"Detail #{at} " not in screen, STEP_SECONDS)
        raise RunFailed(f"#{sequence} cannot be walked to")

    def show(self, view):
        """Leafs through the views until it is this one."""
        for _ in range(len(VIEWS) + 1):
            shown = self.terminal.until("a view", VIEW.search)
            if shown[1] == view:
                return
            self.terminal.press("v")
            self.terminal.until(f"another view than {shown[1]}", lambda screen: f"[{shown[1]}]" not in screen)
        raise RunFailed(f"there is no view {view}")

    def answer_prompt(self, title, text):
        """Writes into a line that was opened, in the place of what is suggested there."""
        terminal, begin = self.terminal, rf"(?m)^ {title}:"
        terminal.until(f"the line {title!r}", lambda screen: re.search(begin, screen))
        terminal.press("C-u")
        terminal.write(text)
        terminal.until(f"{text!r} to be typed", lambda screen: re.search(rf"{begin} {re.escape(text)}\s*$", screen))
        terminal.press("Enter")
        terminal.until("the line to be taken", lambda screen: not re.search(begin, screen))

    def hold(self, filter_):
        self.terminal.press("b")
        self.answer_prompt("Hold what matches", filter_)
        self.terminal.shows("[BREAK ")

    def edit(self, before, after):
        """Replaces the end of the one line of the held message that ends with `before`."""
        terminal = self.terminal
        terminal.press("m")
        # The verdict below the text is drawn last: with it the whole editor is there, and nothing of what it covers.
        editor = re.compile(rf"(?s)ctrl-s sends it on.*{re.escape(before)}.*│[✓✗] ")
        lines = terminal.until(f"an editor with {before!r}", editor.search).string.splitlines()
        top = next(at for at, line in enumerate(lines) if "ctrl-s sends it on" in line)
        down = next(at for at, line in enumerate(lines[top + 1 :]) if before in line)
        terminal.press(*["Down"] * down, "End", *["BSpace"] * len(before))
        terminal.write(after)
        terminal.until(f"{after!r} in the editor", re.compile(rf"(?s){re.escape(after)} *│.*│✓ ").search)
        terminal.press("C-s")
        terminal.until("the editor to close", lambda screen: "ctrl-s sends it on" not in screen)

    def forward(self):
        self.terminal.press("f")

    def leave(self):
        """Leaves at once, whatever is held."""
        self.terminal.press("Q")
        self.terminal.at_the_shell()
