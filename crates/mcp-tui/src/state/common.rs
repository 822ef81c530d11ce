//! What all screens share: how the instance stands, who may act, what was said last, what is to be done.

use mcp_control::api::{Direction, Held, Lease, Message, Mode, Outcome, Snapshot, Speaker};

use super::cache::Cache;
use super::editor::Editor;
use super::menu::{Choice, Menu};
use super::palette::Palette;
use super::prompt::{Asking, Prompt};
use crate::command::Screen;
use crate::library::{SessionRef, SessionRow, Work};
use crate::news::{Act, Asker, Effect, Ticket};
use crate::text;

/// Time that a notice to the user stays, in milliseconds.
const WORD_FOR: u64 = 6_000;
/// Clients that are remembered by their names, as an instance tells of them.
const SPEAKERS_MAX: usize = 64;

#[derive(Default)]
pub(crate) struct Common {
    /// Milliseconds since the terminal was opened.
    pub now: u64,
    /// How the instance stands, once it has told.
    pub standing: Option<Box<Snapshot>>,
    /// When that was said: what is held has aged since.
    pub standing_at: u64,
    /// The recording that is shown in place of the instance.
    pub recording: Option<SessionRow>,
    /// We have the lease.
    pub has_lease: bool,
    /// Since when, which tells it from that of somebody who is called the same.
    leased_since: Option<String>,
    is_lease_asked: bool,
    pub read_only: bool,
    /// Why nothing is told at the moment.
    pub lost: Option<String>,
    /// The instance has ended; what it told can still be read.
    pub ended: Option<String>,
    pub word: Option<Word>,
    pub job: Option<Job>,
    pub messages: Cache,
    /// How clients get in, while none has.
    pub doors: Vec<String>,
    pub ascii: bool,
    /// This process carries the messages.
    pub own_instance: bool,
    pub screen: Screen,
    /// What lies over the screen and has the keys.
    pub overlay: Overlay,
    /// A message that some screen wants shown on Traffic.
    pub go_to: Option<u64>,
    /// A session that is being opened for one of its messages.
    pub opening: Option<(String, u64)>,
    /// A request that some screen wants in the repeater.
    pub repeat: Option<Repeat>,
    tickets: u64,
    effects: Vec<Effect>,
}

/// What lies over the screen. At most one thing does.
#[derive(Default)]
pub(crate) enum Overlay {
    #[default]
    None,
    Prompt(Prompt),
    Palette(Palette),
    Menu(Menu),
    Editor(Box<Editor>),
    Help {
        scroll: usize,
    },
}

/// A request to be sent once more, or one like it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repeat {
    /// A request of the client in whose place it is sent.
    pub sequence: u64,
    /// What is sent.
    pub raw: String,
    /// Method and tool, in a few words.
    pub title: String,
    /// Send it at once.
    pub is_sent: bool,
}

/// The work of reading a session file.
pub(crate) const OPENING: &str = "opening";

/// Something said to the user, for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub text: String,
    pub is_bad: bool,
    until: u64,
}

/// Work that takes its time.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub title: String,
    pub work: Work,
    pub since: u64,
}

impl Common {
    pub(crate) fn wish(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Acts on the instance, if that is ours to do; otherwise it is said why not.
    pub(crate) fn act(&mut self, act: Act) {
        match self.cannot_act() {
            Some(words) => self.complain(words),
            None => self.wish(Effect::Act(act)),
        }
    }

    /// Why nothing can be done to the instance.
    pub(crate) fn cannot_act(&self) -> Option<&'static str> {
        if self.recording.is_some() {
            Some("this is a recording; esc leads back to what is live")
        } else if self.ended.is_some() {
            Some("the proxy has ended")
        } else if self.read_only {
            Some("this terminal only watches (--read-only)")
        } else {
            None
        }
    }

    /// Whether the messages of this session are those that are shown.
    pub(crate) fn shows(&self, session: &str) -> bool {
        match (&self.recording, &self.standing) {
            (Some(row), _) => row.id == session,
            (None, Some(standing)) => {
                let instance = &standing.instance;
                instance.id == session || instance.session.as_deref() == Some(session)
            }
            (None, None) => false,
        }
    }

    /// Goes to a message of a session, which is opened if it is not the one that is shown.
    pub(crate) fn open_at(&mut self, session: &str, sequence: u64) {
        if self.shows(session) {
            self.go_to = Some(sequence);
        } else {
            self.opening = Some((session.to_owned(), sequence));
            self.wish(Effect::Open(SessionRef::Stored(session.to_owned())));
            self.say("opening the session");
        }
    }

    /// Asks for a line of text.
    pub(crate) fn prompt(&mut self, asking: Asking, text: &str) {
        self.overlay = Overlay::Prompt(Prompt::new(asking, text));
    }

    pub(crate) fn menu(
        &mut self,
        title: impl Into<String>,
        choices: impl IntoIterator<Item = (char, &'static str, Choice)>,
    ) {
        let choices = choices.into_iter().map(|(letter, label, choice)| (letter, label.to_owned(), choice));
        self.overlay = Overlay::Menu(Menu::new(title, choices));
    }

    /// Work begins that takes its time; it can be cancelled by what is returned.
    pub(crate) fn begin(&mut self, title: &str) -> Option<Work> {
        if let Some(job) = &self.job {
            let words = format!("{} is not done yet; esc ends it", job.title);
            self.complain(words);
            return None;
        }
        let work = Work::default();
        self.job = Some(Job { title: title.to_owned(), work: work.clone(), since: self.now });
        Some(work)
    }

    /// Work of this kind is over.
    pub(crate) fn end(&mut self, title: &str) {
        self.job.take_if(|job| job.title == title);
    }

    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// A ticket that makes all earlier ones of the same asker stale.
    pub(crate) fn ticket(&mut self, asker: Asker) -> Ticket {
        self.tickets += 1;
        Ticket { asker, number: self.tickets }
    }

    pub(crate) fn say(&mut self, text: impl Into<String>) {
        self.word = Some(Word { text: text.into(), is_bad: false, until: self.now + WORD_FOR });
    }

    pub(crate) fn complain(&mut self, text: impl Into<String>) {
        self.word = Some(Word { text: text.into(), is_bad: true, until: self.now + WORD_FOR });
    }

    pub(crate) fn tick(&mut self, now: u64) {
        self.now = now;
        if self.word.as_ref().is_some_and(|word| word.until <= now) {
            self.word = None;
        }
    }

    /// What is held now; nothing while a recording is shown.
    pub(crate) fn held(&self) -> &[Held] {
        match (&self.standing, &self.recording) {
            (Some(standing), None) => &standing.held,
            _ => &[],
        }
    }

    /// What is held for this terminal's decision, whether or not it is shown.
    pub(crate) fn held_by_us(&self) -> &[Held] {
        match &self.standing {
            Some(standing) if self.has_lease => &standing.held,
            _ => &[],
        }
    }

    pub(crate) fn held_message(&self, sequence: u64) -> Option<&Held> {
        self.held().iter().find(|held| held.sequence == sequence)
    }

    /// How long it has been held, in milliseconds.
    pub(crate) fn age(&self, held: &Held) -> u64 {
        held.held_ms + self.now.saturating_sub(self.standing_at)
    }

    /// When it will be let go, in milliseconds.
    pub(crate) fn remaining(&self, held: &Held) -> Option<u64> {
        let since = self.now.saturating_sub(self.standing_at);
        held.released_in_ms.map(|remaining| remaining.saturating_sub(since))
    }

    pub(crate) fn mode(&self) -> Mode {
        self.standing.as_ref().map_or(Mode::Passthrough, |standing| standing.mode)
    }

    /// A message was held. Ages of all are counted from now on.
    pub(crate) fn hold(&mut self, held: Held) {
        let since = self.now.saturating_sub(self.standing_at);
        self.standing_at = self.now;
        let Some(standing) = &mut self.standing else { return };
        for other in &mut standing.held {
            other.held_ms += since;
            other.released_in_ms = other.released_in_ms.map(|remaining| remaining.saturating_sub(since));
        }
        standing.held.retain(|other| other.sequence != held.sequence);
        standing.held.push(held);
    }

    pub(crate) fn let_go(&mut self, outcome: &Outcome) {
        if let Some(standing) = &mut self.standing {
            standing.held.retain(|held| held.sequence != outcome.sequence);
        }
    }

    /// Messages say who speaks; what the instance said of that may be older.
    pub(crate) fn meet(&mut self, message: &Message) {
        let says_who = message.client.is_some() || message.revision.is_some();
        // What passes between a gateway and its servers is of whichever client.
        let (Some(standing), true) = (&mut self.standing, says_who && message.upstream.is_none()) else {
            return;
        };
        let said = Speaker {
            conversation: message.conversation,
            client: message.client.clone(),
            revision: message.revision.clone(),
        };
        let speakers = &mut standing.instance.conversations;
        match speakers.iter().position(|speaker| speaker.conversation == message.conversation) {
            Some(at) => speakers[at] = said,
            None if speakers.len() < SPEAKERS_MAX => speakers.push(said),
            None => {}
        }
    }

    pub(crate) fn stand(&mut self, standing: Box<Snapshot>) {
        self.standing_at = self.now;
        let lease = standing.lease.clone();
        self.standing = Some(standing);
        self.lease(lease);
    }

    /// Somebody has the lease, or nobody has: then it can be ours.
    pub(crate) fn lease(&mut self, lease: Option<Lease>) {
        let is_ours = lease.as_ref().is_some_and(|lease| Some(&lease.since) == self.leased_since.as_ref());
        let is_lost = self.has_lease && !is_ours;
        match &lease {
            Some(lease) if is_lost => {
                self.say(format!("{} has taken control; `T` takes it back", text::clean(&lease.holder)));
            }
            Some(_) => {}
            None if !self.read_only && !self.is_lease_asked => {
                self.is_lease_asked = true;
                self.wish(Effect::Lease { take: false });
            }
            None => {}
        }
        self.has_lease = is_ours;
        if let Some(standing) = &mut self.standing {
            standing.has_face = lease.is_some();
            standing.lease = lease;
        }
    }

    pub(crate) fn leased(&mut self, since: Option<String>) {
        self.is_lease_asked = false;
        self.has_lease = since.is_some();
        self.leased_since = since;
    }
}

/// Which way a message goes, as the seed's list shows it.
pub(crate) fn is_to_server(message: &Message) -> bool {
    message.direction == Direction::ClientToServer
}
