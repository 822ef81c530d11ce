//! Several messages in one. One revision has them; their items are judged one by one, and one that is
//! denied takes the others with it.

use mcp_wire::{Message, scan};

use super::govern::{BYTE_ORDER_MARK, Governed, Opinion, has_batches};
use super::rules::VerdictKind;
use super::{Refused, Rulings};
use crate::conversation::Speaker;
use crate::envelope::{ProxyMessage, Side};

/// Messages in one batch: each is judged, written down and, if need be, answered.
const ITEMS_MAX: usize = 1_000;

impl Governed {
    pub(super) fn judge_batch(&mut self, batch: &ProxyMessage, speaker: &Speaker) -> Result<Rulings, Refused> {
        each_item(batch, speaker, |item| self.consider(item, speaker))
    }
}

/// What is thought of a batch, by what is thought of each of its items.
pub(super) fn each_item(
    batch: &ProxyMessage,
    speaker: &Speaker,
    mut consider: impl FnMut(&ProxyMessage) -> Opinion,
) -> Result<Rulings, Refused> {
    if !has_batches(speaker) {
        return Err(Refused::Unfit("a batch, which this revision of the protocol does not have".into()));
    }
    if let Some(ambiguity) = batch.message.peek().ambiguity {
        return Err(Refused::Unfit(ambiguity.to_string()));
    }
    if batch.bom && batch.from == Side::Client {
        return Err(Refused::Unfit(BYTE_ORDER_MARK.into()));
    }
    let bytes = batch.message.bytes();
    let mut rulings = Vec::new();
    for (at, span) in scan::batch_items(bytes).enumerate() {
        if at == ITEMS_MAX {
            return Err(Refused::Unfit(format!("a batch of more than {ITEMS_MAX} messages")));
        }
        let message = Message::new(bytes.slice(span.range()));
        let item = ProxyMessage { message, bom: false, ..batch.clone() };
        match consider(&item) {
            Opinion::Fit => {}
            Opinion::Unfit(why) => return Err(Refused::Unfit(format!("an item of the batch: {why}"))),
            Opinion::Each(uses) => rulings.extend(uses),
            Opinion::Ruled(mut ruling) => {
                // Nobody can be asked about a part of something.
                if ruling.verdict == VerdictKind::Ask {
                    ruling.verdict = VerdictKind::Deny;
                }
                rulings.push((item.message, ruling));
            }
        }
    }
    if scan::batch_items(bytes).next().is_none() {
        return Err(Refused::Unfit("a batch of nothing".into()));
    }
    match rulings.iter().any(|(_, ruling)| ruling.verdict == VerdictKind::Deny) {
        true => Err(Refused::Batch(rulings)),
        false => Ok(Rulings::Each(rulings)),
    }
}
