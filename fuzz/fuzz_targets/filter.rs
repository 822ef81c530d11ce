//! Any text is a filter that prints as itself, or an error; judging a message by it never fails. The
//! bytes are an expression, then a message, with a NUL between them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let at = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let expression = String::from_utf8_lossy(&bytes[..at]);
    mcp_filter::checks::filter_is_what_it_prints(&expression, bytes.get(at + 1..).unwrap_or_default());
});
