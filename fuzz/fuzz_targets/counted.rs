//! Counted messages come back as they went in, however they arrive.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: (Vec<Vec<u8>>, u8)| {
    if !input.0.is_empty() {
        mcp_wire::checks::counted_messages_survive_any_reads(&input.0, usize::from(input.1));
    }
});
