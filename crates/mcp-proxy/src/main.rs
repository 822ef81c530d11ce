//! `mcp-proxy`. Everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    mcp_proxy_program::main()
}
