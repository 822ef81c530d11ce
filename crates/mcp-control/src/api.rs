//! What can be asked and said over the control API: one file an idea. The OpenAPI document is made of
//! these types.

mod action;
mod breakpoint;
mod error;
mod event;
mod exchange;
mod explain;
mod hand;
mod held;
mod instance;
mod lease;
mod message;
mod page;
mod policy;
mod question;
mod servers;
mod snapshot;

pub use action::{Answer, Drop, ErrorAnswer, Mark, Modify, Notes, Released, Replay, Replayed, Save, Saved};
pub use breakpoint::{Breakpoint, Breakpoints, Named, NewBreakpoint, Owner};
pub use error::{ApiError, Code, Fault};
pub use event::{Ended, Event, EventsQuery, Gap, Marked, Verdict};
pub use exchange::{Exchange, Header};
pub use explain::{ExplainedRule, Explanation};
pub use hand::Hand;
pub use held::{Held, HeldList, Outcome, OutcomeKind};
pub use instance::{Instance, Speaker};
pub use lease::{Lease, LeaseGrant, LeaseRequest, LeaseState};
pub use message::{Direction, Message, MessageKind, Transport};
pub use page::{Page, PageQuery};
pub use policy::{Answered, Governed, Permission, Policy, Rule, VerdictKind};
pub use question::{Approve, Deny, Lasting, Question};
pub use servers::{Era, Server, ServerCalls, ServerState, Servers};
pub use snapshot::{Mode, ModeChange, OnDetach, Snapshot};
