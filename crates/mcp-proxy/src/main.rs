//! The program. One binary with two lives: the proxy and its commands, and the guard that owns a
//! server's process tree.

mod chosen;
mod cli;
mod demo;
mod doctor;
mod duplex;
mod export;
mod failure;
mod inner;
mod inspect;
mod mock;
mod plan;
#[allow(dead_code, reason = "the commands that take long are about to use it")]
mod progress;
mod recording;
mod replay;
mod report;
mod run;
mod sessions;

use std::process::ExitCode;

use mcp_transport::child::{GUARD_WORD, guard};

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(word) if word == GUARD_WORD => guard::run(args),
        Some(word) if word == demo::SERVER_WORD => demo::server::run(),
        _ => {
            mcp_transport::give_back_large_buffers();
            cli::main()
        }
    }
}
