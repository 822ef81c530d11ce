//! What tests of screens share: an instance that says little, messages, keys, and a terminal to look at.

use mcp_control::api::{
    Direction, Event, Held, Instance, Lease, Message, MessageKind, Mode, OnDetach, Owner, Snapshot, Transport,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::app::App;
use crate::keymap::Keymap;
use crate::news::News;
use crate::state::common::Common;
use crate::theme::{Palette, Theme};
use crate::{text, view};

/// A name or a text as nobody should write it: it colours, turns, hides, breaks lines and never ends.
pub(crate) const HOSTILE: &str = "a\u{1b}[31mred\u{202e}turned\u{200b}\u{e0041}\r\nnew\tline\u{7}宽宽👩\u{301}\u{301}\u{9b}2J\
    and on and on and on and on and on and on and on and on and on and on and on and on and on and on and on";

pub(crate) const PLAIN: Theme = Theme { palette: Palette::Plain, ascii: false };
pub(crate) const ASCII: Theme = Theme { palette: Palette::Plain, ascii: true };

/// A terminal that is attached to an instance and has its lease.
pub(crate) fn app() -> App {
    let mut app = App::new(Common::default(), Keymap::default());
    app.hear(News::Leased(Ok(snapshot().lease.expect("somebody has it").since)));
    app.hear(News::Events(vec![Event::Snapshot(Box::new(snapshot()))]));
    app.take_effects();
    app
}

pub(crate) fn snapshot() -> Snapshot {
    let time = "2026-11-17T14:02:11Z".to_owned();
    let lease = Some(Lease { holder: "tui (ann)".into(), since: time.clone(), present: true });
    let instance = Instance {
        id: "7f3a0000-0000-4000-8000-000000000000".into(),
        version: "0.1.0".into(),
        pid: 4711,
        name: Some("demo".into()),
        server_command: Some("demo-server".into()),
        server_url: None,
        transport: Transport::Stdio,
        listen: "stdio".into(),
        started_at: time,
        clients: 1,
        servers: 1,
        session: None,
        messages: 0,
        held: 0,
        questions: 0,
        policy: None,
        mode: Mode::Passthrough,
        mode_owner: Owner::Face,
        has_face: true,
        lease: lease.clone(),
        breakpoints: 0,
        breakpoints_that_hold: 0,
        faces: 1,
        conversations: Vec::new(),
    };
    Snapshot {
        instance,
        mode: Mode::Passthrough,
        mode_owner: Owner::Face,
        has_face: true,
        breakpoints: Vec::new(),
        held: Vec::new(),
        lease,
        hold_limit_ms: Some(45_000),
        on_detach: OnDetach::Forward,
        faces: 1,
        last_sequence: 0,
    }
}

/// A message as the client or, if it answers something, the server sent it.
pub(crate) fn message(sequence: u64, raw: &str) -> Message {
    let json: Value = serde_json::from_str(raw).expect("JSON");
    let text = |pointer: &str| json.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let is_answer = json.get("result").is_some() || json.get("error").is_some();
    let kind = match (is_answer, json.get("error"), json.get("id")) {
        (true, Some(_), _) => MessageKind::Error,
        (true, None, _) => MessageKind::Response,
        (false, _, Some(_)) => MessageKind::Request,
        (false, _, None) => MessageKind::Notification,
    };
    let envelope = serde_json::json!({
        "id": format!("id-{sequence}"),
        "sequence": sequence,
        "timestamp": "2026-11-17T14:02:19.700Z",
        "direction": if is_answer { Direction::ServerToClient } else { Direction::ClientToServer },
        "transport": Transport::Stdio,
        "kind": kind,
        "method": text("/method"),
        "tool": text("/params/name"),
        "size": raw.len(),
        "server": "demo",
        "client": "py-client",
        "revision": "2025-11-25",
        "conversation": 1,
    });
    let mut message: Message = serde_json::from_value(envelope).expect("an envelope");
    message.raw = Some(RawValue::from_string(raw.to_owned()).expect("JSON"));
    message
}

/// The same without its content, as lists have what is long.
pub(crate) fn without_raw(mut message: Message) -> Message {
    (message.raw, message.raw_omitted) = (None, true);
    message
}

pub(crate) fn call(sequence: u64, tool: &str, arguments: &str) -> Message {
    let tool = serde_json::to_string(tool).expect("a string");
    let raw = format!(
        r#"{{"jsonrpc":"2.0","id":{sequence},"method":"tools/call","params":{{"name":{tool},"arguments":{arguments}}}}}"#
    );
    message(sequence, &raw)
}

/// A message that a breakpoint holds, since 4 of 45 seconds.
pub(crate) fn held(message: Message, why: &str) -> Held {
    Held {
        sequence: message.sequence,
        conversation: message.conversation,
        direction: message.direction,
        why: why.to_owned(),
        asks: None,
        since: message.timestamp.clone(),
        held_ms: 4_000,
        released_in_ms: Some(41_000),
        given_up: false,
        message,
    }
}

/// Presses keys, with blanks between them: `j tab ctrl-s`.
pub(crate) fn press(app: &mut App, keys: &str) {
    keys.split_whitespace().for_each(|key| app.key(key.parse().expect("a key")));
}

pub(crate) fn hear(app: &mut App, event: Event) {
    app.hear(News::Events(vec![event]));
}

/// What is drawn, line by line, without blanks at the end of a line.
pub(crate) fn render(app: &mut App, width: u16, height: u16, theme: &Theme) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal.draw(|frame| view::draw(app, frame, theme)).expect("drawn");
    let buffer = terminal.backend().buffer();
    let mut lines = Vec::new();
    for y in 0..height {
        let (mut line, mut x) = (String::new(), 0);
        while x < width {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            x += text::width(symbol).max(1) as u16;
        }
        lines.push(line.trim_end().to_owned());
    }
    lines.join("\n")
}

/// Draws it at any size, and sees that nothing of what it shows acts on a terminal.
#[track_caller]
pub(crate) fn is_drawn_safely(app: &mut App) {
    let drawn = |app: &mut App, width, height, theme| {
        for line in render(app, width, height, &theme).lines() {
            assert_eq!(text::clean(line), line, "at {width} by {height}");
        }
    };
    for (width, height) in [(1, 1), (2, 40), (200, 2), (20, 7), (500, 200)] {
        drawn(app, width, height, PLAIN);
    }
    for theme in [PLAIN, ASCII, Theme::default()] {
        drawn(app, 60, 16, theme);
        drawn(app, 120, 40, theme);
    }
}
