"""Reads what a program wrote to its terminal, and says what in it is none of what our face writes."""

import codecs
import re

# Everything that the face uses: colours, moving, clearing, and the modes that it sets and takes back.
MODES = {"25", "1000", "1002", "1003", "1006", "1015", "1049", "2004"}
COLOURS = re.compile(r"(?:\d{1,3}(?:[;:]\d{0,3})*)?")
CONCEALED = {"8", "28"}
NUMBERS = re.compile(r"\d{0,4}(?:;\d{0,4})?")
MOVES = set("ABCDGHJKd")
UNUSED = {"J3"}  # it would take what was on the terminal before

# Controls, and what shows other text than there is: neither may reach a terminal as it is, save for a sequence of ours.
SEQUENCE = r"\x1b\[(?P<private>[<-?]?)(?P<parameters>[0-9:;]*)(?P<between>[ -/]*)(?P<final>[@-~])"
DECEPTIVE = (
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
SUSPECT = re.compile(f"{SEQUENCE}|{DECEPTIVE}")
BEGUN = re.compile(r"(?:\x1b(?:\[[<-?]?[0-9:;]*)?)?\Z")


def is_ours(sequence):
    private, parameters, between, final = sequence.groups()
    if between:
        return False
    if private:
        return private == "?" and final in "hl" and set(parameters.split(";")) <= MODES
    if final == "m":
        return bool(COLOURS.fullmatch(parameters)) and not is_concealing(parameters)
    return final in MOVES and bool(NUMBERS.fullmatch(parameters)) and final + parameters not in UNUSED


def is_concealing(parameters):
    """Colours by number have an 8 in them, too: `38;5;8`."""
    plain = re.sub(r"[34]8[;:](?:5[;:]\d+|2[;:]\d+[;:]\d+[;:]\d+)", "", parameters)
    return bool(CONCEALED & set(re.split("[;:]", plain)))


def foreign(written):
    """What in these bytes the face does not write, each with what stands around it. They may end anywhere."""
    text = codecs.getincrementaldecoder("utf-8")().decode(written)
    text = text[: len(text) - len(BEGUN.search(text)[0])]
    found = (match for match in SUSPECT.finditer(text) if not (match["final"] and is_ours(match)))
    return [text[max(0, match.start() - 20) : match.start() + 40] for match in found]
