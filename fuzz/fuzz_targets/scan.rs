//! The scanner agrees with a full parser, or says that it will not judge.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_wire::checks::scan_agrees_with_parser(bytes));
