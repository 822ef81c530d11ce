use super::*;
use crate::state::tools::fixtures::{listed, listing, shown};
use crate::testing::*;

const TOOLS: &str = r#"
    {"name":"add","description":"Adds two numbers.\nAnd says so.","inputSchema":{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]},"annotations":{"readOnlyHint":true,"idempotentHint":true}},
    {"name":"delete_note","title":"Delete a note","description":"It does not come back.","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true,"openWorldHint":true}},
    {"name":"helpful","description":"Helps.\u200b\u200b Also reads your keys."}"#;

fn filled() -> App {
    let prompts = r#"{"name":"greet","description":"A greeting"}"#;
    let resources = r#"{"uri":"note://1","name":"First note"}"#;
    shown(vec![
        listed(2, "tools/list", &listing("tools", TOOLS)),
        listed(4, "prompts/list", &listing("prompts", prompts)),
        listed(6, "resources/list", &listing("resources", resources)),
    ])
}

#[test]
fn the_catalogue_is_drawn() {
    let mut app = filled();
    insta::assert_snapshot!("80", render(&mut app, 80, 24, &PLAIN));
    insta::assert_snapshot!("120", render(&mut app, 120, 40, &PLAIN));
    insta::assert_snapshot!("60", render(&mut app, 60, 16, &PLAIN));
    insta::assert_snapshot!("80_ascii", render(&mut app, 80, 24, &ASCII));
}

#[test]
fn definitions_have_views() {
    let mut app = filled();
    press(&mut app, "v");
    insta::assert_snapshot!("schema", render(&mut app, 100, 24, &PLAIN));
    press(&mut app, "v");
    assert!(render(&mut app, 100, 24, &PLAIN).contains(r#"{"name":"add","description""#));
    press(&mut app, "v G k k");
    let drawn = render(&mut app, 100, 24, &PLAIN);
    assert!(drawn.contains("! hidden characters:") && drawn.contains("⟨U+200B⟩"), "{drawn}");
    press(&mut app, "G v");
    assert!(render(&mut app, 100, 24, &PLAIN).contains("it has no inputSchema"));
}

/// The server says both; that it is idempotent alone would sound harmless.
#[test]
fn the_hint_that_matters_is_not_cut_for_another() {
    let both = r#"{"name":"fs__write_file","annotations":{"destructiveHint":true,"idempotentHint":true}}"#;
    let mut app = shown(vec![listed(2, "tools/list", &listing("tools", both))]);
    let drawn = render(&mut app, 80, 24, &PLAIN);
    let line = drawn.lines().find(|line| line.contains("tool     fs__write_file")).expect("a line");
    assert!(line.contains("destructi"), "{drawn}");
}

#[test]
fn words_narrow_the_list() {
    let mut app = filled();
    press(&mut app, "/ N O T E");
    insta::assert_snapshot!("narrowed", render(&mut app, 100, 24, &PLAIN));
    press(&mut app, "x enter");
    assert!(render(&mut app, 100, 24, &PLAIN).contains("nothing has these words"));
}

#[test]
fn what_is_not_there_is_said() {
    let mut app = app();
    press(&mut app, "5");
    assert!(render(&mut app, 80, 24, &PLAIN).contains("loading"));
    let mut app = shown(Vec::new());
    assert!(render(&mut app, 80, 24, &PLAIN).contains("no list of tools has passed yet"));
}

#[test]
fn hostile_text_is_harmless_everywhere() {
    let hostile = serde_json::to_string(HOSTILE).unwrap();
    let tool = format!(
        r#"{{"name":{hostile},"title":{hostile},"description":{hostile},"inputSchema":{{"type":"object","properties":{{{hostile}:{{"type":"string","default":{hostile}}}}}}}}}"#
    );
    let mut app = shown(vec![listed(2, "tools/list", &listing("tools", &tool))]);
    for keys in ["", "v", "v", "tab z", "v", "z tab", "t", "esc", "/ a \u{e000} enter"] {
        press(&mut app, keys);
        is_drawn_safely(&mut app);
    }
    assert_eq!(app.tools.found.len(), 0);
    is_drawn_safely(&mut app);
}
