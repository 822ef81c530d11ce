//! Which part of a session is exported. Which messages fit is found out in a pass of its own, because
//! an answer can make its request worth having, and that stands before it.

use std::collections::{BTreeMap, HashSet};

use super::{ExportError, Stopped};
use crate::exchange::SessionEntry;
use crate::session::Session;
use crate::story::{MessageKind, Story, Told};

/// Requests of which it is remembered in which exchange they came, until they are answered.
const OPEN_MAX: usize = 65_536;

/// What to take of a session.
#[derive(Default)]
pub struct Chosen {
    /// Only what belongs to this conversation.
    pub conversation: Option<u32>,
    /// Only these of its messages.
    pub picked: Option<Picked>,
}

/// Messages that fit what somebody asked for.
#[derive(Default)]
pub struct Picked {
    /// A bit for each message, by its place in the session. A file may number its messages as it likes.
    fits: Vec<u64>,
    /// The sequences of requests that fit or whose answers do, if calls are wanted whole.
    calls: Option<HashSet<u64>>,
    exchanges: HashSet<u64>,
}

impl Picked {
    /// Looks through the session. With `whole_calls` a request and its answer are picked together.
    /// `None` if `go_on` said no before the end.
    pub fn look(
        session: &Session,
        whole_calls: bool,
        mut fits: impl FnMut(&Told) -> bool,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Option<Self>, ExportError> {
        let mut picked = Self { calls: whole_calls.then(HashSet::new), ..Self::default() };
        let mut story = Story::of(&session.summary().header);
        let mut asked_in = BTreeMap::new();
        let mut place = 0;
        let read = session.for_each_entry(|entry| {
            if !go_on(place as u64) {
                return Err(Stopped::Asked);
            }
            let Some(told) = story.hear(entry) else { return Ok(()) };
            let asked_there = told.answers.and_then(|sequence| asked_in.remove(&sequence));
            if fits(&told) {
                picked.add(place, &told);
                picked.exchanges.extend(asked_there.filter(|_| whole_calls));
            } else if picked.takes_call(&told) {
                picked.exchanges.extend(told.recorded.exchange);
            }
            if let Some(exchange) = told.recorded.exchange.filter(|_| told.kind == MessageKind::Request) {
                asked_in.insert(told.recorded.sequence, exchange);
                if asked_in.len() > OPEN_MAX {
                    asked_in.pop_first();
                }
            }
            place += 1;
            Ok(())
        });
        match read {
            Ok(()) => Ok(Some(picked)),
            Err(Stopped::Asked) => Ok(None),
            Err(Stopped::Failed(error)) => Err(error),
        }
    }

    /// How many messages fit, their partners aside.
    pub fn count(&self) -> u64 {
        self.fits.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    fn add(&mut self, place: usize, told: &Told) {
        if self.fits.len() <= place / 64 {
            self.fits.resize(place / 64 + 1, 0);
        }
        self.fits[place / 64] |= 1 << (place % 64);
        self.exchanges.extend(told.recorded.exchange);
        if let Some(calls) = &mut self.calls {
            let request = (told.kind == MessageKind::Request).then_some(told.recorded.sequence);
            calls.extend(request.or(told.answers));
        }
    }

    fn takes(&self, place: u64, told: &Told) -> bool {
        let fits = usize::try_from(place).ok().and_then(|place| Some(self.fits.get(place / 64)? >> (place % 64) & 1));
        fits == Some(1) || self.takes_call(told)
    }

    fn takes_call(&self, told: &Told) -> bool {
        let call = match told.kind {
            MessageKind::Request => Some(told.recorded.sequence),
            _ => told.answers,
        };
        self.calls.as_ref().is_some_and(|calls| call.is_some_and(|call| calls.contains(&call)))
    }
}

impl Chosen {
    pub fn takes(&self, place: u64, told: &Told) -> bool {
        self.is_in_conversation(told.recorded.conversation)
            && self.picked.as_ref().is_none_or(|picked| picked.takes(place, told))
    }

    /// An exchange without messages is only there if everything is.
    pub fn takes_exchange(&self, entry: &SessionEntry) -> bool {
        let number = match entry {
            SessionEntry::Request(mark, _) | SessionEntry::Answer(mark, _) | SessionEntry::End(mark, _) => {
                Some(mark.exchange)
            }
            SessionEntry::Message(message) => message.exchange,
            SessionEntry::Amendment(_) => None,
        };
        self.is_in_conversation(entry.conversation())
            && self.picked.as_ref().is_none_or(|picked| number.is_some_and(|number| picked.exchanges.contains(&number)))
    }

    fn is_in_conversation(&self, conversation: u32) -> bool {
        self.conversation.is_none_or(|wanted| wanted == conversation)
    }
}
