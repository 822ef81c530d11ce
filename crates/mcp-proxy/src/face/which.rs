//! Which instance and which message a command is about: `[INSTANCE] MESSAGE`, or `--in INSTANCE`.

use clap::Args;
use mcp_store::StateDir;
use mcp_wire::visible::visible;

use super::Face;
use crate::failure::Failure;

/// The instance, for commands that take it as a word of its own.
#[derive(Args)]
pub(crate) struct Instance {
    /// The instance by its id, the beginning of it, or its name; not needed while only one runs
    pub instance: Option<String>,
    /// The same, as an option
    #[arg(long = "in", alias = "instance", value_name = "INSTANCE", conflicts_with = "instance")]
    pub within: Option<String>,
}

impl Instance {
    pub(crate) fn attach(&self, state: &StateDir) -> Result<Face, Failure> {
        Face::attach(state, self.wanted(), false)
    }

    pub(crate) fn wanted(&self) -> Option<&str> {
        self.instance.as_deref().or(self.within.as_deref())
    }
}

/// The same for commands that change something.
#[derive(Args)]
pub(crate) struct Acting {
    /// The instance by its id, the beginning of it, or its name; not needed while only one runs
    #[arg(long = "in", alias = "instance", value_name = "INSTANCE")]
    pub within: Option<String>,
    /// Act even if somebody else is in control
    #[arg(long)]
    pub take: bool,
}

impl Acting {
    /// The instance in `word`, if it is there, or the one that `--in` names.
    pub(crate) fn attach(&self, word: Option<&str>, state: &StateDir) -> Result<Face, Failure> {
        if let (Some(word), Some(within)) = (word, &self.within) {
            let said = format!("two instances are named: `{}` and `{}`", visible(word), visible(within));
            return Err(Failure::usage(said).hint("name one, before the message or with --in"));
        }
        Face::attach(state, word.or(self.within.as_deref()), self.take)
    }

    /// The instance and the message in `words`: the message comes last.
    pub(crate) fn attach_to_message(&self, words: &[String], state: &StateDir) -> Result<(Face, u64), Failure> {
        let (message, instance) = match words {
            [message] => (message, None),
            [instance, message] => (message, Some(instance.as_str())),
            _ => return Err(Failure::usage("expected a message by its number, after the instance if several run")),
        };
        let sequence = sequence(message)?;
        Ok((self.attach(instance, state)?, sequence))
    }

    /// The instance, if the first of `words` is one, and the messages.
    pub(crate) fn attach_to_messages(&self, words: &[String], state: &StateDir) -> Result<(Face, Vec<u64>), Failure> {
        let (instance, messages) = match words {
            [instance, messages @ ..] if !messages.is_empty() && !is_message(instance) => {
                (Some(instance.as_str()), messages)
            }
            messages => (None, messages),
        };
        let sequences = messages.iter().map(|word| sequence(word)).collect::<Result<_, _>>()?;
        Ok((self.attach(instance, state)?, sequences))
    }
}

/// Whether a word that could also be an instance is a message: ids are shown with eight characters, and
/// few sessions have ten million messages.
pub(super) fn is_message(word: &str) -> bool {
    /// A longer number is an instance: ids are shown with eight characters, and few sessions have ten million
    /// messages.
    const DIGITS_MAX: usize = 7;
    word.starts_with('#')
        || (word.len() <= DIGITS_MAX && !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()))
}

/// `#12`, or `12`.
pub(super) fn sequence(word: &str) -> Result<u64, Failure> {
    let number = word.strip_prefix('#').unwrap_or(word).parse();
    number.map_err(|_| {
        Failure::usage(format!("`{}` is not the number of a message", visible(word)))
            .hint("`mcp-proxy held` and `mcp-proxy tail` show messages with their numbers")
    })
}

#[cfg(test)]
mod tests {
    use super::{is_message, sequence};

    #[test]
    fn a_message_is_named_by_its_number() {
        assert_eq!(sequence("#012").unwrap(), 12);
        assert_eq!(sequence("12").unwrap(), 12);
        for word in ["", "#", "##1", "-1", "7f3a", "1 "] {
            assert!(sequence(word).is_err(), "{word}");
        }
    }

    #[test]
    fn a_number_is_a_message_unless_it_is_as_long_as_an_id() {
        assert!(["6", "0012", "#6", "#26678901"].iter().all(|word| is_message(word)));
        assert!(!["", "26678901", "7f3", "files", "-1"].iter().any(|word| is_message(word)));
    }
}
