//! The event stream of one face: how things stand, what it has missed, then what happens.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use axum::response::IntoResponse;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Frame;
use mcp_control::api::{Ended, Event, EventsQuery, Gap, PageQuery, Snapshot};
use mcp_engine::bus::Pace;
use mcp_filter::Filter;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::hub::{PER_SECOND_MAX, Reader};
use super::lease::Presence;
use super::reply::Refusal;
use super::ring::{Entry, What, frame, message_frame};
use super::shared::{Shared, Standing};
use super::{history, holds, tell};

/// Bytes of one write to a face, or a single longer event.
const CHUNK_BYTES: usize = 256 * 1024;
/// Chunks on their way to a face. What it does not take in time stays in the ring, and is missed once
/// it is gone from there.
const CHUNKS: usize = 2;
/// Events examined before other tasks get their turn.
const LOOKED_AT: usize = 512;
/// Messages of the history read at a time for one stream.
const BACKLOG_LIMIT: u32 = 256;
/// After a gap a face is told how things stand, and no more often than this: at full load there are gaps
/// all the time.
const SNAPSHOT_EVERY: Duration = Duration::from_secs(1);
/// A face that is gone is found out by telling it nothing now and then.
const BREATH_EVERY: Duration = Duration::from_secs(15);
/// Time for a face to take the last events when the proxy ends.
const LAST_WORDS_FOR: Duration = Duration::from_millis(300);

/// Opens the stream, or says why not.
pub(super) async fn open(
    shared: Shared,
    query: &EventsQuery,
    filter: Option<Filter>,
) -> Result<Response<Body>, Refusal> {
    let presence = query.lease.as_deref().map(|lease| shared.leases.enter(lease)).transpose()?;
    let per_second = query.per_second.unwrap_or(PER_SECOND_MAX);
    // Which of the messages match is found out only once they are made.
    let reader = shared.hub.attach(if query.filter.is_some() { PER_SECOND_MAX } else { per_second })?;
    if presence.is_some() {
        shared.tell_lease();
    }
    // Whoever is told how things stand is somebody who can be asked.
    shared.count_watchers().await?;
    let standing = shared.committed_standing().await?;
    let (chunks, body) = mpsc::channel(CHUNKS);
    let (seen, held, unsent) = (query.after, HashSet::new(), Bytes::new());
    let (snapshot_at, snapshot_due) = (Instant::now(), None);
    let (pace, thinned) = (Pace::default(), 0);
    let face = Face {
        shared,
        reader,
        filter,
        per_second,
        pace,
        thinned,
        chunks,
        unsent,
        seen,
        held,
        snapshot_at,
        snapshot_due,
        presence,
    };
    tokio::spawn(face.run(standing));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, Body::new(Chunks(body).map_err(|never| match never {}))).into_response())
}

struct Face {
    shared: Shared,
    reader: Reader,
    filter: Option<Filter>,
    /// How many messages in a second it wants, and how many were left out since it was last told.
    per_second: u32,
    pace: Pace,
    thinned: u64,
    chunks: mpsc::Sender<Bytes>,
    /// What could not be handed over yet.
    unsent: Bytes,
    /// Up to this sequence every message was told, or is not wanted.
    seen: Option<u64>,
    /// Messages that were held when this face was last told how things stand. Of older ones nothing
    /// new can be said.
    held: HashSet<u64>,
    /// When it was last told how things stand, and when it has to be again.
    snapshot_at: Instant,
    snapshot_due: Option<Instant>,
    presence: Option<Presence>,
}

/// The face is gone.
struct Gone;

impl Face {
    async fn run(mut self, standing: Standing) {
        let mut ending = self.shared.ending.clone();
        let is_ending = async move { drop(ending.wait_for(|ending| *ending).await) };
        let is_cut_short = tokio::select! {
            _ = self.tell_all(standing) => false,
            () = is_ending => true,
        };
        if is_cut_short {
            let _ = tokio::time::timeout(LAST_WORDS_FOR, self.say_goodbye()).await;
        }
        if let Some(presence) = self.presence.take() {
            drop(presence);
            self.shared.tell_lease();
        }
    }

    async fn say_goodbye(&mut self) -> Result<(), Gone> {
        let unsent = std::mem::take(&mut self.unsent);
        self.send(unsent).await?;
        while !self.tell_new().await? {}
        self.send(frame(&Event::End(Ended { why: "the proxy has ended".into() }))).await
    }

    async fn tell_all(&mut self, standing: Standing) -> Result<(), Gone> {
        self.catch_up(standing).await?;
        loop {
            let is_all = self.tell_new().await?;
            if self.snapshot_due.is_some_and(|due| due <= Instant::now()) {
                self.tell_standing().await?;
            }
            if !is_all {
                continue;
            }
            let (chunks, due) = (self.chunks.clone(), self.snapshot_due);
            let snapshot_due = tokio::time::sleep_until(due.unwrap_or_else(Instant::now));
            tokio::select! {
                () = snapshot_due, if due.is_some() => {}
                () = self.reader.grown() => {}
                () = chunks.closed() => return Err(Gone),
                () = tokio::time::sleep(BREATH_EVERY) => self.send(Bytes::from_static(b":\n\n")).await?,
            }
        }
    }

    /// What was missed may have been that something is held, or no longer: this says how it is now.
    async fn tell_standing(&mut self) -> Result<(), Gone> {
        (self.snapshot_at, self.snapshot_due) = (Instant::now(), None);
        match self.shared.standing().await {
            Ok(standing) => {
                let snapshot = snapshot(&self.shared, &standing).await;
                self.send(frame(&Event::Snapshot(Box::new(snapshot)))).await
            }
            // It is busy, or ending.
            Err(_) => {
                self.owe_snapshot();
                Ok(())
            }
        }
    }

    fn owe_snapshot(&mut self) {
        self.snapshot_due.get_or_insert(self.snapshot_at + SNAPSHOT_EVERY);
    }

    /// Tells how things stand, and the messages that came before. What happens meanwhile waits in the
    /// ring; if that was too long, this begins anew from where it has come to.
    async fn catch_up(&mut self, mut standing: Standing) -> Result<(), Gone> {
        loop {
            let last = standing.status.sequence;
            self.held = standing.status.held.iter().map(|held| held.sequence).collect();
            let snapshot = snapshot(&self.shared, &standing).await;
            self.send(frame(&Event::Snapshot(Box::new(snapshot)))).await?;
            if let Some(seen) = self.seen {
                self.tell_history(seen, last).await?;
            }
            self.seen = Some(last);
            if self.shared.hub.ring().read(self.reader.place, 0).0 == 0 {
                return Ok(());
            }
            self.reader.place = self.shared.hub.ring().end();
            match self.shared.committed_standing().await {
                Ok(now) => standing = now,
                Err(_) => return Ok(()),
            }
        }
    }

    async fn tell_history(&mut self, mut after: u64, last: u64) -> Result<(), Gone> {
        while after < last {
            let query = PageQuery { after: Some(after), limit: Some(BACKLOG_LIMIT), ..PageQuery::default() };
            let Ok(page) = history::page(&self.shared, &query, self.filter.clone()).await else {
                // How many of them match cannot be known.
                return self.send(frame(&Event::Gap(Gap { missed: last - after }))).await;
            };
            let mut chunk = BytesMut::new();
            for (told, earlier) in &page.messages {
                if told.recorded.sequence + earlier <= last {
                    chunk.extend_from_slice(&message_frame(tell::message(told, *earlier, tell::RAW_IN_LIST_MAX)));
                }
            }
            self.send(chunk.freeze()).await?;
            match page.newer.filter(|newer| *newer > after) {
                Some(newer) => after = newer,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Tells a chunk of what is new. Returns whether that was all.
    async fn tell_new(&mut self) -> Result<bool, Gone> {
        let (missed, entries) = self.shared.hub.ring().read(self.reader.place, LOOKED_AT);
        self.reader.place += missed;
        let mut chunk = BytesMut::new();
        if missed > 0 {
            chunk.extend_from_slice(&frame(&Event::Gap(Gap { missed })));
            self.owe_snapshot();
        }
        let mut is_all = entries.len() < LOOKED_AT;
        for (after, entry) in &entries {
            if chunk.len() >= CHUNK_BYTES {
                is_all = false;
                break;
            }
            self.reader.place = *after;
            if self.is_wanted(entry) {
                chunk.extend_from_slice(&entry.frame());
            }
        }
        if self.thinned > 0 {
            let missed = std::mem::take(&mut self.thinned);
            chunk.extend_from_slice(&frame(&Event::Gap(Gap { missed })));
            self.owe_snapshot();
        }
        self.send(chunk.freeze()).await?;
        Ok(is_all)
    }

    /// Whether this face does not know of something yet, and wants to.
    fn is_wanted(&mut self, entry: &Arc<Entry>) -> bool {
        let seen = self.seen.unwrap_or(0);
        match &entry.what {
            What::Message(told) => {
                let is_wanted =
                    told.recorded.sequence > seen && self.filter.as_ref().is_none_or(|filter| filter.matches(&**told));
                let is_told = is_wanted && self.pace.admits(told.recorded.time_ns, self.per_second);
                self.thinned += u64::from(is_wanted && !is_told);
                is_told
            }
            What::Other(Event::Held(held)) => held.sequence > seen,
            // Something that had ended before is not among what was held.
            What::Other(Event::Outcome(outcome)) => outcome.sequence > seen || self.held.remove(&outcome.sequence),
            // Not even the hub kept up.
            What::Other(Event::Gap(_)) => {
                self.owe_snapshot();
                true
            }
            What::Other(_) => true,
        }
    }

    async fn send(&mut self, chunk: Bytes) -> Result<(), Gone> {
        if !chunk.is_empty() {
            self.unsent = chunk.clone();
            self.chunks.send(chunk).await.map_err(|_| Gone)?;
            self.unsent.clear();
        }
        Ok(())
    }
}

/// Everything about the instance but its messages.
pub(super) async fn snapshot(shared: &Shared, standing: &Standing) -> Snapshot {
    let status = &standing.status;
    Snapshot {
        instance: shared.instance(standing),
        mode: status.mode,
        mode_owner: status.mode_owner,
        has_face: status.has_face,
        breakpoints: tell::breakpoints(&status.breakpoints),
        held: holds::list(shared, &status.held).await,
        lease: shared.leases.now(),
        hold_limit_ms: status.hold_limit.map(tell::millis),
        on_detach: status.on_detach,
        faces: shared.hub.faces() as u32,
        last_sequence: status.sequence,
    }
}

/// The body of the stream.
struct Chunks(mpsc::Receiver<Bytes>);

impl hyper::body::Body for Chunks {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(cx).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
    }
}
