//! `mcp-governance-proxy`: the form of the program that puts rules in front of a server, and nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    mcp_proxy_program::governance()
}
