//! A listener that is asked to end lets calls finish, ends what only waits, and leaves a whole
//! recording.

use std::net::TcpStream;
use std::process::Stdio;

use rustix::process::Signal;

use crate::http_kit::{
    Call, Client, LAST_CHUNK, Listening, MODERN, Origin, Recording, STREAM, accepted, call, chunk, event, get,
    is_stuck, json, post, result,
};
use crate::kit::{PATIENCE, Sandbox, descriptors, proxy_program, signal, until};

const MIB: usize = 1 << 20;

fn http(sandbox: &Sandbox, origin: &Origin) -> Listening {
    sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet"])
}

/// Waits for an end in order, and for a session that was ended too.
#[track_caller]
fn ends_in_order(sandbox: &Sandbox, proxy: Listening) -> Recording {
    let (status, said) = proxy.wait();
    assert_eq!(status.code(), Some(0), "{said}");
    let listed = sandbox.stdout(["sessions", "list"]);
    assert!(listed.contains("ended") && !listed.contains("interrupted"), "{listed}");
    Recording::of(sandbox)
}

/// Waits until nobody can connect any more: the signal has arrived.
fn until_deaf(proxy: &Listening) {
    until("the proxy takes no more clients", || TcpStream::connect(("127.0.0.1", proxy.port)).is_err());
}

#[test]
fn calls_finish_and_nobody_new_is_taken() {
    for is_stream in [false, true] {
        let sandbox = Sandbox::new();
        let origin = Origin::start();
        let proxy = http(&sandbox, &origin);
        let mut client = proxy.client();
        client.send(&post("/mcp", &[], call(1, "x")));
        let mut reached = origin.call();
        if is_stream {
            reached.send(STREAM);
            client.head();
        }
        proxy.terminate();
        until_deaf(&proxy);
        if is_stream {
            reached.send(event(r#"{"jsonrpc":"2.0","method":"still"}"#));
            assert_eq!(client.message(), r#"{"jsonrpc":"2.0","method":"still"}"#);
            reached.send([event(result(1)), LAST_CHUNK.to_vec()].concat());
            assert_eq!(client.message(), result(1));
            assert_eq!(client.rest(), (Vec::new(), true));
        } else {
            reached.send(json(result(1)));
            let response = client.response();
            assert_eq!(response.body, result(1).as_bytes());
            assert_eq!(response.head.get("connection").as_deref(), Some("close"), "it is announced");
        }
        assert_eq!(client.until_closed(), b"");
        let recording = ends_in_order(&sandbox, proxy);
        assert_eq!(recording.message(&result(1)).correlated_id, Some(recording.message(&call(1, "x")).id.clone()));
        assert_eq!(recording.ends(), [""]);
    }
}

#[test]
fn a_call_of_the_older_transport_finishes_on_its_stream() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = sandbox.listen_to("sse", &origin.url("/sse"), &["--quiet"]);
    let (mut client, mut stream, endpoint) = open_sse(&proxy, &origin);
    let mut poster = proxy.client();
    poster.send(&post(&endpoint, &[], call(1, "x")));
    origin.call().send(accepted());
    assert_eq!(poster.response().status(), 202);
    proxy.terminate();
    until_deaf(&proxy);
    stream.send(event(result(1)));
    assert_eq!(client.message(), result(1));
    // That was the last call: now the stream only waits, and ends.
    client.until_closed();
    stream.until_closed();
    let recording = ends_in_order(&sandbox, proxy);
    assert!(recording.message(&result(1)).correlated_id.is_some());
}

fn open_sse(proxy: &Listening, origin: &Origin) -> (Client, Call, String) {
    let mut client = proxy.client();
    client.send(&get("/sse", &[]));
    let mut stream = origin.call();
    stream.send([STREAM, &chunk("event: endpoint\ndata: /m\n\n")].concat());
    client.head();
    let endpoint = client.message();
    (client, stream, endpoint)
}

#[test]
fn streams_that_only_wait_do_not_hold_up_the_end() {
    for (transport, path) in [("streamable-http", "/mcp"), ("sse", "/sse")] {
        let sandbox = Sandbox::new();
        let origin = Origin::start();
        let proxy = sandbox.listen_to(transport, &origin.url("/there"), &["--quiet"]);
        let mut waiting = Vec::new();
        for _ in 0..10 {
            let mut client = proxy.client();
            client.send(&get(path, &["Accept: text/event-stream"]));
            let mut stream = origin.call();
            stream.send(STREAM);
            client.head();
            waiting.push((client, stream));
        }
        // And connections on which nothing was ever asked.
        let idle: Vec<Client> = (0..10).map(|_| proxy.client()).collect();
        proxy.terminate();
        for (mut client, mut stream) in waiting {
            client.until_closed();
            stream.until_closed();
        }
        let recording = ends_in_order(&sandbox, proxy);
        assert_eq!(recording.ends().len(), 10);
        drop(idle);
    }
}

#[test]
fn a_slow_reader_gets_the_whole_answer_all_the_same() {
    let sandbox = Sandbox::new();
    // Of some of these the system holds all but the last bytes, which wait in the proxy.
    for size in (3 * MIB..6 * MIB).step_by(48 * 1024) {
        let origin = Origin::start().serve(move |reached| reached.send(json("x".repeat(size))));
        let proxy = sandbox.listen_to("streamable-http", &origin.url("/mcp"), &["--quiet", "--no-record"]);
        let mut client = proxy.client();
        client.send(&post("/mcp", &[], call(1, "x")));
        until("nothing more comes in", || is_stuck(client.tcp()));
        proxy.terminate();
        until_deaf(&proxy);
        let response = client.response();
        assert!(response.is_whole && response.body.len() == size, "{} of {size}", response.body.len());
        assert_eq!(proxy.wait().0.code(), Some(0));
    }
}

#[test]
fn whoever_asks_twice_means_now() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = http(&sandbox, &origin);
    // A call that is never answered, one whose client has left, and a stream.
    let mut client = proxy.client();
    client.send(&post("/mcp", &[MODERN], call(1, "x")));
    let mut hanging = origin.call();
    let before = descriptors(proxy.pid());
    let mut leaving = proxy.client();
    leaving.send(&post("/mcp", &[], call(2, "x")));
    let mut carried_on = origin.call();
    drop(leaving);
    until("the proxy lets go of its client", || descriptors(proxy.pid()) == before + 1);
    proxy.terminate();
    until_deaf(&proxy);
    proxy.terminate();
    client.until_closed();
    hanging.until_closed();
    carried_on.until_closed();
    let recording = ends_in_order(&sandbox, proxy);
    assert_eq!(recording.by_client().len(), 2);
}

#[test]
fn an_interrupt_is_told_apart() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = http(&sandbox, &origin);
    signal(proxy.pid(), Signal::INT);
    assert_eq!(proxy.wait().0.code(), Some(130));
}

#[test]
fn a_port_that_is_taken_is_named() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = http(&sandbox, &origin);
    let port = proxy.port.to_string();
    for listen in [vec!["--listen", &port], vec!["--listen-port", &port]] {
        let mut args = vec!["proxy", "--transport", "sse", "--target-url", "http://127.0.0.1:1/sse"];
        args.extend(listen);
        let output = sandbox.output(args);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{errors}");
        assert!(errors.contains(&format!("port {port} is taken")) && errors.contains("hint: "), "{errors}");
    }
    proxy.end();
    assert_eq!(sandbox.segments().len(), 1, "what never began left no session");
}

#[test]
fn few_descriptors_are_shared_out_and_come_back() {
    let sandbox = Sandbox::new();
    let origin = Origin::start().serve(|reached| reached.send(json(result(1))));
    let script = format!(
        "ulimit -n 64; exec {} proxy --quiet --listen 127.0.0.1:0 --transport streamable-http --target-url {}",
        proxy_program().display(),
        origin.url("/mcp")
    );
    let mut command = std::process::Command::new("bash");
    command.args(["-c", &script]).env("HOME", sandbox.path("")).current_dir(sandbox.path("")).stdin(Stdio::null());
    let proxy = Listening::start(command);
    assert_eq!(proxy.client().ask(&post("/mcp", &[], call(1, "x"))).status(), 200);
    let idle: Vec<Client> = (0..200).map(|_| proxy.client()).collect();
    until("there is no descriptor left", || descriptors(proxy.pid()) >= 63);
    drop(idle);
    assert_eq!(proxy.client().ask(&post("/mcp", &[], call(1, "x"))).status(), 200, "within {PATIENCE:?}");
    proxy.end();
}

/// A proxy whose files may grow to 4 KiB and no further.
fn on_a_full_disk(sandbox: &Sandbox, origin: &Origin, flags: &str) -> Listening {
    let script = format!(
        "trap '' XFSZ; ulimit -S -f 4; exec {} proxy --quiet {flags} --listen 127.0.0.1:0 --transport streamable-http --target-url {}",
        proxy_program().display(),
        origin.url("/mcp")
    );
    let mut command = std::process::Command::new("bash");
    command.args(["-c", &script]).env("HOME", sandbox.path("")).current_dir(sandbox.path(""));
    Listening::start(command)
}

#[test]
fn a_full_disk_is_said_once_and_traffic_goes_on() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = on_a_full_disk(&sandbox, &origin, "");
    let mut client = proxy.client();
    for id in 0..100 {
        client.send(&post("/mcp", &[], call(id, "on/a/full/disk")));
        origin.call().send(json(result(id)));
        assert_eq!(client.response().body, result(id).as_bytes());
    }
    let said = proxy.end();
    assert_eq!(said.matches("messages pass unrecorded").count(), 1, "{said}");
}

#[test]
fn a_full_disk_stops_the_proxy_if_nothing_may_pass_unrecorded() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let proxy = on_a_full_disk(&sandbox, &origin, "--evidence strict");
    let serving = origin.serve(|reached| drop(reached.try_send(json(result(1)))));
    let mut answered = 0;
    // The proxy ends some time, and says so to whoever asks until then.
    while let Ok(tcp) = TcpStream::connect(("127.0.0.1", proxy.port)) {
        let mut client = Client::on(tcp);
        let _ = client.try_send(&post("/mcp", &[], call(1, "on/a/full/disk")));
        match client.try_response() {
            Some(response) if response.body == result(1).as_bytes() => answered += 1,
            Some(response) if response.body.windows(4).any(|code| code == b"5070") => {}
            Some(response) => assert!(matches!(response.status(), 500 | 503), "{response:?}"),
            None => {}
        }
    }
    let (status, said) = proxy.wait();
    assert_eq!(status.code(), Some(3), "{said}");
    assert!(said.contains("the recording cannot be written") && said.contains("hint: free some space"), "{said}");
    let kept = Recording::of(&sandbox).by_server().len();
    assert!(answered > 0 && answered <= kept, "{answered} answers passed and {kept} are recorded");
    drop(serving);
}
