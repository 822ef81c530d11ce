use mcp_control::api::{Event, Message, Page};

use super::*;
use crate::app::App;
use crate::command::Screen;
use crate::news::{Acted, News};
use crate::state::common::Overlay;
use crate::testing_screens::{HOSTILE, answer, app, in_all_sizes, in_odd_sizes, message, press, request, type_in};

const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add"}}"#;

fn take(app: &mut App, sequence: u64, raw: &str, is_sent: bool) {
    let title = "tools/call [add]".to_owned();
    app.common.repeat = Some(Repeat { sequence, raw: raw.to_owned(), title, is_sent });
    app.settle();
}

/// What was asked to be sent: in whose place, with which content, as which run.
fn sent(app: &mut App) -> Option<(u64, Option<String>, u64)> {
    app.take_effects().into_iter().find_map(|effect| match effect {
        Effect::Act(Act::Replay { sequence, replay, run }) => {
            Some((sequence, replay.raw.map(|raw| raw.get().to_owned()), run))
        }
        _ => None,
    })
}

fn replayed(app: &mut App, run: u64, sequence: u64) {
    let act = Act::Replay { sequence: 1, replay: Replay::default(), run };
    app.hear(News::Acted(act, Ok(Acted::Replayed(sequence))));
}

fn saw(app: &mut App, message: Message) {
    app.hear(News::Events(vec![Event::Message(Box::new(message))]));
}

fn asked(app: &mut App) -> Option<(Ticket, PageQuery)> {
    app.take_effects().into_iter().find_map(|effect| match effect {
        Effect::Page { ticket, query } if ticket.asker == Asker::Repeater => Some((ticket, query)),
        _ => None,
    })
}

/// A request that was sent as #20.
fn waiting() -> App {
    let mut app = app();
    take(&mut app, 7, CALL, true);
    let (.., run) = sent(&mut app).unwrap();
    replayed(&mut app, run, 20);
    app
}

fn shown(app: &App) -> &Run {
    app.repeater.tab().unwrap().shown_run().unwrap()
}

#[test]
fn what_was_not_edited_is_sent_as_it_was_recorded() {
    let mut app = app();
    let recorded = request(7, 0, "add");
    let raw = recorded.raw.as_ref().unwrap().get().to_owned();
    saw(&mut app, recorded);
    press(&mut app, "r");
    assert_eq!(app.common.screen, Screen::Repeater);
    assert_eq!(sent(&mut app).unwrap().1, None);
    press(&mut app, "m ctrl-s r");
    assert_eq!(sent(&mut app).unwrap().1, None, "laying it out is no edit");
    press(&mut app, "1 r");
    assert_eq!((app.repeater.tabs.len(), app.repeater.tabs[0].runs.len()), (1, 3));
    // Another request, but in the same one's place.
    app.take_effects();
    let other = CALL.replace("add", "divide");
    take(&mut app, 7, &other, true);
    assert_eq!(sent(&mut app).unwrap().1, Some(other));
    assert_eq!(app.repeater.tabs[0].text.as_ref(), raw);
    assert_eq!(app.repeater.tabs.len(), 2);
}

#[test]
fn an_edited_request_is_sent_as_it_is_written() {
    let mut app = app();
    take(&mut app, 7, CALL, false);
    assert!(sent(&mut app).is_none());
    press(&mut app, "m");
    assert!(matches!(app.common.overlay, Overlay::Editor(_)));
    press(&mut app, "right");
    type_in(&mut app, r#""x":1,"#);
    press(&mut app, "ctrl-s r");
    let (sequence, raw, _) = sent(&mut app).unwrap();
    assert_eq!((sequence, raw.unwrap().starts_with("{\"x\":1,\n")), (7, true));
    assert!(app.repeater.tab().unwrap().is_edited());
    press(&mut app, "e");
    let effects = app.take_effects();
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Editor { .. })));
}

#[test]
fn an_answer_is_caught_as_it_passes() {
    let mut app = waiting();
    saw(&mut app, answer(21, 3, 10, 5, "{}"));
    assert!(matches!(shown(&app).became, Became::Waiting(_)));
    saw(&mut app, answer(22, 20, 10, 5, r#"{"n":1}"#));
    let answer = shown(&app).answer().unwrap();
    assert_eq!((answer.sequence, answer.status.as_str(), answer.is_bad), (22, "ok", false));
    assert!(answer.text().unwrap().contains(r#""n":1"#));
}

#[test]
fn an_answer_may_come_before_it_is_known_what_was_sent() {
    let mut app = app();
    take(&mut app, 7, CALL, true);
    let (.., run) = sent(&mut app).unwrap();
    saw(&mut app, answer(21, 20, 10, 5, "{}"));
    assert!(matches!(shown(&app).became, Became::Sending));
    replayed(&mut app, run, 20);
    assert_eq!(shown(&app).answer().unwrap().sequence, 21);
    assert!(app.repeater.early.is_empty());
}

#[test]
fn an_answer_that_nobody_tells_of_is_looked_for() {
    let mut app = waiting();
    assert_eq!(app.tick_within(), 300);
    app.tick(299);
    assert!(asked(&mut app).is_none());
    app.tick(300);
    let (ticket, query) = asked(&mut app).unwrap();
    assert_eq!((query.after, query.filter.as_deref()), (Some(20), Some("kind:response,error")));
    mcp_filter::Filter::parse(query.filter.as_ref().unwrap()).unwrap();
    app.tick(5_000);
    assert!(asked(&mut app).is_none(), "one question at a time");
    // A page that does not reach the end is gone on from at once.
    let page = Page { newer: Some(40), last_sequence: 90, ..Page::default() };
    app.hear(News::Page(ticket, Ok(page)));
    let (ticket, query) = asked(&mut app).unwrap();
    assert_eq!(query.after, Some(40));
    app.hear(News::Page(ticket, Err("gone".into())));
    app.tick(6_000);
    let (ticket, _) = asked(&mut app).unwrap();
    let messages = vec![answer(80, 20, 10, 5, "{}")];
    app.hear(News::Page(ticket, Ok(Page { messages, newer: Some(90), last_sequence: 90, ..Page::default() })));
    assert_eq!(shown(&app).answer().unwrap().sequence, 80);
    app.tick(9_000);
    assert!(asked(&mut app).is_none());
    assert_eq!(app.repeater.due(), None);
}

#[test]
fn nobody_looks_for_ever() {
    let mut app = waiting();
    app.tick(60_000);
    assert!(asked(&mut app).is_none());
    assert!(matches!(&shown(&app).became, Became::Waiting(waiting) if waiting.is_given_up));
    insta::assert_snapshot!(crate::testing_screens::render(&mut app, (80, 16), Default::default()));
    // It may come all the same.
    saw(&mut app, answer(22, 20, 10, 5, "{}"));
    assert!(shown(&app).answer().is_some());
}

#[test]
fn a_notification_is_not_waited_for() {
    let mut app = app();
    take(&mut app, 7, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, true);
    let (.., run) = sent(&mut app).unwrap();
    replayed(&mut app, run, 20);
    assert!(matches!(shown(&app).became, Became::Told { sequence: 20 }));
    assert_eq!(app.repeater.due(), None);
}

#[test]
fn what_is_too_long_for_a_list_is_fetched() {
    let mut app = waiting();
    saw(&mut app, Message { raw: None, raw_omitted: true, ..answer(22, 20, 10, 5, "{}") });
    assert!(matches!(shown(&app).answer().unwrap().content, Content::Coming));
    assert!(app.take_effects().iter().any(|effect| matches!(effect, Effect::Message { sequence: 22 })));
    app.hear(News::Message(22, Ok(Box::new(answer(22, 20, 10, 5, r#"{"long":1}"#)))));
    assert!(shown(&app).answer().unwrap().text().unwrap().contains("long"));
}

#[test]
fn a_refusal_is_shown_on_its_run() {
    let mut app = app();
    take(&mut app, 7, CALL, true);
    let (.., run) = sent(&mut app).unwrap();
    let refused = crate::news::Refused { code: None, words: "the rule no-deletes denies it".into() };
    let act = Act::Replay { sequence: 7, replay: Replay::default(), run };
    app.hear(News::Acted(act, Err(refused)));
    assert!(matches!(&shown(&app).became, Became::Refused(words) if words.contains("no-deletes")));
    insta::assert_snapshot!(crate::testing_screens::render(&mut app, (80, 16), Default::default()));
}

#[test]
fn nothing_is_sent_from_a_recording() {
    let mut app = app();
    app.common.recording = Some(Default::default());
    take(&mut app, 7, CALL, true);
    assert!(sent(&mut app).is_none());
    assert!(app.repeater.tabs.is_empty());
    assert!(app.common.word.as_ref().unwrap().text.contains("recording"));
}

#[test]
fn tabs_runs_and_contents_are_bounded() {
    let mut app = app();
    for sequence in 1..=30 {
        take(&mut app, sequence, CALL, false);
    }
    assert_eq!(app.repeater.tabs.len(), TABS_MAX);
    assert_eq!(app.repeater.tab().unwrap().sequence, 30);
    for _ in 0..150 {
        press(&mut app, "r");
    }
    let tab = app.repeater.tab().unwrap();
    assert_eq!((tab.runs.len(), tab.runs[0].number, shown(&app).number), (100, 51, 150));
    let large = format!("\"{}\"", "x".repeat(12 << 20));
    let runs: Vec<u64> = app.repeater.tab().unwrap().runs.iter().map(|run| run.id).take(4).collect();
    for (run, sequence) in runs.into_iter().zip(200..) {
        replayed(&mut app, run, sequence);
        saw(&mut app, answer(sequence + 100, sequence, 1, 1, &large));
    }
    let kept = |run: &Run| run.answer().map(|answer| answer.text().is_some());
    let kept: Vec<_> = app.repeater.tab().unwrap().runs.iter().take(5).map(kept).collect();
    assert_eq!(kept, [Some(false), Some(false), Some(true), Some(true), None]);
    for _ in 0..30 {
        press(&mut app, "w");
    }
    assert!(app.repeater.tabs.is_empty());
    press(&mut app, "r m e c x v tab left enter w j");
}

#[test]
fn panes_runs_and_tabs_are_gone_through() {
    let mut app = app();
    take(&mut app, 1, CALL, true);
    take(&mut app, 2, CALL, true);
    press(&mut app, "r r");
    let at = |app: &App| (app.repeater.shown, app.repeater.is_on_answer, app.repeater.tab().unwrap().shown);
    assert_eq!(at(&app), (1, false, 2));
    press(&mut app, "v");
    assert_eq!(at(&app), (1, false, 0));
    press(&mut app, "V left");
    assert_eq!(at(&app), (1, false, 1));
    press(&mut app, "right right right tab");
    assert_eq!(at(&app), (1, true, 2));
    press(&mut app, "tab");
    assert_eq!(at(&app), (0, false, 0));
    press(&mut app, "backtab");
    assert_eq!(at(&app), (1, true, 2));
    press(&mut app, "backtab");
    assert_eq!(at(&app), (1, false, 2));
}

/// Two runs that differ in two values, and the recorded answer.
fn compared() -> App {
    let mut app = waiting();
    saw(&mut app, answer(21, 20, 10, 312, r#"{"ts":1,"sum":3,"rows":[1,2,3]}"#));
    press(&mut app, "r");
    let (.., run) = sent(&mut app).unwrap();
    replayed(&mut app, run, 30);
    saw(&mut app, answer(31, 30, 10, 2, r#"{"ts":2,"sum":3,"rows":[1,2,3]}"#));
    app.take_effects();
    app
}

#[test]
fn runs_are_compared_with_the_one_before_and_with_what_was_recorded() {
    let mut app = compared();
    press(&mut app, "c");
    let repeater = &mut app.repeater;
    let (title, diff) = repeater.drawn.diff(&repeater.tabs[0]).unwrap();
    assert_eq!((title.as_str(), diff.differing), ("run 1 against run 2", 1));
    press(&mut app, "c");
    let (ticket, query) = asked(&mut app).unwrap();
    assert_eq!(query.after, Some(7));
    let messages = vec![answer(8, 7, 10, 5, r#"{"ts":2,"sum":4,"rows":[1,2,3]}"#)];
    app.hear(News::Page(ticket, Ok(Page { messages, newer: Some(31), last_sequence: 31, ..Page::default() })));
    let repeater = &mut app.repeater;
    let (title, diff) = repeater.drawn.diff(&repeater.tabs[0]).unwrap();
    assert_eq!((title.as_str(), diff.differing), ("what was recorded, #8, against run 2", 1));
    press(&mut app, "c");
    assert_eq!(app.repeater.tabs[0].against, Against::Nothing);
}

#[test]
fn any_two_runs_are_compared() {
    let mut app = compared();
    let runs = app.repeater.tab().unwrap().runs.len();
    assert!(runs >= 2, "{runs}");
    app.repeater.tabs[0].show(0);
    press(&mut app, "space");
    assert_eq!(app.repeater.tab().unwrap().marked, Some(1));
    app.repeater.tabs[0].show(runs - 1);
    let tab = app.repeater.tab().unwrap();
    assert_eq!((tab.against, tab.marked_run().unwrap().number), (Against::Marked, 1));
    app.repeater.tabs[0].show(0);
    press(&mut app, "space");
    assert_eq!(app.repeater.tab().unwrap().marked, None);
}

#[test]
fn repeats_teach_which_paths_to_leave_out() {
    let mut app = compared();
    press(&mut app, "c x");
    let Overlay::Prompt(prompt) = &app.common.overlay else { panic!("nothing is asked") };
    assert_eq!(prompt.text(), "$.id $.result.ts");
    press(&mut app, "enter");
    let repeater = &mut app.repeater;
    assert!(repeater.drawn.diff(&repeater.tabs[0]).unwrap().1.is_same);
    press(&mut app, "x");
    let Overlay::Prompt(prompt) = &app.common.overlay else { panic!("nothing is asked") };
    assert_eq!(prompt.text(), "$.id $.result.ts", "what was said stays");
    press(&mut app, "ctrl-u enter");
    let repeater = &mut app.repeater;
    assert_eq!(repeater.drawn.diff(&repeater.tabs[0]).unwrap().1.differing, 2, "even the id");
}

#[test]
fn paths_are_split_at_blanks_outside_of_names() {
    assert_eq!(split(r#" $.a  $["odd key"].b $["q\" x"] "#), ["$.a", r#"$["odd key"].b"#, r#"$["q\" x"]"#]);
    assert!(split("  ").is_empty());
}

#[test]
fn the_recorded_answer_is_looked_for_only_so_far() {
    let mut app = compared();
    press(&mut app, "c c");
    for newer in 1..=100 {
        let Some((ticket, _)) = asked(&mut app) else { break };
        app.hear(News::Page(ticket, Ok(Page { newer: Some(newer * 10), last_sequence: 5_000, ..Page::default() })));
    }
    assert!(matches!(app.repeater.tabs[0].original, Original::NotFound));
}

#[test]
fn the_mouse_picks_runs_and_panes() {
    use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
    let mut app = compared();
    crate::testing_screens::render(&mut app, (80, 24), Default::default());
    let mut click = |column, row| {
        let kind = MouseEventKind::Down(MouseButton::Left);
        crate::mouse::mouse(&mut app, MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE });
        (app.repeater.is_on_answer, app.repeater.tab().unwrap().shown)
    };
    assert_eq!(click(40, 3), (true, 0));
    assert_eq!(click(5, 8), (false, 0));
    assert_eq!(click(60, 8), (true, 0));
}

#[test]
fn it_is_drawn() {
    let mut app = app();
    app.common.screen = Screen::Repeater;
    insta::assert_snapshot!("empty", in_all_sizes(&mut app));
    let mut app = compared();
    insta::assert_snapshot!("answer", in_all_sizes(&mut app));
    press(&mut app, "c");
    insta::assert_snapshot!("compared", in_all_sizes(&mut app));
    press(&mut app, "tab z");
    in_odd_sizes(&mut app);
}

#[test]
fn hostile_text_stays_text() {
    let mut app = app();
    let name = serde_json::to_string(HOSTILE).unwrap();
    let title = HOSTILE.to_owned();
    let raw = format!(r#"{{"id":1,"method":{name},{name}:{name}}}"#);
    app.common.repeat = Some(Repeat { sequence: 1, raw, title, is_sent: true });
    app.settle();
    let (.., run) = sent(&mut app).unwrap();
    replayed(&mut app, run, 20);
    saw(
        &mut app,
        message(
            21,
            0,
            &format!(
                r#""direction":"server_to_client","kind":"error","status":{name},"answers":20,"raw":{{{name}:{name}}}"#
            ),
        ),
    );
    insta::assert_snapshot!("hostile", in_all_sizes(&mut app));
    press(&mut app, "c c");
    in_all_sizes(&mut app);
    app.repeater.refused(run, HOSTILE.to_owned());
    in_all_sizes(&mut app);
}
