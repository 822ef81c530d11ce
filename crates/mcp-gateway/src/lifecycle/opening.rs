//! How a connection to a server comes about: its process is started or its address reached, it is asked
//! which revisions it knows, and introduces itself. What clients sent meanwhile waits.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use crate::router::ListKind;
use crate::router::era::{self, ClientFacts};
use bytes::Bytes;
use mcp_wire::revision::{Era, Revision};
use mcp_wire::{Kind, Message, reply, scan};
use tokio::time::{Instant, timeout, timeout_at};

use crate::lifecycle::Lost;
use crate::upstream::{Phase, UpstreamConnection};
use mcp_link::{ClientSide, Link};

/// Silence after a request of the newest revision until the older opening is tried.
const SILENT_FOR: Duration = Duration::from_secs(4);

/// Why an attempt led nowhere.
enum Failed {
    /// The server does not know this revision, and said so.
    Unknown(String),
    /// It said nothing, which tells nothing: it may only be slow.
    Silent,
    /// It is not there, or said nothing that tells.
    Gone(String),
    /// It answered with this HTTP status, 401 or 403.
    Login(u16),
}

impl UpstreamConnection {
    /// Opens the connection, and sees to what waits for it.
    pub(crate) async fn open(self: Rc<Self>) {
        self.server.until_alone().await;
        if self.is_over() {
            return;
        }
        let patience = self.server.settings.startup_timeout;
        let gateway = self.server.gateway.upgrade();
        // Launchers that install at the same time can break what they share. It heals when they come one by one.
        let _turn = match &gateway {
            Some(gateway) if self.server.has_failed() && self.server.settings.target.may_install() => {
                Some(gateway.installs.lock().await)
            }
            _ => None,
        };
        let introduced = timeout(patience, async {
            let introduction = self.introduce().await?;
            self.look_behind(introduction).await.map_err(|why| Lost::NotOpened { why })
        });
        let introduced = introduced.await;
        if self.is_over() {
            return;
        }
        let lost = match introduced {
            Ok(Ok(introduction)) => return self.is_opened(introduction),
            Ok(Err(lost)) => lost,
            Err(_) => {
                let why = format!("it did not introduce itself within {} s", patience.as_secs_f32());
                Lost::NotOpened { why }
            }
        };
        self.server.settings.target.not_opened();
        self.stop(lost);
    }

    fn is_opened(&self, introduction: Bytes) {
        let now = Instant::now();
        let interval = self.server.gateway.upgrade().and_then(|gateway| gateway.settings.healthcheck_interval);
        self.health.begin(now + interval.unwrap_or_default());
        *self.introduction.borrow_mut() = Some(introduction);
        self.server.settings.target.opened();
        self.used.set(now);
        self.ready.set(Some(now));
        self.phase.set(Phase::Ready);
        self.server.opened();
        self.server.debug(match self.era.get() {
            Era::Legacy => "is ready, after a handshake",
            Era::Modern => "is ready, without a handshake",
        });
        self.subscribe_anew();
        self.changed.notify_waiters();
        self.pump();
        // Who came before it, or knew the one before, is told that there is more.
        let before = self.inherited.take();
        for kind in ListKind::ALL.into_iter().filter(|kind| self.offers(*kind)) {
            match &before {
                None => self.list_changed(kind),
                Some(lists) => self.look_for_changes(kind, lists),
            }
        }
    }

    /// Has the server introduce itself, in the revision of whoever needs it if it knows that.
    async fn introduce(self: &Rc<Self>) -> Result<Bytes, Lost> {
        let mut why = String::new();
        for era in self.server.eras(self.key.era) {
            if self.link().is_none_or(|link| link.is_over()) {
                self.server.until_alone().await;
                self.connect().map_err(|error| Lost::NotOpened { why: error.to_string() })?;
            }
            let introduced = self.introduce_in(era).await;
            if self.is_over() {
                return Err(Lost::NotOpened { why: "it was stopped before it introduced itself".into() });
            }
            match introduced {
                Ok(introduction) => {
                    self.era.set(era);
                    self.server.learn_era(era, true);
                    return Ok(introduction);
                }
                Err(Failed::Unknown(what)) => {
                    self.server.learn_era(era, false);
                    why = what;
                    self.begin_anew();
                }
                Err(Failed::Silent) => {
                    why = "it says nothing to server/discover".into();
                    self.begin_anew();
                }
                // A server may end because it was asked in a way that it does not know.
                Err(Failed::Gone(what)) if era == Era::Modern && self.is_process() => {
                    why = what;
                    self.begin_anew();
                }
                Err(Failed::Gone(why)) => return Err(Lost::NotOpened { why }),
                Err(Failed::Login(status)) => return Err(Lost::NeedsLogin { status }),
            }
        }
        Err(Lost::NotOpened { why })
    }

    /// A server with an address is asked in another way on a connection that knows nothing of the first.
    fn begin_anew(&self) {
        if !self.is_process()
            && let Some(link) = self.link.take()
        {
            link.end();
        }
    }

    pub(crate) fn is_process(&self) -> bool {
        self.server.settings.target.is_process()
    }

    async fn introduce_in(self: &Rc<Self>, era: Era) -> Result<Bytes, Failed> {
        match era {
            Era::Modern => self.discover().await,
            Era::Legacy => self.initialize().await,
        }
    }

    async fn discover(&self) -> Result<Bytes, Failed> {
        let (id, answer) = self.ask_as("server/discover", None, Era::Modern);
        let patience = if self.server.eras(Era::Modern).len() > 1 { SILENT_FOR } else { Duration::MAX };
        let answer = match timeout_at(far_or_in(patience), answer).await {
            Ok(answer) => answer.map_err(|_| self.gone())?,
            Err(_) => {
                drop(self.calls.borrow_mut().take(id));
                return Err(Failed::Silent);
            }
        };
        match ErrorCode::of(&answer) {
            None => Ok(answer),
            Some(ErrorCode { login: Some(status), .. }) => Err(Failed::Login(status)),
            // It knows the revision, and something else is wrong.
            Some(code) if code.is_modern() => Err(Failed::Gone(code.text)),
            Some(code) if code.is_about_the_way() => Err(Failed::Gone(code.text)),
            Some(code) => Err(Failed::Unknown(code.text)),
        }
    }

    async fn initialize(self: &Rc<Self>) -> Result<Bytes, Failed> {
        loop {
            let params = initialize_params(&self.facts);
            let (_, answer) = self.ask_as("initialize", Some(&params), Era::Legacy);
            let answer = answer.await.map_err(|_| self.gone())?;
            let Some(code) = ErrorCode::of(&answer) else {
                self.tell(Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#));
                return Ok(answer);
            };
            if code.is_refused_post() && self.server.settings.target.try_another_way() {
                self.begin_anew();
                self.connect().map_err(|error| Failed::Gone(error.to_string()))?;
                continue;
            }
            return Err(match code.login {
                Some(status) => Failed::Login(status),
                None if code.is_about_the_way() => Failed::Gone(code.text),
                None => Failed::Unknown(code.text),
            });
        }
    }

    fn gone(&self) -> Failed {
        Failed::Gone(self.last_status.take().unwrap_or_else(|| "it ended before it introduced itself".into()))
    }

    /// Starts the process, or makes ready what speaks with the address.
    fn connect(self: &Rc<Self>) -> io::Result<()> {
        let gateway = self.server.gateway.upgrade().filter(|_| !self.is_over());
        let Some(gateway) = gateway else { return Err(io::ErrorKind::NotConnected.into()) };
        let runtime = &gateway.runtime;
        let conversation = runtime.look(|pipeline| pipeline.begin_leg(self.server.settings.id.clone()));
        let client: Rc<dyn ClientSide> = Rc::<Self>::clone(self);
        let link = Link::new(runtime, conversation, client);
        *self.link.borrow_mut() = Some(Rc::clone(&link));
        self.server.settings.target.connect(&link, Box::new(gateway.counted(&self.server)))
    }

    /// Whether the server says that it has such lists.
    pub(crate) fn offers(&self, kind: ListKind) -> bool {
        self.declares(&[kind.capability()])
    }

    /// Whether the server says that it tells when such a list changes.
    pub(crate) fn tells_changes_of(&self, kind: ListKind) -> bool {
        self.capability(&[kind.capability(), "listChanged"]).as_deref() == Some(b"true")
    }

    pub(crate) fn declares(&self, path: &[&str]) -> bool {
        self.capability(path).is_some_and(|value| &*value != b"false" && &*value != b"null")
    }

    fn capability(&self, path: &[&str]) -> Option<Bytes> {
        let introduction = self.introduction.borrow();
        let introduction = introduction.as_ref()?;
        let path = ["result", "capabilities"].into_iter().chain(path.iter().copied());
        let span = scan::member_at(introduction, path)?;
        Some(introduction.slice(span.range()))
    }
}

fn far_or_in(patience: Duration) -> Instant {
    /// The longest wait for an opening, so that any configured time can be added to the clock.
    const FAR: Duration = Duration::from_secs(24 * 60 * 60);
    Instant::now() + patience.min(FAR)
}

/// The opening of a client, as its server is to see it.
fn initialize_params(facts: &ClientFacts) -> String {
    let revision = if facts.revision.era() == Era::Legacy { facts.revision } else { Revision::NEWEST_LEGACY };
    let capabilities = era::declared_to_legacy(facts);
    let (capabilities, info) = (String::from_utf8_lossy(&capabilities), String::from_utf8_lossy(&facts.info));
    format!("{{\"protocolVersion\":\"{}\",\"capabilities\":{capabilities},\"clientInfo\":{info}}}", revision.as_str())
}

/// What an error that a server answered with says.
struct ErrorCode {
    code: i64,
    status: Option<u16>,
    /// The status, if it asks for a login.
    login: Option<u16>,
    text: String,
}

impl ErrorCode {
    fn of(answer: &Bytes) -> Option<Self> {
        if Message::new(answer.clone()).glance().kind != Kind::Error {
            return None;
        }
        let member = |name| scan::member_at(answer, ["error", name]).map(|span| &answer[span.range()]);
        let code = member("code").and_then(|code| std::str::from_utf8(code).ok()?.parse().ok()).unwrap_or_default();
        let said = member("message").and_then(scan::decode_string).unwrap_or_default();
        let status = reply::upstream_status(answer);
        let said: String = said.chars().take(200).collect();
        // What we said ourselves needs no more words.
        let text = match said.strip_prefix("mcp-proxy: ") {
            Some(own) if reply::is_own_failure(code) || status.is_some() => own.to_owned(),
            _ => format!("it answered with error {code}: {said}"),
        };
        Some(Self { code, status, login: status.filter(|_| reply::is_login(code)), text })
    }

    /// Only a server of the newest revision says this.
    fn is_modern(&self) -> bool {
        reply::is_modern_code(self.code)
    }

    /// Nothing was said of revisions: the server could not be reached, or wants something else first.
    fn is_about_the_way(&self) -> bool {
        match self.status {
            Some(status) => !(400..500).contains(&status) || matches!(status, 401 | 403 | 407 | 429),
            None => reply::is_own_failure(self.code),
        }
    }

    /// The address takes no messages, as one of the older transport would not.
    fn is_refused_post(&self) -> bool {
        matches!(self.status, Some(400 | 404 | 405 | 406 | 410 | 501))
    }
}
