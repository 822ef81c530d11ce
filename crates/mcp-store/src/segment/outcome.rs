//! What became of a message after it was recorded: how a hold of it ended, and what somebody wrote
//! beside it. Records of their own, since a segment is only ever appended to; readers merge them.

use bytes::Bytes;
use mcp_wire::OutcomeKind;
use serde::{Deserialize, Serialize};

/// The name of the person who decided and the reason are a few words; a longer text is cut.
const WORDS_BYTES_MAX: usize = 256;
/// A mark is a sign or a word that lists have room for; a note is a text typed beside a message.
pub const MARK_BYTES_MAX: usize = 64;
pub const NOTE_BYTES_MAX: usize = 4 * 1024;
/// What stands before the texts: the kind, whether there is an edited message, two lengths, the time.
const FIXED_LEN: usize = 14;

/// Their numbers in segments, from 1, which stay as they are.
const NUMBERED: [OutcomeKind; 8] = [
    OutcomeKind::Forwarded,
    OutcomeKind::Modified,
    OutcomeKind::Dropped,
    OutcomeKind::Answered,
    OutcomeKind::Refused,
    OutcomeKind::Cancelled,
    OutcomeKind::Released,
    OutcomeKind::Discarded,
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub what: OutcomeKind,
    /// Who decided it; empty if nobody did.
    pub by: String,
    /// In words, where the kind does not say it all.
    pub why: String,
    pub held_ns: u64,
    /// What went on, if it was not what came.
    pub edited: Option<Bytes>,
}

impl Outcome {
    /// What stands before the edited message.
    pub(super) fn encode(&self) -> Vec<u8> {
        let (by, why) = (cut(&self.by, WORDS_BYTES_MAX), cut(&self.why, WORDS_BYTES_MAX));
        let what = Self::number(self.what);
        let mut bytes = vec![what, u8::from(self.edited.is_some())];
        bytes.extend((by.len() as u16).to_le_bytes());
        bytes.extend((why.len() as u16).to_le_bytes());
        bytes.extend(self.held_ns.to_le_bytes());
        bytes.extend(by.bytes().chain(why.bytes()));
        bytes
    }

    fn number(what: OutcomeKind) -> u8 {
        let at = NUMBERED.iter().position(|kind| *kind == what).expect("all of them are listed");
        at as u8 + 1
    }

    /// `None` if no version of this program wrote this, or one that knows more kinds.
    pub fn decode(payload: &Bytes) -> Option<Self> {
        let fixed: &[u8; FIXED_LEN] = payload.first_chunk()?;
        let what = *NUMBERED.get(usize::from(fixed[0]).checked_sub(1)?)?;
        let length = |at: usize| usize::from(u16::from_le_bytes([fixed[at], fixed[at + 1]]));
        let why_at = FIXED_LEN + length(2);
        let edited_at = why_at + length(4);
        let text = |from: usize, to: usize| Some(String::from_utf8_lossy(payload.get(from..to)?).into_owned());
        let (by, why) = (text(FIXED_LEN, why_at)?, text(why_at, edited_at)?);
        let held_ns = u64::from_le_bytes(*fixed[6..].first_chunk()?);
        let edited = (fixed[1] & 1 != 0).then(|| payload.slice(edited_at..));
        Some(Self { what, by, why, held_ns, edited })
    }
}

/// What somebody wrote beside a message. The last one of a message counts, and all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Mark {
    pub(super) fn encode(&self) -> Vec<u8> {
        let text = |text: &Option<String>, max| text.as_deref().map(|text| cut(text, max).to_owned());
        let short = Self { mark: text(&self.mark, MARK_BYTES_MAX), note: text(&self.note, NOTE_BYTES_MAX) };
        serde_json::to_vec(&short).expect("strings can always be written")
    }

    /// `None` if no version of this program wrote this.
    pub fn decode(payload: &[u8]) -> Option<Self> {
        serde_json::from_slice(payload).ok()
    }
}

fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn payload(outcome: &Outcome) -> Bytes {
        [&outcome.encode()[..], outcome.edited.as_deref().unwrap_or_default()].concat().into()
    }

    #[test]
    fn every_kind_has_its_number() {
        for (at, what) in NUMBERED.into_iter().enumerate() {
            assert_eq!(usize::from(Outcome::number(what)), at + 1);
        }
        assert!(OutcomeKind::ALL.iter().all(|what| NUMBERED.contains(what)));
        assert_eq!(Outcome::decode(&Bytes::from(vec![9; 40])), None, "a kind of later");
        assert_eq!(Outcome::decode(&Bytes::from(vec![0; 40])), None);
    }

    #[test]
    fn an_edited_message_may_be_empty_or_not_there() {
        for edited in [None, Some(Bytes::new()), Some(Bytes::from_static(b"{}"))] {
            let what = OutcomeKind::Modified;
            let outcome = Outcome { what, by: "tui".into(), why: String::new(), held_ns: 7, edited };
            assert_eq!(Outcome::decode(&payload(&outcome)), Some(outcome));
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let long = "é".repeat(NOTE_BYTES_MAX) + "x";
        let outcome =
            Outcome { what: OutcomeKind::Dropped, by: long.clone(), why: long.clone(), held_ns: 1, edited: None };
        let read = Outcome::decode(&payload(&outcome)).unwrap();
        assert_eq!((read.by.len(), read.why.len()), (WORDS_BYTES_MAX, WORDS_BYTES_MAX));
        let mark = Mark { mark: Some(long.clone()), note: Some(format!("a{long}")) };
        let read = Mark::decode(&mark.encode()).unwrap();
        assert_eq!(read.mark.map(|mark| mark.len()), Some(MARK_BYTES_MAX));
        assert_eq!(read.note.map(|note| note.len()), Some(NOTE_BYTES_MAX - 1));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            kind in 0usize..8, by in ".{0,40}", why in ".{0,40}", held_ns: u64,
            edited: Option<Vec<u8>>, mark: Option<String>, note: Option<String>,
        ) {
            let what = NUMBERED[kind];
            let outcome = Outcome { what, by, why, held_ns, edited: edited.map(Bytes::from) };
            prop_assert_eq!(Outcome::decode(&payload(&outcome)), Some(outcome));
            let mark = Mark { mark: mark.map(|text| cut(&text, 64).to_owned()), note };
            prop_assert_eq!(Mark::decode(&mark.encode()), Some(mark));
        }

        /// A payload that was torn or is nobody's is nothing, or something that was whole before the
        /// edited message began; it never takes a reader down.
        #[test]
        fn any_bytes_can_be_read(bytes: Vec<u8>, cut_at in 0usize..80, hit in 0usize..80) {
            Outcome::decode(&Bytes::from(bytes.clone()));
            Mark::decode(&bytes);
            let outcome = Outcome {
                what: OutcomeKind::Modified, by: "someone".into(), why: "broken".into(), held_ns: 5,
                edited: Some(Bytes::from_static(b"{\"jsonrpc\":\"2.0\"}")),
            };
            let whole = payload(&outcome);
            let begins = FIXED_LEN + outcome.by.len() + outcome.why.len();
            let torn = Outcome::decode(&whole.slice(..cut_at.min(whole.len())));
            prop_assert_eq!(torn.is_some(), cut_at >= begins);
            let mut garbled = whole.to_vec();
            let at = hit % whole.len();
            garbled[at] ^= 0x41;
            if let Some(read) = Outcome::decode(&Bytes::from(garbled)) {
                prop_assert!(read.by.len() + read.why.len() <= 3 * whole.len());
            }
        }
    }
}
