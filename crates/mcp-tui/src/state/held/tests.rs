use mcp_control::api::{Event, Outcome, OutcomeKind, Permission, Question};

use super::*;
use crate::app::App;
use crate::news::{Act, News};
use crate::testing::{app, call, hear, held, message, press, without_raw};

fn three() -> App {
    let mut app = app();
    for sequence in [11, 12, 13] {
        hear(&mut app, Event::Held(Box::new(held(call(sequence, "add", "{}"), "intercept"))));
    }
    press(&mut app, "2");
    app.take_effects();
    app
}

fn let_go(app: &mut App, sequence: u64) {
    let outcome = Outcome { sequence, what: OutcomeKind::Forwarded, by: "ann".into(), held_ns: 1, edited: false };
    hear(app, Event::Outcome(outcome));
}

fn selected(app: &App) -> Option<u64> {
    app.held.selected(&app.common)
}

#[test]
fn after_a_decision_the_next_is_selected() {
    let mut app = three();
    assert_eq!(selected(&app), Some(11));
    press(&mut app, "j f");
    assert!(matches!(app.take_effects()[..], [Effect::Act(Act::Forward(12))]));
    let_go(&mut app, 12);
    assert_eq!(selected(&app), Some(13));
    let_go(&mut app, 13);
    assert_eq!(selected(&app), Some(11));
    let_go(&mut app, 11);
    assert_eq!(selected(&app), None);
    press(&mut app, "f");
    assert!(app.common.word.as_ref().unwrap().text.contains("nothing is held"));
}

#[test]
fn what_goes_elsewhere_moves_no_selection() {
    let mut app = three();
    press(&mut app, "G");
    let_go(&mut app, 11);
    assert_eq!((selected(&app), app.held.place(&app.common)), (Some(13), 1));
    hear(&mut app, Event::Held(Box::new(held(call(14, "add", "{}"), "intercept"))));
    assert_eq!(selected(&app), Some(13));
    press(&mut app, "j j j");
    assert_eq!(selected(&app), Some(14));
}

#[test]
fn tab_goes_to_the_message_and_esc_comes_back() {
    let mut app = three();
    press(&mut app, "tab j");
    assert!(app.held.is_on_message);
    assert_eq!(selected(&app), Some(11));
    press(&mut app, "esc j");
    assert_eq!((app.common.screen, selected(&app)), (Screen::Held, Some(12)));
    press(&mut app, "esc");
    assert_eq!(app.common.screen, Screen::Traffic);
}

#[test]
fn what_is_too_long_for_a_list_is_fetched_once() {
    let mut app = app();
    let whole = call(5, "add", "{}");
    hear(&mut app, Event::Held(Box::new(held(without_raw(whole.clone()), "intercept"))));
    app.take_effects();
    press(&mut app, "2");
    let fetches = |app: &mut App| {
        app.take_effects().iter().filter(|effect| matches!(effect, Effect::Message { sequence: 5 })).count()
    };
    assert_eq!(fetches(&mut app), 1);
    app.tick(1000);
    assert_eq!(fetches(&mut app), 0);
    app.hear(News::Message(5, Ok(Box::new(whole))));
    press(&mut app, "m");
    assert!(matches!(app.common.overlay, crate::state::common::Overlay::Editor(_)));
    assert_eq!(fetches(&mut app), 0);
}

#[test]
fn what_cannot_be_fetched_is_not_asked_for_again() {
    let mut app = app();
    hear(&mut app, Event::Held(Box::new(held(without_raw(call(5, "add", "{}")), "intercept"))));
    press(&mut app, "2");
    app.hear(News::Message(5, Err("it is gone".into())));
    app.take_effects();
    app.tick(1000);
    assert!(app.take_effects().is_empty());
    assert_eq!(app.held.trouble, Some((5, "it is gone".into())));
}

#[test]
fn a_question_is_approved_and_not_forwarded() {
    let mut app = app();
    let mut asked =
        held(message(7, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}}"#), "no-rm");
    asked.asks = Some(Question {
        rule: "no-rm".into(),
        message: None,
        method: None,
        tool: None,
        operation: None,
        timeout_ms: None,
        on_timeout: Permission::Deny,
        in_client: false,
    });
    hear(&mut app, Event::Held(Box::new(asked)));
    press(&mut app, "2");
    app.take_effects();
    press(&mut app, "f o");
    assert!(matches!(app.take_effects()[..], [Effect::Act(Act::Approve(7, _))]));
    press(&mut app, "d o");
    assert!(matches!(app.take_effects()[..], [Effect::Act(Act::Deny(7, _))]));
}

#[test]
fn a_clicked_line_is_selected() {
    let mut app = three();
    press(&mut app, "tab");
    app.select_line(2);
    assert_eq!((selected(&app), app.held.is_on_message), (Some(13), false));
    app.select_line(9);
    assert_eq!(selected(&app), Some(13));
}
