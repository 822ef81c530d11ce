//! A splice changes one span and nothing else.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: (&[u8], &[u8])| mcp_wire::checks::splice_changes_one_span(input.0, input.1));
