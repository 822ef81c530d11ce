//! Conversations whose two sides speak different transports. The client's side and the server's are
//! built apart and meet in a [`talk::Talk`]: what one side brings passes the pipeline there and is
//! handed to the other.

pub mod calls;
pub mod child_link;
pub mod door;
pub mod event_log;
pub mod http_link;
pub mod http_reader;
pub mod outflow;
pub mod outlet;
pub mod pipe_client;
pub mod queue;
pub mod serve;
pub mod session;
pub mod sse_link;
pub mod stream;
pub mod talk;
