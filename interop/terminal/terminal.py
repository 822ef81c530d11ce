"""A terminal that somebody sits at: tmux holds the screen, keys go in, and the screen is looked at until it is so."""

import os
import re
import secrets
import shlex
import subprocess
import time
from pathlib import Path

from harness.processes import RunFailed

PATIENCE_SECONDS = 20  # far beyond what any step takes; and less than the 45 s after which a hold ends by itself
LOOK_SECONDS = 0.05    # between two looks at the screen
SETTLED_SECONDS = 0.1  # without a change
COLUMNS, LINES = 120, 40
PROMPT = "at-the-shell$"


class Terminal:
    """A shell on a tmux server of its own, which lives in the home of its case like every other process."""

    def __init__(self, binary, home):
        self.home, self._name, self._done = home, f"mcp-proxy-{secrets.token_hex(4)}", 0
        programs = Path(home.path, "bin")
        programs.mkdir(exist_ok=True)
        (programs / "mcp-proxy").symlink_to(binary)
        self._environment = home.environment | {
            "PATH": f"{programs}:{home.environment['PATH']}",
            "TMUX_TMPDIR": home.path,
            "TERM": "xterm-256color",
            "PS1": f"{PROMPT} ",
        }
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", COLUMNS, "-y", LINES, *self._shell())
        for option in (("status", "off"), ("window-size", "manual"), ("set-clipboard", "on")):
            self._tmux("set-option", "-g", *option)
        self._tmux("resize-window", "-x", COLUMNS, "-y", LINES)
        self.at_the_shell()

    @staticmethod
    def _shell():
        return ["bash", "--noprofile", "--norc", "--noediting"]  # no line editing: it has settings of its own

    def _tmux(self, *words):
        words = ["tmux", "-L", self._name, *map(str, words)]
        done = subprocess.run(words, cwd=self.home.path, env=self._environment, capture_output=True, text=True)
        if done.returncode:
            raise RunFailed(f"`{shlex.join(words)}`: {done.stderr.strip()}")
        return done.stdout

    # -- hands -----------------------------------------------------------------------------------------

    def press(self, *keys):
        """Keys by tmux's names for them: `q`, `Enter`, `C-s`, `Down`."""
        self._tmux("send-keys", *(r"\;" if key == ";" else key for key in keys))  # alone it would part two commands

    def write(self, text):
        self._tmux("send-keys", "-l", text)

    def run(self, command):
        """Has the shell do something to its end, which shows that there is a shell, too."""
        self._done += 1
        note = Path(self.home.path, f"done-{self._done}")
        self.write(f"{command}; echo $? > {note}.draft; mv {note}.draft {note}\n")
        self.until(f"the end of `{command}`", lambda _: note.exists())
        return int(note.read_text())

    def resize(self, columns, lines):
        self._tmux("resize-window", "-x", columns, "-y", lines)

    def anew(self):
        """Another shell in the place of this one."""
        self._tmux("respawn-pane", "-k", *self._shell())
        self.at_the_shell()

    def record(self, path):
        """Every byte that is written to the terminal from now on goes to a file, too, as it is."""
        self._tmux("pipe-pane", f"exec cat > {shlex.quote(str(path))}")

    def close(self):
        self._tmux("kill-server")

    # -- eyes ------------------------------------------------------------------------------------------

    def screen(self):
        return self._tmux("capture-pane", "-p")

    def settled(self):
        """Waits until nothing moves any more, for keys that may do something or nothing."""
        before = None

        def is_as_before(screen):
            nonlocal before
            before, is_same = screen, screen == before
            return is_same

        self.until("the screen to settle", is_as_before, look_seconds=SETTLED_SECONDS)

    def complaint(self):
        """What is on the screen, for whoever has to find out why it is not what it should be."""
        try:
            lines = self.screen().rstrip().splitlines()
        except RunFailed:
            return ""  # it is closed
        return "\n".join(["  on the screen:", *(f"    |{line}" for line in lines)])

    def fact(self, name):
        return self._tmux("display-message", "-p", f"#{{{name}}}").strip()

    def until(self, what, look, patience_seconds=PATIENCE_SECONDS, look_seconds=LOOK_SECONDS):
        """The first thing other than nothing that `look` makes of the screen."""
        if not (seen := self.glimpse(look, patience_seconds, look_seconds)):
            raise RunFailed(f"waited in vain for {what}")
        return seen

    def glimpse(self, look, patience_seconds, look_seconds=LOOK_SECONDS):
        """The same, but there may be nothing."""
        deadline = time.monotonic() + patience_seconds
        while not (seen := look(self.screen())) and time.monotonic() < deadline:
            time.sleep(look_seconds)
        return seen

    def shows(self, *texts, patience_seconds=PATIENCE_SECONDS):
        """Waits until all of them are on the screen at once."""
        self.until(" and ".join(map(repr, texts)), lambda screen: all(text in screen for text in texts), patience_seconds)

    def clipboard(self):
        """What programs have put there by an escape sequence."""
        return self._tmux("list-buffers").strip()

    def at_the_shell(self):
        """Waits for the prompt, with nothing behind it."""
        self.until("the shell", lambda screen: screen.rstrip().endswith(PROMPT))

    def settings(self):
        """How the terminal is set, as `stty` and tmux tell it."""
        path = Path(self.home.path, "stty")
        self.run(f"stty -g > {path}")
        modes = ("alternate_on", "cursor_flag", "mouse_any_flag", "mouse_sgr_flag", "keypad_flag", "keypad_cursor_flag")
        return {"stty": path.read_text().strip()} | {mode: self.fact(mode) for mode in modes}

    # -- processes -------------------------------------------------------------------------------------

    def program(self):
        """The process that has the terminal from the shell, once there is one."""

        def the_only_child(_):
            shell = self.fact("pane_pid")
            children = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
            return int(children[0]) if len(children) == 1 else None

        return self.until("a program that the shell has started", the_only_child)

    def signal(self, number):
        os.kill(self.program(), number)


def memory_peak_bytes(pid):
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())[1]) * 1024
