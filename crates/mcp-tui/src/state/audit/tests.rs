use super::*;
use crate::app::App;
use crate::command::Screen;
use crate::library::SessionRef;
use crate::news::News;
use crate::state::common::Overlay;
use crate::testing_screens::{HOSTILE, SESSION, app, in_all_sizes, press, type_in};

fn decision(id: &str, verdict: &str, session: &str) -> Decision {
    Decision {
        audit_id: id.into(),
        timestamp: "2026-11-15T14:02:11.5Z".into(),
        session: Some(session.into()),
        sequence: Some(300),
        client: Some("claude-code".into()),
        server: Some("notes".into()),
        method: Some("tools/call".into()),
        tool: Some("delete_note".into()),
        operation: Some("delete".into()),
        verdict: verdict.into(),
        rule: Some("no-deletes".into()),
        actor: "tui (ann)".into(),
        outcome: Some("refused".into()),
        latency_ns: Some(1_500_000),
    }
}

fn decisions() -> Vec<Decision> {
    let bare =
        Decision { audit_id: "d".into(), verdict: "observe".into(), actor: "rule".into(), ..Decision::default() };
    vec![decision("a", "deny", SESSION), decision("b", "allow", "aaaaaaaa-1"), decision("c", "ask", SESSION), bare]
}

fn listed() -> App {
    let mut app = app();
    press(&mut app, "8");
    assert!(matches!(app.take_effects().as_slice(), [Effect::Audit { filter: None }]));
    app.hear(News::Audit(app.audit.filter.clone(), Ok(decisions())));
    app
}

#[test]
fn a_decision_leads_to_its_message() {
    let mut app = listed();
    press(&mut app, "enter");
    assert_eq!(app.common.screen, Screen::Traffic);
    let effects = app.take_effects();
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Page { query, .. } if query.after == Some(150))));
    let mut app = listed();
    press(&mut app, "j p");
    let open = SessionRef::Stored("aaaaaaaa-1".into());
    assert!(app.take_effects().iter().any(|effect| matches!(effect, Effect::Open(session) if *session == open)));
    assert_eq!(app.common.opening, Some(("aaaaaaaa-1".into(), 300)));
    press(&mut app, "G enter");
    assert!(app.common.word.as_ref().unwrap().text.contains("no recorded message"));
}

#[test]
fn new_decisions_come_by_themselves() {
    let mut app = listed();
    let asks = |app: &mut App| app.take_effects().iter().filter(|it| matches!(it, Effect::Audit { .. })).count();
    app.tick(2_000);
    assert_eq!(asks(&mut app), 1);
    app.tick(9_000);
    assert_eq!(asks(&mut app), 0, "one question at a time");
    let newest = std::iter::once(decision("e", "allow", SESSION)).chain(decisions()).collect();
    app.hear(News::Audit(None, Ok(newest)));
    assert_eq!(app.audit.selected().map(|decision| &*decision.audit_id), Some("e"));
    press(&mut app, "1");
    app.tick(99_000);
    assert_eq!(asks(&mut app), 0, "another screen is looked at");
}

#[test]
fn decisions_are_filtered() {
    let mut app = listed();
    press(&mut app, "/");
    type_in(&mut app, "verdct:deny");
    press(&mut app, "enter");
    let Overlay::Prompt(prompt) = &app.common.overlay else { panic!("a wrong filter was taken") };
    assert!(prompt.fault.is_some());
    press(&mut app, "ctrl-u");
    type_in(&mut app, "tool:delete_*");
    app.tick(1_000);
    press(&mut app, "enter");
    let effects = app.take_effects();
    let is_it = |effect: &Effect| matches!(effect, Effect::Audit { filter: Some(filter) } if filter == "tool:delete_*");
    assert!(effects.iter().any(is_it));
    assert_eq!(app.traffic.filter, None);
    app.hear(News::Audit(app.audit.filter.clone(), Ok(Vec::new())));
    assert!(in_all_sizes(&mut app).contains("no decision matches"));
    press(&mut app, "esc");
    assert!(matches!(app.take_effects().as_slice(), [Effect::Audit { filter: None }]));
    press(&mut app, "esc");
    assert_eq!(app.common.screen, Screen::Traffic);
}

#[test]
fn a_new_list_keeps_the_selected_decision() {
    let mut app = listed();
    press(&mut app, "j j ctrl-r");
    let mut newer = decisions();
    newer.insert(0, decision("new", "allow", SESSION));
    app.hear(News::Audit(app.audit.filter.clone(), Ok(newer.clone())));
    assert_eq!(app.audit.selected().unwrap().audit_id, "c");
    press(&mut app, "g");
    newer.insert(0, decision("newest", "allow", SESSION));
    app.hear(News::Audit(app.audit.filter.clone(), Ok(newer)));
    assert_eq!(app.audit.selected().unwrap().audit_id, "newest");
    app.select_line(3);
    assert_eq!(app.audit.cursor.at, 3);
}

#[test]
fn it_is_drawn() {
    let mut app = app();
    press(&mut app, "8");
    assert!(in_all_sizes(&mut app).contains("loading"));
    app.hear(News::Audit(app.audit.filter.clone(), Ok(Vec::new())));
    assert!(in_all_sizes(&mut app).contains("no rules judge here, so nothing was decided"));
    app.hear(News::Audit(app.audit.filter.clone(), Err("the log cannot be read".into())));
    assert!(in_all_sizes(&mut app).contains("the log cannot be read"));
    let mut app = listed();
    insta::assert_snapshot!("list", in_all_sizes(&mut app));
    press(&mut app, "tab j j z");
    in_all_sizes(&mut app);
}

#[test]
fn hostile_text_stays_text() {
    let mut app = listed();
    let hostile = || HOSTILE.to_owned();
    let decision = Decision {
        audit_id: hostile(),
        timestamp: hostile(),
        session: Some(hostile()),
        client: Some(hostile()),
        server: Some(hostile()),
        method: Some(hostile()),
        tool: Some(hostile()),
        operation: Some(hostile()),
        verdict: hostile(),
        rule: Some(hostile()),
        actor: hostile(),
        outcome: Some(hostile()),
        latency_ns: Some(u64::MAX),
        sequence: Some(u64::MAX),
    };
    app.audit.filter = Some(hostile());
    app.hear(News::Audit(app.audit.filter.clone(), Ok(vec![decision])));
    insta::assert_snapshot!("hostile", in_all_sizes(&mut app));
}
