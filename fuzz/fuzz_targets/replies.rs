//! Every reply is JSON, whatever stands where the id of a request should.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    mcp_wire::checks::replies_are_json(bytes);
});
