//! Takes connections on the private socket, and on loopback TCP if asked to.

use std::io;
use std::net::TcpListener as StdTcpListener;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use mcp_transport::peer::is_own;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;

use super::gate::Gate;
use super::shared::Shared;
use super::site::{Door, router};
use super::strangers::{Strangers, Visitor};

/// Connections at a time through each door: every face and some commands.
const CONNECTIONS_MAX: usize = 256;
/// Time for the head of a request, and for the next request.
const HEAD_FOR: Duration = Duration::from_secs(10);
/// The largest head of a request: a filter in the target, and room.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Pause before the next attempt to accept when the system has no descriptor left.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Serves the private socket for ever.
pub(super) async fn serve_socket(listener: StdUnixListener, shared: Shared) -> io::Result<()> {
    let listener = UnixListener::from_std(listener)?;
    let (app, room) = (router(shared, Door::Socket), Arc::new(Semaphore::new(CONNECTIONS_MAX)));
    loop {
        let Ok(turn) = Arc::clone(&room).acquire_owned().await else { return Ok(()) };
        match listener.accept().await {
            Ok((stream, _)) if is_own(&stream) => {
                let app = app.clone();
                tokio::spawn(async move {
                    serve(stream, app, None).await;
                    drop(turn);
                });
            }
            Ok(_) => {}
            Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
        }
    }
}

/// Serves loopback TCP for ever. Everybody on this machine can connect, so that nobody who has shown
/// nothing keeps others from being accepted.
pub(super) async fn serve_tcp(listener: StdTcpListener, gate: Arc<Gate>, shared: Shared) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let (app, strangers) = (router(shared, Door::Tcp(gate)), Strangers::new(CONNECTIONS_MAX));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let _ = stream.set_nodelay(true);
                let (app, visitor) = (app.clone(), strangers.enter());
                tokio::spawn(async move {
                    tokio::select! {
                        () = serve(stream, app, Some(Arc::clone(&visitor))) => {}
                        () = visitor.turned_away() => {}
                    }
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
        }
    }
}

/// Serves one connection. Whether it is still a stranger is found out with its requests.
async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    app: Router,
    visitor: Option<Arc<Visitor>>,
) {
    let app = TowerToHyperService::new(app);
    let service = service_fn(move |mut request: Request<Incoming>| {
        if let Some(visitor) = &visitor {
            request.extensions_mut().insert(Arc::clone(visitor));
        }
        app.call(request)
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_FOR).max_buf_size(HEAD_BYTES_MAX);
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}
