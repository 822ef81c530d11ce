//! What tests of screens begin with: an instance, messages, and a terminal that is no more than text.

use mcp_control::api::{Event, Message, Page, Snapshot};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use crate::app::App;
use crate::key::Key;
use crate::keymap::Keymap;
use crate::news::{Effect, News};
use crate::state::common::Common;
use crate::theme::{Palette, Theme};
use crate::view;

/// The session that the instance records.
pub(crate) const SESSION: &str = "7f3a11c2-0000-4000-8000-000000000000";
/// Sizes that every screen is drawn in.
pub(crate) const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (60, 16)];
/// What a peer may write where a name is expected.
pub(crate) const HOSTILE: &str = "\u{1b}]52;c;AAAA\u{7}\u{1b}[31m\r\nna\u{202e}me\u{0}\t漢字👩‍👩‍👧\u{301}\u{301}";

pub(crate) fn app() -> App {
    let mut app = App::new(Common::default(), Keymap::default());
    app.hear(News::Events(vec![Event::Snapshot(Box::new(snapshot()))]));
    for effect in app.take_effects() {
        if let Effect::Page { ticket, .. } = effect {
            app.hear(News::Page(ticket, Ok(Page::default())));
        }
    }
    app
}

fn snapshot() -> Snapshot {
    let instance = format!(
        r#"{{"id":"{SESSION}","version":"1","pid":1,"name":"demo","server_command":"demo-server","transport":"stdio",
        "listen":"stdio","started_at":"2026-11-15T14:02:00Z","session":"{SESSION}","messages":0,"held":0,
        "mode":"passthrough","mode_owner":"face","has_face":true,"breakpoints":0,"breakpoints_that_hold":0,
        "faces":1,"conversations":[]}}"#
    );
    let snapshot = format!(
        r#"{{"instance":{instance},"mode":"passthrough","mode_owner":"face","has_face":true,"breakpoints":[],
        "held":[],"on_detach":"forward","faces":1,"last_sequence":0}}"#
    );
    serde_json::from_str(&snapshot).unwrap()
}

/// A message of which these members matter; so many milliseconds after two minutes past two.
pub(crate) fn message(sequence: u64, at_ms: u64, members: &str) -> Message {
    let (second, ms) = (at_ms / 1000, at_ms % 1000);
    let text = format!(
        r#"{{"id":"m{sequence}","sequence":{sequence},"timestamp":"2026-11-15T14:02:{second:02}.{ms:03}Z",
        "transport":"stdio","size":120,"conversation":1,{members}}}"#
    );
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A request of the client.
pub(crate) fn request(sequence: u64, at_ms: u64, tool: &str) -> Message {
    let tool = serde_json::to_string(tool).unwrap();
    message(
        sequence,
        at_ms,
        &format!(
            r#""direction":"client_to_server","kind":"request","method":"tools/call","tool":{tool},
            "raw":{{"jsonrpc":"2.0","id":{sequence},"method":"tools/call","params":{{"name":{tool}}}}}"#
        ),
    )
}

/// Its answer, after so many milliseconds.
pub(crate) fn answer(sequence: u64, of: u64, at_ms: u64, took_ms: u64, result: &str) -> Message {
    message(
        sequence,
        at_ms,
        &format!(
            r#""direction":"server_to_client","kind":"response","method":"tools/call","answers":{of},
            "status":"ok","duration_ns":{},"raw":{{"jsonrpc":"2.0","id":{of},"result":{result}}}"#,
            took_ms * 1_000_000
        ),
    )
}

pub(crate) fn press(app: &mut App, keys: &str) {
    for key in keys.split(' ') {
        app.key(key.parse::<Key>().unwrap());
    }
}

pub(crate) fn type_in(app: &mut App, text: &str) {
    text.chars().for_each(|letter| app.key(Key::char(letter)));
}

pub(crate) fn render(app: &mut App, size: (u16, u16), theme: Theme) -> String {
    draw(app, size, theme).backend().to_string()
}

fn draw(app: &mut App, (width, height): (u16, u16), theme: Theme) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view::draw(app, frame, &theme)).unwrap();
    terminal
}

/// A screen in every size, in ASCII, and without colours: one text to compare. It must not come apart in
/// a window of any size.
pub(crate) fn in_all_sizes(app: &mut App) -> String {
    let plain = Theme { palette: Palette::Plain, ascii: false };
    let mut drawn = String::new();
    for size in SIZES {
        drawn += &format!("{}x{}\n{}\n", size.0, size.1, render(app, size, Theme::default()));
    }
    drawn += &format!("ascii\n{}", render(app, SIZES[0], Theme { ascii: true, ..plain }));
    // What is told by colours is told without them.
    assert_eq!(render(app, SIZES[0], plain), render(app, SIZES[0], Theme::default()));
    assert!(!drawn.chars().any(|c| c.is_control() && c != '\n'), "{drawn:?}");
    in_odd_sizes(app);
    drawn
}

pub(crate) fn in_odd_sizes(app: &mut App) {
    for size in [(1, 1), (2, 2), (5, 3), (3, 40), (500, 1), (20, 6), (31, 9), (500, 200)] {
        for ascii in [false, true] {
            draw(app, size, Theme { ascii, ..Theme::default() });
        }
    }
}
