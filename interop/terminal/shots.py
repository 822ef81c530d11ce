#!/usr/bin/env python3
"""Draws the real screens of `mcp-proxy demo`, as they are on a terminal, to SVG files for the documentation.

    python3 interop/terminal/shots.py --proxy target/release/mcp-proxy --out docs/images
"""

import argparse
import html
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unicodedata
import uuid

COLUMNS, ROWS = 110, 30
CELL_WIDTH, CELL_HEIGHT = 8.4, 18
BACKGROUND, FOREGROUND = "#16181d", "#d7dae0"
PALETTE = [
    "#16181d", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#abb2bf",
    "#6b7280", "#ff8b94", "#b5e08d", "#ffd787", "#82c4ff", "#e29bf5", "#74d4de", "#ffffff",
]
BLANK = "\u00a0"  # browsers fold others at the ends of a text
SGR = re.compile(r"\x1b\[([0-9;]*)m")


class Terminal:
    """A tmux server of our own with one pane."""

    def __init__(self, home):
        self.name = f"shots-{uuid.uuid4().hex[:8]}"
        self.environment = {**os.environ, "HOME": home, "TERM": "xterm-256color"}
        self.environment.pop("NO_COLOR", None)
        self.environment.pop("TMUX", None)

    def tmux(self, *args):
        done = subprocess.run(
            ["tmux", "-L", self.name, *args], env=self.environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    def start(self, command):
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), command)
        self.tmux("set", "-g", "status", "off")

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def screen(self, *args):
        return self.tmux("capture-pane", "-p", *args)

    def wait(self, words):
        until = time.monotonic() + 30
        while words not in self.screen():
            if time.monotonic() > until:
                sys.exit(f"waited for {words!r} in vain:\n{self.screen()}")
            time.sleep(0.05)

    def end(self):
        subprocess.run(["tmux", "-L", self.name, "kill-server"], env=self.environment, capture_output=True)


def colour(number):
    if number < 16:
        return PALETTE[number]
    if number < 232:
        level = [0, 95, 135, 175, 215, 255]
        number -= 16
        return "#%02x%02x%02x" % (level[number // 36], level[number // 6 % 6], level[number % 6])
    grey = 8 + (number - 232) * 10
    return "#%02x%02x%02x" % (grey, grey, grey)


class Style:
    def __init__(self):
        self.set("0")

    def set(self, codes):
        codes = [int(code or 0) for code in codes.split(";")]
        while codes:
            code = codes.pop(0)
            if code == 0:
                self.fore, self.back, self.bold, self.dim, self.under, self.swap = None, None, False, False, False, False
            elif code in (1, 2, 4, 7):
                setattr(self, {1: "bold", 2: "dim", 4: "under", 7: "swap"}[code], True)
            elif code in (22, 24, 27):
                for name in {22: ("bold", "dim"), 24: ("under",), 27: ("swap",)}[code]:
                    setattr(self, name, False)
            elif 30 <= code <= 37 or 90 <= code <= 97:
                self.fore = PALETTE[code - 30 if code < 90 else code - 82]
            elif 40 <= code <= 47 or 100 <= code <= 107:
                self.back = PALETTE[code - 40 if code < 100 else code - 92]
            elif code in (38, 48) and codes[:1] == [5]:
                setattr(self, "fore" if code == 38 else "back", colour(codes[1]))
                del codes[:2]
            elif code == 39:
                self.fore = None
            elif code == 49:
                self.back = None

    def looks(self):
        fore, back = self.fore or FOREGROUND, self.back
        if self.swap:
            fore, back = (back or BACKGROUND), (self.fore or FOREGROUND) if self.back is None else self.back
            if self.back is not None:
                fore, back = self.fore or FOREGROUND, self.back
        return fore, back, self.bold, self.dim, self.under


def runs(line, style):
    """Stretches of one style: column, text, looks."""
    column, at = 0, 0
    for match in [*SGR.finditer(line), None]:
        text = line[at : match.start() if match else len(line)]
        if text:
            yield column, text, style.looks()
            column += sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
        if match:
            style.set(match.group(1))
            at = match.end()


def svg(screen):
    width, height = COLUMNS * CELL_WIDTH + 20, ROWS * CELL_HEIGHT + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" font-family="ui-monospace, '
        f'DejaVu Sans Mono, Menlo, monospace" font-size="14" xml:space="preserve">',
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
    ]
    style = Style()
    for row, line in enumerate(screen.rstrip("\n").split("\n")):
        y = 10 + row * CELL_HEIGHT
        for column, text, (fore, back, bold, dim, under) in runs(line, style):
            x, span = 10 + column * CELL_WIDTH, len(text) * CELL_WIDTH
            if back:
                parts.append(f'<rect x="{x:g}" y="{y:g}" width="{span:g}" height="{CELL_HEIGHT}" fill="{back}"/>')
            if text.strip():
                looks = f' font-weight="bold"' if bold else ""
                looks += ' opacity="0.7"' if dim else ""
                looks += ' text-decoration="underline"' if under else ""
                shown = html.escape(text).replace(" ", BLANK)
                parts.append(
                    f'<text x="{x:g}" y="{y + 14:g}" fill="{fore}" textLength="{span:g}"{looks}>{shown}</text>'
                )
    return "\n".join([*parts, "</svg>\n"])


def walk(terminal, shot):
    """Through the demo, with a picture where there is something to see."""
    terminal.wait("Step 1 of 8")
    terminal.wait("chatter")
    terminal.keys(">")
    terminal.keys(">")
    terminal.keys("i")
    terminal.wait("⏸ #")
    shot("traffic")
    terminal.keys("m")
    terminal.wait("ctrl-s sends it on")
    shot("edit")
    terminal.keys("C-s")
    terminal.wait("sent on as it came")
    terminal.keys("i")
    terminal.wait("everything goes on at once")
    terminal.keys("/")
    terminal.keys("-l", "tool:divide kind:request")
    terminal.keys("Enter")
    terminal.wait("Messages tool:divide kind:request ─")
    terminal.wait("► #017 → tools/call [divide]")
    terminal.keys("r")
    terminal.wait("run 1")
    terminal.keys("r")
    terminal.wait("run 2")
    terminal.keys("c")
    terminal.wait("differ")
    shot("repeater")
    terminal.keys("1")
    terminal.keys("Escape")
    terminal.keys("4")
    terminal.wait("p95")
    shot("waterfall")
    terminal.keys("5")
    terminal.wait("write_note")
    shot("tools")
    terminal.keys(">")
    terminal.keys("2")
    terminal.wait("D deny")
    shot("held")
    terminal.keys("D")
    terminal.keys("o")
    terminal.wait("denied")
    terminal.keys("Q")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--proxy", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        # The title shows the server's command: a short one reads better.
        program = pathlib.Path(home, "mcp-proxy")
        shutil.copy(args.proxy, program)
        terminal = Terminal(home)
        try:
            terminal.start(f"cd {home} && ./mcp-proxy demo")

            def shot(name):
                (args.out / f"{name}.svg").write_text(svg(terminal.screen("-e")))
                print(f"{args.out / name}.svg")

            walk(terminal, shot)
        finally:
            terminal.end()


if __name__ == "__main__":
    main()
