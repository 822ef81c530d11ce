//! The list against an instance that has many messages.

use mcp_control::api::Message;
use serde_json::json;

use super::*;

/// An instance with so many messages; every tenth is of the tool `ten`.
struct Instance {
    last: u64,
}

pub(super) fn message(sequence: u64) -> Message {
    let is_request = sequence % 2 == 1;
    serde_json::from_value(json!({
        "id": format!("id-{sequence}"), "sequence": sequence, "timestamp": "2026-11-17T10:00:00Z",
        "direction": if is_request { "client_to_server" } else { "server_to_client" }, "transport": "stdio",
        "kind": if is_request { "request" } else { "response" }, "method": "tools/call",
        "tool": if sequence.is_multiple_of(10) { "ten" } else { "other" },
        "answers": if is_request { None } else { Some(sequence - 1) }, "status": if is_request { None } else { Some("ok") },
        "duration_ns": 5_000_000, "size": 100, "conversation": 1, "raw": { "n": sequence },
    }))
    .unwrap()
}

impl Instance {
    fn page(&self, query: &PageQuery) -> Page {
        let matches = |sequence: &u64| query.filter.is_none() || sequence.is_multiple_of(10);
        let limit = query.limit.unwrap() as usize;
        let all = 1..=self.last;
        let sequences: Vec<u64> = match (query.before, query.after) {
            (None, Some(after)) => all.filter(|s| *s > after).filter(matches).take(limit).collect(),
            (before, _) => {
                // As the real one: it looks at so many, and says where to go on.
                let looked: Vec<u64> = all.rev().filter(|s| before.is_none_or(|b| *s < b)).take(500).collect();
                let mut found: Vec<u64> = looked.into_iter().filter(matches).take(limit).collect();
                found.reverse();
                found
            }
        };
        let oldest = match (query.before, query.filter.is_some()) {
            (before, true) => before.unwrap_or(self.last + 1).saturating_sub(500),
            _ => sequences.first().copied().unwrap_or(0),
        };
        Page {
            older: Some(oldest).filter(|oldest| *oldest > 1),
            newer: sequences.last().copied(),
            messages: sequences.into_iter().map(message).collect(),
            last_sequence: self.last,
        }
    }
}

/// The list, and the instance it asks.
struct Play {
    traffic: Traffic,
    common: Common,
    instance: Instance,
    pages: usize,
}

impl Play {
    fn new(last: u64) -> Self {
        let mut play =
            Self { traffic: Traffic::default(), common: Common::default(), instance: Instance { last }, pages: 0 };
        play.traffic.begin(&mut play.common);
        play.settle();
        play.traffic.visible(20);
        play
    }

    /// Answers until nothing more is asked.
    fn settle(&mut self) {
        loop {
            let effects = self.common.take_effects();
            let asked = effects.into_iter().filter_map(|effect| match effect {
                Effect::Page { ticket, query } => Some((ticket, query)),
                _ => None,
            });
            let asked: Vec<_> = asked.collect();
            if asked.is_empty() {
                return;
            }
            for (ticket, query) in asked {
                self.pages += 1;
                assert!(self.pages < 1_000, "it asks for ever");
                let page = Ok(self.instance.page(&query));
                match ticket.asker {
                    Asker::Find => self.traffic.found(ticket, page, &mut self.common),
                    Asker::Count => self.traffic.counted(page),
                    _ => self.traffic.page(ticket, page, &mut self.common),
                }
            }
        }
    }

    fn passes(&mut self) {
        self.instance.last += 1;
        self.traffic.see(message(self.instance.last), &mut self.common);
    }

    fn key(&mut self, command: Command) {
        self.traffic.motion(command, &mut self.common);
        self.traffic.visible(20);
        self.settle();
    }

    fn selected(&self) -> u64 {
        self.traffic.selected.unwrap()
    }
}

#[test]
fn the_newest_are_shown_first_with_one_page() {
    let mut play = Play::new(1_000_000);
    assert_eq!((play.selected(), play.pages), (1_000_000, 1));
    assert_eq!(play.traffic.visible(20).len(), 20);
    assert_eq!(play.traffic.rows.last_sequence(), Some(1_000_000));
}

#[test]
fn it_follows_what_comes_until_somebody_scrolls() {
    let mut play = Play::new(100);
    play.passes();
    assert_eq!(play.selected(), 101);
    play.key(Command::Up);
    play.passes();
    assert_eq!(play.selected(), 100);
    assert!(!play.traffic.follows);
    play.key(Command::Last);
    play.passes();
    assert_eq!(play.selected(), 103);
}

#[test]
fn scrolling_reaches_every_message_and_holds_few() {
    let mut play = Play::new(20_000);
    let mut seen = play.selected();
    while seen > 1 {
        play.key(Command::PageUp);
        assert!(play.selected() < seen, "stuck at {seen}");
        assert!(seen - play.selected() <= 19, "skipped from {seen} to {}", play.selected());
        seen = play.selected();
        assert!(play.traffic.rows.len() <= 4_000);
    }
    while seen < 20_000 {
        play.key(Command::PageDown);
        assert!(play.selected() > seen, "stuck at {seen}");
        seen = play.selected();
    }
    assert!(play.traffic.reaches_end());
}

#[test]
fn the_beginning_and_the_end_are_a_key_away() {
    let mut play = Play::new(1_000_000);
    play.key(Command::First);
    assert_eq!(play.selected(), 1);
    play.passes();
    assert_eq!(play.traffic.rows.first_sequence(), Some(1), "what is live is not shown between");
    play.key(Command::Last);
    assert_eq!(play.selected(), 1_000_001);
}

#[test]
fn a_filter_that_matches_little_is_looked_for_further_back() {
    let mut play = Play::new(10_000);
    play.traffic.set_filter(Some("tool:ten".into()), &mut play.common);
    play.settle();
    assert!(play.traffic.rows.len() >= 60, "{}", play.traffic.rows.len());
    assert!(play.traffic.rows.iter().all(|row| row.message.sequence.is_multiple_of(10)));
    play.key(Command::Up);
    play.traffic.set_filter(None, &mut play.common);
    play.settle();
    assert_eq!(play.selected(), 9_990, "what was looked at stays");
    assert!(play.traffic.rows.get(9_991).is_some());
}

#[test]
fn messages_are_counted_while_a_filter_hides_them() {
    let mut play = Play::new(100);
    play.traffic.set_filter(Some("tool:ten".into()), &mut play.common);
    play.settle();
    play.instance.last = 175;
    play.common.tick(5_000);
    play.traffic.tick(&mut play.common);
    play.settle();
    assert_eq!((play.traffic.newest, play.selected()), (175, 100));
}

#[test]
fn the_beginning_is_shown_even_if_asked_for_at_once() {
    let mut play = Play::new(1);
    (play.instance.last, play.traffic) = (5_000, Traffic::default());
    play.traffic.begin(&mut play.common);
    play.key(Command::First);
    assert_eq!(play.selected(), 1);
}

#[test]
fn matches_are_found_wherever_they_are() {
    let mut play = Play::new(10_000);
    play.traffic.last_filter = Some("tool:ten".into());
    play.key(Command::First);
    play.traffic.find(true, &mut play.common);
    play.settle();
    assert_eq!(play.selected(), 10);
    play.traffic.go_to(5_005, &mut play.common);
    play.settle();
    assert_eq!(play.selected(), 5_005);
    play.traffic.find(false, &mut play.common);
    play.settle();
    assert_eq!(play.selected(), 5_000);
}

#[test]
fn what_was_missed_is_fetched_now_and_then() {
    let mut play = Play::new(100);
    play.instance.last = 50_000;
    play.traffic.miss();
    play.common.tick(1_000);
    play.traffic.tick(&mut play.common);
    play.settle();
    assert_eq!(play.selected(), 50_000);
    let pages = play.pages;
    play.traffic.miss();
    play.common.tick(1_001);
    play.traffic.tick(&mut play.common);
    play.settle();
    assert_eq!(play.pages, pages, "not at once again");
}

#[test]
fn what_passes_while_the_newest_page_is_fetched_comes_behind_it() {
    let mut play = Play::new(100);
    play.traffic.begin(&mut play.common);
    let before = play.instance.page(&PageQuery { limit: Some(PAGE), ..PageQuery::default() });
    (0..5).for_each(|_| play.passes());
    let Some((ticket, _)) = play.traffic.asked else { panic!("a page is on its way") };
    play.traffic.page(ticket, Ok(before), &mut play.common);
    let rows: Vec<u64> = play.traffic.rows.iter().map(|row| row.message.sequence).collect();
    assert_eq!(rows, (1..=105).collect::<Vec<_>>(), "each once, and none left out");
}

#[test]
fn what_another_filter_told_is_not_listed() {
    let mut play = Play::new(100);
    play.traffic.set_filter(Some("tool:ten".into()), &mut play.common);
    play.passes();
    play.settle();
    assert!(play.traffic.rows.iter().all(|row| row.message.sequence.is_multiple_of(10)));
    play.traffic.stream_begins(play.instance.last);
    play.instance.last = 109;
    play.passes();
    assert_eq!(play.traffic.rows.last_sequence(), Some(110));
}

#[test]
fn what_passed_before_a_stream_began_is_fetched() {
    let mut play = Play::new(100);
    play.instance.last = 120;
    play.traffic.stream_begins(120);
    play.common.tick(1_000);
    play.traffic.tick(&mut play.common);
    play.settle();
    assert_eq!(play.selected(), 120);
}

#[test]
fn requests_know_their_answers() {
    let mut play = Play::new(100);
    let row = play.traffic.rows.get(99).unwrap();
    assert_eq!(row.answered.as_ref().unwrap().sequence, 100);
    play.traffic.select(99, &mut play.common);
    assert_eq!(play.traffic.pair(), Some(100));
    play.traffic.select(100, &mut play.common);
    assert_eq!(play.traffic.pair(), Some(99));
}

#[test]
fn a_page_that_nobody_waits_for_is_not_shown() {
    let mut play = Play::new(100);
    let stale = play.common.ticket(Asker::Traffic);
    play.traffic.page(stale, Ok(Page { messages: vec![message(7)], ..Page::default() }), &mut play.common);
    assert_eq!(play.selected(), 100);
}
