use mcp_control::api::{Era, ServerCalls, Transport};

use super::*;
use crate::app::App;
use crate::news::{Acted, News};
use crate::state::common::Overlay;
use crate::testing_screens::{HOSTILE, app, in_all_sizes, press};

fn server(id: &str, state: ServerState) -> Server {
    Server {
        id: id.into(),
        state,
        era: None,
        transport: Transport::Stdio,
        tools: None,
        prompts: None,
        resources: None,
        instances: 0,
        clients: 0,
        in_flight: 0,
        restarts: 0,
        retry_after_ms: None,
        why: None,
        last_words: None,
        calls: ServerCalls::default(),
    }
}

fn servers() -> Vec<Server> {
    let means = [900, 4_000, 12_000, 40_000, 120_000, 400_000, 1_200_000, 4_000_000];
    let of_minutes = (0..31).map(|at| (at % 10 < 8).then(|| means[at % 10]));
    let github = Server {
        era: Some(Era::Legacy),
        tools: Some(34),
        prompts: Some(1),
        resources: Some(0),
        instances: 1,
        clients: 2,
        in_flight: 3,
        calls: ServerCalls {
            total: 4_711,
            errors: 2,
            per_minute: 12,
            latency_us: of_minutes.collect(),
            longest_us: 5_200_000,
        },
        ..server("github", ServerState::Ready)
    };
    let docs = Server {
        era: Some(Era::Modern),
        transport: Transport::StreamableHttp,
        tools: Some(8),
        calls: ServerCalls {
            total: 3,
            per_minute: 3,
            latency_us: vec![None, Some(310_000)],
            longest_us: 400_000,
            ..ServerCalls::default()
        },
        ..server("docs", ServerState::Ready)
    };
    let redis = Server {
        restarts: 3,
        retry_after_ms: Some(7_400),
        why: Some("server \"redis\" is gone: it ended before it answered (exit code 1)".into()),
        last_words: Some("redis-mcp 0.3\nError: connect ECONNREFUSED 127.0.0.1:6379\n".into()),
        ..server("redis", ServerState::Restarting)
    };
    let down = Server { restarts: 12, retry_after_ms: Some(30_000), ..server("broken", ServerState::Down) };
    let lazy = Server { transport: Transport::Sse, ..server("lazy", ServerState::Stopped) };
    let new = server("new", ServerState::Starting);
    vec![github, docs, redis, down, lazy, new, server("unwanted", ServerState::Disabled)]
}

fn listed() -> App {
    let mut app = app();
    press(&mut app, "7");
    assert!(matches!(app.take_effects().as_slice(), [Effect::Servers]));
    tell(&mut app, servers());
    app
}

fn tell(app: &mut App, servers: Vec<Server>) {
    app.hear(News::Servers(Ok(api::Servers { servers })));
}

fn looks(app: &mut App) -> usize {
    app.take_effects().iter().filter(|effect| matches!(effect, Effect::Servers)).count()
}

fn acts(app: &mut App) -> Vec<Act> {
    let act = |effect| match effect {
        Effect::Act(act) => Some(act),
        _ => None,
    };
    app.take_effects().into_iter().filter_map(act).collect()
}

#[test]
fn it_is_looked_at_while_somebody_sees_it() {
    let mut app = listed();
    app.tick(900);
    assert_eq!(looks(&mut app), 0);
    app.tick(1_000);
    assert_eq!(looks(&mut app), 1);
    // Not again before that was answered.
    app.tick(9_000);
    assert_eq!(looks(&mut app), 0);
    tell(&mut app, servers());
    press(&mut app, "1");
    app.tick(60_000);
    assert_eq!(looks(&mut app), 0);
    press(&mut app, "7");
    assert_eq!(looks(&mut app), 1);
}

#[test]
fn the_selected_server_stays_selected() {
    let mut app = listed();
    press(&mut app, "j j");
    let mut fewer = servers();
    fewer.remove(0);
    tell(&mut app, fewer);
    assert_eq!(app.servers.selected().unwrap().id, "redis");
    app.select_line(4);
    assert_eq!(app.servers.selected().unwrap().id, "new");
}

#[test]
fn restarting_and_disabling_ask_first() {
    let mut app = listed();
    press(&mut app, "r");
    let Overlay::Menu(menu) = &app.common.overlay else { panic!("nothing was asked") };
    assert_eq!(menu.title, "Restart github? 3 calls wait for it");
    press(&mut app, "esc");
    assert!(acts(&mut app).is_empty());
    press(&mut app, "r r");
    assert!(matches!(acts(&mut app).as_slice(), [Act::RestartServer(id)] if id == "github"));
    press(&mut app, "j d d");
    let done = acts(&mut app);
    assert!(matches!(done.as_slice(), [Act::DisableServer(id)] if id == "docs"));
    app.hear(News::Acted(done[0].clone(), Ok(Acted::Done)));
    assert_eq!(app.common.word.as_ref().unwrap().text, "docs is disabled");
    assert_eq!(looks(&mut app), 1);
}

#[test]
fn a_disabled_server_is_enabled_by_the_same_key() {
    let mut app = listed();
    press(&mut app, "G d");
    assert!(matches!(acts(&mut app).as_slice(), [Act::EnableServer(id)] if id == "unwanted"));
    press(&mut app, "r");
    assert!(acts(&mut app).is_empty());
    assert!(app.common.word.as_ref().unwrap().text.contains("`d` enables it"));
    app.common.read_only = true;
    press(&mut app, "d");
    assert!(app.common.word.as_ref().unwrap().text.contains("only watches"));
}

#[test]
fn an_instance_without_servers_says_so_and_is_left_alone() {
    let mut app = app();
    press(&mut app, "7");
    assert_eq!(looks(&mut app), 1);
    assert!(in_all_sizes(&mut app).contains("loading"));
    let words = "this instance is no gateway".to_owned();
    app.hear(News::Servers(Err(Refused { code: Some(Code::NotFound), words })));
    insta::assert_snapshot!("no_gateway", in_all_sizes(&mut app));
    app.tick(60_000);
    assert_eq!(looks(&mut app), 0);
}

#[test]
fn it_is_drawn() {
    let mut app = listed();
    insta::assert_snapshot!("list", in_all_sizes(&mut app));
    press(&mut app, "j j");
    insta::assert_snapshot!("failing", in_all_sizes(&mut app));
    press(&mut app, "d");
    insta::assert_snapshot!("disabling", crate::testing::render(&mut app, 80, 24, &crate::testing::PLAIN));
    press(&mut app, "esc tab j j z");
    in_all_sizes(&mut app);
    tell(&mut app, Vec::new());
    assert!(in_all_sizes(&mut app).contains("no servers"));
}

#[test]
fn who_cannot_be_asked_any_more_is_shown_as_it_was() {
    let mut app = listed();
    app.hear(News::Servers(Err(Refused { code: None, words: "the instance broke off".into() })));
    let drawn = in_all_sizes(&mut app);
    assert!(drawn.contains("github") && drawn.contains("the instance broke off"), "{drawn}");
    app.tick(1_000);
    assert_eq!(looks(&mut app), 1);
}

#[test]
fn hostile_text_stays_text() {
    let mut app = app();
    press(&mut app, "7");
    let hostile = Server {
        why: Some(HOSTILE.repeat(9)),
        last_words: Some(format!("{HOSTILE}\n{}", HOSTILE.repeat(50))),
        retry_after_ms: Some(u64::MAX),
        in_flight: u64::MAX,
        calls: ServerCalls {
            total: u64::MAX,
            errors: u64::MAX,
            per_minute: u64::MAX,
            latency_us: vec![Some(u64::MAX); 100],
            longest_us: u64::MAX,
        },
        ..server(HOSTILE, ServerState::Down)
    };
    tell(&mut app, vec![hostile]);
    insta::assert_snapshot!("hostile", in_all_sizes(&mut app));
    press(&mut app, "r");
    crate::testing::is_drawn_safely(&mut app);
    app.hear(News::Acted(Act::RestartServer(HOSTILE.into()), Ok(Acted::Done)));
    press(&mut app, "esc");
    crate::testing::is_drawn_safely(&mut app);
}

#[test]
fn trouble_of_a_server_that_is_there_is_shown_in_full() {
    let mut app = listed();
    let troubled = [ServerState::NotResponding, ServerState::Failing, ServerState::NeedsLogin];
    tell(&mut app, troubled.map(|state| server("docs", state)).into());
    let drawn = crate::testing::render(&mut app, 80, 24, &crate::testing::PLAIN);
    for (state, sign) in [("not responding", "◐"), ("failing", "◐"), ("needs login", "✗")] {
        assert!(drawn.contains(&format!("{sign} docs      {state} ")), "{state}: {drawn}");
    }
    assert!(drawn.contains("Servers: 0 of 3 ready"), "{drawn}");
}
