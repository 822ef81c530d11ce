//! Who is at the other end of a private socket.

use std::os::fd::AsFd;

/// Whether the process there belongs to the user we run as. The directory keeps others out already; root
/// may enter, and has other ways.
pub fn is_own(stream: impl AsFd) -> bool {
    let peer = rustix::net::sockopt::socket_peercred(stream).map(|peer| peer.uid.as_raw());
    peer.is_ok_and(|uid| may_connect(uid, rustix::process::geteuid().as_raw()))
}

fn may_connect(peer: u32, own: u32) -> bool {
    peer == own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_user_may_not_connect() {
        let own = rustix::process::geteuid().as_raw();
        assert!(may_connect(own, own));
        assert!(!may_connect(own + 1, own));
        assert!(!may_connect(0, own + 1));
    }

    #[test]
    fn this_process_is_known_as_our_own() {
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(is_own(&one));
        let not_a_socket = std::fs::File::open("/dev/null").unwrap();
        assert!(!is_own(&not_a_socket));
    }
}
