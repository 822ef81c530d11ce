//! Colours and glyphs by what they mean. Without colours the meaning stays: every mark has a glyph or a
//! word of its own.

use ratatui::style::{Color, Modifier, Style};

/// What something means; how it looks is the theme's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Text,
    /// Beside the point.
    Faint,
    Title,
    Border,
    /// The pane that has the keys.
    Active,
    Selected,
    ToServer,
    ToClient,
    Good,
    Bad,
    /// Somebody should look: held, asked, edited.
    Warn,
    Key,
    JsonKey,
    JsonString,
    JsonNumber,
    JsonWord,
    Added,
    Removed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Palette {
    #[default]
    Dark,
    Light,
    /// No colours at all.
    Plain,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Theme {
    pub palette: Palette,
    pub ascii: bool,
}

impl Theme {
    pub(crate) fn style(&self, role: Role) -> Style {
        let style = match self.palette {
            Palette::Plain => Style::new(),
            Palette::Dark => colour(role, &DARK),
            Palette::Light => colour(role, &LIGHT),
        };
        style.add_modifier(modifier(role))
    }

    pub(crate) fn glyphs(&self) -> &'static Glyphs {
        if self.ascii { &ASCII } else { &UNICODE }
    }
}

struct Colours {
    faint: Color,
    title: Color,
    to_server: Color,
    to_client: Color,
    good: Color,
    bad: Color,
    warn: Color,
    selected: Color,
}

const DARK: Colours = Colours {
    faint: Color::DarkGray,
    title: Color::White,
    to_server: Color::Cyan,
    to_client: Color::LightMagenta,
    good: Color::Green,
    bad: Color::LightRed,
    warn: Color::Yellow,
    selected: Color::Indexed(237),
};

const LIGHT: Colours = Colours {
    faint: Color::Indexed(243),
    title: Color::Black,
    to_server: Color::Blue,
    to_client: Color::Magenta,
    good: Color::Indexed(28),
    bad: Color::Red,
    warn: Color::Indexed(130),
    selected: Color::Indexed(254),
};

fn colour(role: Role, colours: &Colours) -> Style {
    let foreground = match role {
        Role::Text => return Style::new(),
        Role::Selected => return Style::new().bg(colours.selected),
        Role::Faint | Role::Border => colours.faint,
        Role::Title => colours.title,
        Role::Active | Role::ToServer | Role::JsonKey | Role::Key => colours.to_server,
        Role::ToClient | Role::JsonWord => colours.to_client,
        Role::Good | Role::JsonString | Role::Added => colours.good,
        Role::Bad | Role::Removed => colours.bad,
        Role::Warn | Role::JsonNumber => colours.warn,
    };
    Style::new().fg(foreground)
}

fn modifier(role: Role) -> Modifier {
    match role {
        Role::Title | Role::Key | Role::Active => Modifier::BOLD,
        // Where there is no colour, the selection still shows.
        Role::Selected => Modifier::REVERSED,
        Role::Faint => Modifier::DIM,
        _ => Modifier::empty(),
    }
}

/// Signs of our own. Peers' text never passes through here.
pub(crate) struct Glyphs {
    pub to_server: &'static str,
    pub to_client: &'static str,
    pub arrow_to_server: &'static str,
    pub arrow_to_client: &'static str,
    pub held: &'static str,
    pub edited: &'static str,
    pub denied: &'static str,
    pub noise: &'static str,
    pub marked: &'static str,
    pub noted: &'static str,
    pub replayed: &'static str,
    pub ok: &'static str,
    pub error: &'static str,
    pub waiting: &'static str,
    pub folded: &'static str,
    pub unfolded: &'static str,
    pub bar: &'static str,
    pub bar_empty: &'static str,
    pub dot: &'static str,
    /// Where a bar begins to be one, and where something happened in it.
    pub axis: &'static str,
    pub step: &'static str,
    pub recording: &'static str,
    /// Of something that is there, on its way, or not needed.
    pub full: &'static str,
    pub half: &'static str,
    pub hollow: &'static str,
    /// From little to much.
    pub levels: [&'static str; 8],
}

const UNICODE: Glyphs = Glyphs {
    to_server: "►",
    to_client: "◄",
    arrow_to_server: "→",
    arrow_to_client: "←",
    held: "⏸",
    edited: "✎",
    denied: "✗",
    noise: "!",
    marked: "★",
    noted: "¶",
    replayed: "↻",
    ok: "✓",
    error: "✗",
    waiting: "…",
    folded: "▸",
    unfolded: "▾",
    bar: "█",
    bar_empty: "░",
    dot: "·",
    axis: "▏",
    step: "◆",
    recording: "●",
    full: "●",
    half: "◐",
    hollow: "○",
    levels: ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
};

const ASCII: Glyphs = Glyphs {
    to_server: ">",
    to_client: "<",
    arrow_to_server: "->",
    arrow_to_client: "<-",
    held: "=",
    edited: "~",
    denied: "x",
    noise: "!",
    marked: "*",
    noted: "#",
    replayed: "@",
    ok: "ok",
    error: "x",
    waiting: "..",
    folded: "+",
    unfolded: "-",
    bar: "#",
    bar_empty: ".",
    dot: "-",
    axis: "|",
    step: "o",
    recording: "o",
    full: "*",
    half: "~",
    hollow: ".",
    levels: ["_", ".", "-", "~", "=", "+", "*", "#"],
};
