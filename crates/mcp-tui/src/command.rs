//! Everything that can be done, as one table: what it is called, what it does, its keys and where they
//! count. Help, the palette, the key map and the documentation are made of it.

/// A screen. Its number is the key that leads to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Screen {
    #[default]
    Traffic,
    Held,
    Repeater,
    Waterfall,
    Tools,
    Breakpoints,
    Servers,
    Audit,
    Sessions,
}

impl Screen {
    pub const ALL: [Self; 9] = [
        Self::Traffic,
        Self::Held,
        Self::Repeater,
        Self::Waterfall,
        Self::Tools,
        Self::Breakpoints,
        Self::Servers,
        Self::Audit,
        Self::Sessions,
    ];

    pub fn number(self) -> u8 {
        match self {
            Self::Traffic => 1,
            Self::Held => 2,
            Self::Repeater => 3,
            Self::Waterfall => 4,
            Self::Tools => 5,
            Self::Breakpoints => 6,
            Self::Servers => 7,
            Self::Audit => 8,
            Self::Sessions => 9,
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Traffic => "Traffic",
            Self::Held => "Held",
            Self::Repeater => "Repeater",
            Self::Waterfall => "Waterfall",
            Self::Tools => "Tools",
            Self::Breakpoints => "Breakpoints",
            Self::Servers => "Servers",
            Self::Audit => "Audit",
            Self::Sessions => "Sessions",
        }
    }
}

/// Where a command counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Everywhere,
    On(&'static [Screen]),
}

impl Scope {
    pub fn has(self, screen: Screen) -> bool {
        match self {
            Self::Everywhere => true,
            Self::On(screens) => screens.contains(&screen),
        }
    }

    /// Whether there is a screen on which both count.
    pub fn meets(self, other: Self) -> bool {
        Screen::ALL.into_iter().any(|screen| self.has(screen) && other.has(screen))
    }
}

/// A row of the table.
pub struct Entry {
    pub command: Command,
    /// As it is written in a key file and in the palette.
    pub name: &'static str,
    pub does: &'static str,
    /// Blanks between them.
    pub keys: &'static str,
    pub scope: Scope,
}

use Scope::{Everywhere, On};
use Screen::{Audit, Breakpoints, Held, Repeater, Servers, Sessions, Tools, Traffic, Waterfall};

/// Where messages, and held ones, can be worked on.
const MESSAGES: Scope = On(&[Traffic, Held]);

macro_rules! commands {
    ($($command:ident, $name:literal, $keys:literal, $scope:expr, $does:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Command { $($command,)* }

        /// In the order in which help shows them.
        pub(crate) const COMMANDS: &[Entry] = &[$(
            Entry { command: Command::$command, name: $name, keys: $keys, scope: $scope, does: $does },
        )*];
    };
}

commands! {
    Help, "help", "? F1", Everywhere, "help for this screen";
    Palette, "palette", ": ctrl-p", Everywhere, "every command, found by a few letters";
    Filter, "filter", "/ F2", On(&[Traffic, Waterfall, Tools, Audit, Sessions]), "narrow the list; on Sessions, search all of them; in a message, find words";
    Back, "back", "esc", Everywhere, "out of what is open; take the filter away";
    Quit, "quit", "q", Everywhere, "leave; the proxy and its server go on";
    Detach, "detach", "Q", Everywhere, "leave at once";

    Down, "down", "j down", Everywhere, "to the next line";
    Up, "up", "k up", Everywhere, "to the line before";
    PageDown, "page-down", "ctrl-f pagedown", Everywhere, "a screen on";
    PageUp, "page-up", "ctrl-b pageup", Everywhere, "a screen back";
    First, "first", "g home", Everywhere, "to the beginning";
    Last, "last", "G end", Everywhere, "to the end; the list follows what comes";
    Left, "left", "h left", Everywhere, "fold, or to what is above";
    Right, "right", "l right", Everywhere, "unfold";
    Open, "open", "enter", Everywhere, "open, or fold and unfold";
    NextPane, "next-pane", "tab", Everywhere, "to the other pane";
    PreviousPane, "previous-pane", "backtab", Everywhere, "back to the pane before";
    NextView, "next-view", "v", Everywhere, "the next view of what is selected";
    PreviousView, "previous-view", "V", Everywhere, "the view before";
    UnfoldAll, "unfold-all", "+", On(&[Traffic]), "unfold the whole tree";
    FoldAll, "fold-all", "-", On(&[Traffic]), "fold the whole tree";
    Zoom, "zoom", "z", Everywhere, "one pane as large as the screen, and back";

    Hold, "hold", "i", Everywhere, "hold every message, or let all go on";
    HoldWhere, "hold-where", "I", Everywhere, "hold only what a filter matches: a new breakpoint";
    Forward, "forward", "f F5", MESSAGES, "send the held message on as it came";
    ForwardAll, "forward-all", "F", MESSAGES, "send on everything that is held";
    Modify, "modify", "m F6", MESSAGES, "edit the held message here, then send it on";
    Editor, "editor", "e", On(&[Traffic, Held, Repeater, Tools]), "edit it in $EDITOR";
    Drop, "drop", "d F8", MESSAGES, "do not send the held message on";
    Answer, "answer", "a", MESSAGES, "answer the held request in the server's place";
    Approve, "approve", "A", MESSAGES, "let go on what a rule asks about";
    Deny, "deny", "D", MESSAGES, "do not let go on what a rule asks about";
    TakeLease, "take-control", "T", Everywhere, "take control from whoever has it";

    Replay, "replay", "r F9", On(&[Traffic, Held, Repeater, Tools]), "send the request again, in the repeater";
    Edit, "edit", "m", On(&[Repeater, Tools]), "edit what is sent";
    Try, "try", "t", On(&[Tools]), "call the tool, in the repeater";
    Compare, "compare", "c", On(&[Traffic, Repeater, Sessions]), "compare with the marked one, the run before, the other session";
    Ignore, "ignore", "x", On(&[Repeater]), "which paths a comparison leaves out";
    CloseTab, "close", "w", On(&[Repeater]), "close this request";

    Mark, "mark", "space", On(&[Traffic, Repeater, Sessions]), "mark, or take the mark away; in the repeater, compare with this run";
    Note, "note", ";", On(&[Traffic]), "write a note beside the message";
    Copy, "copy", "y", Everywhere, "copy: JSON, a path, a curl line";
    Pair, "pair", "p", On(&[Traffic, Waterfall, Audit]), "to the request or the answer that belongs to it";
    Across, "across", "P", On(&[Traffic]), "from what a server was sent to the client's message that led to it, and back";
    NextMatch, "next-match", "n", On(&[Traffic]), "to the next message that the last filter matches; in a message, the next place";
    PreviousMatch, "previous-match", "N", On(&[Traffic]), "to the one before";

    Save, "save", "s", Everywhere, "write the session to a file";
    Load, "load", "L", Everywhere, "open a session file";
    Export, "export", "x", On(&[Traffic, Held, Waterfall, Tools, Breakpoints, Servers, Audit, Sessions]), "write a report, a page, HAR, a script";
    NewBreakpoint, "new-breakpoint", "b", Everywhere, "hold what a filter matches";
    Remove, "remove", "d del", On(&[Breakpoints]), "take the breakpoint away";
    ChangeBreakpoint, "change-breakpoint", "m", On(&[Breakpoints]), "change the breakpoint's filter";
    RestartServer, "restart-server", "r", On(&[Servers]), "end the server and start it again";
    DisableServer, "disable-server", "d", On(&[Servers]), "end the server and offer nothing of it, or enable it again";
    Refresh, "refresh", "ctrl-r", Everywhere, "look again, draw anew";
    SkipStep, "skip-step", ">", Everywhere, "in the demo: on to the next step";
    Suspend, "suspend", "ctrl-z", Everywhere, "to the shell; `fg` comes back";

    ToTraffic, "traffic", "1", Everywhere, "screen: what passes";
    ToHeld, "held", "2", Everywhere, "screen: what waits for a decision";
    ToRepeater, "repeater", "3", Everywhere, "screen: requests sent again";
    ToWaterfall, "waterfall", "4", Everywhere, "screen: operations over time";
    ToTools, "tools", "5", Everywhere, "screen: what the server offers";
    ToBreakpoints, "breakpoints", "6", Everywhere, "screen: what is held, and the rules";
    ToServers, "servers", "7", Everywhere, "screen: the servers of a gateway";
    ToAudit, "audit", "8", Everywhere, "screen: what was decided";
    ToSessions, "sessions", "9", Everywhere, "screen: recordings";
}

impl Command {
    pub fn entry(self) -> &'static Entry {
        COMMANDS.iter().find(|entry| entry.command == self).expect("every command is in the table")
    }

    /// The screen that it leads to, if it does.
    pub fn screen(self) -> Option<Screen> {
        Some(match self {
            Self::ToTraffic => Traffic,
            Self::ToHeld => Held,
            Self::ToRepeater => Repeater,
            Self::ToWaterfall => Waterfall,
            Self::ToTools => Tools,
            Self::ToBreakpoints => Breakpoints,
            Self::ToServers => Servers,
            Self::ToAudit => Audit,
            Self::ToSessions => Sessions,
            _ => return None,
        })
    }
}
