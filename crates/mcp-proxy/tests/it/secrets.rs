//! Hundreds of secrets pass through a governed proxy, wherever a peer can put one. None of them is in the
//! audit, in what the proxy says, or in what it exports.

use serde_json::json;

use crate::http_kit::{self, Origin};
use crate::kit::Sandbox;
use planted::{Planted, planted};

#[path = "../../../mcp-store/src/redact/planted.rs"]
mod planted;

const FORMATS: [&str; 6] = ["json", "ndjson", "har", "md", "html", "curl"];

fn write_rules(sandbox: &Sandbox) {
    let rules = json!({"policy": {"rules": [
        {"name": "no prompts", "match": "method:prompts/get", "verdict": "deny"},
        {"name": "resources are watched", "match": "method:resources/read", "verdict": "observe"},
    ]}});
    std::fs::write(sandbox.path("rules.json"), rules.to_string()).unwrap();
}

/// Every file of the audit, and everything that `audit` prints of it.
fn audited(sandbox: &Sandbox) -> Vec<(String, String)> {
    let mut texts = vec![
        ("audit".to_owned(), sandbox.stdout(["audit", "--limit", "100000"])),
        ("audit --json".to_owned(), sandbox.stdout(["audit", "--json"])),
        ("audit --csv".to_owned(), sandbox.stdout(["audit", "--csv"])),
    ];
    let state = sandbox.state();
    let files = std::fs::read_dir(state.audit()).unwrap().map(|entry| entry.unwrap().path());
    for file in files.chain([state.decisions()]) {
        let bytes = std::fs::read(&file).unwrap();
        texts.push((file.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()));
    }
    texts
}

fn exported(sandbox: &Sandbox) -> Vec<(String, String)> {
    let id = sandbox.segments()[0].file_stem().unwrap().to_string_lossy().into_owned();
    FORMATS.map(|format| (format.to_owned(), sandbox.stdout(["export", &id, "--output-format", format]))).to_vec()
}

#[track_caller]
fn check_none(planted: &[Planted], texts: &[(String, String)]) {
    for (place, text) in texts {
        let found: Vec<_> = planted.iter().filter(|planted| text.contains(&planted.secret)).collect();
        let shown: Vec<_> = found.iter().map(|planted| (&planted.secret, &planted.text)).collect();
        assert!(shown.is_empty(), "{} secrets in {place}, such as {:?}", shown.len(), shown[0]);
    }
}

#[test]
fn no_secret_of_a_message_is_audited_said_or_exported() {
    let planted = planted();
    assert!(planted.len() >= 200, "{}", planted.len());
    let sandbox = Sandbox::new();
    write_rules(&sandbox);
    let env = format!("GITHUB_TOKEN={}", planted[2].secret);
    let flags = ["--rules", "rules.json", "--env", &env];
    let mut proxy = sandbox.run(&flags, &["tools"]);
    let mut asked = 0;
    for Planted { text, .. } in &planted {
        let calls = [
            ("tools/call", json!({"name": "echo", "arguments": {"text": text}})),
            ("tools/call", json!({"name": text, "arguments": {}})),
            ("resources/read", json!({"uri": text})),
            ("prompts/get", json!({"name": text})),
        ];
        let calls = calls.map(|(method, params)| {
            asked += 1;
            format!("{}\n", json!({"jsonrpc": "2.0", "id": asked, "method": method, "params": params}))
        });
        proxy.send(calls.concat().as_bytes());
        calls.iter().for_each(|_| assert!(proxy.json()["id"].is_number()));
    }
    let (status, errors) = proxy.end();
    assert!(status.success(), "{errors}");
    let audited = audited(&sandbox);
    check_none(&planted, &audited);
    check_none(&planted, &[("standard error".to_owned(), errors)]);
    check_none(&planted, &exported(&sandbox));
    // They did pass: a recording has them all, and so would the audit, had they not been masked.
    let lines = sandbox.stdout(["audit", "--json"]).lines().count();
    assert!(lines > 4 * planted.len(), "{lines}");
    let masked = audited[1].1.matches("***").count();
    assert!(masked >= 3 * planted.len(), "{masked} of {}", planted.len());
    let recording = std::fs::read(&sandbox.segments()[0]).unwrap();
    let recording = String::from_utf8_lossy(&recording);
    let passed = planted.iter().filter(|planted| recording.contains(&planted.secret)).count();
    assert!(passed * 10 >= planted.len() * 9, "{passed}");
}

#[test]
fn no_secret_in_the_name_of_a_client_is_audited_or_said() {
    let planted = planted();
    for planted in planted.chunks(25).filter_map(|some| some.first()) {
        let sandbox = Sandbox::new();
        write_rules(&sandbox);
        let mut proxy = sandbox.run(&["--rules", "rules.json"], &["tools"]);
        let client = json!({"name": planted.text, "version": planted.secret});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        for message in [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "x"}}}),
        ] {
            proxy.send(format!("{message}\n").as_bytes());
            assert!(proxy.json()["result"].is_object());
        }
        let (status, errors) = proxy.end();
        assert!(status.success(), "{errors}");
        let audited = audited(&sandbox);
        assert!(audited[1].1.contains(r#""client":""#), "{}", audited[1].1);
        let planted = std::slice::from_ref(planted);
        check_none(planted, &audited);
        check_none(planted, &[("standard error".to_owned(), errors)]);
    }
}

#[test]
fn no_secret_of_http_is_audited_said_or_exported() {
    let planted = planted();
    let sandbox = Sandbox::new();
    write_rules(&sandbox);
    let server = Origin::start().serve(|call| {
        let _ = call.try_send(http_kit::json(http_kit::result(1)));
    });
    // One of each shape; what is secret by its name has one here.
    let shaped: Vec<Planted> = planted.into_iter().filter(|planted| !planted.needs_text).collect();
    let [in_url, in_header, ..] = shaped.as_slice() else { panic!("there are many") };
    let url = server.url(&format!("/mcp?token={}", in_url.secret));
    let header = format!("X-Api-Key: {}", in_header.secret);
    let proxy = sandbox.listen_to("streamable-http", &url, &["--rules", "rules.json", "--header", &header]);
    let mut client = proxy.client();
    for (id, Planted { secret, .. }) in shaped.iter().enumerate() {
        let headers = [format!("Authorization: Bearer {secret}"), format!("Cookie: sid={secret}")];
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        let call =
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "echo", "arguments": {}}});
        let response = client.ask(&http_kit::post("/mcp", &headers, call.to_string()));
        assert_eq!(response.status(), 200);
    }
    let said = proxy.end();
    check_none(&shaped, &audited(&sandbox));
    check_none(&shaped, &[("standard error".to_owned(), said)]);
    check_none(&shaped, &exported(&sandbox));
}
