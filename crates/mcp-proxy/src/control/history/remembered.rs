//! History where nothing is recorded: the last messages, which the data path keeps in memory.

use mcp_engine::{Event, Pipeline};
use mcp_store::{Recorded, Story, Told};

use super::super::reply::Refusal;
use super::super::shared::Shared;
use super::super::{heard, tell};
use super::{Found, From, Wanted};

/// The content of the messages on a page. One that is longer comes alone.
const CONTENT_MAX: usize = 8 << 20;

/// What is kept, oldest first; nothing where there is a recording to read.
pub(super) async fn look(shared: &Shared) -> Result<Option<Vec<Told>>, Refusal> {
    if shared.is_recorded {
        return Ok(None);
    }
    let look =
        shared.order(|pipeline: &mut Pipeline| pipeline.journal.recorder().backlog().map(|backlog| backlog.look()));
    let Some(look) = look.await? else { return Ok(Some(Vec::new())) };
    let (id, transport, mut story) = (shared.card.id, shared.card.transport, Story::of(&shared.card.header()));
    let tell = move || {
        let mut messages: Vec<Recorded> =
            look.events().map(|event: Event| heard::recorded(event, &id, 0, transport)).collect();
        for (sequence, said) in look.said {
            let found = messages.binary_search_by_key(&sequence, |message| message.sequence);
            if let Ok(at) = found {
                messages[at].amend(said);
            }
        }
        messages.into_iter().map(|message| story.tell(message)).collect()
    };
    let told = tokio::task::spawn_blocking(tell).await;
    told.map(Some).map_err(|error| Refusal::internal(format!("the history cannot be read: {error}")))
}

pub(super) fn page(kept: &[Told], wanted: &Wanted) -> Found {
    let last_sequence = kept.last().map_or(0, |told| told.recorded.sequence);
    let first_sequence = kept.first().map_or(0, |told| told.recorded.sequence);
    let (mut messages, mut bytes, mut is_full) = (Vec::new(), 0, false);
    let mut take = |told: &Told| {
        if wanted.filter.as_ref().is_none_or(|filter| filter.matches(told)) {
            bytes += told.recorded.raw.len().min(tell::RAW_IN_LIST_MAX);
            messages.push((told.clone(), 0));
        }
        is_full = messages.len() >= wanted.limit || bytes >= CONTENT_MAX;
        is_full
    };
    match wanted.from {
        From::Before(before) => {
            let stopped = kept.iter().rev().filter(|told| told.recorded.sequence < before).find(|told| take(told));
            let older = stopped.map(|told| told.recorded.sequence).filter(|sequence| *sequence > first_sequence);
            messages.reverse();
            let newer = Some(before.saturating_sub(1).min(last_sequence));
            Found { messages, older, newer, last_sequence }
        }
        From::After(after) => {
            let stopped = kept.iter().filter(|told| told.recorded.sequence > after).find(|told| take(told));
            let newer = stopped.map_or(after.max(last_sequence), |told| told.recorded.sequence);
            let older = (first_sequence > 0 && first_sequence <= after).then(|| after.saturating_add(1));
            Found { messages, older, newer: Some(newer), last_sequence }
        }
    }
}
