//! Events are cut the same however they arrive, and carry whatever data is put into them.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: (&[u8], &[u8], u8)| {
    let (stream, chunks, limit) = (input.0, input.1, usize::from(input.2));
    mcp_wire::checks::events_survive_any_reads(stream, chunks, limit);
    mcp_wire::checks::events_survive_any_reads(stream, chunks, usize::MAX);
    mcp_wire::checks::events_carry_any_data(stream, chunks);
});
