use mcp_control::api::{Event, LeaseState, Permission};

use super::*;
use crate::news::News;
use crate::state::breakpoints::tests::{breakpoint, policy, rule};
use crate::testing::*;

fn filled() -> App {
    let mut app = app();
    let list = vec![
        breakpoint("b1", "tool:add", Owner::Face),
        breakpoint("start-1", "tool:write_*,delete_* not server:test", Owner::Start),
        breakpoint("nightly", "status:err", Owner::Command),
    ];
    hear(&mut app, Event::Breakpoints(mcp_control::api::Breakpoints { breakpoints: list }));
    press(&mut app, "6");
    let rules = vec![
        rule("log-everything", VerdictKind::Observe),
        rule("no-deletes", VerdictKind::Deny),
        rule("writes", VerdictKind::Ask),
    ];
    let answer = Answered {
        rule: "writes".into(),
        method: "tools/call".into(),
        subject: Some("write_note".into()),
        server: None,
        permission: Permission::Allow,
        by: "tui (ann)".into(),
        lasting: Lasting::Session,
        counts: true,
    };
    app.hear(News::Policy(Ok(policy(rules, vec![answer]))));
    app
}

#[test]
fn both_lists_are_drawn() {
    let mut app = filled();
    insta::assert_snapshot!("80", render(&mut app, 80, 24, &PLAIN));
    insta::assert_snapshot!("120", render(&mut app, 120, 40, &PLAIN));
    insta::assert_snapshot!("60", render(&mut app, 60, 16, &PLAIN));
    insta::assert_snapshot!("80_ascii", render(&mut app, 80, 24, &ASCII));
}

#[test]
fn the_selected_one_is_shown_in_full() {
    let mut app = filled();
    press(&mut app, "j j j j j");
    insta::assert_snapshot!("rule", render(&mut app, 100, 24, &PLAIN));
    hear(&mut app, Event::Lease(LeaseState { lease: None }));
    press(&mut app, "g");
    let drawn = render(&mut app, 100, 24, &PLAIN);
    assert!(drawn.contains("waits for a face") && drawn.contains("does not hold now"), "{drawn}");
}

#[test]
fn that_there_are_no_rules_is_said() {
    let mut app = app();
    press(&mut app, "6");
    app.hear(News::Policy(Err("there are no rules: messages are not judged".into())));
    let drawn = render(&mut app, 80, 24, &PLAIN);
    assert!(drawn.contains("there are no rules: messages are not judged"), "{drawn}");
    assert!(drawn.contains("none; b sets one"), "{drawn}");
}

#[test]
fn hostile_text_is_harmless_everywhere() {
    let mut app = app();
    let list = vec![breakpoint(HOSTILE, HOSTILE, Owner::Policy)];
    hear(&mut app, Event::Breakpoints(mcp_control::api::Breakpoints { breakpoints: list }));
    press(&mut app, "6");
    let mut hostile = rule(HOSTILE, VerdictKind::Ask);
    (hostile.filter, hostile.message, hostile.timeout_ms) = (HOSTILE.into(), Some(HOSTILE.into()), Some(u64::MAX));
    let answer = Answered {
        rule: HOSTILE.into(),
        method: HOSTILE.into(),
        subject: Some(HOSTILE.into()),
        server: None,
        permission: Permission::Deny,
        by: HOSTILE.into(),
        lasting: Lasting::Rule,
        counts: false,
    };
    let mut policy = policy(vec![hostile], vec![answer]);
    (policy.version, policy.file) = (HOSTILE.into(), Some(HOSTILE.into()));
    app.hear(News::Policy(Ok(policy)));
    for keys in ["", "j", "j", "g m"] {
        press(&mut app, keys);
        is_drawn_safely(&mut app);
    }
    app.common.overlay = crate::state::common::Overlay::None;
    app.hear(News::Policy(Err(HOSTILE.into())));
    is_drawn_safely(&mut app);
}
