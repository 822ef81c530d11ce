//! What particular streams are cut into, and that no stream depends on how it arrives.

use proptest::prelude::*;

use super::*;
use crate::checks::{self, drain};
use crate::framing::MESSAGE_BYTES_MAX;
use crate::scan;

const LIMIT: usize = 64;

fn cut(stream: &str, chunk: usize) -> (Vec<SseCut>, Option<Bytes>) {
    let mut deframer = SseDeframer::new(LIMIT);
    let mut cuts = Vec::new();
    for piece in stream.as_bytes().chunks(chunk) {
        deframer.push(&Bytes::copy_from_slice(piece), &mut cuts);
    }
    (cuts, deframer.finish())
}

fn show(cut: &SseCut) -> String {
    let text = |bytes: &Option<Bytes>| {
        bytes.as_ref().map_or("-".into(), |bytes| format!("{:?}", bytes.to_vec().escape_ascii().to_string()))
    };
    match cut {
        SseCut::Event(event) => {
            let retry = event.retry.map_or("-".into(), |retry| retry.to_string());
            format!("{} {} {} {retry}", text(&event.data), text(&event.id), text(&event.event))
        }
        SseCut::TooLarge { size, head, tail } => {
            format!("too large: {size} {} {}", head.escape_ascii(), tail.escape_ascii())
        }
    }
}

/// Each event as `data id event retry`.
#[track_caller]
fn check(stream: &str, expected: &[&str]) {
    for chunk in [1, 2, 3, 7, 4096] {
        let shown: Vec<String> = cut(stream, chunk).0.iter().map(show).collect();
        assert_eq!(shown, expected, "in reads of {chunk}");
    }
    checks::events_survive_any_reads(stream.as_bytes(), &[1, 5], LIMIT);
}

#[test]
fn events() {
    check("data: {}\n\n", &[r#""{}" - - -"#]);
    check("event: message\nid: 5\ndata: {}\n\n", &[r#""{}" "5" "message" -"#]);
    check("data:{}\n\ndata:  {}\n\n", &[r#""{}" - - -"#, r#"" {}" - - -"#]);
    check("data: a\ndata: b\n\n", &[r#""a\\nb" - - -"#]);
    check("data\ndata\nid: 1\ndata: x\n\n", &[r#""\\n\\nx" "1" - -"#]);
    check("data: a:b\nother: 1\nDATA: 2\n\n", &[r#""a:b" - - -"#]);
    check("id: 1\nid: 2\nevent: a\nevent\nretry: 3\nretry: 4\n\n", &[r#"- "2" "" 4"#]);
    check("id: 1\nretry: 3\nid: a\0b\nretry: -1\nretry: 1x\nretry\n\n", &[r#"- "1" - 3"#]);
    check("id\nretry: 99999999999999999999\n\n", &[r#"- "" - -"#]);
    check(": keep-alive\n\ndata: 1\n\n", &["- - - -", r#""1" - - -"#]);
    check("\n\n", &["- - - -", "- - - -"]);
    check("data: unended\n", &[]);
}

#[test]
fn line_ends_of_every_kind() {
    check("data: 1\r\n\r\ndata: 2\r\n\r\n", &[r#""1" - - -"#, r#""2" - - -"#]);
    check("data: 1\r\rdata: 2\r\r", &[r#""1" - - -"#, r#""2" - - -"#]);
    check("data: 1\r\n\ndata: 2\n\r\n", &[r#""1" - - -"#, r#""2" - - -"#]);
    check("data: 1\n\r\r\n\n", &[r#""1" - - -"#, "- - - -", "- - - -"]);
    check("\u{feff}data: 1\n\ndata: 2\n\n", &[r#""1" - - -"#, r#""2" - - -"#]);
    check("\u{feff}\n\u{feff}data: 2\n\n", &["- - - -", "- - - -"]);
}

#[test]
fn an_event_does_not_wait_for_the_second_half_of_its_line_end() {
    let mut deframer = SseDeframer::new(LIMIT);
    let mut cuts = Vec::new();
    deframer.push(&Bytes::from_static(b"data: 1\r\n\r"), &mut cuts);
    assert_eq!(cuts.len(), 1);
    deframer.push(&Bytes::from_static(b"\n"), &mut cuts);
    assert_eq!(cuts.len(), 1);
    deframer.push(&Bytes::from_static(b"data: 2\n\n"), &mut cuts);
    let raws: Vec<&[u8]> =
        cuts.iter().map(|cut| if let SseCut::Event(event) = cut { &event.raw[..] } else { b"" }).collect();
    assert_eq!(raws, [&b"data: 1\r\n\r"[..], b"\ndata: 2\n\n"]);
    assert_eq!(deframer.finish(), None);
}

#[test]
fn only_an_event_left_unended_is_told() {
    let rest = |stream| cut(stream, 3).1;
    assert_eq!(rest("data: 1\n\ndata: 2\n"), Some(Bytes::from_static(b"data: 2\n")));
    assert_eq!(rest(": a\ndat"), Some(Bytes::from_static(b": a\ndat")));
    assert_eq!(rest("data: 1\n\n: a\n: b"), None);
    assert_eq!(rest("data: 1\r\r\n"), None);
    assert_eq!(rest(""), None);
    let oversize = format!("data: {}", "x".repeat(100));
    assert_eq!(rest(&oversize), Some(oversize.replace("data: ", "").into()));
}

#[test]
fn an_oversize_event_is_passed_over() {
    let large = "x".repeat(LIMIT);
    check(
        &format!("data: 1\n\ndata: {large}\n\ndata: 2\n\n"),
        &[r#""1" - - -"#, &format!("too large: 71 {large} {large}"), r#""2" - - -"#],
    );
    check(
        &format!(": {large}\r\ndata:a\r\ndata\r\nid: 1\r\ndata: b\r\n\r\ndata: 2\r\n\r\n"),
        &[r"too large: 93 a\n\nb a\n\nb", r#""2" - - -"#],
    );
    let full = "x".repeat(LIMIT - "data: \n".len());
    check(&format!("data: {full}\n\n"), &[&format!("{full:?} - - -")]);
    check(&format!("\u{feff}data: {full}\r\n\r\n"), &[&format!("{full:?} - - -")]);
    check(&format!("data: {full}x\n\n"), &[&format!("too large: 65 {full}x {full}x")]);
}

#[test]
fn an_oversize_event_still_says_whom_it_concerns() {
    let stream = format!("event: message\ndata: {{\"id\":41,\"result\":\"{}\"}}\n\n", "x".repeat(100_000));
    for chunk in [1, 1000, 1_000_000] {
        let (cuts, _) = cut(&stream, chunk);
        let [SseCut::TooLarge { size, head, tail }] = &cuts[..] else { panic!("{} cuts", cuts.len()) };
        assert_eq!(*size, stream.len() as u64 - 1);
        assert_eq!((head.len(), tail.len()), (HEAD_KEPT, TAIL_KEPT));
        assert_eq!(scan::salvage(head, tail).map(|found| found.id), Some(&b"41"[..]));
    }
}

#[test]
fn whole_events_are_not_copied() {
    let chunk = Bytes::from_static(
        b"\xef\xbb\xbf: hello\n\nevent: message\nid: 1\ndata: {}\n\nid: 2\r\ndata: []\r\n\r\ndata: part",
    );
    let mut deframer = SseDeframer::new(LIMIT);
    let mut cuts = Vec::new();
    deframer.push(&chunk, &mut cuts);
    assert_eq!(cuts.len(), 3);
    let place = chunk.as_ptr_range();
    for cut in cuts {
        let SseCut::Event(event) = cut else { panic!("{cut:?}") };
        for part in [Some(event.raw), event.data, event.id, event.event].into_iter().flatten() {
            assert!(place.contains(&part.as_ptr()), "{part:?} is a copy");
        }
    }
    assert_eq!(deframer.finish(), Some(Bytes::from_static(b"data: part")));
}

#[test]
fn what_we_write() {
    let written = |data: &'static str, id| {
        let mut out = Gather::default();
        encode_event(id, &Bytes::from_static(data.as_bytes()), &mut out);
        String::from_utf8(drain(&mut out)).expect("text")
    };
    assert_eq!(written("{}", None), "event: message\ndata: {}\n\n");
    assert_eq!(written("{\n}\r\n", Some(b"9")), "event: message\nid: 9\ndata: {\ndata: }\ndata: \n\n");
    assert_eq!(written("", None), "event: message\ndata: \n\n");
    let mut out = Gather::default();
    encode_endpoint("/messages?s=1", &mut out);
    assert_eq!(drain(&mut out), b"event: endpoint\ndata: /messages?s=1\n\n");
    assert_eq!(priming_event(b"s-0", None), "id: s-0\ndata: \n\n");
    assert_eq!(priming_event(b"s-0", Some(500)), "id: s-0\nretry: 500\ndata: \n\n");
    check(str::from_utf8(KEEP_ALIVE).expect("text"), &["- - - -"]);
}

#[test]
fn large_data_on_one_line_is_shared() {
    let data = Bytes::from(vec![b'x'; 100_000]);
    let mut out = Gather::default();
    encode_event(None, &data, &mut out);
    let mut slices = [std::io::IoSlice::new(&[]); crate::gather::SLICES];
    assert!(out.slices(&mut slices).iter().any(|slice| slice.as_ptr() == data.as_ptr()));
}

fn streams() -> impl Strategy<Value = Vec<u8>> {
    let token = prop::sample::select(vec![
        "\n",
        "\n",
        "\r\n",
        "\r",
        "\n\n",
        "data: {}",
        "data",
        "data:",
        ":",
        " ",
        "id: 7",
        "event: message",
        "retry: 5",
        "\u{feff}",
        "\0",
        "xxxxxxxxxxxxxxx",
        "da",
        "ta: x",
    ]);
    prop::collection::vec(token, 0..32).prop_map(|tokens| tokens.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn events_survive_any_reads(stream in streams(), chunks in prop::collection::vec(1u8..20, 0..8), limit in 0usize..60) {
        checks::events_survive_any_reads(&stream, &chunks, MESSAGE_BYTES_MAX);
        checks::events_survive_any_reads(&stream, &chunks, limit);
    }

    #[test]
    fn any_bytes_are_survived(stream in prop::collection::vec(any::<u8>(), 0..300), chunks in prop::collection::vec(any::<u8>(), 0..8)) {
        checks::events_survive_any_reads(&stream, &chunks, LIMIT);
        checks::events_carry_any_data(&stream, &chunks);
    }

    #[test]
    fn any_data_is_carried(data in streams(), chunks in prop::collection::vec(1u8..20, 0..8)) {
        checks::events_carry_any_data(&data, &chunks);
    }
}
