use proptest::prelude::*;

use super::*;

fn page(list: &[&str], cursor: Option<&str>, size: usize) -> Result<Cut, BadCursor> {
    cut(ListKind::Tools, list, |name| name, &Digest::of(list.iter().copied()), cursor, size)
}

#[test]
fn pages_make_up_the_list() {
    let list = ["a", "b", "c", "d", "e"];
    let first = page(&list, None, 2).unwrap();
    assert_eq!(first.items, 0..2);
    let second = page(&list, first.next.as_deref(), 2).unwrap();
    assert_eq!(second.items, 2..4);
    let third = page(&list, second.next.as_deref(), 2).unwrap();
    assert_eq!((third.items, third.next), (4..5, None));
    assert_eq!(page(&list, None, 5).unwrap(), Cut { items: 0..5, next: None });
    assert_eq!(page(&[], None, 5).unwrap(), Cut { items: 0..0, next: None });
    assert_eq!(page(&list, None, 0).unwrap().items, 0..1, "a page has something on it");
    assert_eq!(page(&list, None, usize::MAX).unwrap().items, 0..5);
}

#[test]
fn a_changed_list_goes_on_after_the_last_item() {
    let cursor = page(&["a", "b", "c", "d"], None, 2).unwrap().next;
    let after = |list: &[&str]| page(list, cursor.as_deref(), 2).map(|cut| cut.items);
    assert_eq!(after(&["a", "b", "c"]), Ok(2..3));
    assert_eq!(after(&["b", "c", "d"]), Ok(1..3));
    assert_eq!(after(&["0", "a", "b", "b2", "c", "d"]), Ok(3..5));
    assert_eq!(after(&["a", "b"]), Ok(2..2), "nothing is left");
    assert_eq!(after(&["a", "c", "d"]), Err(BadCursor));
    assert_eq!(after(&[]), Err(BadCursor));
}

#[test]
fn what_is_not_ours_is_refused() {
    let list = ["a", "b", "c", "d"];
    let good = page(&list, None, 2).unwrap().next.unwrap();
    assert!(page(&list, Some(&good), 2).is_ok());
    let forged = |json: &str| BASE64URL.encode(json);
    let read = String::from_utf8(BASE64URL.decode(&good).unwrap()).unwrap();
    for bad in [
        String::new(),
        "2".into(),
        "%%%".into(),
        "漢".into(),
        format!("{good}="),
        format!("{good}A"),
        good[1..].to_owned(),
        "A".repeat(100_000),
        forged("{}"),
        forged("[1]"),
        forged(r#"{"offset":2}"#),
        forged(&read.replace("\"offset\":2", "\"offset\":3")),
        forged(&read.replace("\"offset\":2", "\"offset\":0")),
        forged(&read.replace("\"offset\":2", "\"offset\":-1")),
        forged(&read.replace("\"offset\":2", "\"offset\":18446744073709551615")),
        forged(&read.replace("\"offset\":2", "\"offset\": 2")),
        forged(&read.replace("\"tools\"", "\"prompts\"")),
        forged(&read.replace('}', ",\"more\":1}")),
    ] {
        assert_eq!(page(&list, Some(&bad), 2), Err(BadCursor), "{}", &bad[..bad.len().min(200)]);
    }
    let prompts = cut(ListKind::Prompts, &list, |name| name, &Digest::of(list), Some(&good), 2);
    assert_eq!(prompts, Err(BadCursor));
}

#[test]
fn a_list_is_told_by_names_and_order() {
    assert_ne!(Digest::of(["ab", "c"]), Digest::of(["a", "bc"]));
    assert_ne!(Digest::of(["a", "b"]), Digest::of(["b", "a"]));
    assert_eq!(Digest::of(["a", "b"]), Digest::of(["a", "b"]));
}

proptest! {
    #[test]
    fn every_item_is_on_one_page(count in 0usize..50, size in 1usize..10) {
        let names: Vec<String> = (0..count).map(|at| format!("n{at}")).collect();
        let list: Vec<&str> = names.iter().map(String::as_str).collect();
        let (mut seen, mut cursor) = (0, None);
        loop {
            let cut = page(&list, cursor.as_deref(), size).unwrap();
            prop_assert_eq!(cut.items.start, seen);
            seen = cut.items.end;
            let Some(next) = cut.next else { break };
            prop_assert_ne!(Some(&next), cursor.as_ref(), "no cursor leads to itself");
            cursor = Some(next);
        }
        prop_assert_eq!(seen, count);
    }

    #[test]
    fn any_cursor_is_survived(cursor in any::<String>(), json in any::<String>()) {
        let _ = page(&["a", "b"], Some(&cursor), 1);
        let _ = page(&["a", "b"], Some(&BASE64URL.encode(json)), 1);
    }
}
