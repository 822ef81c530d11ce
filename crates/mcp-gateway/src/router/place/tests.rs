use mcp_wire::splice::splice_all;
use proptest::prelude::*;

use super::*;

#[track_caller]
fn check_set(object: &str, wanted: &[Member<'_>], expected: &str) {
    let mut edits = Edits::new();
    set_members(object.as_bytes(), whole_object(object.as_bytes()).unwrap(), wanted, &mut edits);
    assert_eq!(splice_all(object.as_bytes(), &mut edits), expected);
}

#[test]
fn members_are_set_where_they_stand_or_come_last() {
    let wanted = [("a", Bytes::from("1")), ("b", Bytes::from("2"))];
    check_set("{}", &wanted, r#"{"a":1,"b":2}"#);
    check_set(" {  } ", &wanted, r#" {  "a":1,"b":2} "#);
    check_set(r#"{ "x" : 1e400 }"#, &wanted, r#"{ "x" : 1e400 ,"a":1,"b":2}"#);
    check_set(r#"{"b":{"b":7},"x":0}"#, &wanted, r#"{"b":2,"x":0,"a":1}"#);
    check_set(r#"{"b":7,"a":1,"\u0062":8}"#, &wanted, r#"{"b":2,"a":1,"\u0062":2}"#);
}

#[test]
fn members_of_meta_find_it_or_make_it() {
    #[track_caller]
    fn check(object: &str, expected: &str) {
        let mut edits = Edits::new();
        let wanted = [("r", Bytes::from("0"))];
        let meta = [("m", Bytes::from("1"))];
        set_members_and_meta(object.as_bytes(), 0..object.len(), &wanted, &meta, &mut edits);
        assert_eq!(splice_all(object.as_bytes(), &mut edits), expected);
    }
    check("{}", r#"{"r":0,"_meta":{"m":1}}"#);
    check(r#"{"_meta":{}}"#, r#"{"_meta":{"m":1},"r":0}"#);
    check(r#"{"_meta": {"m": 2 ,"n":[]},"r":0}"#, r#"{"_meta": {"m": 1 ,"n":[]},"r":0}"#);
    check(r#"{"_meta":null}"#, r#"{"_meta":{"m":1},"r":0}"#);
    check(r#"{"_meta":[{"m":1}]}"#, r#"{"_meta":{"m":1},"r":0}"#);
    check(r#"{"_meta":{"a":1},"_meta":{}}"#, r#"{"_meta":{"a":1,"m":1},"_meta":{"m":1},"r":0}"#);
}

#[test]
fn members_leave_with_their_commas() {
    #[track_caller]
    fn check(object: &str, expected: &str) {
        let mut edits = Edits::new();
        cut_members(object.as_bytes(), 0..object.len(), |name| name.starts_with('x'), &mut edits);
        assert_eq!(splice_all(object.as_bytes(), &mut edits), expected);
    }
    check("{}", "{}");
    check("[]", "[]");
    check(r#"{"a":1}"#, r#"{"a":1}"#);
    check(r#"{ "x":1 }"#, "{  }");
    check(r#"{"x":1,"xx":{"a":[]}}"#, "{}");
    check(r#"{"x":1, "a":2}"#, r#"{"a":2}"#);
    check(r#"{"a":2 , "x":1}"#, r#"{"a":2}"#);
    check(r#"{"a":2 , "\u0078":1,"x":2, "b":3 ,"xy":4 }"#, r#"{"a":2 , "b":3 }"#);
}

#[test]
fn what_could_spoil_a_list_is_not_sound() {
    for sound in ["{}", r#"{"a":123456789012345678901234567890}"#, r#""\ud83d\ude00""#, r#""é""#, "1e400"] {
        assert!(is_sound(sound.as_bytes()), "{sound}");
    }
    let deep = |levels: usize| ["[".repeat(levels), "]".repeat(levels)].concat();
    assert!(is_sound(deep(DEPTH_MAX).as_bytes()));
    for unsound in ["", "{", r#"{"a":}"#, r#""\ud800""#, r#"{"\uDC00":1}"#, &deep(DEPTH_MAX + 1), &deep(100_000)] {
        assert!(!is_sound(unsound.as_bytes()), "{}", &unsound[..unsound.len().min(20)]);
    }
    assert!(!is_sound(b"\"\xff\""));
}

proptest! {
    #[test]
    fn any_bytes_can_be_gone_through(text in r#"[\[\]{}",:axm_et1 \\u0]{0,40}"#) {
        let bytes = text.as_bytes();
        let mut edits = Edits::new();
        if let Some(whole) = whole_object(bytes) {
            cut_members(bytes, whole.clone(), |name| name == "a", &mut edits);
            splice_all(bytes, &mut edits);
            edits.clear();
            set_members_and_meta(bytes, whole, &[("a", "1".into())], &[("m", "1".into())], &mut edits);
            splice_all(bytes, &mut edits);
        }
        at_path(bytes, &["a", "m"]);
        is_sound(bytes);
    }
}
