//! How often clients may ask: a bucket for each client and each limit that is set. There are as many as
//! the settings make, whatever clients do. Only the monotonic clock fills them, so a clock that is set
//! gives nobody anything.

use std::cell::Cell;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use governor::clock::{Clock, MonotonicClock};
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{NotKeyed, StateStore};
use governor::{Quota, RateLimiter};
use mcp_filter::Glob;

use super::{EntranceSettings, Limited, Limiter, Principal};

pub struct Buckets<C: Clock = MonotonicClock> {
    /// For each client a bucket for each limit.
    rows: HashMap<Arc<str>, Row<C>, RandomState>,
    /// For whoever the settings do not name, all together: names that others make up cost nothing.
    others: Row<C>,
    /// There are no limits for anybody.
    is_unlimited: bool,
}

type Row<C> = Vec<(Rc<Limit>, Bucket<C>)>;

/// What is limited. Everything, where it says neither.
struct Limit {
    server: Option<Box<str>>,
    tool: Option<Glob>,
    per_minute: NonZeroU32,
    /// For people.
    what: String,
}

impl Limit {
    fn concerns(&self, server: Option<&str>, tool: Option<&str>) -> bool {
        self.server.as_deref().is_none_or(|limited| Some(limited) == server)
            && self.tool.as_ref().is_none_or(|pattern| tool.is_some_and(|tool| pattern.matches(tool)))
    }
}

impl Buckets {
    /// `names` are those of clients that have buckets of their own.
    pub fn new(settings: &EntranceSettings, names: impl Iterator<Item = Arc<str>>) -> Self {
        Self::with_clock(settings, names, &MonotonicClock)
    }
}

impl<C: Clock + Clone> Buckets<C> {
    pub fn with_clock(settings: &EntranceSettings, names: impl Iterator<Item = Arc<str>>, clock: &C) -> Self {
        let limits: Vec<Rc<Limit>> = limits(settings).map(Rc::new).collect();
        let row = |own: Option<NonZeroU32>| -> Row<C> {
            let everything = own.or(settings.rate_limit_per_minute).map(|per_minute| Rc::new(everything(per_minute)));
            let with_bucket = |limit: Rc<Limit>| {
                let bucket = Bucket::new(limit.per_minute, clock.clone());
                (limit, bucket)
            };
            everything.into_iter().chain(limits.iter().cloned()).map(with_bucket).collect()
        };
        let own = |name: &str| settings.tokens.iter().find(|token| token.name == name)?.rate_limit_per_minute;
        let rows = names.map(|name| {
            let row = row(own(&name));
            (name, row)
        });
        let (rows, others): (HashMap<_, _, RandomState>, _) = (rows.collect(), row(None));
        let is_unlimited = others.is_empty() && rows.values().all(Vec::is_empty);
        Self { rows, others, is_unlimited }
    }
}

fn everything(per_minute: NonZeroU32) -> Limit {
    Limit { server: None, tool: None, per_minute, what: format!("{per_minute} a minute") }
}

/// Those on a server or a tool.
fn limits(settings: &EntranceSettings) -> impl Iterator<Item = Limit> {
    let servers = settings.servers.iter().map(|limit| Limit {
        server: Some(limit.server.as_str().into()),
        tool: None,
        per_minute: limit.per_minute,
        what: format!("{} a minute for server \"{}\"", limit.per_minute, limit.server),
    });
    let tools = settings.tools.iter().map(|limit| Limit {
        server: Some(limit.server.as_str().into()),
        tool: Some(Glob::new(&limit.tool)),
        per_minute: limit.per_minute,
        what: format!("{} a minute for tool \"{}\" of server \"{}\"", limit.per_minute, limit.tool, limit.server),
    });
    servers.chain(tools)
}

impl<C: Clock> Limiter for Buckets<C> {
    fn take(&self, who: &Principal, server: Option<&str>, tool: Option<&str>) -> Result<(), Limited> {
        // Mostly nothing is limited at all.
        if self.is_unlimited {
            return Ok(());
        }
        let row = self.rows.get(&who.name).unwrap_or(&self.others);
        let concerned = || row.iter().filter(|(limit, _)| limit.concerns(server, tool));
        // All of them are asked, so that who waits as long as they are told is let through.
        let refused = concerned().filter_map(|(limit, bucket)| Some((bucket.take().err()?, limit)));
        let Some((retry_after, limit)) = refused.max_by_key(|(wait, _)| *wait) else { return Ok(()) };
        concerned().for_each(|(_, bucket)| bucket.put_back());
        Err(Limited { retry_after, what: limit.what.clone() })
    }
}

struct Bucket<C: Clock> {
    limiter: RateLimiter<NotKeyed, Level, C, NoOpMiddleware<C::Instant>>,
    level: Level,
    /// How full it was before the last request.
    before: Cell<Option<Nanos>>,
}

impl<C: Clock> Bucket<C> {
    fn new(per_minute: NonZeroU32, clock: C) -> Self {
        let level = Level::default();
        let limiter = RateLimiter::new(Quota::per_minute(per_minute), level.clone(), clock);
        Self { limiter, level, before: Cell::default() }
    }

    /// Takes one out, or says how long to wait for it.
    fn take(&self) -> Result<(), Duration> {
        self.before.set(self.level.0.get());
        self.limiter.check().map_err(|not_until| not_until.wait_time_from(self.limiter.clock().now()))
    }

    /// Undoes what was taken last.
    fn put_back(&self) {
        self.level.0.set(self.before.get());
    }
}

/// How full a bucket is. All clients are seen to on one thread, so nothing has to be atomic; and it can
/// be put back, which governor knows no way for.
#[derive(Clone, Default)]
struct Level(Rc<Cell<Option<Nanos>>>);

impl StateStore for Level {
    type Key = NotKeyed;

    fn measure_and_replace<T, F, E>(&self, _key: &NotKeyed, measure: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let (measured, level) = measure(self.0.get())?;
        self.0.set(Some(level));
        Ok(measured)
    }
}
