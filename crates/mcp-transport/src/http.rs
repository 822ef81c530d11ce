//! HTTP on both sides: the listener that clients talk to, the connections to a server, and the
//! exchanges between them.

pub mod beats;
mod bodies;
pub mod body;
pub mod certificate;
pub mod conversations;
pub mod crossing;
pub mod exchange;
pub mod front;
pub mod gate;
pub mod heads;
pub mod health;
pub mod hub;
pub mod nearby;
pub mod relay;
pub mod resource;
pub mod serve;
pub mod site;
pub mod strict;
pub mod target;
pub mod tls;
pub mod upstream;
