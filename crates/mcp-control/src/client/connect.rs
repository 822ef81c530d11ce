//! One request over one connection.

use std::fmt::Write;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::{Address, ClientError};

/// The longest answer: one message of the largest size an instance can be told to take, as JSON, twice
/// over if it was edited.
const ANSWER_BYTES_MAX: usize = 3 << 30;

pub(super) async fn send(
    address: &Address,
    method: Method,
    path: &str,
    body: Option<Bytes>,
) -> Result<Response<Incoming>, ClientError> {
    match address {
        Address::Socket(path_of_socket) => {
            let unreached = |source| ClientError::Unreached { place: path_of_socket.display().to_string(), source };
            let stream = UnixStream::connect(path_of_socket).await.map_err(unreached)?;
            exchange(stream, request(method, path, "localhost", None, body)?).await
        }
        Address::Tcp { address, token } => {
            let unreached = |source| ClientError::Unreached { place: address.to_string(), source };
            let stream = TcpStream::connect(address).await.map_err(unreached)?;
            exchange(stream, request(method, path, &address.to_string(), Some(token), body)?).await
        }
    }
}

fn request(
    method: Method,
    path: &str,
    host: &str,
    token: Option<&str>,
    body: Option<Bytes>,
) -> Result<Request<Full<Bytes>>, ClientError> {
    let mut request = Request::builder().method(method).uri(path).header(HOST, host).header(ACCEPT, "*/*");
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    if body.is_some() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    request.body(Full::new(body.unwrap_or_default())).map_err(broken)
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, ClientError> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    // Ends when the answer is read or nobody wants it any more.
    tokio::spawn(connection);
    sender.send_request(request).await.map_err(broken)
}

pub(super) async fn whole(answer: Response<Incoming>) -> Result<Bytes, ClientError> {
    match Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(ClientError::TooMuch),
        Err(error) => Err(ClientError::Broken(error)),
    }
}

pub(super) fn broken(error: impl std::error::Error + Send + Sync + 'static) -> ClientError {
    ClientError::Broken(Box::new(error))
}

/// The members of a flat object as a query.
pub(super) fn query(of: &impl Serialize) -> String {
    let members = serde_json::to_value(of).expect("plain data always serialises");
    let mut query = String::new();
    for (name, value) in members.as_object().into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let and = if query.is_empty() { "" } else { "&" };
        write!(query, "{and}{name}={}", escaped(&value)).expect("a string takes everything");
    }
    query
}

/// A text as one segment of a path, or one value of a query.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' => escaped.push(char::from(byte)),
            // A dot too: a name of dots alone is a way up in a path.
            _ => write!(escaped, "%{byte:02X}").expect("a string takes everything"),
        }
    }
    escaped
}
