//! Listens to an instance for as long as there is one: again when the way to it breaks, anew when
//! other messages are wanted.

use std::time::Duration;

use mcp_control::ClientError;
use mcp_control::api::{Code, Event, EventsQuery};
use mcp_control::client::Events;
use tokio::sync::{mpsc, watch};

use super::{Instance, Wanted, words};
use crate::news::News;

/// Messages in a second that the instance reports: a person reads no more, and each costs the proxy a little. A
/// list that follows fetches pages where more happens.
const PER_SECOND: u32 = 1_000;
/// Events handed to the screen at once.
const BATCH_MAX: usize = 512;
/// The longest pause between two attempts to reach an instance.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(2);

pub(super) async fn listen(instance: Instance, mut wanted: watch::Receiver<Wanted>, news: mpsc::Sender<News>) {
    let mut retry_after = Duration::from_millis(50);
    loop {
        match follow(&instance, &mut wanted, &news).await {
            Ok(Over::Ended) => return,
            Ok(Over::Broken) => retry_after = Duration::from_millis(50),
            Err(error) => {
                // A socket that is gone does not come back.
                let is_gone = matches!(&error, ClientError::Unreached { source, .. } if source.kind() == std::io::ErrorKind::NotFound);
                if news.send(News::Lost(words(error))).await.is_err() || is_gone {
                    return;
                }
                retry_after = (retry_after * 2).min(RETRY_AFTER_MAX);
            }
        }
        tokio::time::sleep(retry_after).await;
    }
}

enum Over {
    /// The instance said that it ends, or nobody listens to us.
    Ended,
    Broken,
}

async fn follow(
    instance: &Instance,
    wanted: &mut watch::Receiver<Wanted>,
    news: &mpsc::Sender<News>,
) -> Result<Over, ClientError> {
    let mut events = open(instance, wanted).await?;
    loop {
        tokio::select! {
            changed = wanted.changed() => {
                if changed.is_err() {
                    return Ok(Over::Ended);
                }
                // The old one stays open until the new one is: we are never away.
                events = open(instance, wanted).await?;
            }
            event = events.next() => {
                let Some(event) = event? else { return Ok(Over::Broken) };
                let batch = gather(event, &mut events)?;
                let is_last = matches!(batch.last(), Some(Event::End(_)));
                if news.send(News::Events(batch)).await.is_err() || is_last {
                    return Ok(Over::Ended);
                }
            }
        }
    }
}

async fn open(instance: &Instance, wanted: &mut watch::Receiver<Wanted>) -> Result<Events, ClientError> {
    loop {
        let Wanted { filter, lease } = wanted.borrow_and_update().clone();
        let query = EventsQuery { after: None, filter, lease: lease.clone(), per_second: Some(PER_SECOND) };
        match instance.client.events(&query).await {
            // The lease is not ours any more. We watch without it.
            Err(ClientError::Refused { fault, .. }) if fault.code == Code::Locked && lease.is_some() => {
                instance.forget_lease();
            }
            opened => return opened,
        }
    }
}

/// All that has come already.
fn gather(first: Event, events: &mut Events) -> Result<Vec<Event>, ClientError> {
    let mut batch = vec![first];
    while batch.len() < BATCH_MAX
        && let Some(event) = events.ready()?
    {
        batch.push(event);
    }
    Ok(batch)
}
