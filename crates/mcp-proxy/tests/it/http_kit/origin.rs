//! A server that does what a test tells it to, one request at a time, or on threads of its own.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use super::wire::{Head, Wire, wait_for_any};

pub struct Origin {
    listener: TcpListener,
    open: Connections,
    accepted: Mutex<usize>,
}

/// Connections that are open, by number.
type Connections = Arc<Mutex<Vec<(usize, Arc<Mutex<Wire>>)>>>;

/// A request that is to be answered, with the connection it came on.
pub struct Call {
    pub head: Head,
    pub body: Vec<u8>,
    /// Whether the body ended as it should.
    pub is_whole: bool,
    /// Which connection it came on, counted from 0.
    pub connection: usize,
    wire: Arc<Mutex<Wire>>,
    open: Connections,
}

impl Origin {
    pub fn start() -> Self {
        Self::on(TcpListener::bind(("127.0.0.1", 0)).expect("there is a free port"))
    }

    pub fn on(listener: TcpListener) -> Self {
        Self { listener, open: Arc::default(), accepted: Mutex::new(0) }
    }

    pub fn port(&self) -> u16 {
        self.listener.local_addr().expect("it is bound").port()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port())
    }

    /// How many connections were opened so far.
    pub fn connections(&self) -> usize {
        *self.accepted.lock().unwrap()
    }

    /// The next connection, of which nothing was read.
    #[track_caller]
    pub fn accept(&self) -> TcpStream {
        wait_for_any(&[self.listener.as_fd()], "the proxy connects");
        let (tcp, _) = self.listener.accept().expect("a connection is there");
        *self.accepted.lock().unwrap() += 1;
        tcp
    }

    /// The next request on any connection, head and body. Those that break off are passed over.
    #[track_caller]
    pub fn call(&self) -> Call {
        loop {
            let mut call = self.call_head();
            call.read_body();
            if call.is_whole {
                return call;
            }
            call.close();
        }
    }

    /// The next request on any connection, of which only the head was read.
    #[track_caller]
    pub fn call_head(&self) -> Call {
        loop {
            let (connection, wire) = self.next_wire();
            let open = Arc::clone(&self.open);
            if let Some(call) = Call::read_head(connection, wire, open) {
                return call;
            }
            self.open.lock().unwrap().retain(|(number, _)| *number != connection);
        }
    }

    /// A connection that has something to say, new or not.
    #[track_caller]
    fn next_wire(&self) -> (usize, Arc<Mutex<Wire>>) {
        let open = self.open.lock().unwrap().clone();
        if let Some(pipelined) = open.iter().find(|(_, wire)| wire.lock().unwrap().has_bytes()) {
            return pipelined.clone();
        }
        let wires: Vec<_> = open.iter().map(|(_, wire)| wire.lock().unwrap().tcp().try_clone().unwrap()).collect();
        let mut sockets = vec![self.listener.as_fd()];
        sockets.extend(wires.iter().map(AsFd::as_fd));
        match wait_for_any(&sockets, "a request reaches the server").checked_sub(1) {
            Some(at) => open[at].clone(),
            None => {
                let opened = (self.connections(), Arc::new(Mutex::new(Wire::new(self.accept()))));
                self.open.lock().unwrap().push(opened.clone());
                opened
            }
        }
    }

    /// Closes every connection.
    pub fn close_all(&self) {
        for (_, wire) in self.open.lock().unwrap().drain(..) {
            let _ = wire.lock().unwrap().tcp().shutdown(Shutdown::Both);
        }
    }

    /// Asserts that no request is there. To be asked after something that comes later was seen.
    #[track_caller]
    pub fn saw_nothing(&self) {
        self.listener.set_nonblocking(true).expect("a socket takes options");
        let accepted = self.listener.accept();
        self.listener.set_nonblocking(false).expect("a socket takes options");
        assert!(
            accepted.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock),
            "a connection reached the server"
        );
        for (_, wire) in self.open.lock().unwrap().iter() {
            let wire = wire.lock().unwrap();
            wire.tcp().set_nonblocking(true).expect("a socket takes options");
            let peeked = wire.tcp().peek(&mut [0]);
            wire.tcp().set_nonblocking(false).expect("a socket takes options");
            assert!(!peeked.is_ok_and(|count| count > 0) && !wire.has_bytes(), "a request reached the server");
        }
    }

    /// Lets `answer` have every request, each connection on a thread of its own.
    pub fn serve(self, answer: impl Fn(&mut Call) + Send + Sync + 'static) -> Serving {
        let url = self.url("");
        let listener = self.listener.try_clone().expect("a socket can be duplicated");
        let open: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let threads = {
            let (open, answer) = (Arc::clone(&open), Arc::new(answer));
            std::thread::spawn(move || {
                let mut threads = Vec::new();
                while let Ok((tcp, _)) = self.listener.accept() {
                    open.lock().unwrap().push(tcp.try_clone().expect("a socket can be duplicated"));
                    let (answer, connection) = (Arc::clone(&answer), threads.len());
                    threads.push(std::thread::spawn(move || serve_connection(Wire::new(tcp), connection, &*answer)));
                }
                threads
            })
        };
        Serving { url, listener, open, threads: Some(threads) }
    }
}

fn serve_connection(wire: Wire, connection: usize, answer: &impl Fn(&mut Call)) {
    let wire = Arc::new(Mutex::new(wire));
    while let Some(mut call) = Call::read_head(connection, Arc::clone(&wire), Connections::default()) {
        call.read_body();
        answer(&mut call);
    }
}

/// A server on threads of its own. They end with it.
pub struct Serving {
    url: String,
    listener: TcpListener,
    open: Arc<Mutex<Vec<TcpStream>>>,
    threads: Option<JoinHandle<Vec<JoinHandle<()>>>>,
}

impl Serving {
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    pub fn connections(&self) -> usize {
        self.open.lock().unwrap().len()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        let accepting = self.threads.take().expect("it is taken once").join();
        for tcp in self.open.lock().unwrap().iter() {
            let _ = tcp.shutdown(Shutdown::Both);
        }
        let results: Vec<_> = accepting.into_iter().flatten().map(JoinHandle::join).collect();
        if !std::thread::panicking() {
            assert!(results.iter().all(Result::is_ok), "the server failed");
        }
    }
}

impl Call {
    /// What was asked for, as in `POST /mcp`.
    pub fn asked(&self) -> String {
        self.head.start().trim_end_matches(" HTTP/1.1").to_owned()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    fn read_head(connection: usize, wire: Arc<Mutex<Wire>>, open: Connections) -> Option<Self> {
        let head = {
            let mut wire = wire.lock().unwrap();
            let head = wire.head()?;
            wire.expect_body(head.request_body());
            head
        };
        Some(Self { head, body: Vec::new(), is_whole: false, connection, wire, open })
    }

    #[track_caller]
    pub fn read_body(&mut self) {
        let (body, is_whole) = self.wire().whole_body();
        (self.body, self.is_whole) = (body, is_whole);
    }

    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().unwrap()
    }

    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.wire().send(bytes.as_ref());
    }

    /// Sends to a proxy that may have had enough already.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.wire().try_send(bytes.as_ref())
    }

    /// Waits until the proxy has closed this connection.
    #[track_caller]
    pub fn until_closed(&mut self) {
        self.wire().until_closed();
    }

    /// Breaks the connection off, for a server that has every request from the same hand.
    pub fn break_off(&mut self) {
        let _ = self.wire().tcp().shutdown(Shutdown::Both);
    }

    /// Closes the connection.
    pub fn close(self) {
        self.forget();
        let _ = self.wire().tcp().shutdown(Shutdown::Both);
    }

    /// Closes it the hard way: the proxy gets a reset instead of an end.
    pub fn reset(self) {
        self.forget();
        let linger = Some(std::time::Duration::ZERO);
        rustix::net::sockopt::set_socket_linger(self.wire().tcp(), linger).expect("a socket takes options");
    }

    fn forget(&self) {
        self.open.lock().unwrap().retain(|(number, _)| *number != self.connection);
    }
}
