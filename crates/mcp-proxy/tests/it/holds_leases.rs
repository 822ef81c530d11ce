//! A face that is in control: what it holds when it is killed, and when another takes over.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use mcp_control::Address;
use mcp_control::api::{Instance, LeaseGrant, LeaseRequest};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::control_kit::{Attached, request};
use crate::hold_kit::call;
use crate::kit::{signal, until, wait};

/// Somebody who has the lease, and whose event stream is open in a process of its own.
struct Face {
    grant: LeaseGrant,
    process: Child,
}

impl Face {
    fn begin(instance: &Attached, holder: &str, take: bool) -> Self {
        let asked = LeaseRequest { holder: holder.into(), take };
        let grant = instance.runtime.block_on(instance.client.take_lease(&asked)).unwrap();
        let Address::Socket(socket) = &instance.address else { unreachable!("it is a socket") };
        let mut stream = UnixStream::connect(socket).unwrap();
        let path = format!("/v1/events?lease={}", grant.token);
        stream.write_all(&request("GET", &path, &[], "")).unwrap();
        let mut reader = Command::new("cat");
        let process = reader.stdin(OwnedFd::from(stream)).stdout(Stdio::null()).spawn().unwrap();
        let face = Self { grant, process };
        until("its stream is open", || {
            let lease = instance.runtime.block_on(instance.client.lease()).unwrap().lease;
            lease.is_some_and(|lease| lease.present && lease.holder == holder)
        });
        face
    }

    /// Does something in the name of the lease, and says with which status that was answered.
    fn asks(&self, instance: &Attached, method: &str, path: &str, body: &str) -> u16 {
        instance.ask(method, &format!("{path}?lease={}", self.grant.token), body).status
    }

    fn kill(self) {
        signal(self.process.id(), Signal::KILL);
        wait(self.process);
    }
}

const EVERYTHING: &str = r#"{"mode":"intercept"}"#;

fn send(instance: &mut Attached, id: u64) {
    instance.proxy.send(format!("{}\n", call(id, "echo", "x")).as_bytes());
}

fn status(instance: &Attached) -> Instance {
    instance.runtime.block_on(instance.client.instance()).unwrap()
}

#[track_caller]
fn until_held(instance: &Attached, count: u64) {
    until(&format!("{count} are held"), || status(instance).held == count);
}

/// The only instance, as `ps` shows it.
fn ps(instance: &Attached) -> String {
    instance.sandbox.stdout(["ps"]).lines().nth(1).unwrap().to_owned()
}

#[test]
fn what_a_killed_face_held_goes_on() {
    let mut instance = Attached::begin(&["--quiet"], &["tools"]);
    let ann = Face::begin(&instance, "ann", false);
    assert_eq!(ann.asks(&instance, "PUT", "/v1/mode", EVERYTHING), 200);
    send(&mut instance, 7);
    until_held(&instance, 1);
    let shown = ps(&instance);
    assert!(shown.contains("holds all  ann ") && !shown.contains("attaches"), "{shown}");
    ann.kill();
    // Three seconds later, as the product has it.
    assert_eq!(instance.proxy.json()["id"], 7);
    // The mode waits for the next, and meanwhile everything passes.
    instance.call(8, "free");
    let now = status(&instance);
    assert!(!now.has_face && now.lease.is_none() && !now.holds_all(), "{now:?}");
    let shown = ps(&instance);
    assert!(shown.contains("holds all once somebody attaches"), "{shown}");
    let bob = Face::begin(&instance, "bob", false);
    assert_eq!(bob.grant.taken_from, None);
    send(&mut instance, 9);
    until_held(&instance, 1);
    assert!(status(&instance).holds_all());
    // Whoever gives the lease up has left at once.
    assert_eq!(bob.asks(&instance, "DELETE", "/v1/lease", ""), 200);
    assert_eq!(instance.proxy.json()["id"], 9);
    bob.kill();
    let outcomes = outcomes(instance);
    assert_eq!(outcomes, [(7, "released".into(), Value::Null), (9, "released".into(), Value::Null)]);
}

#[test]
fn what_a_killed_face_held_is_answered_if_asked_for() {
    let mut instance = Attached::begin(&["--quiet", "--on-detach", "error"], &["tools"]);
    let ann = Face::begin(&instance, "ann", false);
    assert_eq!(ann.asks(&instance, "POST", "/v1/breakpoints", r#"{"filter":"> tool:echo"}"#), 200);
    send(&mut instance, 7);
    until_held(&instance, 1);
    ann.kill();
    let answer = instance.proxy.json();
    assert!(answer["id"] == 7 && answer["error"]["code"].is_i64(), "{answer}");
    assert!(ps(&instance).contains("1 breakpoint once somebody attaches"), "{}", ps(&instance));
    instance.call(8, "free");
    assert!(instance.proxy.end().0.success());
}

#[test]
fn another_takes_over_with_what_is_held() {
    let mut instance = Attached::begin(&["--quiet"], &["tools"]);
    let ann = Face::begin(&instance, "ann", false);
    assert_eq!(ann.asks(&instance, "PUT", "/v1/mode", EVERYTHING), 200);
    send(&mut instance, 7);
    until_held(&instance, 1);
    let asked = json!({ "holder": "bob" }).to_string();
    let refused = instance.ask("POST", "/v1/lease", &asked);
    assert_eq!(refused.status, 423);
    assert!(refused.text().contains("ann has control since "), "{}", refused.text());
    let bob = Face::begin(&instance, "bob", true);
    assert_eq!(bob.grant.taken_from.as_deref(), Some("ann"));
    let sequence = instance.runtime.block_on(instance.client.held()).unwrap().held[0].sequence;
    let forward = format!("/v1/held/{sequence}/forward");
    assert_eq!(ann.asks(&instance, "POST", &forward, ""), 423);
    // Her stream was open, and is of no more account.
    ann.kill();
    until("her stream is closed", || status(&instance).faces == 1);
    assert_eq!((status(&instance).held, status(&instance).holds_all()), (1, true));
    assert_eq!(bob.asks(&instance, "POST", &forward, ""), 200);
    // Its answer is held too.
    until_held(&instance, 1);
    assert_eq!(bob.asks(&instance, "POST", "/v1/held/forward", ""), 200);
    assert_eq!(instance.proxy.json()["id"], 7);
    assert_eq!(bob.asks(&instance, "PUT", "/v1/mode", r#"{"mode":"passthrough"}"#), 200);
    bob.kill();
    let bob = || Value::from("bob");
    assert_eq!(outcomes(instance), [(7, "forwarded".into(), bob()), (7, "forwarded".into(), bob())]);
}

/// What became of held messages and who decided, as recorded.
#[track_caller]
fn outcomes(instance: Attached) -> Vec<(u64, Value, Value)> {
    let id = status(&instance).id;
    let (status, errors) = instance.proxy.end();
    assert!(status.success(), "{errors}");
    let lines = instance.sandbox.stdout(["inspect", "--json", &id]);
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let held = lines.filter(|message| !message["outcome"].is_null());
    held.map(|message| {
        (message["jsonrpc_id"].as_u64().unwrap(), message["outcome"].clone(), message["decided_by"].clone())
    })
    .collect()
}
