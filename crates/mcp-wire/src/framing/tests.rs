//! What the deframer cuts from particular streams, and that reads never matter.

use proptest::prelude::*;

use super::*;
use crate::checks;

const LIMIT: usize = 32;

fn cut(stream: &[u8], chunk: usize) -> Vec<String> {
    let mut deframer = Deframer::new(LIMIT);
    let mut cuts = Vec::new();
    for piece in stream.chunks(chunk) {
        deframer.buffer().extend_from_slice(piece);
        deframer.cut(&mut cuts);
    }
    deframer.finish(&mut cuts);
    cuts.into_iter()
        .map(|cut| match cut {
            Cut::Frame(frame) => {
                let bom = if frame.bom { "bom " } else { "" };
                format!("{bom}{:?} {}", frame.ending, String::from_utf8_lossy(&frame.bytes))
            }
            Cut::TooLarge { size, .. } => format!("too large {size}"),
            Cut::Unframed { sample } => format!("unframed {}", String::from_utf8_lossy(&sample)),
        })
        .collect()
}

#[track_caller]
fn check(stream: &str, expected: &[&str]) {
    for chunk in [1, 2, 3, 7, 4096] {
        assert_eq!(cut(stream.as_bytes(), chunk), expected, "in reads of {chunk}");
    }
}

#[test]
fn lines() {
    check("{\"a\":1}\n{\"b\":2}\r\n[3]", &["Lf {\"a\":1}", "CrLf {\"b\":2}", "EndOfStream [3]"]);
    check("\u{feff}{}\n\n {}\n", &["bom Lf {}", "Lf ", "Lf  {}"]);
    check("banner\n{}\n", &["Lf banner", "Lf {}"]);
    check("", &[]);
    check("\n\n", &["Lf ", "Lf "]);
}

#[test]
fn the_first_bytes_tell_whether_messages_come() {
    for stream in ["{", "[", " \r\n{\"id\":1}", "\u{feff}{}", "Content-Length: 2", "content-type: x"] {
        assert_eq!(opens_messages(stream.as_bytes()), Some(true), "{stream}");
    }
    for stream in ["q", "\u{1b}[A", "hello {}", "Contents", ":wq\n"] {
        assert_eq!(opens_messages(stream.as_bytes()), Some(false), "{stream}");
    }
    for stream in ["", " \n", "C", "Content-L"] {
        assert_eq!(opens_messages(stream.as_bytes()), None, "{stream}");
    }
}

#[test]
fn an_oversize_line_fails_alone() {
    let long = "x".repeat(LIMIT + 1);
    check(&format!("{{}}\n{long}\n{{}}\n"), &["Lf {}", "too large 33", "Lf {}"]);
    check(&format!("{long}\r\n{{}}\n"), &["too large 33", "Lf {}"]);
    check(&"y".repeat(1000), &["too large 1000"]);
    check(&format!("{}\n", "x".repeat(LIMIT)), &[&format!("Lf {}", "x".repeat(LIMIT))]);
}

#[test]
fn counted() {
    check("Content-Length: 2\r\n\r\n{}Content-Length: 3\r\n\r\n[1]", &["Counted {}", "Counted [1]"]);
    check("content-length:2\n\n{}\r\nContent-Type: x\r\nContent-Length: 0\r\n\r\n", &["Counted {}", "Counted "]);
    check("starting up\nContent-Length: 2\r\n\r\n{}", &["Lf starting up", "Counted {}"]);
    check("Content-Length: 4\r\n\r\n{\n}\n", &["Counted {\n}\n"]);
}

#[test]
fn what_no_header_announces_is_passed_over() {
    check_last("Content-Length: 2\r\n\r\n{}{}\nContent-Length: 3\r\n\r\n[1]", "Counted [1]");
    check_last("Content-Length: x\r\n\r\nContent-Length: 2\r\n\r\n{}", "Counted {}");
    check_last("Content-Length: 2\r\nContent-Length: 3\r\n\r\n[1]Content-Length: 2\r\n\r\n{}", "Counted {}");
    check_last(
        &format!("Content-Length: 2\r\n\r\n{{}}{}Content-Length: 4\r\n\r\n[22]", "X: y\r\n".repeat(4000)),
        "Counted [22]",
    );
    check_last(&format!("Content-Length: 99\r\n\r\n{}Content-Length: 2\r\n\r\n[]", "z".repeat(99)), "Counted []");
    check_last(
        &format!("Content-Length: 1000000000000\r\n\r\n{}Content-Length: 2\r\n\r\n[]", "z".repeat(99)),
        "Counted []",
    );
    check_last(
        &format!("Content-Length: 99999999999999999999999\r\n\r\n{}Content-Length: 2\r\n\r\n[]", "z".repeat(99)),
        "Counted []",
    );
}

#[track_caller]
fn check_last(stream: &str, expected: &str) {
    for chunk in [1, 5, 4096] {
        let cuts = cut(stream.as_bytes(), chunk);
        assert_eq!(cuts.last().map(String::as_str), Some(expected), "in reads of {chunk}: {cuts:?}");
    }
}

#[test]
fn a_counted_message_crosses_to_lines_on_one_line() {
    let mut out = Gather::default();
    encode((&Frame::composed(Bytes::from_static(b"{\r\n\"a\":1}"))).into(), Framing::Line, b"\r\n", &mut out);
    let mut slices = [std::io::IoSlice::new(&[]); crate::gather::SLICES];
    let bytes: Vec<u8> = out.slices(&mut slices).iter().flat_map(|slice| slice.to_vec()).collect();
    assert_eq!(bytes, b"{  \"a\":1}\r\n");
}

#[test]
fn a_spent_buffer_is_used_again() {
    let mut deframer = Deframer::new(LIMIT);
    let mut cuts = Vec::new();
    let mut places = std::collections::HashSet::new();
    for _ in 0..100 {
        deframer.buffer().reserve(4096);
        deframer.buffer().extend_from_slice(b"{}\n{}\n{");
        deframer.cut(&mut cuts);
        deframer.buffer().extend_from_slice(b"}\n");
        deframer.cut(&mut cuts);
        places.insert(deframer.buffer().as_ptr());
        cuts.clear();
    }
    assert!(places.len() <= 4, "{} buffers for 100 batches", places.len());
}

fn streams() -> impl Strategy<Value = Vec<u8>> {
    let token = prop::sample::select(vec![
        "{}",
        "\n",
        "\r\n",
        "\r",
        "{\"id\":1}",
        "Content-Length: 5",
        "content-length:2\r\n\r\n{}",
        "\r\n\r\n",
        "Content-",
        "C",
        "\u{feff}",
        " ",
        "\t",
        "garbage",
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "Content-Type: a\n",
    ]);
    prop::collection::vec(token, 0..24).prop_map(|tokens| tokens.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn lines_survive_any_reads(stream in streams(), chunk in 1usize..50) {
        checks::lines_survive_any_reads(&stream, chunk, MESSAGE_BYTES_MAX);
        checks::lines_survive_any_reads(&stream, chunk, LIMIT);
    }

    #[test]
    fn any_stream_is_survived(stream in prop::collection::vec(any::<u8>(), 0..300), chunk in 1usize..50) {
        checks::any_stream_is_survived(&stream, chunk, LIMIT);
        checks::lines_survive_any_reads(&stream, chunk, LIMIT);
    }

    #[test]
    fn counted_messages_survive_any_reads(messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..8), chunk in 1usize..300) {
        checks::counted_messages_survive_any_reads(&messages, chunk);
    }
}
