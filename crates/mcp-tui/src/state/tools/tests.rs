use super::fixtures::{answer, asked, listed, listing, shown};
use super::*;
use crate::app::App;
use crate::key::Key;
use crate::news::News;
use crate::testing::{app, call, hear, held, message, press, without_raw};
use mcp_control::api::Event;

const ADD: &str = r#"{"name":"add","inputSchema":{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}}"#;

fn tools(sequence: u64, items: &str) -> Message {
    listed(sequence, "tools/list", &listing("tools", items))
}

fn page_of(sequence: u64, items: &str) -> Message {
    let raw = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{items}],"nextCursor":"more"}}}}"#);
    listed(sequence, "tools/list", &raw)
}

fn names(app: &App) -> String {
    app.tools.found.iter().map(|offer| offer.name.as_str()).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check(lists: Vec<Message>, expected: &str) {
    assert_eq!(names(&shown(lists)), expected);
}

#[test]
fn pages_of_a_list_are_one_and_the_newest_list_counts() {
    let (a, b, other_b) = (r#"{"name":"a"}"#, r#"{"name":"b"}"#, r#"{"name":"b","title":"B"}"#);
    check(vec![tools(2, a)], "a");
    check(vec![tools(2, a), tools(4, b)], "b");
    check(vec![page_of(2, a), tools(4, b)], "a b");
    check(vec![page_of(2, b), tools(4, &format!("{a},{other_b}"))], "b a");
    check(vec![tools(2, a), page_of(4, b), tools(6, r#"{"name":"c"}"#)], "b c");
    check(vec![page_of(2, a), tools(4, b), tools(6, a)], "a");
    check(vec![page_of(2, r#"{"name":"old"}"#), tools(4, a), page_of(6, b), tools(8, a)], "b a");
    check(vec![tools(2, a), listed(4, "prompts/list", &listing("prompts", b))], "a b");
    let mut of_another_client = tools(4, b);
    of_another_client.conversation = 2;
    check(vec![page_of(2, a), of_another_client], "b");
    let newest = shown(vec![page_of(2, b), tools(4, other_b)]);
    assert_eq!(newest.tools.found[0].title.as_deref(), Some("B"));
}

#[test]
fn what_is_no_list_or_has_no_name_is_left_out() {
    check(vec![], "");
    check(vec![tools(2, r#"1, null, {}, {"name":7}, {"name":"a"}, []"#)], "a");
    check(vec![listed(2, "tools/list", r#"{"id":1,"result":{"tools":{"name":"a"}}}"#)], "");
    check(vec![listed(2, "tools/list", r#"{"id":1,"result":[]}"#)], "");
    check(vec![listed(2, "tools/list", r#"{"id":1,"error":{"code":1,"message":"no"}}"#)], "");
    check(vec![listed(2, "tools/call", &listing("tools", r#"{"name":"a"}"#))], "");
}

#[test]
fn what_hides_characters_is_flagged() {
    let mut app = shown(vec![tools(
        2,
        r#"{"name":"plain","description":"two\nlines\tand Ünïcode"},
           {"name":"escaped","description":"zero\u200bwidth"},
           {"name":"deep","inputSchema":{"properties":{"a":{"description":"\u202eturned"}}}},
           {"name":"bell\u0007"}"#,
    )]);
    let flagged: Vec<bool> = app.tools.found.iter().map(|offer| offer.is_hiding).collect();
    assert_eq!(flagged, [false, true, true, true]);
    press(&mut app, "y");
    assert!(
        matches!(&app.take_effects()[..], [Effect::Copy(definition)] if definition.starts_with(r#"{"name":"plain""#))
    );
}

#[test]
fn too_many_are_cut_and_that_is_known() {
    let many: Vec<String> = (0..=catalogue::OFFERS_MAX).map(|tool| format!(r#"{{"name":"t{tool}"}}"#)).collect();
    let app = shown(vec![tools(2, &many.join(","))]);
    assert_eq!((app.tools.found.len(), app.tools.catalogue.is_cut), (catalogue::OFFERS_MAX, true));
    // What was replaced takes no room.
    let app = shown(vec![tools(2, &many[..6_000].join(",")), tools(4, &many[..6_000].join(","))]);
    assert_eq!((app.tools.found.len(), app.tools.catalogue.is_cut), (6_000, false));
}

#[test]
fn a_long_list_is_fetched_whole() {
    let mut app = app();
    press(&mut app, "5");
    answer(&mut app, vec![without_raw(tools(2, ADD))]);
    assert!(matches!(app.take_effects()[..], [Effect::Message { sequence: 2 }]));
    assert_eq!(names(&app), "");
    app.hear(News::Message(2, Ok(Box::new(tools(2, ADD)))));
    assert_eq!(names(&app), "add");
}

#[test]
fn a_list_that_passes_is_read_once_it_matters() {
    let mut app = shown(vec![tools(2, ADD)]);
    press(&mut app, "1");
    hear(&mut app, Event::Message(Box::new(tools(8, r#"{"name":"new"}"#))));
    app.tick(500);
    assert_eq!(asked(&mut app), None);
    press(&mut app, "5");
    answer(&mut app, vec![tools(2, ADD), tools(8, r#"{"name":"new"}"#)]);
    assert_eq!(names(&app), "new");
    hear(&mut app, Event::Message(Box::new(tools(12, ADD))));
    app.tick(1000);
    answer(&mut app, vec![tools(8, r#"{"name":"new"}"#), tools(12, ADD)]);
    assert_eq!(names(&app), "add");
}

#[test]
fn words_narrow_as_they_are_typed() {
    let mut app = shown(vec![tools(2, r#"{"name":"add"},{"name":"sub","description":"Take AWAY"}"#)]);
    press(&mut app, "/ a w a y");
    assert_eq!(names(&app), "sub");
    press(&mut app, "esc");
    assert_eq!(names(&app), "add sub");
    press(&mut app, "/ t o o l enter");
    assert_eq!((names(&app).as_str(), app.tools.words.as_str()), ("add sub", "tool"));
    press(&mut app, "/ x enter");
    assert_eq!(names(&app), "");
    press(&mut app, "t esc");
    assert_eq!((names(&app).as_str(), app.common.screen), ("add sub", Screen::Tools));
    press(&mut app, "esc");
    assert_eq!(app.common.screen, Screen::Traffic);
}

#[test]
fn a_tool_is_called_in_place_of_the_client_that_listed_it() {
    let mut app = shown(vec![tools(2, ADD)]);
    press(&mut app, "t");
    let Overlay::Editor(editor) = &app.common.overlay else { panic!("an editor opens") };
    assert_eq!(editor.why, Editing::Arguments("add".into()));
    assert_eq!(editor.schema, Some((true, "valid against inputSchema".into())));
    app.tools.call("add", r#"{"a":1.0}"#, &mut app.common);
    let raw = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1.0}}}"#;
    let repeat = Repeat { sequence: 1, raw: raw.into(), title: "tools/call [add]".into(), is_sent: true };
    assert_eq!(app.common.repeat, Some(repeat));
    app.common.overlay = Overlay::None;
    press(&mut app, "t ctrl-s");
    assert_eq!(app.common.screen, Screen::Repeater);
}

#[test]
fn a_modern_call_says_who_speaks() {
    let mut list = tools(2, ADD);
    list.revision = Some("2026-07-28".into());
    let mut app = shown(vec![list]);
    assert!(app.take_effects().iter().any(|effect| matches!(effect, Effect::Message { sequence: 1 })));
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"v": "2026-07-28"}}}"#;
    app.hear(News::Message(1, Ok(Box::new(message(1, request)))));
    app.tools.call("add", "{}", &mut app.common);
    let raw = app.common.repeat.take().unwrap().raw;
    assert!(raw.ends_with(r#""arguments":{},"_meta":{"v": "2026-07-28"}}}"#), "{raw}");
}

#[test]
fn only_tools_are_called() {
    let mut app = shown(vec![listed(2, "prompts/list", &listing("prompts", r#"{"name":"greet"}"#))]);
    press(&mut app, "enter");
    assert!(matches!(app.common.overlay, Overlay::None));
    assert!(app.common.word.as_ref().unwrap().text.contains("this is a prompt"));
}

#[track_caller]
fn call_is(message: &str, expected: Option<(bool, &str)>) {
    let app = shown(vec![tools(2, &format!(r#"{ADD},{{"name":"free"}},{{"name":"odd","inputSchema":{{"type":7}}}}"#))]);
    let found = app.tools.check_call(message);
    match expected {
        Some((is_good, words)) => {
            let (good, said) = found.expect("something is said");
            assert!(good == is_good && said.contains(words), "{good} {said}");
        }
        None => assert_eq!(found, None),
    }
}

#[test]
fn calls_are_held_against_schemas() {
    let call = |params: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    call_is(&call(r#"{"name":"add","arguments":{"a":1,"b":2}}"#), Some((true, "valid against inputSchema")));
    call_is(&call(r#"{"name":"add","arguments":{"a":1,"b":"2"}}"#), Some((false, "$.arguments.b: ")));
    call_is(&call(r#"{"name":"add"}"#), Some((false, "$.arguments: ")));
    call_is(&call(r#"{"name":"odd"}"#), Some((false, "not checked: ")));
    call_is(&call(r#"{"name":"free"}"#), None);
    call_is(&call(r#"{"name":"unknown"}"#), None);
    call_is(&call("[]"), None);
    call_is(r#"{"method":"tools/list","params":{"name":"add"}}"#, None);
    call_is("not JSON", None);
}

#[test]
fn an_edited_call_is_checked_also_if_the_schema_comes_later() {
    let mut app = app();
    hear(&mut app, Event::Held(Box::new(held(call(9, "add", r#"{"a":1,"b":2}"#), "intercept"))));
    press(&mut app, "m");
    let schema = |app: &App| match &app.common.overlay {
        Overlay::Editor(editor) => editor.schema.clone(),
        _ => panic!("an editor is open"),
    };
    assert_eq!(schema(&app), None);
    answer(&mut app, vec![tools(2, ADD)]);
    assert_eq!(schema(&app), Some((true, "valid against inputSchema".into())));
    press(&mut app, "down down down down down down down down end left");
    app.key(Key::char('x'));
    assert_eq!(schema(&app), None);
    press(&mut app, "backspace backspace 7 0");
    assert_eq!(schema(&app), Some((true, "valid against inputSchema".into())));
}
