//! Deadlines, on a clock that does not wait: it moves on whenever nobody has anything to do.

use mcp_engine::{Bus, Pipeline, Recorder};
use mcp_link::Runtime;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::task::LocalSet;

use tokio::time::Instant;

use super::*;
use crate::http::gate::Gate;
use crate::http::site::Server;
use crate::http::state::HttpState;
use crate::http::target::{HeaderMap, Target};
use crate::http::upstream::Upstream;

const LIMIT: usize = 16 * 1024 * 1024;

/// Runs `test` against a listener whose server takes connections and never answers.
async fn with_listener<F: Future>(test: impl FnOnce(SocketAddr) -> F) -> F::Output {
    with_front(|address, _| test(address)).await
}

/// The same, for tests that end the listener.
async fn with_front<F: Future>(test: impl FnOnce(SocketAddr, Rc<Listener>) -> F) -> F::Output {
    let local = LocalSet::new();
    local
        .run_until(async {
            let server = TcpListener::bind(("127.0.0.1", 0)).await.expect("there is a free port");
            let url = format!("http://{}/mcp", server.local_addr().expect("it is bound"));
            tokio::task::spawn_local(async move {
                let mut taken = Vec::new();
                while let Ok((mut stream, _)) = server.accept().await {
                    taken.push(tokio::task::spawn_local(async move {
                        while stream.read(&mut [0; 64 * 1024]).await.is_ok_and(|count| count > 0) {}
                    }));
                }
            });
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("there is a free port");
            let address = listener.local_addr().expect("it is bound");
            let state = HttpState::new(&Runtime::new(
                Pipeline::new(Recorder::off(), Bus::default(), LIMIT),
                LIMIT,
                Box::new(|_| {}),
            ));
            let upstream = Upstream::new(Target::parse(&url, HeaderMap::new()).expect("an address"), None);
            let site = Site::new(state, Gate::new(address, None, None), Server::Http(upstream), false);
            let front = Rc::new(Listener::new(listener, site));
            let serving = Rc::clone(&front);
            tokio::task::spawn_local(async move { serving.serve().await });
            test(address, front).await
        })
        .await
}

/// What comes before the connection is closed, and after how many seconds that is.
async fn until_closed(stream: &mut TcpStream) -> (String, u64) {
    let begun = Instant::now();
    let mut got = Vec::new();
    let _ = stream.read_to_end(&mut got).await;
    (String::from_utf8_lossy(&got).into_owned(), begun.elapsed().as_secs())
}

fn is_about(seconds: u64, expected: Duration) -> bool {
    (expected.as_secs()..=expected.as_secs() + 2 * beats::EVERY.as_secs()).contains(&seconds)
}

#[tokio::test(start_paused = true)]
async fn a_client_that_says_nothing_is_let_go() {
    with_listener(async |address| {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let (got, after) = until_closed(&mut stream).await;
        assert!(got.is_empty() && is_about(after, IDLE_FOR), "{after} s: {got}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_has_nothing_more_to_say_is_let_go() {
    with_listener(async |address| {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        stream.write_all(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("it reads");
        let (got, after) = until_closed(&mut stream).await;
        assert!(got.starts_with("HTTP/1.1 404 ") && is_about(after, IDLE_FOR), "{after} s: {got}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_head_that_drips_is_not_waited_for() {
    with_listener(async |address| {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        // Nothing is owed before the first byte.
        sleep(IDLE_FOR - 2 * beats::EVERY).await;
        let begun = Instant::now();
        for byte in b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n" {
            if stream.write_all(&[*byte]).await.is_err() {
                break;
            }
            sleep(Duration::from_secs(1)).await;
        }
        until_closed(&mut stream).await;
        // A write or two may go into a connection that is closed already.
        let after = begun.elapsed().as_secs();
        assert!(is_about(after, HEAD_FOR) || is_about(after - 2, HEAD_FOR), "{after} s");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_second_head_that_drips_is_not_waited_for_either() {
    with_listener(async |address| {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        stream.write_all(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("it reads");
        let count = stream.read(&mut [0; 1024]).await.expect("it answers");
        assert!(count > 0);
        stream.write_all(b"GET /not").await.expect("it reads");
        let (got, after) = until_closed(&mut stream).await;
        assert!(is_about(after, HEAD_FOR), "{after} s: {got}");
    })
    .await;
}

const HEAD: &str = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_not_waited_for() {
    // One that is waited for, and one that passes as it comes.
    for sent in [0, 10, 1024 * 1024] {
        with_listener(async |address| {
            let mut stream = TcpStream::connect(address).await.expect("it listens");
            let head = format!("{HEAD}Content-Length: {}\r\n\r\n", 2 * 1024 * 1024);
            stream.write_all(head.as_bytes()).await.expect("it reads");
            stream.write_all(&vec![b' '; sent]).await.expect("it reads");
            let (got, after) = until_closed(&mut stream).await;
            assert!(got.starts_with("HTTP/1.1 408 ") && is_about(after, Duration::from_secs(30)), "{after} s: {got}");
        })
        .await;
    }
}

/// Sends `at_once` and then `piece` every second, `times` times or until nobody reads any more.
async fn drip(stream: &mut (impl AsyncWrite + Unpin), at_once: usize, piece: usize, times: usize) {
    let head = format!("{HEAD}Content-Length: {}\r\n\r\n", at_once + piece * times);
    stream.write_all(head.as_bytes()).await.expect("it reads");
    stream.write_all(&vec![b' '; at_once]).await.expect("it reads");
    for _ in 0..times {
        sleep(Duration::from_secs(1)).await;
        if stream.write_all(&vec![b' '; piece]).await.is_err() {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_drips_is_not_waited_for() {
    // The more there is of it, the longer it may have taken: a mebibyte earns 64 seconds.
    for (at_once, expected) in [(0, 30), (10, 30), (1024 * 1024, 94)] {
        with_listener(async |address| {
            let stream = TcpStream::connect(address).await.expect("it listens");
            let (mut reading, mut writing) = stream.into_split();
            let dripping = tokio::task::spawn_local(async move { drip(&mut writing, at_once, 1, 100_000).await });
            let begun = Instant::now();
            let mut got = [0; 64];
            let count = reading.read(&mut got).await.expect("it answers");
            let (got, after) = (String::from_utf8_lossy(&got[..count]).into_owned(), begun.elapsed().as_secs());
            assert!(
                got.starts_with("HTTP/1.1 408 ") && is_about(after, Duration::from_secs(expected)),
                "{after} s: {got}"
            );
            dripping.abort();
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_comes_slowly_is_waited_for() {
    with_listener(async |address| {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        drip(&mut stream, 0, 16 * 1024, 300).await;
        let answer = tokio::time::timeout(Duration::from_secs(3600), stream.read(&mut [0; 64])).await;
        assert!(answer.is_err(), "it is whole, and its server thinks: {answer:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_whose_server_thinks_is_not_let_go() {
    for request in
        ["GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), format!("{HEAD}Content-Length: 2\r\n\r\n{{}}")]
    {
        with_listener(async |address| {
            let mut stream = TcpStream::connect(address).await.expect("it listens");
            stream.write_all(request.as_bytes()).await.expect("it reads");
            let answer = tokio::time::timeout(Duration::from_secs(3600), stream.read(&mut [0; 64])).await;
            assert!(answer.is_err(), "{answer:?}");
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn many_slow_clients_do_not_hold_up_a_good_one() {
    with_listener(async |address| {
        let mut slow = Vec::new();
        for _ in 0..500 {
            let mut stream = TcpStream::connect(address).await.expect("it listens");
            stream.write_all(b"GET /").await.expect("it reads");
            slow.push(stream);
        }
        let begun = Instant::now();
        let mut good = TcpStream::connect(address).await.expect("it listens");
        good.write_all(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("it reads");
        assert!(good.read(&mut [0; 1024]).await.expect("it answers") > 0);
        assert!(begun.elapsed() < beats::EVERY, "{:?}", begun.elapsed());
        for mut stream in slow {
            assert_eq!(until_closed(&mut stream).await.0, "");
        }
        assert!(is_about(begun.elapsed().as_secs(), HEAD_FOR), "{:?}", begun.elapsed());
    })
    .await;
}

/// How many seconds the end takes with `request` unanswered.
async fn end_takes(request: &str) -> u64 {
    with_front(async |address, front| {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        stream.write_all(request.as_bytes()).await.expect("it reads");
        // It has reached the server by the time nobody has anything to do.
        sleep(Duration::from_secs(1)).await;
        let begun = Instant::now();
        front.drain(Duration::from_secs(10)).await;
        let took = begun.elapsed().as_secs();
        assert_eq!(until_closed(&mut stream).await.0, "");
        took
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn only_calls_are_waited_for_in_the_end() {
    assert_eq!(end_takes("").await, 0, "a client that said nothing");
    assert_eq!(end_takes("GET /m").await, 0, "half a head");
    assert_eq!(end_takes("GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n").await, 0, "a stream");
    assert_eq!(end_takes(&format!("{HEAD}Content-Length: 2\r\n\r\n{{}}")).await, 10, "a call");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_is_noticed_whatever_is_under_way() {
    for request in [
        "".to_owned(),
        "GET /m".to_owned(),
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        format!("{HEAD}Content-Length: 2\r\n\r\n{{}}"),
        format!("{HEAD}Content-Length: 2000000\r\n\r\n{{"),
    ] {
        with_front(async |address, front| {
            let mut stream = TcpStream::connect(address).await.expect("it listens");
            stream.write_all(request.as_bytes()).await.expect("it reads");
            // It has reached the server by the time nobody has anything to do.
            sleep(Duration::from_secs(1)).await;
            assert_eq!(front.connections.count.get(), 1, "{request}");
            drop(stream);
            sleep(Duration::from_secs(1)).await;
            assert_eq!(front.connections.count.get(), 0, "{request}");
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn requests_that_come_at_once_are_answered_one_by_one() {
    with_listener(async |address| {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let request = "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(request.repeat(3).as_bytes()).await.expect("it reads");
        let (got, _) = until_closed(&mut stream).await;
        assert_eq!(got.matches("HTTP/1.1 404 ").count(), 3, "{got}");
    })
    .await;
}
