//! When two JSON values are the same, and a spelling that is the same for all that are.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mcp_wire::scan;

/// Whether two values that are no objects and no lists say the same.
pub fn is_same_scalar(one: &[u8], other: &[u8]) -> bool {
    match (one.first(), other.first()) {
        (Some(b'"'), Some(b'"')) => match (scan::decode_string(one), scan::decode_string(other)) {
            (Some(one), Some(other)) => one == other,
            _ => one == other,
        },
        (Some(b'-' | b'0'..=b'9'), Some(b'-' | b'0'..=b'9')) => match (Decimal::parse(one), Decimal::parse(other)) {
            (Some(one), Some(other)) => one == other,
            _ => one == other,
        },
        _ => one == other,
    }
}

/// A spelling of `value` that all values share that say the same. Members of the outermost object whose
/// names are in `without` are left out.
pub fn canonical(value: &[u8], without: &[&str]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    write(value.trim_ascii(), without, 0, &mut out);
    out
}

fn write(value: &[u8], without: &[&str], depth: usize, out: &mut Vec<u8>) {
    match value.first() {
        // Deeper than parsers go, spelling is all there is to go by.
        _ if depth > scan::DEPTH_MAX => out.extend_from_slice(value),
        Some(b'{') => write_object(value, without, depth, out),
        Some(b'[') => {
            out.push(b'[');
            for span in scan::batch_items(value) {
                write(&value[span.range()], &[], depth + 1, out);
                out.push(b',');
            }
            out.push(b']');
        }
        Some(b'"') => match scan::decode_string(value) {
            Some(text) => write_text(&text, out),
            None => out.extend_from_slice(value),
        },
        Some(b'-' | b'0'..=b'9') => match Decimal::parse(value) {
            Some(number) => number.write(out),
            None => out.extend_from_slice(value),
        },
        _ => out.extend_from_slice(value),
    }
}

fn write_object(object: &[u8], without: &[&str], depth: usize, out: &mut Vec<u8>) {
    let members: BTreeMap<Cow<'_, str>, _> = scan::object_members(object).collect();
    out.push(b'{');
    for (key, span) in members.iter().filter(|(key, _)| !without.contains(&key.as_ref())) {
        write_text(key, out);
        out.push(b':');
        write(&object[span.range()], &[], depth + 1, out);
        out.push(b',');
    }
    out.push(b'}');
}

/// Length first, so that nothing needs an escape.
fn write_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("\"{}\"", text.len()).as_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// A number by its value: digits without zeros at either end, and the place of the last.
#[derive(Debug, PartialEq, Eq)]
struct Decimal<'a> {
    negative: bool,
    digits: Cow<'a, [u8]>,
    exponent: i64,
}

impl<'a> Decimal<'a> {
    fn parse(number: &'a [u8]) -> Option<Self> {
        let (negative, number) = match number {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, number),
        };
        let split = number.iter().position(|byte| matches!(byte, b'e' | b'E'));
        let (mantissa, mut exponent) = match split {
            Some(at) => (&number[..at], std::str::from_utf8(&number[at + 1..]).ok()?.parse::<i64>().ok()?),
            None => (number, 0),
        };
        let digits: Cow<'a, [u8]> = match mantissa.iter().position(|&byte| byte == b'.') {
            Some(point) => {
                exponent = exponent.checked_sub(i64::try_from(mantissa.len() - point - 1).ok()?)?;
                Cow::Owned([&mantissa[..point], &mantissa[point + 1..]].concat())
            }
            None => Cow::Borrowed(mantissa),
        };
        let first = digits.iter().position(|&digit| digit != b'0').unwrap_or(digits.len());
        let last = digits.iter().rposition(|&digit| digit != b'0').map_or(first, |at| at + 1);
        if first == last {
            return Some(Self { negative: false, digits: Cow::Borrowed(b"0"), exponent: 0 });
        }
        exponent = exponent.checked_add(i64::try_from(digits.len() - last).ok()?)?;
        let digits = match digits {
            Cow::Borrowed(digits) => Cow::Borrowed(&digits[first..last]),
            Cow::Owned(digits) => Cow::Owned(digits[first..last].to_vec()),
        };
        Some(Self { negative, digits, exponent })
    }

    fn write(&self, out: &mut Vec<u8>) {
        if self.negative {
            out.push(b'-');
        }
        out.extend_from_slice(&self.digits);
        out.extend_from_slice(format!("e{}", self.exponent).as_bytes());
    }
}
