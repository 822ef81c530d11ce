//! What a gateway lets in from its clients, and from its servers where no rules count. Which server a message
//! is for depends on what it says, so it has to say the same to everybody; whether it may is decided later.

use std::sync::LazyLock;

use mcp_wire::Kind;
use mcp_wire::strict::JudgedKeys;

use super::batch::each_item;
use super::govern::{Opinion, fit};
use super::{Judged, Policy, Refused, Rulings, Verdict};
use crate::conversation::Speaker;
use crate::envelope::{ProxyMessage, Side};

/// What a gateway goes by is what every rule does, and nothing else.
static KEYS: LazyLock<JudgedKeys> = LazyLock::new(JudgedKeys::default);

impl Policy {
    /// Lets a message in if it can be read in one way only.
    pub(crate) fn admit(&self, message: ProxyMessage, speaker: &Speaker) -> Verdict {
        let checked = match message.message.kind() {
            // Each item of a server's is checked where they are told apart.
            Kind::Batch if message.from == Side::Server && !message.message.peek().is_opaque() => Ok(Rulings::None),
            Kind::Batch => each_item(&message, speaker, |item| self.look_at(item)),
            _ => Result::<Rulings, Refused>::from(self.look_at(&message)),
        };
        match checked {
            Ok(_) => Verdict::Permitted(Judged(message), Rulings::None),
            Err(refused) => Verdict::Refused(message, refused),
        }
    }

    /// Lets a message on that the proxy itself made: a gateway of one that was let in elsewhere, or the call of no
    /// tool that goes on in place of a denied one.
    pub(crate) fn pass_own(&self, message: ProxyMessage) -> Judged {
        Judged(message)
    }

    fn look_at(&self, message: &ProxyMessage) -> Opinion {
        let keys = self.governed.as_ref().map_or(&*KEYS, |governed| governed.keys());
        match fit(message, keys) {
            Err(why) => Opinion::Unfit(why),
            Ok(_) => match message.message.kind() {
                Kind::Batch => Opinion::Unfit("a batch within a batch".into()),
                Kind::OtherJson | Kind::NotJson => Opinion::Unfit("it is no JSON-RPC message".into()),
                _ => Opinion::Fit,
            },
        }
    }
}
