use mcp_control::api::{Event, OutcomeKind};

use super::*;
use crate::app::App;
use crate::command::Screen;
use crate::news::News;
use crate::testing_screens::{HOSTILE, answer, app, in_all_sizes, message, press, request};

fn asked(app: &mut App) -> Option<(Ticket, PageQuery)> {
    app.take_effects().into_iter().find_map(|effect| match effect {
        Effect::Page { ticket, query } if ticket.asker == Asker::Waterfall => Some((ticket, query)),
        _ => None,
    })
}

fn with(messages: Vec<Message>) -> App {
    let mut app = app();
    press(&mut app, "4");
    let (ticket, query) = asked(&mut app).unwrap();
    assert_eq!((query.limit, query.before, query.after), (Some(1000), None, None));
    app.hear(News::Page(ticket, Ok(Page { messages, ..Page::default() })));
    app
}

fn saw(app: &mut App, message: Message) {
    app.hear(News::Events(vec![Event::Message(Box::new(message))]));
}

/// A bit of everything.
fn story() -> Vec<Message> {
    let failed =
        |of: u64| Message { status: Some("err".into()), code: Some(-32603), ..answer(9, of, 4_000, 300, "{}") };
    let round = |round: u32, message: Message| Message { operation: Some(11), round: Some(round), ..message };
    let asks = Message { status: Some("input_required".into()), ..answer(12, 11, 4_500, 400, "{}") };
    vec![
        request(1, 0, "initialize"),
        answer(2, 1, 8, 8, "{}"),
        request(3, 100, "search"),
        message(4, 700, r#""direction":"server_to_client","kind":"notification","method":"notifications/progress""#),
        answer(5, 3, 1_900, 1_800, "{}"),
        Message { held_ns: Some(900_000_000), ..request(6, 2_000, "write_file") },
        answer(7, 6, 3_500, 1_500, "{}"),
        request(8, 3_700, "divide"),
        failed(8),
        Message { verdict: Some("deny".into()), ..request(10, 4_050, "delete_note") },
        round(1, request(11, 4_100, "book_trip")),
        round(1, asks),
        round(2, request(13, 9_000, "book_trip")),
        round(2, answer(14, 13, 9_500, 500, "{}")),
        message(15, 9_600, r#""direction":"server_to_client","kind":"request","method":"sampling/createMessage""#),
        request(16, 9_700, "report"),
    ]
}

fn names(app: &App) -> Vec<(&str, Ending)> {
    app.waterfall.operations.values().map(|operation| (operation.name.as_str(), operation.ending())).collect()
}

#[test]
fn a_request_its_rounds_and_answers_are_one_operation() {
    let app = with(story());
    assert_eq!(
        names(&app),
        [
            ("initialize", Ending::Good),
            ("search", Ending::Good),
            ("write_file", Ending::Good),
            ("divide", Ending::Bad),
            ("delete_note", Ending::Denied),
            ("book_trip", Ending::Good),
            ("sampling/createMessage", Ending::Open),
            ("report", Ending::Open),
        ]
    );
    let trip = &app.waterfall.operations[&11];
    assert_eq!((trip.rounds.len(), trip.duration_ns()), (2, Some(5_400_000_000)));
    assert_eq!(
        trip.waits(0, |_| false),
        [(Waits::ForClient, trip.rounds[0].answer.as_ref().unwrap().at, trip.rounds[1].start)]
    );
    assert_eq!(app.waterfall.operations[&3].steps.len(), 1);
    let sum = app.waterfall.sum();
    assert_eq!((sum.operations, sum.errors, sum.denied), (8, 1, 1));
    assert_eq!(sum.times.unwrap().p50, 1_500_000_000);
}

#[test]
fn what_passes_is_added_and_what_is_known_is_not_doubled() {
    let mut app = with(vec![request(1, 0, "a")]);
    for message in [request(1, 0, "a"), answer(2, 1, 50, 50, "{}"), request(3, 60, "b")] {
        saw(&mut app, message);
    }
    assert_eq!(names(&app), [("a", Ending::Good), ("b", Ending::Open)]);
    press(&mut app, "4");
    let (ticket, _) = asked(&mut app).unwrap();
    app.hear(News::Page(ticket, Ok(Page { messages: vec![request(1, 0, "a")], ..Page::default() })));
    assert_eq!(names(&app), [("a", Ending::Good), ("b", Ending::Open)]);
}

#[test]
fn nothing_is_noted_before_somebody_looks() {
    let mut app = app();
    saw(&mut app, request(1, 0, "a"));
    assert!(app.waterfall.operations.is_empty());
}

#[test]
fn an_answer_alone_tells_of_its_request() {
    let mut app = with(vec![answer(9, 4, 500, 300, "{}")]);
    let operation = &app.waterfall.operations[&4];
    assert_eq!((operation.name.as_str(), operation.is_to_server), ("tools/call", true));
    assert_eq!(operation.end(0).unwrap() - operation.start().unwrap(), 300_000);
    press(&mut app, "enter");
    let is_around = |effect: &Effect| matches!(effect, Effect::Page { query, .. } if query.after.is_some());
    assert!(app.take_effects().iter().any(is_around));
}

#[test]
fn decisions_and_verdicts_show_as_they_come() {
    let mut app = with(vec![request(1, 0, "a"), request(2, 0, "b")]);
    let outcome = |sequence, what, held_ns| Outcome { sequence, what, by: String::new(), held_ns, edited: false };
    app.hear(News::Events(vec![
        Event::Outcome(outcome(1, OutcomeKind::Dropped, 5_000_000)),
        Event::Verdict(Verdict { sequence: 2, verdict: "deny".into(), rule: None, op: None, audit_id: None }),
    ]));
    assert_eq!(names(&app), [("a", Ending::Nowhere), ("b", Ending::Denied)]);
    assert_eq!((app.waterfall.operations[&1].status(), app.waterfall.has_open()), ("dropped", false));
}

#[test]
fn the_selection_follows_until_somebody_moves() {
    let mut app = with(vec![request(1, 0, "a"), request(2, 1, "b")]);
    assert_eq!(app.waterfall.selected(), Some(2));
    saw(&mut app, request(3, 2, "c"));
    assert_eq!(app.waterfall.selected(), Some(3));
    press(&mut app, "k");
    saw(&mut app, request(4, 3, "d"));
    assert_eq!(app.waterfall.selected(), Some(2));
    press(&mut app, "G");
    saw(&mut app, request(5, 4, "e"));
    assert_eq!(app.waterfall.selected(), Some(5));
    app.select_line(2);
    press(&mut app, "p");
    assert_eq!((app.common.screen, app.traffic.selected), (Screen::Traffic, Some(3)));
}

#[test]
fn it_is_bounded() {
    let mut app = with(Vec::new());
    for sequence in 1..=2_100 {
        app.waterfall.see(&request(sequence, 0, "a"));
    }
    assert_eq!((app.waterfall.operations.len(), app.waterfall.selected()), (2_000, Some(2_100)));
}

#[test]
fn short_pages_are_gone_on_from() {
    let mut app = app();
    press(&mut app, "4");
    let (ticket, _) = asked(&mut app).unwrap();
    let page = Page { messages: vec![request(50, 10, "late")], older: Some(50), ..Page::default() };
    app.hear(News::Page(ticket, Ok(page)));
    let (ticket, query) = asked(&mut app).unwrap();
    assert_eq!(query.before, Some(50));
    app.hear(News::Page(ticket, Ok(Page { messages: vec![request(1, 0, "early")], ..Page::default() })));
    assert!(asked(&mut app).is_none());
    assert_eq!(names(&app).len(), 2);
}

#[test]
fn it_is_drawn() {
    let mut app = app();
    press(&mut app, "4");
    insta::assert_snapshot!("loading", crate::testing_screens::render(&mut app, (60, 8), Default::default()));
    let mut app = with(story());
    app.tick(2_000);
    insta::assert_snapshot!("story", in_all_sizes(&mut app));
}

#[test]
fn hostile_text_stays_text() {
    let mut app = with(vec![request(1, 0, HOSTILE), answer(2, 1, 5, 5, "{}")]);
    app.waterfall.trouble = Some(HOSTILE.to_owned());
    insta::assert_snapshot!("hostile", in_all_sizes(&mut app));
}

#[test]
fn what_is_held_now_is_said_to_be() {
    let mut app = with(vec![request(1, 0, "write_file")]);
    app.tick(1_000);
    let held = format!(
        r#"{{"sequence":1,"conversation":1,"direction":"client_to_server","why":"intercept","held_ms":1000,
        "since":"2026-11-15T14:02:00Z","message":{}}}"#,
        serde_json::to_string(&request(1, 0, "write_file")).unwrap()
    );
    app.hear(News::Events(vec![Event::Held(serde_json::from_str(&held).unwrap())]));
    let drawn = crate::testing_screens::render(&mut app, (120, 12), Default::default());
    assert!(drawn.contains("⏸ held") && drawn.contains("·· held 1.0 s ··"), "{drawn}");
}

#[test]
fn times_may_be_anything() {
    let odd = |sequence: u64, time: &str| Message { timestamp: time.into(), ..request(sequence, 0, "a") };
    let times = ["", "-009999-01-02T01:59:59Z", "9999-12-30T22:00:00Z", "yesterday"];
    let mut messages: Vec<Message> = times.iter().zip(1..).map(|(time, sequence)| odd(sequence, time)).collect();
    messages.push(Message { duration_ns: Some(u64::MAX), held_ns: Some(u64::MAX), ..answer(9, 2, 0, 0, "{}") });
    let mut app = with(messages);
    assert_eq!(app.waterfall.operations.len(), 2);
    in_all_sizes(&mut app);
}
