use super::*;
use crate::app::App;
use crate::library::{Export, Exported};
use crate::news::News;
use crate::state::common::Overlay;
use crate::testing_screens::{HOSTILE, SESSION, app, in_all_sizes, press, type_in};

fn row(id: &str, name: Option<&str>) -> SessionRow {
    SessionRow {
        id: id.into(),
        name: name.map(str::to_owned),
        server: "npx -y @acme/notes-server".into(),
        transport: "streamable_http".into(),
        started_at: "2026-11-15T14:02:11Z".into(),
        messages: 412,
        bytes: 1_234_567,
        notes: vec![("why".into(), "the slow search".into())],
        ..SessionRow::default()
    }
}

fn rows() -> Vec<SessionRow> {
    let live = SessionRow { is_live: true, transport: "stdio".into(), ..row(SESSION, Some("demo")) };
    vec![live, row("aaaaaaaa-1", Some("notes")), row("bbbbbbbb-2", None), row("cccccccc-3", None)]
}

fn listed() -> App {
    let mut app = app();
    press(&mut app, "9");
    assert!(matches!(app.take_effects().as_slice(), [Effect::Sessions]));
    app.hear(News::Sessions(Ok(rows())));
    app
}

fn opened(app: &mut App) -> Option<SessionRef> {
    app.take_effects().into_iter().find_map(|effect| match effect {
        Effect::Open(session) => Some(session),
        _ => None,
    })
}

struct Recorded(SessionRow);

impl crate::library::Recording for Recorded {
    fn about(&self) -> SessionRow {
        self.0.clone()
    }
    fn page(&self, _: &mcp_control::api::PageQuery) -> Result<mcp_control::api::Page, Trouble> {
        Err("not asked".into())
    }
    fn message(&self, _: u64) -> Result<mcp_control::api::Message, Trouble> {
        Err("not asked".into())
    }
    fn exchange(&self, _: u64) -> Result<mcp_control::api::Exchange, Trouble> {
        Err("not asked".into())
    }
}

fn came_open(app: &mut App, id: &str) {
    app.hear(News::Opened(SessionRef::Stored(id.into()), Ok(std::sync::Arc::new(Recorded(row(id, None))))));
}

/// The sequences around which pages of Traffic are asked for.
fn gone_to(app: &mut App) -> Vec<u64> {
    let pages = app.take_effects().into_iter().filter_map(|effect| match effect {
        Effect::Page { query, .. } => query.after,
        _ => None,
    });
    pages.collect()
}

#[test]
fn enter_opens_the_selected_session() {
    let mut app = listed();
    press(&mut app, "j j enter");
    assert_eq!(opened(&mut app), Some(SessionRef::Stored("bbbbbbbb-2".into())));
    came_open(&mut app, "bbbbbbbb-2");
    assert_eq!(app.common.screen, Screen::Traffic);
    assert!(gone_to(&mut app).is_empty());
    // The one that is shown already is only shown.
    let mut app = listed();
    press(&mut app, "enter");
    assert_eq!((opened(&mut app), app.common.screen), (None, Screen::Traffic));
}

#[test]
fn a_new_list_keeps_the_selection_and_the_marks_that_are_left() {
    let mut app = listed();
    press(&mut app, "j space space ctrl-r");
    assert!(app.sessions.is_loading);
    assert_eq!(app.sessions.marked, ["aaaaaaaa-1", "bbbbbbbb-2"]);
    app.hear(News::Sessions(Ok(vec![row("dddddddd-4", None), row("cccccccc-3", None), row("bbbbbbbb-2", None)])));
    assert_eq!(app.sessions.selected(), Some("cccccccc-3"));
    assert_eq!(app.sessions.marked, ["bbbbbbbb-2"]);
    app.hear(News::Sessions(Ok(Vec::new())));
    press(&mut app, "j space c enter x esc / esc");
    app.hear(News::Sessions(Err("the store cannot be read".into())));
    assert!(in_all_sizes(&mut app).contains("the store cannot be read"));
}

#[test]
fn two_sessions_are_compared() {
    let mut app = listed();
    press(&mut app, "c");
    assert!(app.take_effects().iter().all(|effect| !matches!(effect, Effect::Compare(..))));
    press(&mut app, "j space c");
    let compared = app.take_effects().into_iter().find_map(|effect| match effect {
        Effect::Compare(left, right, work) => Some((left, right, work)),
        _ => None,
    });
    let (left, right, work) = compared.unwrap();
    let stored = |id: &str| SessionRef::Stored(id.into());
    assert_eq!((left, right), (stored("aaaaaaaa-1"), stored("bbbbbbbb-2")));
    press(&mut app, "esc");
    assert!(work.is_cancelled());
    assert_eq!(app.common.screen, Screen::Sessions);
    app.hear(News::Compared(Err("it was ended".into())));
    assert!(app.common.job.is_none());
    // A third mark takes the place of the first.
    press(&mut app, "g space G space c");
    let marked = app.take_effects().into_iter().find_map(|effect| match effect {
        Effect::Compare(left, right, _) => Some((left, right)),
        _ => None,
    });
    assert_eq!(marked, Some((stored(SESSION), stored("cccccccc-3"))));
    app.hear(News::Compared(Ok(comparison())));
    insta::assert_snapshot!("compared", in_all_sizes(&mut app));
    press(&mut app, "j enter");
    assert_eq!(opened(&mut app), Some(stored("cccccccc-3")));
    press(&mut app, "esc");
    assert!(app.sessions.is_list());
}

fn comparison() -> Comparison {
    let line = |what: &str, left, right, paths: &[&str]| ComparedLine {
        what: what.into(),
        left,
        right,
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
    };
    Comparison {
        same: 12,
        different: 1,
        only_left: 0,
        only_right: 1,
        lines: vec![
            line("tools/call [search]", Some(7), Some(9), &["$.result.content[0].text", "$.result.total"]),
            line("tools/call [delete_note]", None, Some(31), &[]),
        ],
    }
}

#[test]
fn a_comparison_waits_for_whoever_went_elsewhere() {
    let mut app = listed();
    press(&mut app, "j space c 1");
    app.hear(News::Compared(Ok(comparison())));
    assert_eq!(app.common.screen, Screen::Traffic);
    press(&mut app, "9");
    assert!(matches!(app.sessions.over, Over::Compared(_)));
}

fn hit(session: &str, sequence: u64) -> Hit {
    Hit {
        session: session.into(),
        sequence,
        timestamp: "2026-11-15T14:02:11Z".into(),
        what: "tools/call [search]".into(),
        snippet: "…where the needle is…".into(),
    }
}

#[test]
fn words_are_found_in_all_sessions() {
    let mut app = listed();
    app.take_effects();
    press(&mut app, "/");
    type_in(&mut app, "needle");
    press(&mut app, "enter");
    assert!(matches!(app.take_effects().as_slice(), [Effect::Search { words }] if words == "needle"));
    app.hear(News::Hits("hay".into(), Ok(Vec::new())));
    app.hear(News::Hits("needle".into(), Ok(vec![hit(SESSION, 4), hit("aaaaaaaa-1", 77)])));
    insta::assert_snapshot!("hits", in_all_sizes(&mut app));
    press(&mut app, "j enter");
    assert_eq!(opened(&mut app), Some(SessionRef::Stored("aaaaaaaa-1".into())));
    came_open(&mut app, "aaaaaaaa-1");
    assert_eq!(gone_to(&mut app), [0], "the page around the message");
    // What is found in the session that is shown is gone to at once.
    let mut app = listed();
    app.sessions.search("needle".into(), &mut app.common);
    app.hear(News::Hits("needle".into(), Ok(vec![hit(SESSION, 400)])));
    app.take_effects();
    press(&mut app, "enter");
    assert_eq!((gone_to(&mut app), app.common.screen), (vec![250], Screen::Traffic));
}

#[test]
fn a_message_is_not_gone_to_in_another_session() {
    let mut app = listed();
    app.common.open_at("aaaaaaaa-1", 700);
    came_open(&mut app, "bbbbbbbb-2");
    assert!(gone_to(&mut app).is_empty());
    app.common.open_at("aaaaaaaa-1", 700);
    app.hear(News::Opened(SessionRef::Stored("gone".into()), Err("it is gone".into())));
    came_open(&mut app, "aaaaaaaa-1");
    assert!(gone_to(&mut app).is_empty());
}

#[test]
fn the_selected_session_is_exported() {
    let mut app = listed();
    app.traffic.filter = Some("tool:x".into());
    app.take_effects();
    press(&mut app, "j x m");
    let Overlay::Prompt(prompt) = &app.common.overlay else { panic!("nothing is asked") };
    assert_eq!(prompt.text(), "session-aaaaaaaa.md");
    press(&mut app, "enter");
    let exported = |app: &mut App| {
        app.take_effects().into_iter().find_map(|effect| match effect {
            Effect::Export(Export { session, filter, .. }, _) => Some((session, filter)),
            _ => None,
        })
    };
    assert_eq!(exported(&mut app), Some((SessionRef::Stored("aaaaaaaa-1".into()), None)));
    app.hear(News::Exported(Ok(Exported { file: "x".into(), messages: 1, masked: 0 })));
    // Elsewhere it is the one that is shown, as far as its filter goes.
    press(&mut app, "1 x m");
    let Overlay::Prompt(prompt) = &app.common.overlay else { panic!("nothing is asked") };
    assert_eq!(prompt.text(), "session-7f3a11c2.md");
    press(&mut app, "enter");
    assert_eq!(exported(&mut app), Some((SessionRef::Stored(SESSION.into()), Some("tool:x".into()))));
}

#[test]
fn it_is_drawn() {
    let mut app = app();
    press(&mut app, "9");
    assert!(in_all_sizes(&mut app).contains("loading"));
    let mut app = listed();
    press(&mut app, "j space");
    app.common.word = None;
    insta::assert_snapshot!("list", in_all_sizes(&mut app));
}

#[test]
fn hostile_text_stays_text() {
    let mut app = listed();
    let hostile = || HOSTILE.to_owned();
    let row = SessionRow {
        id: hostile(),
        name: Some(hostile()),
        server: hostile(),
        transport: hostile(),
        started_at: hostile(),
        notes: vec![(hostile(), hostile())],
        ..SessionRow::default()
    };
    app.hear(News::Sessions(Ok(vec![row])));
    insta::assert_snapshot!("hostile", in_all_sizes(&mut app));
    app.sessions.search(hostile(), &mut app.common);
    let hit = Hit { session: hostile(), sequence: u64::MAX, timestamp: hostile(), what: hostile(), snippet: hostile() };
    app.hear(News::Hits(hostile(), Ok(vec![hit])));
    in_all_sizes(&mut app);
    app.sessions.comparing = Some((hostile(), hostile()));
    let lines = vec![ComparedLine { what: hostile(), left: Some(u64::MAX), right: None, paths: vec![hostile()] }];
    app.hear(News::Compared(Ok(Comparison { lines, ..Comparison::default() })));
    in_all_sizes(&mut app);
}
