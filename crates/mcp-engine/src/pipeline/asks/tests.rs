//! Clients that are asked themselves, without a transport.

mod rounds;
