//! Connections to a server: opened when needed, kept for the next request, driven by whoever uses
//! them. No redirects, no decompression, no deadline on an answer: those are the client's business.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper::http::response::Parts;
use hyper::rt::ReadBufCursor;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use mcp_link::Runtime;
use mcp_wire::reply::Refusal;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::body::ToServer;
use super::certificate;
use super::nearby;
use super::target::Target;

/// Time for name resolution, connection and encryption together.
const CONNECT_FOR: Duration = Duration::from_secs(10);
/// Time that an idle connection is kept: common servers close theirs after five seconds, and a request must not
/// meet that.
const IDLE_FOR: Duration = Duration::from_secs(4);
/// Idle connections kept; further ones are closed after use.
const IDLE_MAX: usize = 256;
/// Bytes of the head of an answer.
const HEAD_BYTES_MAX: usize = 256 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    #[error("cannot connect to {address}")]
    Connect {
        address: String,
        #[source]
        source: io::Error,
    },
    #[error("no connection to {address} within {} s", CONNECT_FOR.as_secs())]
    ConnectTimeout { address: String },
    #[error("the server broke off")]
    Broken(#[source] hyper::Error),
}

impl UpstreamError {
    /// What happened, for the recording, and what a client is told of it. Whoever runs us hears of a
    /// server that is not reached, once.
    pub fn explain(&self, runtime: &Runtime) -> (String, Refusal) {
        let wrong = match self {
            Self::Connect { source, .. } => certificate::what_is_wrong(source),
            _ => None,
        };
        let why = match (wrong, std::error::Error::source(self)) {
            (Some(wrong), Some(cause)) => format!("{self}: {wrong} ({cause})"),
            (None, Some(cause)) => format!("{self}: {cause}"),
            (_, None) => self.to_string(),
        };
        if !matches!(self, Self::Broken(_)) {
            runtime.tell_once(&why);
        }
        let refusal = match self {
            Self::Connect { .. } => Refusal::Unreachable { what: wrong.unwrap_or("no connection").into() },
            Self::ConnectTimeout { .. } => Refusal::Unreachable { what: "no connection in time".into() },
            Self::Broken(_) => Refusal::StreamLost,
        };
        (why, refusal)
    }
}

/// A server that is spoken to over HTTP.
pub struct Upstream {
    pub target: Target,
    tls: Option<TlsConnector>,
    idle: RefCell<Vec<Idle>>,
}

struct Idle {
    wire: Box<Wire>,
    since: Instant,
}

/// A connection with both its handles: requests go in at one, the other does the work when polled.
struct Wire {
    send: SendRequest<ToServer>,
    connection: Connection<Io, ToServer>,
}

enum Io {
    Plain(TokioIo<TcpStream>),
    Tls(Box<TokioIo<TlsStream<TcpStream>>>),
}

impl Upstream {
    pub fn new(target: Target, tls: Option<Arc<rustls::ClientConfig>>) -> Rc<Self> {
        Rc::new(Self { target, tls: tls.map(TlsConnector::from), idle: RefCell::default() })
    }

    /// Sends `request`, on an idle connection if there is one.
    pub async fn send(self: &Rc<Self>, request: Request<ToServer>) -> Result<Call, UpstreamError> {
        Ok(self.reach().await?.send(request))
    }

    /// A connection for one request, idle or new.
    pub async fn reach(self: &Rc<Self>) -> Result<Reached, UpstreamError> {
        let wire = match self.take_idle() {
            Some(wire) => wire,
            // Most requests find a connection, and are the smaller for what they need not carry.
            None => Box::pin(self.connect()).await?,
        };
        Ok(Reached { wire, upstream: Rc::clone(self) })
    }

    /// An idle connection that still stands, the last used first.
    fn take_idle(&self) -> Option<Box<Wire>> {
        let mut context = Context::from_waker(std::task::Waker::noop());
        loop {
            let Idle { mut wire, since } = self.idle.borrow_mut().pop()?;
            if since.elapsed() > IDLE_FOR {
                // Those below it have been idle for even longer.
                self.idle.borrow_mut().clear();
                return None;
            }
            let stands = wire.connection.poll_without_shutdown(&mut context).is_pending() && wire.send.is_ready();
            if stands {
                return Some(wire);
            }
        }
    }

    fn put_back(&self, mut wire: Box<Wire>) {
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut idle = self.idle.borrow_mut();
        if idle.len() < IDLE_MAX
            && (wire.send.is_ready() || wire.connection.poll_without_shutdown(&mut context).is_pending())
        {
            idle.push(Idle { wire, since: Instant::now() });
        }
    }

    /// Closes connections that nobody has used for a while.
    pub fn close_idle(&self) {
        self.idle.borrow_mut().retain(|idle| idle.since.elapsed() <= IDLE_FOR);
    }

    /// Closes every connection that is kept, so that the next request opens one.
    pub fn forget_idle(&self) {
        self.idle.borrow_mut().clear();
    }

    async fn connect(&self) -> Result<Box<Wire>, UpstreamError> {
        let address = || String::from_utf8_lossy(self.target.authority.as_bytes()).into_owned();
        let io = timeout(CONNECT_FOR, self.open())
            .await
            .map_err(|_| UpstreamError::ConnectTimeout { address: address() })?
            .map_err(|source| UpstreamError::Connect { address: address(), source })?;
        let mut builder = http1::Builder::new();
        builder.max_buf_size(HEAD_BYTES_MAX);
        let (send, connection) = builder.handshake(io).await.map_err(UpstreamError::Broken)?;
        Ok(Box::new(Wire { send, connection }))
    }

    async fn open(&self) -> io::Result<Io> {
        let stream = TcpStream::connect((self.target.host.as_str(), self.target.port)).await?;
        stream.set_nodelay(true)?;
        if let Ok(peer) = stream.peer_addr() {
            nearby::ease(&stream, peer.ip());
        }
        let Some(tls) = &self.tls else { return Ok(Io::Plain(TokioIo::new(stream))) };
        let name = ServerName::try_from(self.target.host.clone()).map_err(io::Error::other)?;
        Ok(Io::Tls(Box::new(TokioIo::new(tls.connect(name, stream).await?))))
    }
}

/// A connection that waits for a request.
pub struct Reached {
    wire: Box<Wire>,
    upstream: Rc<Upstream>,
}

impl Reached {
    pub fn send(self, request: Request<ToServer>) -> Call {
        let Self { mut wire, upstream } = self;
        let response = Box::pin(wire.send.send_request(request));
        Call { response, wire: Some(wire), upstream }
    }
}

/// A request whose answer has not begun. It can be moved to another task, and dropping it breaks the
/// connection, which tells a server of the newest revision that nobody waits any more.
pub struct Call {
    response: Pin<Box<dyn Future<Output = hyper::Result<Response<Incoming>>>>>,
    wire: Option<Box<Wire>>,
    upstream: Rc<Upstream>,
}

impl Future for Call {
    type Output = Result<(Parts, ServerBody), UpstreamError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { response, wire, upstream } = &mut *self;
        let answered = match response.as_mut().poll(cx) {
            Poll::Ready(answered) => answered,
            Poll::Pending => {
                if let Some(wire) = wire {
                    // An end or an error of the connection reaches the response as well.
                    let _ = wire.connection.poll_without_shutdown(cx);
                }
                ready!(response.as_mut().poll(cx))
            }
        };
        let (parts, incoming) = answered.map_err(UpstreamError::Broken)?.into_parts();
        let body = ServerBody { incoming, wire: wire.take(), upstream: Rc::clone(upstream) };
        Poll::Ready(Ok((parts, body)))
    }
}

/// The body of an answer, with the connection it comes on.
pub struct ServerBody {
    incoming: Incoming,
    wire: Option<Box<Wire>>,
    upstream: Rc<Upstream>,
}

impl ServerBody {
    pub fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Bytes>>> {
        loop {
            let frame = match self.poll_incoming(cx) {
                Poll::Ready(frame) => frame,
                Poll::Pending => {
                    if let Some(wire) = &mut self.wire {
                        let _ = wire.connection.poll_without_shutdown(cx);
                    }
                    ready!(self.poll_incoming(cx))
                }
            };
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => return Poll::Ready(Some(Ok(data))),
                // Trailers end with their hop.
                Some(Ok(Err(_))) => {}
                Some(Err(error)) => {
                    self.wire = None;
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    if let Some(wire) = self.wire.take() {
                        self.upstream.put_back(wire);
                    }
                    return Poll::Ready(None);
                }
            }
        }
    }

    fn poll_incoming(&mut self, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        Pin::new(&mut self.incoming).poll_frame(cx)
    }

    pub async fn data(&mut self) -> Option<hyper::Result<Bytes>> {
        std::future::poll_fn(|cx| self.poll_data(cx)).await
    }

    pub fn is_end(&self) -> bool {
        self.incoming.is_end_stream()
    }

    pub fn size_hint(&self) -> hyper::body::SizeHint {
        self.incoming.size_hint()
    }
}

impl Drop for ServerBody {
    fn drop(&mut self) {
        // A body that was never there, or of which everything has come, leaves a good connection.
        if self.incoming.is_end_stream()
            && let Some(wire) = self.wire.take()
        {
            self.upstream.put_back(wire);
        }
    }
}

macro_rules! either {
    ($self:ident, $io:ident => $done:expr) => {
        match $self.get_mut() {
            Io::Plain($io) => {
                let $io = Pin::new($io);
                $done
            }
            Io::Tls($io) => {
                let $io = Pin::new(&mut **$io);
                $done
            }
        }
    };
}

impl hyper::rt::Read for Io {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        either!(self, io => io.poll_read(cx, buf))
    }
}

impl hyper::rt::Write for Io {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        either!(self, io => io.poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, io => io.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, io => io.poll_shutdown(cx))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(io) => io.is_write_vectored(),
            Self::Tls(io) => io.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, io => io.poll_write_vectored(cx, bufs))
    }
}
