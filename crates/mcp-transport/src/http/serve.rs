//! A listener from its first connection to its last.

use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::rc::Rc;
use std::time::Duration;

use mcp_engine::{Pipeline, StoreFailed};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::front::Front;
use super::gate::Gate;
use super::hub::Hub;
use super::site::{Server, Site};
use crate::bridge::door;
use crate::signals::Signals;

/// How many clients may wait to be taken.
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

/// How a listener ended.
pub struct Ended {
    pub pipeline: Pipeline,
    pub store_failed: Option<StoreFailed>,
    /// A person interrupted us.
    pub interrupted: bool,
}

/// What a listener without a terminal says to SIGHUP.
const HANG_UP_IGNORED: &str = "SIGHUP is ignored: nothing is reloaded. Send SIGTERM to end the proxy";

/// Takes the address, or says why it cannot be had. Must be called inside a tokio runtime.
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
    server: impl FnOnce(&Rc<Hub>) -> Server,
    pipeline: Pipeline,
    options: Options,
    tell: Box<dyn Fn(String)>,
) -> io::Result<Ended> {
    let tell: Rc<dyn Fn(String)> = Rc::from(tell);
    let told = Rc::clone(&tell);
    let mut signals = Signals::of_listener(move || told(HANG_UP_IGNORED.into()))?;
    options.greeting.into_iter().for_each(&*tell);
    let hub = Hub::new(pipeline, options.message_bytes_max, Box::new(move |text| tell(text)));
    let committer = tokio::task::spawn_local(Rc::clone(&hub).keep_committing());
    let obeyer = tokio::task::spawn_local(Rc::clone(&hub).keep_obeying());
    let server = server(&hub);
    let entrance = match &server {
        Server::Gateway(gateway) => Some(Rc::clone(&gateway.entrance)),
        _ => None,
    };
    let gate = Gate::new(listener.local_addr()?, options.token, entrance);
    let site = Site::new(Rc::clone(&hub), gate, server, options.own_resource);
    if let Server::Gateway(gateway) = &site.server {
        gateway.start_early();
    }
    let injected = Rc::downgrade(&site);
    hub.inject_with(move |injection| {
        if let Some(site) = injected.upgrade() {
            site.inject(injection);
        }
    });
    let door = options.door.map(|door| tokio::task::spawn_local(door::serve(Rc::clone(&site), door)));
    let front = Front::new(listener, Rc::clone(&site));
    let mut interrupted = false;
    tokio::select! {
        () = front.serve() => {}
        () = hub.stopped() => {}
        interrupt = signals.next() => interrupted = interrupt,
        () = parted(&site, options.parting) => {}
    }
    // Nobody comes in any more.
    door.iter().for_each(JoinHandle::abort);
    hub.end_holds();
    if let Server::Gateway(gateway) = &site.server {
        gateway.stop();
        gateway.end_listening();
    }
    tokio::select! {
        () = front.drain(options.drain) => {}
        // Whoever asks twice means now.
        _ = signals.next() => {}
    }
    front.end_servers().await;
    drop((front, site));
    for task in [committer, obeyer] {
        task.abort();
        let _ = task.await;
    }
    let (pipeline, store_failed) = hub.take_back();
    Ok(Ended { pipeline, store_failed, interrupted })
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
        Some(Parting::EndUnlessServing { stays }) => site.hub.tell(stays),
        // Whoever would have said so is gone, or never was.
        None => {}
    }
    std::future::pending().await
}
