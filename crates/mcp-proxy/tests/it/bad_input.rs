//! Bad input costs itself and nothing else: the next good message works, and memory stays bounded.

use crate::kit::{Running, Sandbox, peak_bytes};

const MIB: usize = 1 << 20;

/// The limit of the tests that go beyond it.
const SMALL_LIMIT: [&str; 3] = ["--quiet", "--message-limit", "1048576"];

#[test]
fn garbage_from_a_client_reaches_the_server_and_harms_nobody() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&["--quiet"], &["answer"]);
    for (id, garbage) in [
        &b"garbage\n"[..],
        b"\n\n\n",
        b"{\"half\":\n",
        b"\xff\xfe\xfd\n",
        b"\0\0\0\n",
        b"}{\n",
        b"\"text\"\n",
        b"[[[[\n",
    ]
    .iter()
    .enumerate()
    {
        proxy.send(garbage);
        proxy.ask(id as u64, "good");
    }
    assert!(proxy.end().0.success());
}

#[test]
fn ten_thousand_malformed_messages_leave_the_proxy_as_it_was() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&["--quiet"], &["answer"]);
    proxy.ask(1, "before");
    let seeds = [
        &b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ignore/x\",\"params\":{\"name\":\"a\"}}"[..],
        b"[1,2,{\"a\":\"\\u0041\"}]",
        b"{\"result\":{},\"id\":\"x\"}",
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let mut stream = Vec::new();
    for _ in 0..10_000 {
        let mut message = seeds[random() % seeds.len()].to_vec();
        for _ in 0..1 + random() % 4 {
            let at = random() % message.len();
            message[at] = (random() % 256) as u8;
        }
        // What is left of a request must not be answered, or the answers would fill the pipe.
        let message: Vec<u8> = message.into_iter().filter(|byte| !matches!(byte, b'\n')).collect();
        if !String::from_utf8_lossy(&message).contains("exit/") {
            stream.extend_from_slice(&message);
            stream.push(b'\n');
        }
    }
    let writer = proxy.send_from_behind(stream);
    let stdin = writer.join().unwrap();
    proxy.put_back(stdin);
    proxy.request(77_777, "after");
    let answer = loop {
        let answer = proxy.json();
        if answer["id"] == 77_777 {
            break answer;
        }
    };
    assert_eq!(answer["result"]["method"], "after");
    assert!(peak_bytes(proxy.pid()) < 40 * MIB as u64, "{} bytes", peak_bytes(proxy.pid()));
    assert!(proxy.end().0.success());
}

#[test]
fn a_half_line_at_the_end_is_passed_on_as_it_is() {
    let sandbox = Sandbox::new();
    let kept = sandbox.path("kept");
    let mut proxy = sandbox.run(&["--quiet"], &["keep", kept.to_str().unwrap()]);
    proxy.send(b"{\"id\":1,\"method\":\"x\"}\n{\"half");
    assert!(proxy.end().0.success());
    assert_eq!(std::fs::read(kept).unwrap(), b"{\"id\":1,\"method\":\"x\"}\n{\"half");
}

#[test]
fn a_server_that_dies_in_the_middle_of_a_line_still_leaves_no_call_open() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run_script(&["--quiet"], r#"read -r line; printf '{"id":1,"res'; exit 9"#);
    proxy.request(1, "x");
    assert_eq!(proxy.line(), b"{\"id\":1,\"res\n");
    let answer = proxy.json();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&1.into(), &5030.into()));
    assert_eq!(proxy.end().0.code(), Some(9));
}

#[test]
fn an_answer_that_fits_no_request_passes_and_the_request_is_told_at_the_end() {
    let sandbox = Sandbox::new();
    let lines = [
        r#"{"jsonrpc":"2.0","id":"1","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
    ];
    let printed = lines.map(|line| format!("'{line}'")).join(" ");
    let mut proxy =
        sandbox.run_script(&["--quiet"], &format!("read -r l; printf '%s\\n' {printed}; read -r l; exit 0"));
    proxy.request(1, "x");
    for line in lines {
        assert_eq!(proxy.line(), format!("{line}\n").as_bytes());
    }
    proxy.close_stdin();
    let answer = proxy.json();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&1.into(), &5030.into()));
    assert_eq!(proxy.rest(), Vec::<Vec<u8>>::new(), "it is told once");
    proxy.end();
}

/// A request of exactly `size` bytes, padded with an unknown member.
fn request_of(size: usize, id: u64) -> Vec<u8> {
    let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"sized\",\"pad\":\"");
    let mut message = head.into_bytes();
    message.resize(size - 2, b'x');
    message.extend_from_slice(b"\"}");
    message
}

#[test]
fn messages_up_to_the_limit_pass_and_beyond_it_fail_alone() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&SMALL_LIMIT, &["answer"]);
    for (id, size, passes) in [(1, MIB - 1, true), (2, MIB, true), (3, MIB + 1, false), (4, 3 * MIB, false)] {
        proxy.send(&[request_of(size, id), b"\n".to_vec()].concat());
        let answer = proxy.json();
        assert_eq!(answer["id"], id);
        assert_eq!(answer["error"]["code"] == 5130, !passes, "{size}: {answer}");
        proxy.ask(100 + id, "next");
    }
    assert!(proxy.end().0.success());
    let events: Vec<_> =
        crate::kit::recorded(&sandbox.segments()[0]).into_iter().filter_map(|message| message.event).collect();
    assert_eq!(events.len(), 2, "{events:?}");
}

#[test]
fn an_oversize_request_is_answered_under_a_tiny_limit_too() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&["--quiet", "--message-limit", "1024"], &["answer"]);
    proxy.send(&[request_of(2000, 5), b"\n".to_vec()].concat());
    let answer = proxy.json();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&5.into(), &5130.into()));
    proxy.ask(6, "next");
    assert!(proxy.end().0.success());
}

#[test]
fn an_oversize_answer_fails_its_call_though_its_id_comes_last() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&SMALL_LIMIT, &["flood-stdout", "5000000"]);
    proxy.request(1, "ignore/this");
    let answer = proxy.json();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&1.into(), &5130.into()), "{answer}");
    proxy.ask(2, "next");
    assert!(proxy.end().0.success());
}

#[test]
fn an_endless_line_costs_a_bounded_amount_of_memory() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&["--quiet"], &["answer"]);
    let mut endless = vec![b'x'; 192 * MIB];
    endless.push(b'\n');
    let writer = proxy.send_from_behind(endless);
    proxy.put_back(writer.join().unwrap());
    proxy.ask(1, "next");
    let peak = peak_bytes(proxy.pid());
    assert!(peak < 128 * MIB as u64, "{peak} bytes");
    assert!(proxy.end().0.success());
}

fn counted(body: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

/// The bodies of counted answers, in order.
fn counted_answer(proxy: &Running) -> serde_json::Value {
    loop {
        let line = proxy.line();
        // A body has no line end, so the next header follows it on the same line.
        if let Some(at) = line.windows(2).position(|pair| pair == b"}C") {
            return serde_json::from_slice(&line[..=at]).unwrap();
        }
    }
}

#[test]
fn wrong_headers_are_passed_over() {
    for wrong in [
        "Content-Length: 5\r\n\r\n{\"much\":\"longer\"}\r\n",
        "Content-Length: minus one\r\n\r\n{}\r\n",
        "Content-Length: 99999999999999999999\r\n\r\n{}\r\n",
        "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
        &format!("{}\r\n", "X-Endless: header\r\n".repeat(100_000)),
    ] {
        let sandbox = Sandbox::new();
        let script = r#"while read -r a; do case $a in *'"method":"good"'*) printf '{"id":7,"result":{}}\n{"id":8,"result":{}}\n';; esac; done"#;
        let mut proxy = sandbox.run_script(&["--quiet"], script);
        proxy.send(counted("{\"id\":1,\"method\":\"first\"}").as_bytes());
        let stream = format!(
            "{wrong}{}{}",
            counted("{\"id\":6,\"method\":\"resync\"}\n"),
            counted("{\"id\":7,\"method\":\"good\"}\n")
        );
        let writer = proxy.send_from_behind(stream.into_bytes());
        proxy.put_back(writer.join().unwrap());
        assert_eq!(counted_answer(&proxy)["id"], 7, "after {:?}", &wrong[..wrong.len().min(60)]);
        proxy.terminate();
        proxy.end();
    }
}

#[test]
fn a_server_that_floods_its_stderr_is_drained_and_its_tail_kept() {
    let sandbox = Sandbox::new();
    let fixture = crate::kit::fixture_program();
    let mut command = sandbox.command(["run", "--quiet", "--"]);
    command.arg(fixture).args(["flood-stderr", "67108864"]);
    // Nobody reads our own standard error: a pipe whose reading end sleeps.
    let (reader, writer) = std::io::pipe().unwrap();
    command.stderr(writer);
    let mut proxy = Running::start_quietly(command);
    proxy.ask(1, "next");
    let peak = peak_bytes(proxy.pid());
    assert!(peak < 32 * MIB as u64, "{peak} bytes");
    assert!(proxy.end().0.success());
    drop(reader);
}

#[test]
fn a_server_that_never_reads_holds_up_the_client_and_nothing_grows() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&["--quiet"], &["deaf"]);
    let taken = proxy.send_until_stuck(
        &b"{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":\"0123456789\"}\n".repeat(1000),
        64 * MIB,
    );
    assert!(taken < 16 * MIB, "{taken} bytes were taken");
    let peak = peak_bytes(proxy.pid());
    assert!(peak < 32 * MIB as u64, "{peak} bytes");
    proxy.terminate();
    assert_eq!(proxy.end().0.code(), Some(143));
}

#[test]
fn a_client_that_never_reads_holds_up_its_server_and_nothing_grows() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run_unread(&["--quiet"], &["answer"]);
    let taken = proxy.send_until_stuck(&b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}\n".repeat(1000), 64 * MIB);
    assert!(taken < 32 * MIB, "{taken} bytes were taken");
    let peak = peak_bytes(proxy.pid());
    assert!(peak < 48 * MIB as u64, "{peak} bytes");
    proxy.terminate();
    proxy.end();
}

#[test]
fn a_client_that_closes_its_end_takes_the_server_with_it() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run_unread(&["--quiet"], &["answer"]);
    proxy.close_stdout();
    proxy.request(1, "into/the/void");
    assert!(proxy.end().0.success());
}
