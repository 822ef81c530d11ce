//! Sessions of clients that are told apart, through a listener.

use std::convert::Infallible;
use std::net::SocketAddr;

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use mcp_engine::entrance::{Entrance, EntranceSettings, NamedToken};
use mcp_engine::{Bus, Pipeline, Recorder};
use mcp_link::Runtime;
use mcp_wire::Id;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;
use tokio::time::timeout;

use super::*;
use crate::http::gate::Gate;
use crate::http::listener::Listener;
use crate::http::target::Target;
use crate::http::upstream::Upstream;

const LIMIT: usize = 16 * 1024 * 1024;
/// How long an answer may take before a test has failed.
const PATIENCE: Duration = Duration::from_secs(30);
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;

/// What the server was sent, a message each.
type Heard = Rc<RefCell<Vec<String>>>;

/// A listener that knows ann and bob, in front of a server that answers whatever it is asked.
struct Play {
    address: SocketAddr,
    heard: Heard,
}

async fn with_play<F: Future<Output = ()>>(test: impl FnOnce(Play) -> F) {
    LocalSet::new()
        .run_until(async {
            let heard = Heard::default();
            let url = serve_answers(Rc::clone(&heard)).await;
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("there is a free port");
            let address = listener.local_addr().expect("it is bound");
            let state = HttpState::new(&Runtime::new(
                Pipeline::new(Recorder::off(), Bus::default(), LIMIT),
                LIMIT,
                Box::new(|_| {}),
            ));
            let upstream = Upstream::new(Target::parse(&url, HeaderMap::new()).expect("an address"), None);
            let named = |name: &str, token: &str| NamedToken {
                name: name.into(),
                token: token.into(),
                servers: None,
                tools: None,
                rate_limit_per_minute: None,
            };
            let tokens = vec![named("ann", "sesame"), named("bob", "open-up")];
            let entrance = Entrance::new(&EntranceSettings { tokens, ..EntranceSettings::default() });
            let gate = Gate::new(address, None, Some(Rc::new(entrance.expect("the tokens are good"))));
            let front = Rc::new(Listener::new(listener, Site::new(state, gate, Server::Http(upstream), false)));
            tokio::task::spawn_local(async move { front.serve().await });
            test(Play { address, heard }).await;
        })
        .await;
}

/// Serves a server, and says where.
async fn serve_answers(heard: Heard) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("there is a free port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("it is bound"));
    tokio::task::spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let heard = Rc::clone(&heard);
            let service = service_fn(move |request| answer(Rc::clone(&heard), request));
            tokio::task::spawn_local(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    url
}

async fn answer(heard: Heard, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let is_post = request.method() == hyper::Method::POST;
    let body = request.into_body().collect().await.expect("a body comes").to_bytes();
    let message = Message::new(body.clone());
    let id = message.id().filter(|_| is_post);
    let (status, body) = match (&id, message.method().as_deref()) {
        _ if !is_post => (405, Bytes::new()),
        (Some(id), Some("too/often")) => {
            let limited = Refusal::RateLimited { retry_after_ms: 1_500, what: "60 a minute".into() };
            (200, reply::error(id, &limited))
        }
        (Some(id), Some("not/there")) => (200, reply::unknown(id, "resources/read", "x:y")),
        (Some(id), Some("initialize")) => {
            let result =
                br#"{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#;
            (200, reply::answer_with_result(id, result))
        }
        (Some(id), _) => (200, reply::empty_result(id)),
        (None, _) => (202, Bytes::new()),
    };
    if is_post {
        heard.borrow_mut().push(String::from_utf8_lossy(message.bytes()).into_owned());
    }
    let response = Response::builder().status(status).header("content-type", "application/json");
    Ok(response.body(Full::new(body)).expect("a response"))
}

impl Play {
    /// Sends a request, and reads its answer until `is_enough`, or to the end.
    async fn ask_until(&self, head: &str, token: Option<&str>, body: &str, is_enough: fn(&str) -> bool) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.expect("it listens");
        let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        let head = head.replacen('\n', " HTTP/1.1\n", 1).replace('\n', "\r\n");
        let accept = "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n";
        let length = body.len();
        let request = format!(
            "{head}Host: localhost\r\nConnection: close\r\n{accept}{token}Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.expect("it reads");
        let (mut got, mut buffer) = (String::new(), [0; 4096]);
        while !is_enough(&got) {
            match timeout(PATIENCE, stream.read(&mut buffer)).await.expect("it answers") {
                Ok(0) | Err(_) => break,
                Ok(count) => got.push_str(&String::from_utf8_lossy(&buffer[..count])),
            }
        }
        Answer { text: got, stream }
    }

    async fn ask(&self, head: &str, token: Option<&str>, body: &str) -> Answer {
        self.ask_until(head, token, body, |_| false).await
    }

    /// Opens a session, and says under which id.
    async fn open(&self, token: &str) -> String {
        let answer = self.ask("POST /mcp\n", Some(token), INITIALIZE).await;
        assert_eq!(answer.status(), 200, "{}", answer.text);
        answer.header("mcp-session-id").expect("a session was opened").to_owned()
    }
}

struct Answer {
    text: String,
    /// What is read no further ends once this is dropped.
    #[expect(dead_code, reason = "it is kept open")]
    stream: TcpStream,
}

impl Answer {
    fn status(&self) -> u16 {
        self.text.get(9..12).and_then(|status| status.parse().ok()).unwrap_or_default()
    }

    fn header(&self, name: &str) -> Option<&str> {
        let head = self.text.split("\r\n\r\n").next().unwrap_or_default();
        head.lines().find_map(|line| line.split_once(": ").filter(|(key, _)| key.eq_ignore_ascii_case(name))?.1.into())
    }

    fn body(&self) -> &str {
        self.text.split_once("\r\n\r\n").map_or("", |(_, body)| body)
    }
}

#[tokio::test]
async fn a_session_is_its_clients_alone() {
    with_play(async |play| {
        let session = play.open("sesame").await;
        let with = |method: &str, session: &str| format!("{method} /mcp\nMcp-Session-Id: {session}\n");
        let unknown = Uuid::new_v4().to_string();
        let heard = play.heard.borrow().len();
        for method in ["POST", "GET", "DELETE"] {
            let body = if method == "POST" { PING } else { "" };
            let stolen = play.ask(&with(method, &session), Some("open-up"), body).await;
            let made_up = play.ask(&with(method, &unknown), Some("open-up"), body).await;
            assert_eq!((stolen.status(), made_up.status()), (404, 404), "{method}");
            assert_eq!(stolen.body(), made_up.body(), "nobody is told that it exists");
            let nobodys = play.ask(&with(method, &session), None, body).await;
            assert_eq!((nobodys.status(), nobodys.header("www-authenticate")), (401, Some("Bearer")), "{method}");
            assert_eq!(play.ask(&with(method, &session), Some("wrong"), body).await.status(), 401);
        }
        assert_eq!(play.heard.borrow().len(), heard, "nothing of that came so far");
        assert_eq!(play.ask(&with("POST", &session), Some("sesame"), PING).await.status(), 200);
        assert_eq!(play.ask(&with("DELETE", &session), Some("sesame"), "").await.status(), 200);
        assert_eq!(play.ask(&with("POST", &session), Some("sesame"), PING).await.status(), 404);
    })
    .await;
}

#[tokio::test]
async fn a_connection_is_its_clients_alone() {
    with_play(async |play| {
        assert_eq!(play.ask("GET /sse\n", None, "").await.status(), 401);
        let is_announced = |got: &str| got.split_once("session=").is_some_and(|(_, rest)| rest.contains('\n'));
        let stream = play.ask_until("GET /sse\n", Some("sesame"), "", is_announced).await;
        let endpoint = stream.text.split("data: ").nth(1).and_then(|rest| rest.lines().next());
        let endpoint = endpoint.expect("an endpoint is announced");
        let head = format!("POST {endpoint}\n");
        let made_up = format!("POST /message?session={}\n", Uuid::new_v4());
        let stolen = play.ask(&head, Some("open-up"), PING).await;
        let unknown = play.ask(&made_up, Some("open-up"), PING).await;
        assert_eq!((stolen.status(), unknown.status()), (404, 404));
        assert_eq!(stolen.body(), unknown.body());
        assert_eq!(play.ask(&head, None, PING).await.status(), 401);
        let shows = |token: &str| PING.replace('}', &format!(r#","params":{{"proxy":{{"authToken":"{token}"}}}}}}"#));
        assert_eq!(play.ask(&head, None, &shows("open-up")).await.status(), 404);
        assert_eq!(play.ask(&head, None, &shows("sesame")).await.status(), 202);
        assert_eq!(play.ask(&head, Some("sesame"), INITIALIZE).await.status(), 202);
    })
    .await;
}

#[tokio::test]
async fn a_token_in_a_message_lets_it_in_and_goes_no_further() {
    with_play(async |play| {
        let shows = |token: &str| {
            INITIALIZE.replace(r#""params":{"#, &format!(r#""params":{{"proxy":{{"authToken":"{token}"}},"#))
        };
        for body in [INITIALIZE.to_owned(), shows("wrong"), shows("")] {
            let refused = play.ask("POST /mcp\n", None, &body).await;
            assert_eq!((refused.status(), refused.header("www-authenticate")), (401, Some("Bearer")));
            let expected = reply::error(&Id::Integer(1), &Refusal::Unauthorized);
            assert_eq!(refused.body().as_bytes(), &expected[..], "all look alike");
        }
        assert_eq!(play.ask("POST /mcp\n", Some("sesame"), &shows("open-up")).await.status(), 401);
        assert!(play.heard.borrow().is_empty());
        let opened = play.ask("POST /mcp\n", None, &shows("sesame")).await;
        assert_eq!(opened.status(), 200, "{}", opened.text);
        assert_eq!(*play.heard.borrow(), [INITIALIZE]);
        // What nobody knows the sender of is not read for ever.
        let long = INITIALIZE.replace("\"c\"", &format!("\"{}\"", "c".repeat(UNKNOWN_BYTES_MAX as usize)));
        assert_eq!(play.ask("POST /mcp\n", None, &long).await.status(), 401);
    })
    .await;
}

#[tokio::test]
async fn who_asks_too_often_is_told_by_the_status_too() {
    with_play(async |play| {
        let session = play.open("sesame").await;
        let head = format!("POST /mcp\nMcp-Session-Id: {session}\n");
        let modern = "POST /mcp\nMcp-Protocol-Version: 2026-07-28\nMcp-Method: too/often\n".to_owned();
        let meta = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}"#;
        let too_often = format!(r#"{{"jsonrpc":"2.0","id":3,"method":"too/often","params":{{"_meta":{{{meta}}}}}}}"#);
        for head in [&head, &modern] {
            let limited = play.ask(head, Some("sesame"), &too_often).await;
            assert_eq!((limited.status(), limited.header("retry-after")), (429, Some("2")), "{}", limited.text);
            assert!(limited.body().contains(r#""retry_after_ms":1500"#));
        }
        // The same code says something else in a server's mouth.
        let missing = play.ask(&head, Some("sesame"), &too_often.replace("too/often", "not/there")).await;
        assert_eq!(missing.status(), 200);
    })
    .await;
}
