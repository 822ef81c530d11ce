//! Where in a text the bytes stand that strings are cut by: quotes, backslashes and controls.

use wide::u8x16;

/// Past this the rest of a string is likely long, and a search that has to be set up first is worth it.
const LONG: usize = 64;

/// The first that stands at `from` or after it, or else the end. Where a text is known to have no controls, they are
/// not looked for in what is long.
#[inline(always)]
pub(crate) fn next_special(bytes: &[u8], from: usize, has_controls: bool) -> usize {
    // Nearly all strings of a message are short.
    match near(bytes, from) {
        Some(at) => at,
        None => further(bytes, from, has_controls),
    }
}

/// The first among the sixteen bytes at `from`, if there are as many.
#[inline(always)]
fn near(bytes: &[u8], from: usize) -> Option<usize> {
    let part = bytes.get(from..)?.first_chunk::<16>()?;
    let bits = specials(u8x16::from(*part));
    (bits != 0).then(|| from + bits.trailing_zeros() as usize)
}

#[inline(never)]
fn further(bytes: &[u8], from: usize, has_controls: bool) -> usize {
    let mut at = from.min(bytes.len());
    while bytes.len() - at >= 16 {
        if at - from >= LONG && !has_controls {
            return at + memchr::memchr2(b'"', b'\\', &bytes[at..]).unwrap_or(bytes.len() - at);
        }
        if let Some(found) = near(bytes, at) {
            return found;
        }
        at += 16;
    }
    let is_special = |byte: &u8| *byte == b'"' || *byte == b'\\' || *byte < 0x20;
    at + bytes[at..].iter().position(is_special).unwrap_or(bytes.len() - at)
}

/// A bit for each of the bytes that are.
#[inline(always)]
fn specials(bytes: u8x16) -> u32 {
    let controls = bytes.simd_eq(bytes.min(u8x16::splat(0x1f)));
    (bytes.simd_eq(u8x16::splat(b'"')) | bytes.simd_eq(u8x16::splat(b'\\')) | controls).to_bitmask()
}

/// The first quote or backslash that stands at `from` or after it.
#[inline(always)]
pub(crate) fn next_quote(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    if let Some(part) = rest.first_chunk::<16>() {
        let part = u8x16::from(*part);
        let bits = (part.simd_eq(u8x16::splat(b'"')) | part.simd_eq(u8x16::splat(b'\\'))).to_bitmask();
        if bits != 0 {
            return Some(from + bits.trailing_zeros() as usize);
        }
    }
    far_quote(rest).map(|at| from + at)
}

#[inline(never)]
fn far_quote(rest: &[u8]) -> Option<usize> {
    memchr::memchr2(b'"', b'\\', rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_next_one_is_found_from_anywhere(
            bytes in prop::collection::vec(prop_oneof![20 => Just(b'x'), 1 => any::<u8>()], 0..400),
            from in 0usize..=400,
        ) {
            let from = from.min(bytes.len());
            let is_special = |at: &usize| matches!(bytes[*at], b'"' | b'\\' | 0..0x20);
            let next = (from..bytes.len()).find(is_special).unwrap_or(bytes.len());
            prop_assert_eq!(next_special(&bytes, from, true), next);
            let quote = (from..bytes.len()).find(|at| matches!(bytes[*at], b'"' | b'\\'));
            prop_assert_eq!(next_quote(&bytes, from), quote);
            if !bytes.iter().any(|byte| *byte < 0x20) {
                prop_assert_eq!(next_special(&bytes, from, false), next);
            }
        }
    }
}
