//! Clients on stdio that come to an instance which runs already: the same bytes, each with a server of its
//! own, and words where there is no way in.

use std::ffi::OsStr;
use std::os::unix::net::UnixStream;

use serde_json::json;

use crate::http_kit::{Listening, Origin, json as answer, result};
use crate::kit::{Running, Sandbox, children_of, fixture_program, until};

const HELLO: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\"}\n";

impl Sandbox {
    /// A listener in front of the fixture, with its door open.
    #[track_caller]
    fn open_house(&self, fixture: &[&str]) -> Listening {
        let program = fixture_program();
        let words = [&[program.to_str().unwrap()], fixture].concat();
        self.open_house_of(["--transport", "stdio", "--target-command", &shell_words::join(words)])
    }

    #[track_caller]
    fn open_house_of<I: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = I>) -> Listening {
        let proxy = self.listen(args);
        self.until_found();
        proxy
    }

    /// `mcp-proxy connect`
    fn connect(&self, words: &[&str]) -> Running {
        let mut command = self.command(["connect"]);
        command.args(words);
        Running::start(command)
    }
}

/// Lines of every kind of spacing and ending, the last without one.
fn odd_lines() -> Vec<u8> {
    let lines: [&[u8]; 6] = [
        b"\xef\xbb\xbf { \"jsonrpc\" : \"2.0\" ,\t\"method\":\"a\"  }  \n",
        b"\n",
        b"{\"id\":1e2,\"result\":\"b\",\"result\":\"c\",\"x\":1.0}\r\n",
        b"not a message at all\r\n",
        b"{\"params\":{\"s\":\"\\u0000\xff\xfe\"},\"method\":\"d\"}\n",
        b"[ {\"method\":\"e\"} ]",
    ];
    lines.concat()
}

/// Everything that was sent is what the server got, and what it said is what came back.
#[track_caller]
fn check_bytes(sent: &[u8], said: &[u8]) {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("said"), said).unwrap();
    // It speaks second: until a client has, nobody knows how it frames what it wants to hear.
    let script = "dd bs=1 count=1 of=kept 2>&-; cat said; cat >> kept";
    let target = shell_words::join(["sh", "-c", script]);
    let proxy = sandbox.open_house_of(["--transport", "stdio", "--target-command", &target]);
    let mut client = sandbox.connect(&[]);
    client.send(sent);
    client.close_stdin();
    let heard = client.rest().concat();
    assert!(heard == said, "{:.2000}", String::from_utf8_lossy(&heard));
    let (status, errors) = client.end();
    assert!(status.success(), "{errors}");
    let kept = std::fs::read(sandbox.path("kept")).unwrap();
    assert!(kept == sent, "{:.2000}", String::from_utf8_lossy(&kept));
    until("its server is gone", || children_of(proxy.pid()).is_empty());
}

#[test]
fn lines_pass_as_they_are() {
    check_bytes(&odd_lines(), b" {\"method\" : \"x\"}\r\n{ \"id\":7.0, \"result\":[ ] }\n");
}

#[test]
fn counted_messages_pass_as_they_are() {
    let counted = b"Content-Length: 18\r\n\r\n{\"method\":\n \"a\"}  Content-Length: 14\r\n\r\n{\"method\":\"b\"}";
    check_bytes(counted, b"Content-Length: 16\r\n\r\n{\"method\":\r\n\"c\"}");
}

#[test]
fn a_client_that_wants_no_answer_gets_none() {
    check_bytes(b"{\"method\":\"a\"}\n", b"");
    check_bytes(b"", b"");
}

/// Nobody is left to say anything, and the client that waits is told by the code.
#[test]
fn a_client_that_waits_in_vain_is_told() {
    let sandbox = Sandbox::new();
    let _proxy = sandbox.open_house_of(["--transport", "stdio", "--target-command", "sh -c 'read line'"]);
    let mut client = sandbox.connect(&[]);
    client.send(b"{\"method\":\"a\"}\n");
    assert_eq!(client.rest(), Vec::<Vec<u8>>::new());
    let (status, errors) = client.end();
    assert_eq!(status.code(), Some(3), "{errors}");
    assert!(errors.contains("closed the connection without an answer"), "{errors}");
}

#[test]
fn much_passes_both_ways() {
    let lines: Vec<u8> =
        (0..64).flat_map(|x| format!("{{\"x\":{x},\"method\":\"{}\"}}\n", "m".repeat(50_000)).into_bytes()).collect();
    check_bytes(&lines, &lines.repeat(2));
}

#[test]
fn two_clients_with_the_same_ids_have_a_server_each() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.open_house(&["puppet"]);
    let mut clients = [sandbox.connect(&[]), sandbox.connect(&[])];
    for client in &mut clients {
        client.request(1, "initialize");
    }
    let servers = clients.each_ref().map(|client| client.json()["result"]["serverInfo"]["version"].clone());
    assert_ne!(servers[0], servers[1]);
    for (number, client) in clients.iter_mut().enumerate() {
        let answer = json!({ "number": number });
        client.send(format!("{}\n", json!({ "id": 2, "method": "x", "params": { "answer": answer } })).as_bytes());
    }
    for (number, client) in clients.iter().enumerate() {
        assert_eq!(client.json(), json!({ "jsonrpc": "2.0", "id": 2, "result": { "number": number } }));
    }
    for client in clients {
        assert!(client.end().0.success());
    }
    until("their servers are gone", || children_of(proxy.pid()).is_empty());
}

#[test]
fn a_server_that_dies_is_told_and_ends_the_conversation_alone() {
    let sandbox = Sandbox::new();
    let _proxy = sandbox.open_house(&["answer"]);
    let (mut client, mut other) = (sandbox.connect(&[]), sandbox.connect(&[]));
    client.ask(1, "hello");
    client.request(2, "exit/3");
    let answer = client.json();
    assert_eq!((&answer["id"], &answer["error"]["data"]["mcp-proxy/reason"]), (&2.into(), &"server-gone".into()));
    assert_eq!(client.rest(), Vec::<Vec<u8>>::new());
    assert!(client.end().0.success());
    other.ask(1, "still");
}

#[test]
fn the_end_of_the_instance_is_the_end_of_the_conversation() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.open_house(&["answer"]);
    let mut client = sandbox.connect(&[]);
    client.ask(1, "hello");
    proxy.end();
    assert_eq!(client.rest(), Vec::<Vec<u8>>::new());
    let (status, errors) = client.end();
    assert!(status.success() && errors.is_empty(), "{errors}");
}

#[test]
fn a_client_that_leaves_takes_its_server_along() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.open_house(&["stay"]);
    let mut client = sandbox.connect(&[]);
    until("its server runs", || !children_of(proxy.pid()).is_empty());
    client.kill();
    until("its server is gone", || children_of(proxy.pid()).is_empty());
}

/// Where the server has an address, each client has a session of its own there.
#[test]
fn a_server_with_an_address_is_reached_too() {
    let (sandbox, origin) = (Sandbox::new(), Origin::start().serve(|call| call.send(answer(result(1)))));
    let _proxy = sandbox.open_house_of(["--transport", "streamable-http", "--target-url", &origin.url("/mcp")]);
    let mut clients = [sandbox.connect(&[]), sandbox.connect(&[])];
    for client in &mut clients {
        client.send(HELLO);
    }
    for client in clients {
        assert_eq!(client.json()["id"], 1);
        assert!(client.end().0.success());
    }
}

#[test]
fn where_there_is_no_way_in_that_is_said() {
    let sandbox = Sandbox::new();
    let refused = |words: &[&str], code, expected: &str| {
        let output = sandbox.output([&["connect"], words].concat());
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{errors}");
        assert!(errors.contains(expected) && output.stdout.is_empty(), "{errors}");
    };
    refused(&["7f3a"], 3, "no instance is running");
    let mut run = sandbox.run(&["--quiet", "--name", "its-own"], &["answer"]);
    run.ask(1, "hello");
    sandbox.until_found();
    refused(&[], 3, "serves the client that started it, and has no door for others");
    refused(&["else"], 3, "no instance");
    assert!(run.end().0.success());
}

/// An instance that is killed leaves a door that nobody opens.
#[test]
fn a_door_that_nobody_opens_is_cleared_away() {
    let sandbox = Sandbox::new();
    let proxy = sandbox.open_house(&["answer"]);
    let door = mcp_control::Instances::below(sandbox.state().root()).find(None).unwrap().door();
    assert!(UnixStream::connect(&door).is_ok());
    // It is killed where it stands.
    drop(proxy);
    until("it is not found any more", || sandbox.stdout(["ps", "--json"]).is_empty());
    assert!(!door.exists());
}

/// What passes is recorded as any other conversation, and can be held.
#[test]
fn such_a_client_is_one_among_the_others() {
    let sandbox = Sandbox::new();
    let _proxy = sandbox.open_house(&["puppet"]);
    let mut client = sandbox.connect(&[]);
    client.ask(1, "hello");
    sandbox.breaks("method:held kind:request");
    client.request(2, "held");
    let number = sandbox.held_number();
    sandbox.stdout(["forward", &number]);
    assert_eq!(client.json()["result"]["method"], "held");
    assert!(client.end().0.success());
}
