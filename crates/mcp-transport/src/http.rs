//! HTTP on both sides: the listener that clients connect to, the connections to a server, and the
//! exchanges between them.

pub mod beats;
mod bodies;
pub mod body;
pub mod certificate;
pub mod client;
pub mod conversations;
pub mod door;
pub mod exchange;
pub mod gate;
pub mod heads;
pub mod health;
pub mod http_side;
pub mod listener;
pub mod nearby;
pub mod relay;
pub mod resource;
pub mod response_stream;
pub mod serve;
pub mod sessions;
pub mod site;
pub mod sse_side;
pub mod state;
pub mod strict;
pub mod target;
pub mod tls;
pub mod upstream;
