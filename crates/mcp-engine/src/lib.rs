//! The data plane. A transport hands over what one read brought; the pipeline decides all of it at
//! once and says what leaves where. It knows no socket, no process and no terminal.

pub mod audit;
pub mod backlog;
pub mod bus;
pub mod commands;
pub mod compare;
pub mod conversation;
pub mod correlate;
pub mod entrance;
pub mod envelope;
pub mod intercept;
pub mod meaning;
pub mod mock;
pub mod pipeline;
pub mod policy;
pub mod record;
pub mod replay;
pub mod transcript;

pub use bus::{Bus, Event, Subscription};
pub use commands::{CommandSender, Commands, commands};
pub use conversation::{Conversation, Speaker};
pub use envelope::{Asked, Behalf, Lane, Lent, ProxyMessage, Side, Upstream};
pub use intercept::{Decision, HoldOptions, Intercept};
pub use pipeline::{Outbox, Pipeline, Release, Status};
pub use policy::Judged;
pub use record::{Evidence, ExchangeMark, OnStoreFailure, Recorder, RecorderOptions, StoreFailed};
pub use transcript::Transcript;
