//! Lines are cut the same however they arrive, and no stream does harm.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: (&[u8], u8, u8)| {
    let (stream, chunk, limit) = (input.0, usize::from(input.1), usize::from(input.2) + 8);
    mcp_wire::checks::lines_survive_any_reads(stream, chunk, limit);
    mcp_wire::checks::any_stream_is_survived(stream, chunk, limit);
});
