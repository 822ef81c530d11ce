//! A table of ways around the rules, tried on every transport and in both eras. The server writes down
//! every byte that reaches it, and no reader finds a denied call in them; and after each attempt an
//! ordinary call still works.

mod attacks;
mod framing;
mod heads;
mod later;
mod readings;
mod sse;
mod stage;
mod through_tool;

use crate::kit::Sandbox;
use attacks::{Attack, attacks};
use readings::Denied;
use stage::Stage;

/// How client and server converse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// With a handshake, 2025-11-25.
    Legacy,
    /// The same in the one revision that has batches, 2025-03-26.
    Batches,
    /// Everything in each request, 2026-07-28.
    Modern,
}

impl Era {
    /// The revision that client and server agree on first.
    fn handshake(self) -> Option<&'static str> {
        match self {
            Self::Legacy => Some("2025-11-25"),
            Self::Batches => Some("2025-03-26"),
            Self::Modern => None,
        }
    }

    /// The member of `params` that says so.
    fn meta(self) -> &'static str {
        match self {
            Self::Legacy | Self::Batches => r#""_meta":{}"#,
            Self::Modern => {
                r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"eve","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#
            }
        }
    }
}

/// Rules of every kind: by operation, by name, by argument.
const RULES: &str = r#"{ "policy": { "rules": [
    { "name": "no-deletes", "match": "op:delete", "verdict": "deny", "message": "ask Ann" },
    { "name": "no-shutdown", "match": "tool:shutdown_host", "verdict": "deny" },
    { "name": "no-etc", "match": "$.params.arguments.path ^= \"/etc\"", "verdict": "deny" },
    { "name": "no-secret-prompt", "match": "tool:secret_prompt", "verdict": "deny" },
    { "name": "no-secret-files", "match": "tool:file:///secret*", "verdict": "deny" }
] } }"#;

/// The rules file of a single service.
const SEED: &str = r#"{ "github": { "read": "allow", "write": "allow", "delete": "deny" } }"#;

const FIRST_ID: u64 = 10_000;

fn rules_in(sandbox: &Sandbox, text: &str) -> String {
    let path = sandbox.path("rules.json");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Tries the whole table.
fn try_all(mut stage: Stage, denied: Denied) {
    let is_tried = |attack: &&Attack| denied == Denied::More || attack.is_about_deletes;
    let table = attacks(stage.era(), FIRST_ID);
    let tried: Vec<&Attack> = table.iter().filter(is_tried).collect();
    assert!(tried.len() >= 80, "there are {} attacks", tried.len());
    for (at, attack) in tried.iter().enumerate() {
        let answers = stage.attack(&attack.bytes);
        for answer in answers {
            assert!(!answer.contains("\"result\""), "{}: the client got {answer}", attack.name);
        }
        stage.works(at as u64);
        let found = stage.denied_calls(denied);
        assert!(found.is_empty(), "{}: {found:?}", attack.name);
    }
    stage.end();
}

macro_rules! table {
    ($($name:ident: $stage:ident($era:ident, $rules:ident) denies $denied:ident;)*) => {$(
        #[test]
        fn $name() {
            try_all(Stage::$stage(Era::$era, $rules), Denied::$denied);
        }
    )*};
}

table! {
    pipes_with_a_handshake: pipes(Legacy, RULES) denies More;
    pipes_without: pipes(Modern, RULES) denies More;
    http_with_a_handshake: http(Legacy, RULES) denies More;
    http_without: http(Modern, RULES) denies More;
    pipes_with_batches: pipes(Batches, RULES) denies More;
    http_with_batches: http(Batches, RULES) denies More;
    http_onto_pipes_with_batches: http_onto_pipes(Batches, RULES) denies More;
    http_onto_pipes_with_a_handshake: http_onto_pipes(Legacy, RULES) denies More;
    http_onto_pipes_without: http_onto_pipes(Modern, RULES) denies More;
    pipes_onto_http_with_a_handshake: pipes_onto_http(Legacy, RULES) denies More;
    pipes_onto_http_without: pipes_onto_http(Modern, RULES) denies More;
    a_gateway_with_a_handshake: tool(Legacy, RULES) denies More;
    a_gateway_without: tool(Modern, RULES) denies More;
    rules_of_a_service_over_pipes: pipes(Legacy, SEED) denies Deletes;
    rules_of_a_service_over_pipes_without: pipes(Modern, SEED) denies Deletes;
    rules_of_a_service_over_http: http(Legacy, SEED) denies Deletes;
    rules_of_a_service_over_http_without: http(Modern, SEED) denies Deletes;
}

/// The table would be worth nothing if its readers did not find what it hides.
#[test]
fn most_attacks_are_denied_calls_to_somebody() {
    for era in [Era::Legacy, Era::Modern] {
        // Those that are large are slow to search, and hide nothing else.
        const LARGE: usize = 10_000;
        let mut table = attacks(era, FIRST_ID);
        table.retain(|attack| attack.bytes.len() < LARGE);
        let unseen = table.iter().filter(|attack| readings::denied_calls(&attack.bytes, Denied::More).is_empty());
        let unseen: Vec<&str> = unseen.map(|attack| attack.name).collect();
        assert!(
            table.len() - unseen.len() >= 140,
            "{} of {} are seen by nobody: {unseen:?}",
            unseen.len(),
            table.len()
        );
    }
}
