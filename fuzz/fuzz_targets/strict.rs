//! A message that may be judged says the same to every reader: what was forwarded parses to what
//! was judged.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    mcp_wire::checks::judged_is_what_anybody_reads(bytes, &["path", "repoName", "force"]);
});
