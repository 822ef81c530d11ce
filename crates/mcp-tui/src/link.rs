//! Fetches and does what the state wants, and brings what happens: the instance through its control
//! API, recordings through the library. Nothing here waits for a drawing, and no drawing for it.

mod act;
mod listen;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mcp_control::api::{Hand, LeaseRequest};
use mcp_control::{Address, Client, ClientError};
use tokio::sync::{mpsc, watch};

use crate::library::{Library, Recording, SessionRef, Trouble, Work};
use crate::news::{Effect, News, Refused};
use crate::text;

/// Events that wait to be shown; a sender that finds the queue full waits.
const NEWS_MAX: usize = 256;
/// Hits of a search, and decisions of the audit, in one list.
const LISTED_MAX: usize = 1_000;

pub(crate) struct Link {
    instance: Option<Instance>,
    library: Arc<dyn Library>,
    /// What is shown in place of the instance.
    recording: Option<Arc<dyn Recording>>,
    /// Counts what was shown: an answer that is late is about something else.
    shown: Arc<AtomicU64>,
    news: mpsc::Sender<News>,
}

#[derive(Clone)]
struct Instance {
    client: Client,
    who: String,
    /// Which messages are told of, and the lease by which we are there.
    wanted: watch::Sender<Wanted>,
    lease: Arc<Mutex<Option<String>>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Wanted {
    filter: Option<String>,
    lease: Option<String>,
}

impl Link {
    pub(crate) fn new(
        address: Option<Address>,
        library: Arc<dyn Library>,
        who: String,
    ) -> (Self, mpsc::Receiver<News>) {
        let (news, heard) = mpsc::channel(NEWS_MAX);
        let instance = address.map(|address| {
            let (wanted, watched) = watch::channel(Wanted::default());
            let client = Client::new(address);
            let instance = Instance { client, who, wanted, lease: Arc::default() };
            tokio::spawn(listen::listen(instance.clone(), watched, news.clone()));
            instance
        });
        (Self { instance, library, recording: None, shown: Arc::default(), news }, heard)
    }

    pub(crate) fn has_instance(&self) -> bool {
        self.instance.is_some()
    }

    /// From now on pages are those of a recording, or of the instance again.
    pub(crate) fn show(&mut self, recording: Option<Arc<dyn Recording>>) {
        self.recording = recording;
        self.shown.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Watch { filter } => self.watch(filter),
            Effect::Page { ticket, query } => {
                let the_same = query.clone();
                self.read(
                    move |client| async move { News::Page(ticket, client.messages(&query).await.map_err(words)) },
                    move |recording| News::Page(ticket, recording.page(&the_same)),
                );
            }
            Effect::Message { sequence } => self.read(
                move |client| async move {
                    News::Message(sequence, client.message(sequence).await.map(Box::new).map_err(words))
                },
                move |recording| News::Message(sequence, recording.message(sequence).map(Box::new)),
            ),
            Effect::Exchange { sequence } => self.read(
                move |client| async move { News::Exchange(sequence, client.exchange(sequence).await.map_err(words)) },
                move |recording| News::Exchange(sequence, recording.exchange(sequence)),
            ),
            Effect::Explain { sequence } => self.read(
                move |client| async move { News::Explanation(sequence, client.explain(sequence).await.map_err(words)) },
                move |_| News::Explanation(sequence, Err("rules are explained while the proxy runs".into())),
            ),
            Effect::Policy => self.ask(|client| async move { News::Policy(client.policy().await.map_err(words)) }),
            Effect::Servers => {
                self.ask(|client| async move { News::Servers(client.servers().await.map_err(refused)) });
            }
            Effect::Lease { take } => self.take_lease(take),
            Effect::Act(act) => {
                let Some(instance) = self.instance.clone() else { return };
                let (client, news) = (instance.acting(), self.news.clone());
                tokio::spawn(async move {
                    let acted = act::carry_out(&client, &act).await.map_err(refused);
                    let _ = news.send(News::Acted(act, acted)).await;
                });
            }
            Effect::Sessions => self.look(|library| News::Sessions(library.sessions())),
            Effect::Search { words } => self.look(move |library| {
                let hits = library.search(&words, LISTED_MAX);
                News::Hits(words, hits)
            }),
            Effect::Open(session) => self.look(move |library| {
                let opened = library.open(&session, &Work::default());
                News::Opened(session, opened)
            }),
            Effect::Load(file, work) => {
                self.look(move |library| {
                    let session = SessionRef::File(file);
                    let opened = library.open(&session, &work);
                    News::Opened(session, opened)
                });
            }
            Effect::Export(export, work) => self.look(move |library| News::Exported(library.export(&export, &work))),
            Effect::Compare(left, right, work) => {
                self.look(move |library| News::Compared(library.compare(&left, &right, &work)));
            }
            Effect::Audit { filter } => {
                self.look(move |library| {
                    let decisions = library.audit(filter.as_deref(), LISTED_MAX);
                    News::Audit(filter, decisions)
                });
            }
            // What is the terminal's.
            Effect::Leave
            | Effect::Copy(_)
            | Effect::Editor { .. }
            | Effect::Keep { .. }
            | Effect::Redraw
            | Effect::Suspend
            | Effect::End(_) => {}
        }
    }

    fn watch(&self, filter: Option<String>) {
        if let Some(instance) = &self.instance {
            instance.wanted.send_if_modified(|wanted| {
                let is_other = wanted.filter != filter;
                wanted.filter = filter;
                is_other
            });
        }
    }

    /// Asks the instance, or the recording that is shown in its place.
    fn read<F>(
        &self,
        of_instance: impl FnOnce(Client) -> F + Send + 'static,
        of_recording: impl FnOnce(&dyn Recording) -> News + Send + 'static,
    ) where
        F: Future<Output = News> + Send + 'static,
    {
        let Some(recording) = self.recording.clone() else { return self.ask(of_instance) };
        let (news, still) = (self.news.clone(), self.still_shown());
        tokio::task::spawn_blocking(move || {
            let answer = of_recording(&*recording);
            if still() {
                let _ = news.blocking_send(answer);
            }
        });
    }

    fn ask<F>(&self, question: impl FnOnce(Client) -> F + Send + 'static)
    where
        F: Future<Output = News> + Send + 'static,
    {
        let Some(instance) = &self.instance else { return };
        let (client, news, still) = (instance.client.clone(), self.news.clone(), self.still_shown());
        tokio::spawn(async move {
            let answer = question(client).await;
            if still() {
                let _ = news.send(answer).await;
            }
        });
    }

    /// Whether what is shown now is shown then.
    fn still_shown(&self) -> impl Fn() -> bool + Send + 'static {
        let (shown, now) = (Arc::clone(&self.shown), self.shown.load(Ordering::Relaxed));
        move || shown.load(Ordering::Relaxed) == now
    }

    /// Asks the library, which may take its time.
    fn look(&self, question: impl FnOnce(&dyn Library) -> News + Send + 'static) {
        let (library, news) = (Arc::clone(&self.library), self.news.clone());
        tokio::task::spawn_blocking(move || {
            let _ = news.blocking_send(question(&*library));
        });
    }

    fn take_lease(&self, take: bool) {
        let Some(instance) = self.instance.clone() else { return };
        let news = self.news.clone();
        tokio::spawn(async move {
            let request = LeaseRequest { holder: instance.who.clone(), take };
            let leased = instance.client.take_lease(&request).await.map(|grant| {
                instance.keep(grant.token);
                grant.since
            });
            let _ = news.send(News::Leased(leased.map_err(refused))).await;
        });
    }

    /// Opens what was named on the command line.
    pub(crate) fn open(&mut self, session: SessionRef) {
        self.carry_out(Effect::Open(session));
    }

    /// Lets go of the lease, so that what is held need not wait until we are missed.
    pub(crate) async fn leave(&self) {
        if let Some(instance) = &self.instance
            && instance.token().is_some()
        {
            let _ =
                tokio::time::timeout(std::time::Duration::from_millis(300), instance.acting().give_up_lease()).await;
        }
    }
}

impl Instance {
    fn token(&self) -> Option<String> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn keep(&self, token: String) {
        *self.lease.lock().unwrap_or_else(PoisonError::into_inner) = Some(token.clone());
        self.wanted.send_modify(|wanted| wanted.lease = Some(token));
    }

    /// It is somebody else's now, or has lapsed.
    fn forget_lease(&self) {
        *self.lease.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.wanted.send_modify(|wanted| wanted.lease = None);
    }

    fn acting(&self) -> Client {
        self.client.clone().acting_as(Hand { lease: self.token(), by: Some(self.who.clone()), take: false })
    }
}

/// What an instance or the way to it says, for people.
fn words(error: ClientError) -> Trouble {
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        words += &format!(": {error}");
        cause = error.source();
    }
    text::clean(&words).into_owned()
}

fn refused(error: ClientError) -> Refused {
    let code = match &error {
        ClientError::Refused { fault, .. } => Some(fault.code),
        _ => None,
    };
    Refused { code, words: words(error) }
}
