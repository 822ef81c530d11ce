use mcp_control::api::{Deny, Held, Modify, Replay};
use serde_json::value::RawValue;

use super::*;
use crate::testing::{app, call, held, message};
use crate::text;

fn modify() -> Act {
    let raw = RawValue::from_string("{}".into()).unwrap();
    Act::Modify(7, Modify { raw, raw_headers: false, confirm: false })
}

fn move_about(coach: &mut Coach, common: &Common) {
    (0..MOVES).for_each(|_| coach.did(Command::Up, true, common));
}

/// Each step, by what does it.
fn steps() -> [fn(&mut Coach, &Common); 8] {
    [
        move_about,
        |coach, _| coach.filtered(),
        |coach, common| coach.acted(&Act::Mode(Mode::Intercept), common),
        |coach, common| coach.acted(&modify(), common),
        |coach, common| coach.acted(&Act::Mode(Mode::Passthrough), common),
        |coach, common| coach.acted(&Act::Replay { sequence: 2, replay: Replay::default(), run: 1 }, common),
        |coach, common| coach.acted(&Act::Deny(9, Deny::default()), common),
        |coach, common| coach.acted(&Act::Save("/tmp/x".into()), common),
    ]
}

#[test]
fn each_step_is_done_by_doing_it() {
    let (common, mut coach) = (app().common, Coach::default());
    for (at, (step, does)) in Step::TO_DO.into_iter().zip(steps()).enumerate() {
        assert_eq!((coach.step(), coach.progress()), (step, (at + 1, 8)));
        assert_eq!(coach.stage.wants_a_question(), step == Step::Deny);
        does(&mut coach, &common);
    }
    assert_eq!((coach.step(), coach.progress()), (Step::Done, (9, 8)));
    coach.skip();
    assert_eq!(coach.step(), Step::Done);
}

#[test]
fn any_order_counts_and_what_is_done_stays_done() {
    let common = app().common;
    // From each step on, round to the one before it; and backwards.
    let rounds = (0..8).map(|from| (from..from + 8).map(|at| at % 8).collect::<Vec<_>>());
    for order in rounds.chain([(0..8).rev().collect()]) {
        let mut coach = Coach::default();
        for (count, at) in (1..).zip(&order) {
            steps()[*at](&mut coach, &common);
            let done: Vec<_> = order[..count].iter().map(|at| Step::TO_DO[*at]).collect();
            let first = Step::TO_DO.into_iter().find(|step| !done.contains(step)).unwrap_or(Step::Done);
            assert_eq!(coach.step(), first, "after {done:?}");
            assert_eq!(coach.done_ahead(), done.iter().filter(|step| step.bit() > first.bit()).count());
        }
        assert_eq!(coach.step(), Step::Done, "{order:?}");
    }
}

#[test]
fn a_step_that_is_skipped_leads_past_those_that_are_done() {
    let (common, mut coach) = (app().common, Coach::default());
    coach.filtered();
    coach.acted(&Act::Mode(Mode::Intercept), &common);
    coach.skip();
    assert_eq!(coach.step(), Step::Edit);
}

#[test]
fn keys_that_move_nothing_do_not_count() {
    let (common, mut coach) = (app().common, Coach::default());
    (0..9).for_each(|_| coach.did(Command::Down, false, &common));
    assert_eq!(coach.step(), Step::Watch);
}

#[test]
fn a_call_that_is_held_has_numbers() {
    let (mut common, mut coach) = (app().common, Coach::default());
    assert!(!coach.stage.wants_numbers());
    coach.did(Command::Hold, false, &common);
    assert!(coach.stage.wants_numbers(), "from the key on, in whatever step");
    common.standing.as_mut().unwrap().mode = Mode::Intercept;
    coach.did(Command::Hold, false, &common);
    assert!(coach.stage.wants_numbers(), "until nothing is held any more");
    coach.acted(&Act::Mode(Mode::Passthrough), &common);
    assert!(!coach.stage.wants_numbers());
}

#[test]
fn what_to_do_goes_by_what_is_held() {
    let (mut common, mut coach) = (app().common, Coach::default());
    (0..3).for_each(|_| coach.skip());
    assert_eq!(coach.step(), Step::Edit);
    let answer = held(message(4, r#"{"jsonrpc":"2.0","id":3,"result":{}}"#), "intercept");
    let call = held(call(3, "add", "{}"), "intercept");
    for (mode, held, begins) in [
        (Mode::Passthrough, vec![], "Nothing is held. Press i"),
        (Mode::Intercept, vec![], "The next call is about to be held."),
        (Mode::Intercept, vec![answer.clone()], "An answer is held. Press F"),
        (Mode::Intercept, vec![answer, call.clone()], "A call is held. Press m"),
        (Mode::Passthrough, vec![call], "A call is held. Press m"),
    ] {
        stand(&mut common, mode, held);
        assert!(coach.words(&common, false)[0].starts_with(begins), "{:?}", coach.words(&common, false));
    }
    (0..2).for_each(|_| coach.skip());
    stand(&mut common, Mode::Intercept, Vec::new());
    assert_eq!(coach.step(), Step::Replay);
    assert!(coach.words(&common, false)[1].starts_with("Press i"), "nothing goes on while everything is held");
}

fn stand(common: &mut Common, mode: Mode, held: Vec<Held>) {
    let standing = common.standing.as_mut().unwrap();
    (standing.mode, standing.held) = (mode, held);
}

#[test]
fn words_fit_80_columns() {
    let mut common = app().common;
    let answer = held(message(4, r#"{"jsonrpc":"2.0","id":3,"result":{}}"#), "intercept");
    for held in [vec![], vec![answer], vec![held(call(3, "add", "{}"), "intercept")]] {
        for (mode, screen) in [(Mode::Passthrough, Screen::Traffic), (Mode::Intercept, Screen::Repeater)] {
            stand(&mut common, mode, held.clone());
            common.screen = screen;
            let mut coach = Coach::default();
            for _ in 0..=Step::TO_DO.len() {
                let words = [coach.words(&common, false), coach.words(&common, true)];
                for line in words.as_flattened() {
                    assert!(text::width(line) < 80, "{} columns: {line}", text::width(line));
                }
                coach.skip();
            }
        }
    }
}
