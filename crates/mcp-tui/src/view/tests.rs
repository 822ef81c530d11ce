//! The traffic screen and what lies over it, as they are drawn.

use mcp_control::api::{Event, Exchange, ExplainedRule, Explanation, Header, Mode, Page, Permission, VerdictKind};

use crate::app::App;
use crate::news::{Act, Acted, Effect, News};
use crate::state::coach::{Coach, Stage};
use crate::state::detail::View;
use crate::testing::{ASCII, HOSTILE, PLAIN, app, call, hear, held, is_drawn_safely, message, press, render};

/// A list with something of everything.
fn busy() -> App {
    let mut app = app();
    app.traffic.begin(&mut app.common);
    let mut answer = message(2, r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"42"}]}}"#);
    (answer.answers, answer.method, answer.tool) = (Some(1), Some("tools/call".into()), Some("add".into()));
    (answer.status, answer.duration_ns) = (Some("ok".into()), Some(12_000_000));
    let mut failed = message(4, r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"no"}}"#);
    (failed.answers, failed.method, failed.tool) = (Some(3), Some("tools/call".into()), Some("divide".into()));
    (failed.status, failed.code, failed.duration_ns) = (Some("err".into()), Some(-32602), Some(2_100_000_000));
    let mut denied = call(5, "delete_repo", "{}");
    (denied.verdict, denied.rule, denied.op) = (Some("deny".into()), Some("no-deletes".into()), Some("delete".into()));
    let mut edited = call(6, "write_file", r#"{"path":"/tmp/new","mode":420}"#);
    edited.modified = true;
    edited.original_raw = call(6, "write_file", r#"{"path":"/etc/passwd","mode":420}"#).raw;
    (edited.mark, edited.note) = (Some("*".into()), Some("look at this".into()));
    let messages = vec![call(1, "add", r#"{"a":2,"b":40}"#), answer, call(3, "divide", "{}"), failed, denied, edited];
    let ticket = app.take_effects().into_iter().find_map(|effect| match effect {
        Effect::Page { ticket, .. } => Some(ticket),
        _ => None,
    });
    app.hear(News::Page(ticket.unwrap(), Ok(Page { messages, last_sequence: 6, ..Page::default() })));
    hear(&mut app, Event::Message(Box::new(call(7, "exec_cmd", r#"{"command":"ls"}"#))));
    hear(&mut app, Event::Held(Box::new(held(call(7, "exec_cmd", r#"{"command":"ls"}"#), "intercept"))));
    app.take_effects();
    app
}

#[test]
fn traffic() {
    insta::assert_snapshot!("traffic_80x24", render(&mut busy(), 80, 24, &PLAIN));
    insta::assert_snapshot!("traffic_120x40", render(&mut busy(), 120, 40, &PLAIN));
    insta::assert_snapshot!("traffic_60x16", render(&mut busy(), 60, 16, &PLAIN));
    insta::assert_snapshot!("traffic_ascii", render(&mut busy(), 80, 24, &ASCII));
    is_drawn_safely(&mut busy());
}

/// A batch of a proxy tool, and what two servers were sent for it.
fn proxied() -> App {
    let mut app = app();
    app.traffic.begin(&mut app.common);
    let mut outer = call(1, "proxy", r#"{"action":"batch","operations":[{},{}]}"#);
    outer.proxied = Some("batch of 2".into());
    let inner = |sequence, server: &str, tool: &str| {
        let mut inner = call(sequence, tool, "{}");
        (inner.upstream, inner.parent, inner.conversation) = (Some(server.into()), Some(1), 2);
        inner
    };
    let answer = |sequence, request| {
        let mut answer = message(sequence, r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#);
        (answer.answers, answer.status) = (Some(request), Some("ok".into()));
        (answer.method, answer.tool) = (Some("tools/call".into()), Some("read".into()));
        answer
    };
    let messages =
        vec![outer, inner(2, "files", "read"), inner(3, "git", "log"), answer(4, 2), answer(5, 3), answer(6, 1)];
    let ticket = app.take_effects().into_iter().find_map(|effect| match effect {
        Effect::Page { ticket, .. } => Some(ticket),
        _ => None,
    });
    app.hear(News::Page(ticket.unwrap(), Ok(Page { messages, last_sequence: 6, ..Page::default() })));
    app
}

#[test]
fn calls_through_a_proxy_tool_lead_to_each_other() {
    let mut app = proxied();
    press(&mut app, "g");
    insta::assert_snapshot!("proxied_outer", render(&mut app, 120, 14, &PLAIN));
    press(&mut app, "P");
    insta::assert_snapshot!("proxied_inner", render(&mut app, 120, 14, &PLAIN));
    // The answers on either side belong to the same call.
    for (key, title) in
        [("P", "#1, led to #2 #3"), ("G", "#6"), ("P", "#2, from #1"), ("p", "#4, from #1"), ("P", "#1, led to #2 #3")]
    {
        press(&mut app, key);
        let drawn = render(&mut app, 120, 14, &PLAIN);
        assert!(drawn.contains(&format!(" Detail {title} ─")), "{key}: {drawn}");
    }
    is_drawn_safely(&mut app);
}

/// The last row, at a width.
fn keys_at(app: &mut App, width: u16, height: u16) -> String {
    render(app, width, height, &PLAIN).lines().last().unwrap_or_default().to_owned()
}

#[test]
fn help_is_always_named_and_screens_as_they_fit() {
    let mut app = busy();
    for (width, expected) in [
        (7, " ?:Help"),
        (25, " ?:Help 1 2 3 4 5 6 7 8 9"),
        (40, " ?:Help Q:Quit 1:Traffic 2 3 4 5 6 7 8 9"),
        (60, " ?:Help F2:Filter F6:Modify Q:Quit 1:Traffic 2 3 4 5 6 7 8 9"),
        (80, " ?:Help F2:Filter F5:Forward F6:Modify F8:Drop Q:Quit 1:Traffic 2 3 4 5 6 7 8 9"),
        (
            160,
            " ?:Help F2:Filter F5:Forward F6:Modify F8:Drop Q:Quit 1:Traffic 2:Held 3:Repeater 4:Waterfall 5:Tools \
             6:Breakpoints 7:Servers 8:Audit 9:Sessions",
        ),
    ] {
        assert_eq!(keys_at(&mut app, width, 24), expected);
    }
    for width in 2..200 {
        let keys = keys_at(&mut app, width, 24);
        assert!(keys.starts_with(" ?"), "at {width}: {keys}");
    }
    assert!(keys_at(&mut app, 80, 3).starts_with(" ?:Help"), "however low the screen is");
    press(&mut app, "8");
    assert_eq!(keys_at(&mut app, 40, 24), " ?:Help Q:Quit 1 2 3 4 5 6 7 8:Audit 9");
}

#[test]
fn the_title_names_a_listener() {
    let mut app = busy();
    let instance = &mut app.common.standing.as_mut().unwrap().instance;
    (instance.listen, instance.name) = ("127.0.0.1:8888".into(), None);
    instance.server_command = Some("/home/ann/gateway.toml".into());
    let title = render(&mut app, 80, 24, &PLAIN).lines().next().unwrap().to_owned();
    assert!(title.starts_with(" mcp-proxy — 127.0.0.1:8888 — /home/ann"), "{title}");
}

#[test]
fn a_wide_list_has_a_clock_and_arguments() {
    let mut app = busy();
    let drawn = render(&mut app, 120, 24, &PLAIN);
    assert!(drawn.contains("► #001 14:02:19 → tools/call [add] a=2 b=40  "), "{drawn}");
    assert!(drawn.contains("⏸ #007 14:02:19 → tools/call [exec_cmd] command=\"ls\"  "), "{drawn}");
    for (width, keys) in [(119, ""), (80, "")] {
        press(&mut app, keys);
        let drawn = render(&mut app, width, 24, &PLAIN);
        assert!(!drawn.contains("14:02:19") && drawn.contains("#001 → tools/call [add]  "), "{drawn}");
    }
    press(&mut app, "z");
    let drawn = render(&mut app, 80, 24, &PLAIN);
    assert!(drawn.contains("► #001 14:02:19 → tools/call [add] a=2 b=40  "), "alone it has room: {drawn}");
    is_drawn_safely(&mut app);
}

#[test]
fn an_empty_list_says_how_clients_get_in() {
    let mut app = app();
    app.common.doors = vec!["mcp-proxy connect 7f3a".into(), "http://127.0.0.1:8888/mcp".into()];
    insta::assert_snapshot!("traffic_empty", render(&mut app, 80, 24, &PLAIN));
}

#[test]
fn detail_views() {
    let mut app = busy();
    press(&mut app, "k");
    for view in View::ALL {
        app.detail.show(view, &mut app.common);
        if view == View::Headers {
            app.hear(News::Exchange(6, Ok(exchange())));
        }
        if view == View::Policy {
            app.hear(News::Explanation(6, Ok(explanation())));
        }
        let name = format!("detail_{}", view.title().to_lowercase());
        insta::assert_snapshot!(name, render(&mut app, 120, 24, &PLAIN));
        is_drawn_safely(&mut app);
    }
}

fn exchange() -> Exchange {
    let header = |name: &str, value: &str| Header { name: name.into(), value: value.into() };
    Exchange {
        number: 4,
        method: Some("POST".into()),
        target: Some("/mcp".into()),
        request: vec![header("authorization", "Bearer ***")],
        status: Some(200),
        response: vec![header("content-type", "text/event-stream")],
        ..Exchange::default()
    }
}

fn explanation() -> Explanation {
    let rule = |name: &str, filter: &str, verdict, matches, decides| ExplainedRule {
        name: name.into(),
        filter: filter.into(),
        verdict,
        matches,
        decides,
        note: None,
    };
    Explanation {
        verdict: Some(VerdictKind::Ask),
        recorded: None,
        operation: Some("write".into()),
        reasons: vec!["`write` is a word for writing".into()],
        rules: vec![
            rule("no-deletes", "op:delete", VerdictKind::Deny, false, false),
            rule("ask-first", "op:write", VerdictKind::Ask, true, true),
        ],
        rules_omitted: 0,
        default: Permission::Allow,
        version: "1a2b".into(),
        rules_changed: true,
    }
}

#[test]
fn what_lies_over_a_screen() {
    for (name, keys) in [
        ("over_filter", "/ t o o l : x"),
        ("over_wrong_filter", "/ t o l : x"),
        ("over_drop", "G d"),
        ("over_palette", ": f o r"),
        ("over_help", "?"),
        ("over_editor", "G m"),
    ] {
        let mut app = busy();
        press(&mut app, keys);
        insta::assert_snapshot!(name, render(&mut app, 80, 24, &PLAIN));
        is_drawn_safely(&mut app);
    }
}

#[test]
fn the_coach() {
    let mut app = busy();
    app.coach = Some(Coach::new(Stage::default()));
    insta::assert_snapshot!("coach", render(&mut app, 80, 24, &PLAIN));
    app.hear(News::Acted(Act::Mode(Mode::Intercept), Ok(Acted::Released(0))));
    let drawn = render(&mut app, 80, 24, &PLAIN);
    assert!(drawn.contains(" Step 1 of 8, 1 more done   (> skips it) "), "{drawn}");
    is_drawn_safely(&mut app);
}

/// Whatever a peer writes wherever it can.
#[test]
fn hostile_text_stays_text() {
    let mut app = busy();
    let standing = app.common.standing.as_mut().unwrap();
    (standing.instance.name, standing.instance.server_command) = (Some(HOSTILE.into()), Some(HOSTILE.into()));
    let json = serde_json::to_string(HOSTILE).unwrap();
    let mut hostile = call(8, HOSTILE, &format!("{{{json}:{json}}}"));
    hostile.original_raw = call(8, HOSTILE, &format!("{{{json}:1}}")).raw;
    for field in [&mut hostile.client, &mut hostile.server, &mut hostile.revision, &mut hostile.outcome] {
        *field = Some(HOSTILE.into());
    }
    hostile.proxied = Some(HOSTILE.into());
    for field in [&mut hostile.mark, &mut hostile.note, &mut hostile.rule, &mut hostile.verdict, &mut hostile.op] {
        *field = Some(HOSTILE.into());
    }
    (hostile.event_id, hostile.decided_by, hostile.opaque) =
        (Some(HOSTILE.into()), Some(HOSTILE.into()), Some(HOSTILE.into()));
    hear(&mut app, Event::Message(Box::new(hostile.clone())));
    hear(&mut app, Event::Held(Box::new(held(hostile, HOSTILE))));
    app.common.doors = vec![HOSTILE.into()];
    for view in View::ALL {
        app.detail.show(view, &mut app.common);
        is_drawn_safely(&mut app);
    }
    press(&mut app, "G m");
    is_drawn_safely(&mut app);
}
