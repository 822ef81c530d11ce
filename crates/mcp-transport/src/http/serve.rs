//! A listener from its first connection to its last.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::rc::Rc;
use std::time::Duration;

use mcp_engine::Pipeline;
use mcp_link::serve::Closing;
use mcp_link::{Ended, Front, Runtime};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::door;
use super::gate::Gate;
use super::listener::Listener;
use super::site::{Server, Site};
use super::state::HttpState;
use crate::signals::Signals;

/// Connections that wait to be accepted.
const BACKLOG: u32 = 4096;

pub struct Options {
    pub message_bytes_max: usize,
    /// What calls get to finish once the proxy is asked to end.
    pub drain: Duration,
    /// What clients must show to be served.
    pub token: Option<String>,
    /// Whether clients are told that we are the resource which the server protects.
    pub own_resource: bool,
    /// Said once clients can connect and signals are heeded: whoever waits for it may send either.
    pub greeting: Option<String>,
    /// Where it is heard that a user who watched from within this process is done.
    pub parting: Option<oneshot::Receiver<Parting>>,
    /// Where clients on stdio come in, once it is open.
    pub door: Option<oneshot::Receiver<UnixListener>>,
}

/// What a user who watched from within this process wants in the end.
#[derive(Debug)]
pub enum Parting {
    End,
    /// The end, unless clients are there: then `stays` is said, and all goes on.
    EndUnlessServing {
        stays: String,
    },
}

/// What a listener without a terminal says to SIGHUP.
const HANG_UP_IGNORED: &str = "SIGHUP is ignored: nothing is reloaded. Send SIGTERM to end the proxy";

/// Takes the address, or says why it cannot be had. Must be called inside a tokio state.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { tokio::net::TcpSocket::new_v4() } else { tokio::net::TcpSocket::new_v6() }?;
    // A listener that was closed a moment ago leaves connections behind that keep its address.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves clients until a signal says otherwise. Must be called where tasks can stay on their thread.
pub async fn serve(
    listener: TcpListener,
    server: impl FnOnce(&Rc<HttpState>) -> Server,
    pipeline: Pipeline,
    options: Options,
    tell: Box<dyn Fn(String)>,
) -> io::Result<Ended> {
    let tell: Rc<dyn Fn(String)> = Rc::from(tell);
    let told = Rc::clone(&tell);
    let mut signals = Signals::of_listener(move || told(HANG_UP_IGNORED.into()))?;
    options.greeting.into_iter().for_each(&*tell);
    let runtime = Runtime::new(pipeline, options.message_bytes_max, Box::new(move |text| tell(text)));
    let state = HttpState::new(&runtime);
    let server = server(&state);
    let entrance = match &server {
        Server::Many(backend) => Some(Rc::clone(backend.entrance())),
        _ => None,
    };
    let gate = Gate::new(listener.local_addr()?, options.token, entrance);
    let site = Site::new(Rc::clone(&state), gate, server, options.own_resource);
    if let Server::Many(backend) = &site.server {
        backend.start_early();
    }
    let injected = Rc::downgrade(&site);
    runtime.inject_with(move |injection| {
        if let Some(site) = injected.upgrade() {
            site.inject(injection);
        }
    });
    let front = ListenerFront {
        door: options.door.map(|door| tokio::task::spawn_local(door::serve(Rc::clone(&site), door))),
        listener: Listener::new(listener, Rc::clone(&site)),
        site,
        drain: options.drain,
        parting: RefCell::new(options.parting),
    };
    Ok(mcp_link::serve(&runtime, front, &mut signals).await)
}

struct ListenerFront {
    site: Rc<Site>,
    listener: Listener,
    door: Option<JoinHandle<()>>,
    drain: Duration,
    parting: RefCell<Option<oneshot::Receiver<Parting>>>,
}

impl Front for ListenerFront {
    async fn serve(&self) {
        let parting = self.parting.take();
        tokio::select! {
            () = self.listener.serve() => {}
            () = parted(&self.site, parting) => {}
        }
    }

    fn close(&self, _why: Closing) {
        self.door.iter().for_each(JoinHandle::abort);
        if let Server::Many(backend) = &self.site.server {
            backend.stop();
        }
    }

    async fn drain(&self) {
        self.listener.drain(self.drain).await;
    }

    async fn end(&self) {
        self.listener.end_servers().await;
    }

    async fn flush(&self) {}
}

/// Comes when the user is done and nobody else needs us.
async fn parted(site: &Site, parting: Option<oneshot::Receiver<Parting>>) {
    let wished = match parting {
        Some(parting) => parting.await.ok(),
        None => None,
    };
    match wished {
        Some(Parting::End) => return,
        Some(Parting::EndUnlessServing { .. }) if !site.is_serving() => return,
        Some(Parting::EndUnlessServing { stays }) => site.state.tell(stays),
        // Whoever would have said so is gone, or never was.
        None => {}
    }
    std::future::pending().await
}
