//! Calls of a proxy tool. What they use is judged as if it were used without the tool: where the tool is only how a
//! server is reached, in its place; otherwise beside it, and the strictest word counts. So nobody gets through the
//! tool what is denied elsewhere.

use mcp_wire::Message;

use super::Ruling;
use super::govern::{Governed, Opinion};
use super::rules::VerdictKind;
use crate::conversation::Speaker;
use crate::envelope::ProxyMessage;

impl Governed {
    /// What is thought of a call, by what is thought of each of its `uses`, and of itself if that counts.
    pub(super) fn consider_uses(
        &mut self,
        own: Option<Ruling>,
        uses: Vec<Message>,
        call: &ProxyMessage,
        speaker: &Speaker,
    ) -> Opinion {
        let mut rulings: Vec<(Message, Ruling)> = Vec::with_capacity(uses.len());
        for used in uses {
            let used = ProxyMessage { message: used, bom: false, ..call.clone() };
            if let Err(why) = self.fit(&used) {
                return Opinion::Unfit(format!("what it uses: {why}"));
            }
            let ruling = self.rule(&used, speaker);
            rulings.push((used.message, ruling));
        }
        let is_one = rulings.len() == 1;
        let found = |verdict| rulings.iter().position(|(_, ruling)| ruling.verdict == verdict);
        let strictest = match &own {
            Some(own) if own.verdict == VerdictKind::Deny => None,
            _ => found(VerdictKind::Deny).or_else(|| found(VerdictKind::Ask)),
        };
        match (strictest, own) {
            (Some(at), own) => {
                let (_, mut ruling) = rulings.swap_remove(at);
                // Nobody can be asked about a part of something.
                if ruling.verdict == VerdictKind::Ask && !is_one {
                    ruling.verdict = VerdictKind::Deny;
                }
                Opinion::Ruled(with_observed(ruling, own))
            }
            (None, Some(own)) if own.verdict != VerdictKind::Allow => Opinion::Ruled(own),
            (None, own) if is_one => {
                let (_, ruling) = rulings.swap_remove(0);
                Opinion::Ruled(with_observed(ruling, own))
            }
            (None, own) => {
                if let (Some((_, first)), Some(own)) = (rulings.first_mut(), own) {
                    *first = with_observed(first.clone(), Some(own));
                }
                Opinion::Each(rulings)
            }
        }
    }
}

/// With what rules that only observe had to say of the tool itself.
fn with_observed(mut ruling: Ruling, own: Option<Ruling>) -> Ruling {
    for rule in own.into_iter().flat_map(|own| own.observed) {
        if !ruling.observed.contains(&rule) {
            ruling.observed.push(rule);
            ruling.is_kept = true;
        }
    }
    ruling
}
