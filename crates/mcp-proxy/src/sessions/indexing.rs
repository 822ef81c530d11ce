//! The index over messages, from the side of those who wait for it.

use std::ops::ControlFlow;
use std::time::Instant;

use mcp_store::index::{Pace, Recording};
use mcp_store::{Entry, Index, StateDir, StoreError};

use crate::failure::{Failure, exit};
use crate::progress::{Unit, Waiter};
use crate::report::{self, say};

/// `sessions reindex`: makes the index anew from the recordings.
pub(super) fn reindex(entries: &[Entry], state: &StateDir) -> Result<(), Failure> {
    let begun = Instant::now();
    let messages = match bring_up_to_date(&mut Index::open_anew(state)?, entries, &Waiter::Command)? {
        Brought::UpToDate(messages) => messages,
        Brought::Interrupted(messages) => return Err(interrupted(messages)),
    };
    let took = report::duration(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
    say(&format!("indexed {messages} messages of {} sessions in {took}", entries.len()));
    Ok(())
}

pub(super) fn interrupted(messages: u64) -> Failure {
    Failure::new(exit::INTERRUPTED, format!("interrupted; the {messages} messages indexed until then stay indexed"))
        .hint("the next search goes on from there")
}

/// How far the index was brought, with the messages that were added.
pub(super) enum Brought {
    UpToDate(u64),
    Interrupted(u64),
}

/// Adds what is not in the index yet.
pub(super) fn bring_up_to_date(index: &mut Index, entries: &[Entry], waiter: &Waiter) -> Result<Brought, StoreError> {
    let recordings: Vec<Recording> = entries.iter().map(Recording::from).collect();
    let progress = waiter.begin("indexing", Unit::Messages, Some(index.backlog(&recordings)?));
    let mut messages = 0;
    let done = index.update(&recordings, Pace::Foreground, &mut |added| {
        messages += added;
        if progress.advance(added).is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(if done.is_break() { Brought::Interrupted(messages) } else { Brought::UpToDate(messages) })
}

/// Does `work` with the index. One that turns out to be damaged is made anew, and the work done again.
pub(super) fn with_index<T>(
    state: &StateDir,
    waiter: &Waiter,
    mut work: impl FnMut(&mut Index) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let mut index = Index::open(state)?;
    index.findings.iter().for_each(|finding| waiter.say(&format!("mcp-proxy: {finding}")));
    match work(&mut index) {
        Err(error) if error.is_damaged_cache() => {
            waiter.say("mcp-proxy: the index was unusable and is filled anew");
            drop(index);
            work(&mut Index::open_anew(state)?)
        }
        done => done,
    }
}

/// Takes the words of removed sessions out of the index.
pub(super) fn forget(removed: &[uuid::Uuid], state: &StateDir) {
    if removed.is_empty() || !state.index().exists() {
        return;
    }
    if let Err(error) = with_index(state, &Waiter::Command, |index| index.forget(removed)) {
        let failure = Failure::from(error);
        say(&format!(
            "mcp-proxy: words of what was removed stay in the index until the next search ({})",
            failure.what()
        ));
    }
}
