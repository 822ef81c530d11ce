use super::*;

const TOOLS: [&str; 8] = [
    r#"{"name":"read_file","description":"Reads the whole text of a file","inputSchema":{"properties":{"path":{"type":"string","description":"Where it is"}}}}"#,
    r#"{"name":"write_file","description":"Writes text to a file","inputSchema":{"properties":{"path":{},"content":{}}}}"#,
    r#"{"name":"listDirectory","description":"Lists what is in a folder","inputSchema":{"properties":{"path":{}}}}"#,
    r#"{"name":"create_issue","title":"New issue","description":"Opens a ticket in a repository","inputSchema":{"properties":{"assignee":{"description":"Login of a colleague"}}}}"#,
    r#"{"name":"get_weather","description":"Weather \u2603 forecast for a city"}"#,
    r#"{"name":"greet","description":"A prompt","arguments":[{"name":"language","description":"Tongue to greet in"}]}"#,
    r#"{"name":"notes","uriTemplate":"memo://{author}/today","description":"Daily notes"}"#,
    r#"{"name":"search","description":"Searches files and folders for text, by file name or by file content, and reads the file"}"#,
];

fn found(query: &str) -> Vec<String> {
    let index = Index::build(TOOLS.iter().map(|tool| tool.as_bytes()));
    let name = |place: &usize| serde_json::from_str::<serde_json::Value>(TOOLS[*place]).unwrap()["name"].clone();
    index.search(query).iter().map(|place| name(place).as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn best(query: &str, expected: &str) {
    assert_eq!(found(query).first().map(String::as_str), Some(expected), "{query}");
}

#[test]
fn words_are_found_wherever_they_stand() {
    best("read file", "read_file");
    best("writing files", "write_file");
    best("directory", "listDirectory");
    best("open a ticket", "create_issue");
    best("new", "create_issue");
    best("assignee", "create_issue");
    best("colleagues", "create_issue");
    best("weather in my city", "get_weather");
    best("language", "greet");
    best("tongue", "greet");
    best("author", "notes");
    best("memo", "notes");
}

#[test]
fn names_count_more_than_descriptions() {
    let found = found("file");
    assert_eq!(found.iter().position(|name| name == "search"), Some(2), "{found:?}");
}

#[test]
fn an_exact_name_comes_first() {
    best("search", "search");
    best(" Read_File ", "read_file");
    best("memo://{author}/today", "notes");
    best("notes", "notes");
}

#[test]
fn beginnings_and_slips_are_forgiven() {
    best("direct", "listDirectory");
    best("forec", "get_weather");
    best("wheather", "get_weather");
    best("repositry", "create_issue");
    best("assginee", "create_issue");
    assert!(found("qqqqqq").is_empty());
    assert!(found("dirx").is_empty());
}

#[test]
fn having_more_of_the_words_counts() {
    best("file content write", "write_file");
    best("text folder search", "search");
}

#[test]
fn nothing_is_found_by_nothing() {
    assert!(found("").is_empty());
    assert!(found(" ?! ").is_empty());
    assert!(Index::build([]).search("file").is_empty());
    assert!(Index::build([&b"7"[..], b"{", b"{\"name\":7}"]).search("file").is_empty());
}

#[test]
fn fillers_are_looked_for_only_where_there_is_nothing_else() {
    assert!(!found("what is in a folder").contains(&"get_weather".to_owned()));
    assert!(!found("the").is_empty());
}

#[test]
fn equal_ones_keep_their_order_and_answers_repeat() {
    let same = [&br#"{"name":"a"}"#[..]; 5];
    assert_eq!(Index::build(same).search("a"), [0, 1, 2, 3, 4]);
    for query in ["file", "read text path", "for a"] {
        assert_eq!(found(query), found(query));
    }
}

#[test]
fn long_queries_are_cut() {
    let long = "file reading ".repeat(10_000);
    best(&long, "read_file");
}

#[test]
fn what_is_deprecated_comes_after_what_is_not() {
    let tools = [
        r#"{"name":"read_file","description":"Read a file as text. DEPRECATED: use read_text_file instead"}"#,
        r#"{"name":"read_text_file","description":"Read the complete contents of a file as text"}"#,
    ];
    assert_eq!(Index::build(tools.iter().map(|tool| tool.as_bytes())).search("read a file"), [1, 0]);
}
