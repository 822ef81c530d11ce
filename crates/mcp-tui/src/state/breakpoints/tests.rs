use mcp_control::api::{Event, Permission, VerdictKind};

use super::*;
use crate::app::App;
use crate::news::News;
use crate::state::common::Overlay;
use crate::testing::{app, hear, press};

pub(crate) fn breakpoint(name: &str, filter: &str, owner: Owner) -> Breakpoint {
    Breakpoint { name: name.into(), filter: filter.into(), owner, hits: 3 }
}

pub(crate) fn rule(name: &str, verdict: VerdictKind) -> Rule {
    Rule {
        name: name.into(),
        filter: "op:delete".into(),
        verdict,
        message: Some("Ask a person.".into()),
        timeout_ms: None,
        on_timeout: (verdict == VerdictKind::Ask).then_some(Permission::Deny),
    }
}

pub(crate) fn policy(rules: Vec<Rule>, answers: Vec<Answered>) -> Policy {
    Policy {
        version: "1a2b3c".into(),
        file: Some("/etc/rules.json".into()),
        server: None,
        default: Permission::Allow,
        hide_denied: true,
        audit_required: false,
        rules,
        answers,
    }
}

fn filled() -> App {
    let mut app = app();
    let list = vec![breakpoint("b1", "tool:add", Owner::Face), breakpoint("b2", "status:err", Owner::Command)];
    hear(&mut app, Event::Breakpoints(mcp_control::api::Breakpoints { breakpoints: list }));
    press(&mut app, "6");
    assert!(matches!(app.take_effects()[..], [Effect::Policy]));
    app.hear(News::Policy(Ok(policy(vec![rule("no-deletes", VerdictKind::Deny)], Vec::new()))));
    app
}

fn place(app: &App) -> usize {
    app.breakpoints.place(&app.common)
}

#[test]
fn selecting_moves_over_both_lists() {
    let mut app = filled();
    assert_eq!(place(&app), 0);
    press(&mut app, "j j j j");
    assert_eq!(place(&app), 2);
    press(&mut app, "tab");
    assert_eq!(place(&app), 0);
    press(&mut app, "tab g G k");
    assert_eq!(place(&app), 1);
    app.select_line(2);
    assert_eq!(place(&app), 2);
}

#[test]
fn breakpoints_are_changed_and_removed() {
    let mut app = filled();
    press(&mut app, "j m");
    let Overlay::Prompt(prompt) = &app.common.overlay else { panic!("a line is asked for") };
    assert_eq!((&prompt.asking, prompt.text()), (&Asking::Breakpoint(Some("b2".into())), "status:err"));
    press(&mut app, "enter");
    assert!(matches!(&app.take_effects()[..],
        [Effect::Act(Act::ChangeBreakpoint(name, new))] if name == "b2" && new.filter == "status:err"));
    press(&mut app, "d");
    assert!(matches!(&app.take_effects()[..], [Effect::Act(Act::RemoveBreakpoint(name))] if name == "b2"));
    press(&mut app, "b");
    assert!(matches!(&app.common.overlay, Overlay::Prompt(prompt) if prompt.asking == Asking::Breakpoint(None)));
}

#[test]
fn rules_are_only_looked_at() {
    let mut app = filled();
    press(&mut app, "G d m");
    assert!(app.take_effects().is_empty());
    assert!(app.common.word.as_ref().unwrap().text.contains("in their file"));
    press(&mut app, "y");
    assert!(matches!(&app.take_effects()[..], [Effect::Copy(filter)] if filter == "op:delete"));
}

#[test]
fn who_set_it_decides_whether_it_holds() {
    let mut app = filled();
    let holds = |app: &App| breakpoints(&app.common).iter().map(|one| holds_now(one, &app.common)).collect::<Vec<_>>();
    assert_eq!(holds(&app), [true, true]);
    hear(&mut app, Event::Lease(mcp_control::api::LeaseState { lease: None }));
    assert_eq!(holds(&app), [false, true]);
}

#[test]
fn nothing_is_there_to_work_on() {
    let mut app = app();
    press(&mut app, "6 d m y j G tab");
    assert_eq!(place(&app), 0);
    assert!(matches!(app.common.overlay, Overlay::None));
}
