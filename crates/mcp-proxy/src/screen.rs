//! The terminal face on the terminal of this process: how `attach` begins it, and how a proxy that draws
//! has it on a thread of its own beside the data path. There it is a face like any other, which reaches
//! the instance by its socket.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use mcp_control::Address;
use mcp_store::StateDir;
use mcp_transport::http::serve::Parting;
use mcp_transport::http::site::ENDPOINT;
use mcp_tui::library::Library;
use mcp_tui::{Color, Left, Options, Source, Theme};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::oneshot;

use crate::failure::{Failure, exit, quoted};
use crate::report::{self, ColorChoice, Kept, say};
use crate::{face, shelf};

/// Time for the face to leave the terminal once the instance has ended; then its modes are restored without it.
const LEAVES_WITHIN: Duration = Duration::from_secs(2);

/// What a face looks like unless somebody says otherwise.
pub(crate) fn options(color: ColorChoice, doors: Vec<String>) -> Options {
    Options {
        color: match color {
            ColorChoice::Auto => Color::Auto,
            ColorChoice::Always => Color::Always,
            ColorChoice::Never => Color::Never,
        },
        ascii: false,
        theme: Theme::Auto,
        read_only: false,
        keys: None,
        doors,
        who: face::who("tui"),
        own_instance: false,
        coach: None,
    }
}

/// How clients get in, to be copied into their configs.
pub(crate) fn doors(state: &StateDir, short_id: &str, listens_at: SocketAddr) -> Vec<String> {
    let own = StateDir::find(None).is_some_and(|own| own.root() == state.root());
    let program = if own { String::new() } else { format!(" --state-dir {}", quoted(state.root())) };
    vec![format!("mcp-proxy{program} connect {short_id}"), format!("http://{listens_at}{ENDPOINT}")]
}

/// A face that is about to draw. What is said meanwhile is said when it is done.
pub(crate) struct Screen {
    color: ColorChoice,
    state: StateDir,
    library: Arc<dyn Library>,
    kept: Kept,
}

/// A face that draws.
pub(crate) struct Drawn {
    over: Receiver<()>,
    before: Option<Termios>,
}

impl Screen {
    pub(crate) fn new(color: ColorChoice, state: &StateDir) -> Self {
        Self { color, state: state.clone(), library: shelf::library(state), kept: report::keep() }
    }

    /// Draws as soon as `socket` is there. What the user wants in the end comes as a [`Parting`]; nothing
    /// comes if the face fails, and then the proxy goes on without it.
    pub(crate) fn start(
        self,
        socket: oneshot::Receiver<PathBuf>,
        short_id: &str,
        listens_at: SocketAddr,
    ) -> io::Result<(Drawn, oneshot::Receiver<Parting>)> {
        let options = Options { own_instance: true, ..options(self.color, doors(&self.state, short_id, listens_at)) };
        let (over, is_over) = sync_channel(1);
        let (wish, wished) = oneshot::channel();
        let before = tcgetattr(rustix::stdio::stdin()).ok();
        let short_id = short_id.to_owned();
        let (kept, library) = (self.kept, self.library);
        std::thread::Builder::new().name("screen".into()).spawn(move || {
            let _over = Over(over);
            let left = socket.blocking_recv().ok().map(|socket| show(&socket, library, options));
            drop(kept);
            match left.map(|left| left.map(|left| parting(left, &short_id))) {
                Some(Ok(parting)) => drop(wish.send(parting)),
                Some(Err(failure)) => say(&format!(
                    "mcp-proxy: nothing can be drawn: {}; the proxy goes on without, and Ctrl-C ends it",
                    failure.what()
                )),
                // That there is no socket was said, and why.
                None => {}
            }
        })?;
        Ok((Drawn { over: is_over, before }, wished))
    }
}

fn show(socket: &Path, library: Arc<dyn Library>, options: Options) -> Result<Left, Failure> {
    let source = Source::Instance(Address::Socket(socket.to_owned()));
    mcp_tui::run(source, library, options).map_err(|error| Failure::caused_by(exit::CANNOT_RUN, &error))
}

fn parting(left: Left, short_id: &str) -> Parting {
    match left {
        Left::EndWanted => Parting::End,
        Left::Detached | Left::InstanceEnded(_) => Parting::EndUnlessServing {
            stays: format!(
                "{short_id} goes on serving its clients; `mcp-proxy attach {short_id}` shows it again, Ctrl-C ends it"
            ),
        },
    }
}

/// However the thread ends, it is over.
struct Over(SyncSender<()>);

impl Drop for Over {
    fn drop(&mut self) {
        let _ = self.0.try_send(());
    }
}

impl Drawn {
    /// Waits until the face has left the terminal, as it does when the instance has ended. One that does
    /// not is left behind, and the terminal is put in order without it.
    pub(crate) fn end(self) {
        if self.over.recv_timeout(LEAVES_WITHIN).is_ok() {
            return;
        }
        report::say_kept();
        if let Some(before) = self.before {
            let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &before);
        }
    }
}
