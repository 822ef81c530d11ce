//! Connectors for the servers of a gateway: one starts a command as a process, one speaks HTTP with an address.

use std::cell::{Cell, OnceCell};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use mcp_link::{Alive, Connector, Link};
use mcp_wire::{Framing, Transport};

use crate::child::ServerCommand;
use crate::child::side::{ChildOptions, ChildSide};
use crate::http::http_side::HttpSide;
use crate::http::sse_side::SseSide;
use crate::http::state::HttpState;
use crate::http::target::Target;
use crate::http::tls;
use crate::http::upstream::Upstream;

#[derive(Clone, Debug)]
pub enum ServerTarget {
    Command {
        command: ServerCommand,
        framing: StdioMode,
        shown: String,
    },
    /// `transport` says what is spoken there.
    Url {
        target: Target,
        transport: UrlTransport,
        given: String,
        /// Certificates that are trusted besides those of the system.
        ca_file: Option<PathBuf>,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UrlTransport {
    /// Streamable HTTP, and SSE if the server knows only that.
    #[default]
    Auto,
    StreamableHttp,
    Sse,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StdioMode {
    #[default]
    Auto,
    Newline,
    ContentLength,
}

/// The connector of a server that clients know as `id`. `grace` is what its process gets to end by itself.
pub fn connector(state: &Rc<HttpState>, target: &ServerTarget, id: &Arc<str>, grace: Duration) -> Rc<dyn Connector> {
    match target.clone() {
        ServerTarget::Command { command, framing, .. } => {
            let framing = match framing {
                StdioMode::Auto | StdioMode::Newline => Framing::Line,
                StdioMode::ContentLength => Framing::ContentLength,
            };
            Rc::new(Command {
                command,
                options: ChildOptions { grace, framing: Some(framing), name: Some(Arc::clone(id)) },
            })
        }
        ServerTarget::Url { target, transport, ca_file, .. } => Rc::new(Address {
            state: Rc::clone(state),
            target,
            ca_file,
            transport,
            upstream: OnceCell::new(),
            speaks_sse: Cell::new(transport == UrlTransport::Sse),
            knows_sse: Cell::new(false),
        }),
    }
}

struct Command {
    command: ServerCommand,
    options: ChildOptions,
}

impl Connector for Command {
    fn connect(&self, link: &Rc<Link>, alive: Alive) -> io::Result<()> {
        ChildSide::start(link, &self.command, &self.options, alive)
    }

    fn transport(&self) -> Transport {
        Transport::Stdio
    }

    fn is_process(&self) -> bool {
        true
    }

    fn may_install(&self) -> bool {
        const LAUNCHERS: [&str; 6] = ["npx", "npm", "pnpm", "bunx", "uvx", "pipx"];
        let name = Path::new(&self.command.program).file_name().unwrap_or_default();
        LAUNCHERS.iter().any(|launcher| name == *launcher)
    }
}

struct Address {
    state: Rc<HttpState>,
    target: Target,
    ca_file: Option<PathBuf>,
    transport: UrlTransport,
    upstream: OnceCell<Result<Rc<Upstream>, String>>,
    /// The older transport is spoken at the address.
    speaks_sse: Cell<bool>,
    /// The server has introduced itself over it.
    knows_sse: Cell<bool>,
}

impl Address {
    fn upstream(&self) -> Result<Rc<Upstream>, String> {
        let made = self.upstream.get_or_init(|| {
            let tls = self.target.tls.then(|| tls::client_config(self.ca_file.as_deref())).transpose();
            tls.map(|tls| Upstream::new(self.target.clone(), tls)).map_err(|error| error.to_string())
        });
        made.clone()
    }
}

impl Connector for Address {
    fn connect(&self, link: &Rc<Link>, alive: Alive) -> io::Result<()> {
        let upstream = self.upstream().map_err(io::Error::other)?;
        match self.speaks_sse.get() {
            true => SseSide::start(link, &self.state, upstream, alive),
            false => HttpSide::start(link, &self.state, upstream, alive),
        }
        Ok(())
    }

    fn transport(&self) -> Transport {
        if self.speaks_sse.get() { Transport::Sse } else { Transport::StreamableHttp }
    }

    fn has_one_stream(&self) -> bool {
        self.speaks_sse.get()
    }

    /// The older transport is tried where the newer is refused.
    fn try_another_way(&self) -> bool {
        self.transport == UrlTransport::Auto && !self.speaks_sse.replace(true)
    }

    fn opened(&self) {
        self.knows_sse.set(self.speaks_sse.get());
    }

    /// Next time both ways are tried again.
    fn not_opened(&self) {
        if self.transport == UrlTransport::Auto && !self.knows_sse.get() {
            self.speaks_sse.set(false);
        }
    }
}
