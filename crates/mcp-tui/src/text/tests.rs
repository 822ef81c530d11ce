use super::chance::Chance;
use super::*;

#[test]
fn hostile_text_is_seen() {
    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(clean(text), expected);
    }
    check("plain", "plain");
    check("déjà vu, 漢字, हिन्दी, ❤\u{fe0f}", "déjà vu, 漢字, हिन्दी, ❤\u{fe0f}");
    check("a\nb\tc\r\n", "a␊b␉c␍␊");
    check("\x1b[2J", "␛[2J");
    check("a\u{200b}b\u{202e}c\u{e0041}", "a⟨U+200B⟩b⟨U+202E⟩c⟨U+E0041⟩");
    check("\u{301}lone", "⟨U+0301⟩lone");
    check("x\u{e0101}\u{fe01}y", "x⟨U+E0101⟩⟨U+FE01⟩y");
    check("a\u{fe0f}\u{fe0e}", "a⟨U+FE0F⟩⟨U+FE0E⟩");
    check("\u{3164}", "⟨U+3164⟩");
}

#[test]
fn marks_without_end_stay_in_a_few_cells() {
    let flood = format!("a{}b", "\u{301}".repeat(100_000));
    let shown = clean(&flood);
    assert!(shown.ends_with("⟨+99990⟩b"), "{shown}");
    assert!(shown.len() < 60);
    assert!(fit(&flood, 20, false).len() < 60);
    assert!(clean(&"\u{1100}".repeat(50_000)).len() < 60);
}

#[test]
fn text_is_cut_between_letters() {
    #[track_caller]
    fn check(text: &str, cells: usize, expected: &str) {
        assert_eq!(fit(text, cells, false), expected);
    }
    check("search", 6, "search");
    check("search", 5, "sear…");
    check("漢字漢字", 5, "漢字…");
    check("漢字漢字", 4, "漢…");
    check("漢字", 1, "…");
    check("漢字", 0, "");
    check("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…");
    check("\x1b\x1b\x1b", 2, "␛…");
    assert_eq!(fit("a→b\x1b", 9, true), "a->b^[");
    assert_eq!(fit("searching", 5, true), "sea..");
    assert_eq!(fit("searching", 1, true), "");
    assert_eq!(pad("漢", 4), "漢  ");
    assert_eq!(pad("wide", 2), "wide");
}

#[test]
fn a_cut_does_not_read_what_it_cuts() {
    let huge = "é".repeat(20 << 20);
    for _ in 0..1000 {
        assert_eq!(width(&fit(&huge, 80, false)), 80);
    }
}

#[test]
fn whatever_comes_in_nothing_acts_on_a_terminal() {
    let mut chance = Chance::new(1);
    for _ in 0..4000 {
        let text = chance.text(24);
        let shown = clean(&text);
        assert!(!shown.chars().any(|c| c.is_control() || is_deceptive(c)), "{text:?} became {shown:?}");
        assert!(shown.graphemes(true).all(|letter| letter.width() > 0), "{text:?} became {shown:?}");
        assert_eq!(clean(&shown), shown, "clean text stays");
        let cells = chance.below(30);
        for is_ascii in [false, true] {
            let cut = fit(&text, cells, is_ascii);
            assert!(width(&cut) <= cells, "{text:?} in {cells} became {cut:?}");
        }
        assert!(width(&pad(&shown, cells)) >= cells);
    }
}

#[test]
fn glyphs_of_our_own_have_a_spelling_in_ascii() {
    assert_eq!(ascii("▾ params ● rec ✗ deny · 2 held…"), "v params * rec x deny . 2 held..");
    assert_eq!(ascii("␛[31m ⟨U+202E⟩ 漢"), "^[[31m <U+202E> 漢");
}

#[test]
fn sizes_and_times_fit_a_column() {
    let sizes = [0, 999, 1000, 9_999, 10_000, 999_999, 67_108_864, u64::MAX].map(human_size);
    assert_eq!(sizes, ["0 B", "999 B", "1.0 kB", "9.9 kB", "10 kB", "999 kB", "67 MB", "18 EB"]);
    let times = [0, 450_000, 8_000_000, 312_900_000, 999_999_999, 2_140_000_000, 59_999_000_000].map(human_time);
    assert_eq!(times, ["0.0 ms", "0.4 ms", "8 ms", "312 ms", "999 ms", "2.1 s", "59.9 s"]);
    assert_eq!([64_000_000_000, 12_000_000_000_000].map(human_time), ["1m 04s", "3h 20m"]);
    assert_eq!([0, 31_000, 240_000, 7_200_000, 800_000_000].map(age), ["now", "31 s", "4 min", "2 h", "9 d"]);
    assert_eq!(clock("2026-11-15T14:02:11.254Z"), "14:02:11.2");
    assert_eq!(clock("2026-11-15T14:02:11+02:00"), "12:02:11.0");
    assert_eq!(clock("\x1b[2J"), "--:--:--.-");
}
