//! Keys and news to state and effects, without drawing.

use mcp_control::api::{
    Code, Ended, Event, Held, Lasting, Lease, LeaseState, Mode, Outcome, OutcomeKind, Page, Permission, Question,
    Snapshot,
};

use super::App;
use crate::Left;
use crate::command::Screen;
use crate::keymap::Keymap;
use crate::library::SessionRef;
use crate::news::{Act, Acted, Effect, News, Refused};
use crate::state::coach::{Coach, Stage, Step};
use crate::state::common::Overlay;
use crate::state::detail::View;
use crate::testing::{PLAIN, app, call, hear, held, is_drawn_safely, message, press, render, snapshot};

/// An app whose list has these messages.
fn with_messages(messages: Vec<mcp_control::api::Message>) -> App {
    let mut app = app();
    app.traffic.begin(&mut app.common);
    let last_sequence = messages.last().map_or(0, |message| message.sequence);
    answer_pages(&mut app, Page { messages, last_sequence, ..Page::default() });
    app.take_effects();
    app
}

fn answer_pages(app: &mut App, page: Page) {
    for effect in app.take_effects() {
        if let Effect::Page { ticket, .. } = effect {
            app.hear(News::Page(ticket, Ok(page.clone())));
        }
    }
}

fn with_calls() -> App {
    with_messages(vec![call(1, "read", "{}"), call(2, "write", r#"{"path":"/tmp/x"}"#)])
}

/// One of the calls is held.
fn with_held() -> App {
    let mut app = with_calls();
    hear(&mut app, Event::Held(Box::new(held(call(2, "write", r#"{"path":"/tmp/x"}"#), "intercept"))));
    app.take_effects();
    app
}

fn acts(app: &mut App) -> Vec<Act> {
    let effects = app.take_effects().into_iter();
    effects.filter_map(|effect| if let Effect::Act(act) = effect { Some(act) } else { None }).collect()
}

#[track_caller]
fn the_only(acts: Vec<Act>) -> Act {
    let [act] = <[Act; 1]>::try_from(acts).expect("one act");
    act
}

#[test]
fn a_filter_counts_once_typing_pauses() {
    let mut app = with_calls();
    press(&mut app, "/ t o o l : w r i t e");
    assert_eq!(app.traffic.filter, None);
    app.tick(1_000);
    assert_eq!(app.traffic.filter.as_deref(), Some("tool:write"));
    let watches = app.take_effects().into_iter().any(|effect| matches!(effect, Effect::Watch { filter: Some(_) }));
    assert!(watches, "what is live is filtered too");
    press(&mut app, "esc");
    assert_eq!(app.traffic.filter, None, "whoever leaves wants what was before");
    press(&mut app, "/ a enter");
    assert_eq!(app.traffic.filter.as_deref(), Some("a"));
    press(&mut app, "esc");
    assert_eq!(app.traffic.filter, None);
}

#[test]
fn a_wrong_filter_changes_nothing() {
    let mut app = with_calls();
    press(&mut app, "/ t o l : x");
    app.tick(1_000);
    assert_eq!(app.traffic.filter, None);
    press(&mut app, "enter");
    assert!(matches!(app.common.overlay, Overlay::Prompt(_)), "it stays until it is right");
}

#[test]
fn holding_is_a_key() {
    let mut app = with_calls();
    press(&mut app, "i");
    assert!(matches!(the_only(acts(&mut app)), Act::Mode(Mode::Intercept)));
    hear(&mut app, Event::Mode(mcp_control::api::ModeChange { mode: Mode::Intercept }));
    press(&mut app, "i");
    assert!(matches!(the_only(acts(&mut app)), Act::Mode(Mode::Passthrough)));
}

#[test]
fn a_held_message_goes_on_by_each_key() {
    for key in ["f", "F5"] {
        let mut app = with_held();
        press(&mut app, key);
        assert!(matches!(the_only(acts(&mut app)), Act::Forward(2)));
    }
    let mut app = with_held();
    press(&mut app, "F");
    assert!(matches!(the_only(acts(&mut app)), Act::ForwardAll));
}

#[test]
fn nothing_is_decided_about_what_is_not_held() {
    let mut app = with_calls();
    press(&mut app, "f m d a");
    assert!(acts(&mut app).is_empty());
    assert!(matches!(app.common.overlay, Overlay::None));
    assert!(app.common.word.as_ref().unwrap().text.contains("nothing is held"));
}

#[test]
fn an_edit_is_sent_as_it_was_written() {
    let mut app = with_held();
    press(&mut app, "m");
    let Overlay::Editor(editor) = &app.common.overlay else { panic!("an editor") };
    assert!(editor.text().contains("\"path\": \"/tmp/x\""), "{}", editor.text());
    press(&mut app, "end space ctrl-s");
    let Act::Modify(2, modify) = the_only(acts(&mut app)) else { panic!("a change") };
    assert!(modify.raw.get().contains("/tmp/x"));
    assert!(!modify.confirm);
}

#[test]
fn what_is_no_message_any_more_is_asked_about() {
    let mut app = with_held();
    press(&mut app, "m end space ctrl-s");
    let act = the_only(acts(&mut app));
    let refused = Refused { code: Some(Code::NotJsonRpc), words: "not JSON-RPC".into() };
    app.hear(News::Acted(act, Err(refused)));
    press(&mut app, "ctrl-s");
    let Act::Modify(2, modify) = the_only(acts(&mut app)) else { panic!("a change") };
    assert!(modify.confirm);
}

#[test]
fn what_is_not_changed_goes_on_as_it_came() {
    let mut app = with_held();
    press(&mut app, "m ctrl-s");
    assert!(matches!(the_only(acts(&mut app)), Act::Forward(2)), "and not as it was laid out");
}

#[test]
fn what_was_written_is_not_lost() {
    let mut app = with_held();
    press(&mut app, "m end space ctrl-s");
    let act = the_only(acts(&mut app));
    app.hear(News::Acted(act, Err(Refused { code: Some(Code::Locked), words: "somebody else".into() })));
    assert!(matches!(&app.common.overlay, Overlay::Editor(editor) if editor.text().starts_with("{ ")));
    press(&mut app, "ctrl-e");
    assert!(matches!(&app.take_effects()[..], [Effect::Editor { .. }]));
    let text = "{ \"jsonrpc\": \"2.0\" }".to_owned();
    app.hear(News::Edited(crate::news::Editing::Modify(2), text.clone(), Err("no editor".into())));
    assert!(matches!(&app.common.overlay, Overlay::Editor(editor) if editor.text() == text));
}

fn goes_on(app: &mut App) {
    let outcome = Outcome { sequence: 2, what: OutcomeKind::Released, by: String::new(), held_ns: 1, edited: false };
    hear(app, Event::Outcome(outcome));
}

/// The text that is to be kept in a file.
#[track_caller]
fn kept(app: &mut App) -> String {
    let effects = app.take_effects();
    let kept = effects.iter().find_map(|effect| match effect {
        Effect::Keep { sequence: 2, text } => Some(text.clone()),
        _ => None,
    });
    kept.unwrap_or_else(|| panic!("{effects:?}"))
}

#[test]
fn an_edit_is_kept_in_a_file_if_its_message_goes_on_meanwhile() {
    let mut app = with_held();
    press(&mut app, "m end space");
    goes_on(&mut app);
    let drawn = render(&mut app, 80, 24, &PLAIN);
    assert!(drawn.contains("esc keeps your edit in a file") && drawn.contains("#2 is held no longer"), "{drawn}");
    press(&mut app, "esc");
    assert!(render(&mut app, 80, 24, &PLAIN).contains("esc once more keeps your edit in a file"));
    press(&mut app, "esc");
    assert!(kept(&mut app).starts_with("{ "));
    app.hear(News::Kept(2, Ok("/tmp/mcp-proxy-abc.json".into())));
    let drawn = render(&mut app, 80, 24, &PLAIN);
    assert!(drawn.contains("#2 was not sent; your edit is kept in /tmp/mcp-proxy-abc.json"), "{drawn}");
}

#[test]
fn an_edit_that_comes_too_late_is_kept_in_a_file() {
    let mut app = with_held();
    press(&mut app, "m end space ctrl-s");
    let act = the_only(acts(&mut app));
    goes_on(&mut app);
    app.hear(News::Acted(act, Err(Refused { code: Some(Code::NotHeld), words: "#2 is not held".into() })));
    assert!(matches!(app.common.overlay, Overlay::None));
    assert!(kept(&mut app).starts_with("{ "));
}

#[test]
fn the_reason_of_a_refusal_is_read_in_the_editor() {
    let mut app = with_held();
    press(&mut app, "m end space ctrl-s");
    let act = the_only(acts(&mut app));
    app.hear(News::Acted(act, Err(Refused { code: Some(Code::Locked), words: "tui (1) has control".into() })));
    assert!(render(&mut app, 80, 24, &PLAIN).contains("tui (1) has control"));
    press(&mut app, "esc");
    assert!(matches!(app.common.overlay, Overlay::Editor(_)), "one key throws nothing away");
}

#[test]
fn live_news_do_not_touch_a_recording() {
    let mut app = with_calls();
    app.common.recording = Some(crate::library::SessionRow::default());
    app.traffic.reset(&mut app.common);
    hear(&mut app, Event::Held(Box::new(held(call(9, "live", "{}"), "intercept"))));
    assert!(app.common.messages.get(9).is_none());
    assert!(app.common.held().is_empty());
    app.show_live();
    assert_eq!(app.common.held().len(), 1);
}

#[test]
fn dropping_asks_how() {
    let mut app = with_held();
    press(&mut app, "d d");
    assert!(matches!(the_only(acts(&mut app)), Act::Drop(2, drop) if drop.error.is_none()));
    let mut app = with_held();
    press(&mut app, "F8 e enter");
    assert!(matches!(the_only(acts(&mut app)), Act::Drop(2, drop) if drop.error.is_some()));
    let mut app = with_held();
    press(&mut app, "d esc");
    assert!(acts(&mut app).is_empty());
    let mut app = with_held();
    press(&mut app, "d enter enter");
    assert!(matches!(the_only(acts(&mut app)), Act::Drop(2, drop) if drop.error.is_some()), "a request is answered");
}

#[test]
fn an_answer_is_written_in_the_servers_place() {
    let mut app = with_held();
    press(&mut app, "a r ctrl-s");
    let Act::Answer(2, answer) = the_only(acts(&mut app)) else { panic!("an answer") };
    assert_eq!(answer.result.unwrap().get(), "{}");
}

fn asked() -> Held {
    let question = Question {
        rule: "ask-first".into(),
        message: None,
        method: Some("tools/call".into()),
        tool: Some("write".into()),
        operation: Some("write".into()),
        timeout_ms: None,
        on_timeout: Permission::Deny,
        in_client: false,
    };
    Held { asks: Some(question), ..held(call(2, "write", "{}"), "ask-first") }
}

#[test]
fn what_a_rule_asks_is_approved_or_denied() {
    let ask = || {
        let mut app = with_calls();
        hear(&mut app, Event::Held(Box::new(asked())));
        app
    };
    let mut app = ask();
    press(&mut app, "A s");
    assert!(matches!(the_only(acts(&mut app)), Act::Approve(2, approve) if approve.lasting == Lasting::Session));
    let mut app = ask();
    press(&mut app, "f o");
    assert!(matches!(the_only(acts(&mut app)), Act::Approve(2, approve) if approve.lasting == Lasting::Once));
    let mut app = ask();
    press(&mut app, "d w n o enter");
    let Act::Deny(2, deny) = the_only(acts(&mut app)) else { panic!("a denial") };
    assert_eq!(deny.message.as_deref(), Some("no"));
    let mut app = ask();
    press(&mut app, "m end space ctrl-s");
    assert!(matches!(the_only(acts(&mut app)), Act::Approve(2, approve) if approve.raw.is_some()));
}

#[test]
fn leaving_says_what_is_held() {
    let mut app = with_calls();
    press(&mut app, "q");
    assert!(matches!(app.take_effects()[..], [Effect::End(Left::Detached)]));
    let mut app = with_held();
    press(&mut app, "q");
    assert!(app.take_effects().is_empty(), "it is asked");
    press(&mut app, "y");
    assert!(matches!(app.take_effects()[..], [Effect::End(Left::Detached)]));
    let mut app = with_held();
    press(&mut app, "Q");
    assert!(matches!(app.take_effects()[..], [Effect::End(Left::Detached)]), "at once");
    let mut app = with_calls();
    press(&mut app, "ctrl-c");
    assert!(matches!(app.take_effects()[..], [Effect::End(Left::Detached)]));
}

#[test]
fn whoever_leaves_is_told_what_becomes_of_what_is_held() {
    let title = |app: &App| {
        let Overlay::Menu(menu) = &app.common.overlay else { panic!("it is asked") };
        menu.title.clone()
    };
    let mut app = with_held();
    press(&mut app, "q");
    assert_eq!(title(&app), "1 message is held and will be forwarded. Leave?");
    // What a rule asks about comes while the question is open.
    let mut question = asked();
    question.asks.as_mut().unwrap().timeout_ms = Some(45_000);
    (question.sequence, question.released_in_ms) = (3, Some(25_000));
    hear(&mut app, Event::Held(Box::new(question)));
    app.tick(5_000);
    let denied = "1 message is held and will be denied in 20 s unless answered elsewhere.";
    assert_eq!(title(&app), format!("1 message is held and will be forwarded. {denied} Leave?"));
    app.common.own_instance = true;
    press(&mut app, "esc q");
    assert!(title(&app).contains(denied), "{}", title(&app));
    press(&mut app, "d");
    assert!(matches!(app.take_effects()[..], [Effect::End(Left::Detached)]));
}

#[test]
fn a_long_question_is_wrapped_into_its_menu() {
    let mut app = with_held();
    let mut question = asked();
    question.sequence = 3;
    hear(&mut app, Event::Held(Box::new(question)));
    press(&mut app, "q");
    let drawn = render(&mut app, 60, 16, &PLAIN);
    let words: String =
        drawn.lines().filter_map(|line| line.split_once('│')?.1.rsplit_once('│')).map(|(words, _)| words).collect();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("will be forwarded. 1 message is held and will be denied"), "{drawn}");
    assert!(words.contains("unless answered elsewhere. Leave?") && words.contains("y leave"), "{drawn}");
    is_drawn_safely(&mut app);
}

#[test]
fn whoever_only_watches_does_nothing() {
    let mut app = with_held();
    app.common.read_only = true;
    press(&mut app, "i f F");
    assert!(acts(&mut app).is_empty());
    assert!(app.common.word.as_ref().unwrap().is_bad);
}

#[test]
fn screens_are_a_digit_away_and_esc_leads_back() {
    let mut app = with_calls();
    for screen in Screen::ALL {
        press(&mut app, &screen.number().to_string());
        assert_eq!(app.common.screen, screen);
    }
    press(&mut app, "esc");
    assert_eq!(app.common.screen, Screen::Traffic);
}

#[test]
fn the_palette_does_what_it_finds() {
    let mut app = with_calls();
    press(&mut app, ": w a t e r enter");
    assert_eq!(app.common.screen, Screen::Waterfall);
    assert!(matches!(app.common.overlay, Overlay::None));
}

#[test]
fn keys_can_mean_something_else() {
    let mut app = with_held();
    app.keymap = Keymap::with("forward = \"ctrl-o\"").unwrap();
    press(&mut app, "f");
    assert!(acts(&mut app).is_empty());
    press(&mut app, "ctrl-o");
    assert!(matches!(the_only(acts(&mut app)), Act::Forward(2)));
}

#[test]
fn the_detail_has_views_and_folds() {
    let mut app = with_calls();
    press(&mut app, "v");
    assert_eq!(app.detail.view, View::Tree);
    press(&mut app, "V V");
    assert_eq!(app.detail.view, View::Pair);
    press(&mut app, "tab");
    assert!(app.detail.has_keys);
    press(&mut app, "esc");
    assert!(!app.detail.has_keys);
}

#[test]
fn words_are_found_in_a_message_and_in_turn() {
    let mut app =
        with_messages(vec![call(1, "copy", r#"{"from":"/a/x","to":{"deep":{"deeper":{"deepest":"/b/x"}}}}"#)]);
    press(&mut app, "tab / / x enter");
    assert_eq!(app.detail.path().as_deref(), Some("$.params.arguments.from"));
    press(&mut app, "n");
    assert_eq!(app.detail.path().as_deref(), Some("$.params.arguments.to.deep.deeper.deepest"), "unfolded");
    press(&mut app, "n");
    assert_eq!(app.detail.path().as_deref(), Some("$.params.arguments.from"), "round and round");
    press(&mut app, "/ backspace backspace n o enter");
    assert!(app.common.word.as_ref().unwrap().text.contains("not in this message"));
    assert_eq!(app.traffic.filter, None, "the list is left alone");
}

#[test]
fn headers_and_verdicts_are_fetched_when_they_are_looked_at() {
    let mut app = with_calls();
    app.detail.show(View::Headers, &mut app.common);
    assert!(matches!(app.take_effects()[..], [Effect::Exchange { sequence: 2 }]));
    app.detail.show(View::Policy, &mut app.common);
    assert!(matches!(app.take_effects()[..], [Effect::Explain { sequence: 2 }]));
    press(&mut app, "k");
    assert!(app.take_effects().iter().any(|effect| matches!(effect, Effect::Explain { sequence: 1 })));
}

#[test]
fn a_mark_comes_and_goes() {
    let mut app = with_calls();
    press(&mut app, "space");
    assert!(matches!(the_only(acts(&mut app)), Act::Mark(2, mark) if mark.mark.is_some()));
    hear(&mut app, Event::Marked(mcp_control::api::Marked { sequence: 2, mark: Some("*".into()), note: None }));
    press(&mut app, "space");
    assert!(matches!(the_only(acts(&mut app)), Act::Mark(2, mark) if mark.mark.is_none()));
    press(&mut app, "; o d d enter");
    assert!(matches!(the_only(acts(&mut app)), Act::Mark(2, mark) if mark.note.as_deref() == Some("odd")));
}

#[test]
fn what_a_lease_is_called_does_not_make_it_ours() {
    let lease = |since: &str| Lease { holder: "tui (ann)".into(), since: since.into(), present: true };
    let mut app = app();
    app.hear(News::Leased(Ok("10:00".into())));
    hear(&mut app, Event::Lease(LeaseState { lease: Some(lease("10:00")) }));
    assert!(app.common.has_lease);
    hear(&mut app, Event::Lease(LeaseState { lease: Some(lease("10:05")) }));
    assert!(!app.common.has_lease);
    press(&mut app, "T");
    assert!(matches!(app.take_effects()[..], [Effect::Lease { take: true }]));
}

#[test]
fn a_lease_that_nobody_has_is_asked_for_once() {
    let mut app = app();
    let nobody = || Event::Snapshot(Box::new(Snapshot { lease: None, ..snapshot() }));
    hear(&mut app, nobody());
    hear(&mut app, nobody());
    let asked = app.take_effects().into_iter().filter(|effect| matches!(effect, Effect::Lease { take: false }));
    assert_eq!(asked.count(), 1);
}

#[test]
fn what_an_instance_leaves_behind_is_opened() {
    let mut app = with_calls();
    app.common.standing.as_mut().unwrap().instance.session = Some("abc".into());
    hear(&mut app, Event::End(Ended { why: "the proxy has ended".into() }));
    let effects = app.take_effects();
    assert!(matches!(&effects[..], [Effect::Open(SessionRef::Stored(id))] if id == "abc"), "{effects:?}");
    let mut app = with_calls();
    app.common.own_instance = true;
    hear(&mut app, Event::End(Ended { why: "it has ended".into() }));
    assert!(matches!(app.take_effects()[..], [Effect::End(Left::InstanceEnded(_))]), "a drawing proxy ends with it");
}

#[test]
fn outcomes_are_shown_where_the_message_is() {
    let mut app = with_held();
    hear(
        &mut app,
        Event::Outcome(mcp_control::api::Outcome {
            sequence: 2,
            what: mcp_control::api::OutcomeKind::Modified,
            by: "tui (ann)".into(),
            held_ns: 5,
            edited: true,
        }),
    );
    assert!(app.common.held().is_empty());
    assert!(app.traffic.rows.get(2).unwrap().message.modified);
    assert!(app.common.messages.get(2).is_none(), "it is another now");
}

#[test]
fn copying_offers_what_there_is() {
    let mut app = with_calls();
    press(&mut app, "y j");
    assert!(matches!(&app.take_effects()[..], [Effect::Copy(text)] if text.contains("tools/call")));
    press(&mut app, "y c");
    assert!(matches!(&app.take_effects()[..], [Effect::Copy(text)] if text.starts_with("curl")));
}

#[test]
fn a_request_goes_to_the_repeater_and_an_answer_does_not() {
    let mut app = with_calls();
    press(&mut app, "r");
    assert_eq!(app.common.screen, Screen::Repeater);
    assert!(matches!(the_only(acts(&mut app)), Act::Replay { sequence: 2, .. }));
    let answer = message(3, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    let mut app = with_messages(vec![call(2, "write", "{}"), answer]);
    press(&mut app, "r");
    assert_eq!(app.common.screen, Screen::Traffic);
    assert!(acts(&mut app).is_empty());
}

#[test]
fn saving_and_loading_name_a_file() {
    let mut app = with_calls();
    press(&mut app, "s enter");
    assert!(matches!(the_only(acts(&mut app)), Act::Save(file) if file.is_absolute()));
    press(&mut app, "L / x enter");
    assert!(matches!(&app.take_effects()[..], [Effect::Load(file, _)] if file.to_str() == Some("/x")));
    app.common.job = None;
    let instance = &mut app.common.standing.as_mut().unwrap().instance;
    instance.session = Some(instance.id.clone());
    press(&mut app, "s enter");
    let effects = app.take_effects();
    assert!(
        matches!(&effects[..], [Effect::Export(export, _)] if export.format == "json" && !export.redact),
        "{effects:?}"
    );
}

#[test]
fn the_coach_sees_what_is_done() {
    let mut app = with_calls();
    app.coach = Some(Coach::new(Stage::default()));
    press(&mut app, "j j j");
    assert_eq!(app.coach.as_ref().unwrap().step(), Step::Watch, "the last row has none below it");
    press(&mut app, "k j k");
    assert_eq!(app.coach.as_ref().unwrap().step(), Step::Filter);
    press(&mut app, "/ x enter");
    assert_eq!(app.coach.as_ref().unwrap().step(), Step::Hold);
    app.hear(News::Acted(Act::Mode(Mode::Intercept), Ok(Acted::Released(0))));
    assert_eq!(app.coach.as_ref().unwrap().step(), Step::Edit);
    press(&mut app, ">");
    assert_eq!(app.coach.as_ref().unwrap().step(), Step::Forward);
}

#[test]
fn esc_cancels_work() {
    let mut app = with_calls();
    app.common.standing.as_mut().unwrap().instance.session = Some("abc".into());
    press(&mut app, "x m enter");
    let effects = app.take_effects();
    let [Effect::Export(export, work)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(export.format, "md");
    press(&mut app, "x m enter");
    assert!(app.take_effects().is_empty(), "one work at a time");
    press(&mut app, "esc");
    assert!(work.is_cancelled());
}
