//! The program. One binary with several lives: the proxy and its commands, `mcp-governance-proxy`, the guard that owns
//! a server's process tree, and the indexer that a long recording is followed by.

mod allocator;
mod answers;
mod audit;
mod chosen;
mod cli;
mod client;
mod config;
mod config_cmd;
mod control;
mod demo;
mod doctor;
mod duplex;
mod edit;
mod export;
mod face;
mod failure;
pub mod gateway;
mod governance;
mod holding;
mod indexer;
mod inner;
mod inspect;
mod launch;
mod mock;
mod pages;
mod plan;
mod policy;
mod progress;
mod recording;
mod replay;
mod report;
mod run;
mod screen;
mod sessions;
pub mod shelf;

use std::process::ExitCode;

use mcp_transport::child::{GUARD_WORD, guard};

/// `mcp-proxy`, as the first word says.
pub fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(word) if word == GUARD_WORD => guard::run(args),
        Some(word) if word == demo::SERVER_WORD => demo::server::run(),
        Some(word) if word == indexer::INDEX_WORD => indexer::run(args),
        word => {
            mcp_transport::give_back_large_buffers();
            if word.is_some_and(|word| word == governance::WORD) { governance::program(args) } else { cli::main() }
        }
    }
}
