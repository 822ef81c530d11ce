//! The bundled server: small, real, and in part badly behaved.

use std::io::{self, BufRead, StdinLock, Write};
use std::process::ExitCode;

use serde_json::{Value, json};

const LEGACY_REVISION: &str = "2025-11-25";

/// Name, what it does, and the arguments it takes with their types.
type Tool = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const TOOLS: [Tool; 8] = [
    ("add", "Adds two numbers", &[("a", "number"), ("b", "number")]),
    ("count", "Counts, and reports its progress", &[("to", "integer")]),
    ("book_trip", "Books a trip, and asks when", &[("to", "string")]),
    ("divide", "Divides two numbers", &[("a", "number"), ("b", "number")]),
    ("chatter", "Prints where only messages may stand", &[]),
    ("write_note", "Writes a note", &[("title", "string"), ("text", "string")]),
    ("delete_note", "Deletes a note", &[("title", "string")]),
    ("crash", "Ends in the middle of a call", &[]),
];
const MODERN_REVISION: &str = "2026-07-28";

/// Serves on standard input and output until its client is gone, or a call makes it crash.
pub(crate) fn run() -> ExitCode {
    let mut server = Server { input: io::stdin().lock(), crashed: false };
    while let Some(request) = server.read() {
        if server.answer(&request).is_err() {
            break;
        }
        if server.crashed {
            return ExitCode::from(3);
        }
    }
    ExitCode::SUCCESS
}

struct Server {
    input: StdinLock<'static>,
    crashed: bool,
}

/// What a call comes to.
enum Outcome {
    Result(Value),
    Error(i64, String),
    Crash,
}

impl Server {
    fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.input.read_line(&mut line) {
            Ok(count) if count > 0 => Some(serde_json::from_str(&line).unwrap_or(Value::Null)),
            _ => None,
        }
    }

    fn answer(&mut self, request: &Value) -> io::Result<()> {
        if request.get("id").is_none() {
            return Ok(());
        }
        let reply = match self.outcome(request)? {
            Outcome::Result(mut result) => {
                if is_modern(request) && result.get("resultType").is_none() {
                    result["resultType"] = json!("complete");
                }
                json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })
            }
            Outcome::Error(code, message) => {
                json!({ "jsonrpc": "2.0", "id": request["id"], "error": { "code": code, "message": message } })
            }
            Outcome::Crash => {
                self.crashed = true;
                return writeln!(io::stderr(), "demo server: out of cheese");
            }
        };
        write_line(&reply.to_string())
    }

    fn outcome(&mut self, request: &Value) -> io::Result<Outcome> {
        let info = json!({ "name": "demo-server", "version": "1.0" });
        Ok(match request["method"].as_str().unwrap_or_default() {
            "initialize" => Outcome::Result(
                json!({ "protocolVersion": LEGACY_REVISION, "capabilities": { "tools": {} }, "serverInfo": info }),
            ),
            "server/discover" => Outcome::Result(json!({
                "supportedVersions": [MODERN_REVISION], "capabilities": { "tools": {} }, "ttlMs": 0, "cacheScope": "private",
                "_meta": { "io.modelcontextprotocol/serverInfo": info },
            })),
            "ping" => Outcome::Result(json!({})),
            "tools/list" => Outcome::Result(json!({ "tools": TOOLS.map(tool) })),
            "tools/call" => return self.call(request),
            method => Outcome::Error(-32601, format!("no such method: {method}")),
        })
    }

    fn call(&mut self, request: &Value) -> io::Result<Outcome> {
        let params = &request["params"];
        let arguments = &params["arguments"];
        Ok(match params["name"].as_str().unwrap_or_default() {
            "add" => {
                text(&(arguments["a"].as_f64().unwrap_or(0.0) + arguments["b"].as_f64().unwrap_or(0.0)).to_string())
            }
            "count" => {
                let to = arguments["to"].as_u64().unwrap_or(3).min(100);
                for progress in 1..=to {
                    let params =
                        json!({ "progressToken": params["_meta"]["progressToken"], "progress": progress, "total": to });
                    write_line(
                        &json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }).to_string(),
                    )?;
                }
                text("counted")
            }
            "book_trip" if is_modern(request) => book_in_rounds(params),
            "book_trip" => self.book_with_a_question()?,
            "divide" if arguments["b"].as_f64() == Some(0.0) => Outcome::Result(
                json!({ "content": [{ "type": "text", "text": "cannot divide by zero" }], "isError": true }),
            ),
            "divide" => {
                text(&(arguments["a"].as_f64().unwrap_or(0.0) / arguments["b"].as_f64().unwrap_or(1.0)).to_string())
            }
            "chatter" => {
                write_line("DEBUG about to answer, wish me luck")?;
                text("done")
            }
            "write_note" => text(&format!("written: {}", arguments["title"].as_str().unwrap_or_default())),
            "delete_note" => text(&format!("deleted: {}", arguments["title"].as_str().unwrap_or_default())),
            "crash" => Outcome::Crash,
            tool => Outcome::Error(-32602, format!("no such tool: {tool}")),
        })
    }

    /// Before the newest revision a server asks with a request of its own, and waits.
    fn book_with_a_question(&mut self) -> io::Result<Outcome> {
        let question = json!({ "jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": question() });
        write_line(&question.to_string())?;
        let answer = self.read().unwrap_or_default();
        Ok(booked(&answer["result"]["content"]["when"]))
    }
}

/// In the newest revision the call ends with a question, and comes again with the answer.
fn book_in_rounds(params: &Value) -> Outcome {
    let answer = &params["inputResponses"]["when"]["content"]["when"];
    if answer.is_null() {
        let ask = json!({ "method": "elicitation/create", "params": question() });
        return Outcome::Result(
            json!({ "resultType": "input_required", "inputRequests": { "when": ask }, "requestState": "trip-1" }),
        );
    }
    booked(answer)
}

fn question() -> Value {
    json!({ "message": "When do you want to go?", "requestedSchema": { "type": "object", "properties": { "when": { "type": "string" } } } })
}

fn booked(when: &Value) -> Outcome {
    text(&format!("booked for {}", when.as_str().unwrap_or("some day")))
}

fn text(text: &str) -> Outcome {
    Outcome::Result(json!({ "content": [{ "type": "text", "text": text }] }))
}

fn tool((name, does, arguments): Tool) -> Value {
    let properties: serde_json::Map<String, Value> =
        arguments.iter().map(|(name, kind)| ((*name).to_owned(), json!({ "type": kind }))).collect();
    let required: Vec<&str> = arguments.iter().map(|(name, _)| *name).collect();
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    json!({ "name": name, "description": does, "inputSchema": schema })
}

fn is_modern(request: &Value) -> bool {
    request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == MODERN_REVISION
}

fn write_line(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
