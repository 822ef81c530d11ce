//! Connections that never leave the machine. There is no network between their ends that could be crowded, and yet
//! what controls how fast they send looks at every answer: by default that may be a good part of what sending costs.

use std::net::IpAddr;
use std::os::fd::AsFd;

/// Has a connection to `peer` controlled in the simplest way there is, if it stays on this machine. A listener hands that
/// on to whatever it accepts.
pub fn ease(socket: impl AsFd, peer: IpAddr) {
    #[cfg(target_os = "linux")]
    if peer.is_loopback() {
        // Where that cannot be, everything is as it was.
        let _ = rustix::net::sockopt::set_tcp_congestion(socket, "reno");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (socket, peer);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    use super::*;

    #[test]
    fn what_a_nearby_listener_accepts_is_eased() {
        let control = |socket: &TcpStream| rustix::net::sockopt::tcp_congestion(socket).expect("it is controlled");
        let accept = |from: IpAddr| {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
            ease(&listener, from);
            let client = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
            (listener.accept().expect("somebody came").0, client)
        };
        let (accepted, client) = accept(Ipv4Addr::LOCALHOST.into());
        assert_eq!(control(&accepted), "reno");
        let (others, _) = accept(Ipv4Addr::new(192, 0, 2, 1).into());
        assert_eq!(control(&others), control(&client), "what is not nearby is left alone");
    }
}
