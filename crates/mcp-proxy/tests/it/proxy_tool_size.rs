//! What the proxy tool is for: a client that has it need not read thousands of tools to use one of them. Counted in
//! bytes as they stand on the wire; times are for benchmarks.

use serde_json::{Value, json};

use crate::gateway_kit::{Fake, StdioClient, fake, text_of};
use crate::kit::Sandbox;
use crate::proxy_tool_kit::{data, names, tool};

const TOOLS: usize = 5_000;
/// What a client has to load before it can do anything.
const DEFINITION_BYTES_MAX: usize = 3 * 1024;
/// Of the bytes of the whole list, what it takes to find a tool, to look at it and to call it.
const SHARE_MAX: f64 = 0.05;

/// A server with many tools of about 400 bytes each.
fn many() -> Fake {
    let verbs = ["create", "read", "update", "archive", "share", "export", "rename", "merge", "approve", "cancel"];
    let nouns = ["report", "invoice", "message", "event", "folder", "customer", "ticket", "picture", "route", "form"];
    let described = |number: usize| {
        let (verb, noun) = (verbs[number % 10], nouns[number / 10 % 10]);
        json!({
            "name": format!("s{}_{verb}_{noun}", number / 100),
            "description": format!("{verb} one {noun} of service {}, by its id; says what became of it, and when.", number / 100),
            "inputSchema": {
                "type": "object",
                "properties": {
                    "id": { "type": "string", "description": format!("The {noun} to {verb}") },
                    "dry_run": { "type": "boolean", "description": format!("Only say what {verb} would do") },
                },
                "required": ["id"],
            },
        })
    };
    let tools: Vec<Value> = (0..TOOLS).map(described).collect();
    fake("many").list("tools", json!(tools))
}

/// What a request and its answer come to.
fn bytes(request: &Value, answer: &Value) -> usize {
    request.to_string().len() + answer.to_string().len()
}

/// Follows the pages of the native list.
fn whole_list(client: &mut StdioClient) -> (usize, usize) {
    let (mut items, mut length, mut params) = (0, 0, json!({}));
    loop {
        let answer = client.ask("tools/list", params.clone());
        items += answer["result"]["tools"].as_array().map_or(0, Vec::len);
        length += bytes(&params, &answer);
        match answer["result"].get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => return (items, length),
        }
    }
}

#[test]
fn of_thousands_of_tools_a_client_reads_what_it_needs() {
    let sandbox = Sandbox::new();
    let mut client = StdioClient::open(&sandbox, &[many()], json!({}));
    let (items, whole) = whole_list(&mut client);
    assert_eq!(items, TOOLS);
    assert!((300..600).contains(&(whole / TOOLS)), "{} bytes each", whole / TOOLS);
    client.end();

    let mut client = StdioClient::open(&sandbox, &[many()], tool("instead"));
    let listed = client.ask("tools/list", json!({}));
    let definition = listed.to_string().len();
    assert!(definition < DEFINITION_BYTES_MAX, "{definition}");

    let mut read = definition;
    let mut using = |arguments: Value| {
        let answer = client.proxy(arguments.clone());
        read += bytes(&json!({ "name": "proxy", "arguments": arguments }), &answer);
        answer
    };
    let words = json!({ "query": "approve an invoice of service 17" });
    let found = using(json!({ "action": "list", "type": "tool", "limit": 5, "filter": words }));
    let name = names(&found["result"]["content"][0])[0].clone();
    assert_eq!(name, "many__s17_approve_invoice");
    let told = using(json!({ "action": "info", "type": "tool", "path": name }));
    assert_eq!(data(&told["result"]["content"][0])["inputSchema"]["required"], json!(["id"]));
    let called = using(json!({ "action": "call", "type": "tool", "path": name, "args": { "text": "7" } }));
    assert_eq!(text_of(&called), "many:s17_approve_invoice:7");
    client.end();
    let share = read as f64 / whole as f64;
    assert!(share <= SHARE_MAX, "{read} of {whole} bytes");
}
