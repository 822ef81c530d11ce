use mcp_control::api::{Event, Governed, Outcome, OutcomeKind, Permission};

use super::*;
use crate::news::News;
use crate::state::tools::fixtures::{answer, listed, listing};
use crate::testing::*;

const SCHEMA: &str =
    r#"{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}"#;

/// Two calls that are held and one that a rule asks about, with the schema of `add` known.
fn filled() -> App {
    let mut app = app();
    let add = format!(r#"{{"name":"add","inputSchema":{SCHEMA}}}"#);
    let list = listed(2, "tools/list", &listing("tools", &add));
    let mut asked = held(call(149, "delete_note", r#"{"id":"n-1"}"#), "no-deletes");
    asked.message.verdict = Some("ask".into());
    asked.message.rule = Some("no-deletes".into());
    asked.message.op = Some("delete".into());
    asked.asks = Some(question("no-deletes"));
    asked.released_in_ms = Some(38_000);
    let mut given_up = held(call(151, "write_file", "{}"), "b1");
    (given_up.given_up, given_up.released_in_ms) = (true, None);
    hear(&mut app, Event::Held(Box::new(held(call(143, "add", r#"{"a":1,"b":"two","note":"Bug"}"#), "intercept"))));
    hear(&mut app, Event::Held(Box::new(asked)));
    hear(&mut app, Event::Held(Box::new(given_up)));
    app.common.standing.as_mut().unwrap().instance.policy = Some(Governed {
        version: "1".into(),
        rules: 1,
        default: Permission::Allow,
        hide_denied: false,
        unwritten: false,
    });
    answer(&mut app, vec![list]);
    press(&mut app, "2");
    app.tick(27_000);
    app
}

fn question(rule: &str) -> Question {
    Question {
        rule: rule.into(),
        message: Some("Notes are for ever.".into()),
        method: Some("tools/call".into()),
        tool: Some("delete_note".into()),
        operation: Some("delete".into()),
        timeout_ms: None,
        on_timeout: Permission::Deny,
        in_client: true,
    }
}

#[test]
fn the_queue_is_drawn() {
    let mut app = filled();
    insta::assert_snapshot!("80", render(&mut app, 80, 24, &PLAIN));
    insta::assert_snapshot!("120", render(&mut app, 120, 40, &PLAIN));
    insta::assert_snapshot!("60", render(&mut app, 60, 16, &PLAIN));
    insta::assert_snapshot!("80_ascii", render(&mut app, 80, 24, &ASCII));
}

#[test]
fn questions_and_lost_clients_are_told() {
    let mut app = filled();
    press(&mut app, "j");
    insta::assert_snapshot!("question", render(&mut app, 100, 24, &PLAIN));
    let drawn = render(&mut app, 100, 24, &PLAIN);
    assert!(drawn.contains("denied in 11 s│"), "the countdown says what comes: {drawn}");
    assert!(drawn.contains("will be denied in 11 s unless answered "), "{drawn}");
    press(&mut app, "j");
    let drawn = render(&mut app, 100, 24, &PLAIN);
    assert!(drawn.contains("client gave up: nobody waits"), "{drawn}");
    assert!(drawn.contains("no limit") && drawn.contains("schema not seen yet"), "{drawn}");
}

#[test]
fn an_empty_queue_says_what_fills_it() {
    let mut app = app();
    press(&mut app, "2");
    let drawn = render(&mut app, 80, 24, &PLAIN);
    assert!(drawn.contains("nothing is held") && drawn.contains("i holds every message"), "{drawn}");
}

#[test]
fn a_long_message_scrolls() {
    let mut app = app();
    let items: Vec<String> = (0..200).map(|item| format!("\"item {item}\"")).collect();
    hear(&mut app, Event::Held(Box::new(held(call(1, "add", &format!("[{}]", items.join(","))), "intercept"))));
    press(&mut app, "2 tab");
    render(&mut app, 80, 24, &PLAIN);
    press(&mut app, "G");
    let drawn = render(&mut app, 80, 24, &PLAIN);
    assert!(drawn.contains("item 199") && !drawn.contains("item 0\""), "{drawn}");
    press(&mut app, "g");
    assert!(render(&mut app, 80, 24, &PLAIN).contains("held by intercept"));
}

#[test]
fn an_edit_is_compared_and_checked_as_it_is_typed() {
    let mut app = filled();
    press(&mut app, "m");
    let drawn = render(&mut app, 120, 40, &PLAIN);
    assert!(drawn.contains("received") && drawn.contains("no difference"), "{drawn}");
    assert!(drawn.contains("✗ $.arguments.b:"), "{drawn}");
    // From the first letter to the value of `b`: "two".
    press(&mut app, "down down down down down down down down end left left left left left left");
    press(&mut app, "del del del del del 2");
    insta::assert_snapshot!("editing", render(&mut app, 120, 40, &PLAIN));
    assert!(!render(&mut app, 100, 40, &PLAIN).contains("received"));
    press(&mut app, "x");
    assert!(render(&mut app, 120, 40, &PLAIN).contains("when it last was JSON"));
    let outcome = Outcome { sequence: 143, what: OutcomeKind::Released, by: String::new(), held_ns: 1, edited: false };
    hear(&mut app, Event::Outcome(outcome));
    assert!(render(&mut app, 120, 40, &PLAIN).contains("#143 is held no longer"));
    is_drawn_safely(&mut app);
}

#[test]
fn hostile_text_is_harmless_everywhere() {
    let mut app = app();
    let arguments = serde_json::json!({ HOSTILE: [HOSTILE, 1] }).to_string();
    let mut hostile = held(call(u64::MAX, HOSTILE, &arguments), HOSTILE);
    (hostile.message.server, hostile.message.client) = (Some(HOSTILE.into()), Some(HOSTILE.into()));
    (hostile.message.verdict, hostile.message.rule) = (Some(HOSTILE.into()), Some(HOSTILE.into()));
    hostile.message.op = Some(HOSTILE.into());
    (hostile.held_ms, hostile.released_in_ms) = (u64::MAX / 32, Some(u64::MAX / 32));
    let mut asked = hostile.clone();
    asked.sequence = 3;
    asked.message.sequence = 3;
    asked.asks = Some(Question {
        rule: HOSTILE.into(),
        message: Some(HOSTILE.into()),
        method: Some(HOSTILE.into()),
        tool: Some(HOSTILE.into()),
        operation: Some(HOSTILE.into()),
        ..question("")
    });
    hear(&mut app, Event::Held(Box::new(asked)));
    hear(&mut app, Event::Held(Box::new(hostile)));
    app.common.has_lease = false;
    app.common.standing.as_mut().unwrap().lease.as_mut().unwrap().holder = HOSTILE.into();
    press(&mut app, "2");
    is_drawn_safely(&mut app);
    press(&mut app, "j");
    is_drawn_safely(&mut app);
    app.hear(News::Message(u64::MAX, Err(HOSTILE.into())));
    press(&mut app, "tab z");
    is_drawn_safely(&mut app);
    press(&mut app, "m");
    is_drawn_safely(&mut app);
}
