//! Clients that are asked themselves, without a transport.

mod requests;
mod rounds;

use crate::envelope::Side;
use crate::pipeline::governance::tests::Play;

const ALLOW: &str = r#"{"action":"accept","content":{"decision":"allow once"}}"#;
const SESSION: &str = r#"{"action":"accept","content":{"decision":"allow for this session"}}"#;
const DENY: &str = r#"{"action":"accept","content":{"decision":"deny"}}"#;
const DECLINE: &str = r#"{"action":"decline"}"#;
const CANCEL: &str = r#"{"action":"cancel"}"#;

/// What is no yes, and what whoever sent the call is told.
const NO: [(&str, &str); 7] = [
    (DENY, "said no"),
    (DECLINE, "said no"),
    (CANCEL, "did not decide"),
    (r#"{"action":"accept","content":{"decision":"ALLOW ONCE"}}"#, "no clear answer"),
    (r#"{"action":"accept"}"#, "no clear answer"),
    ("{}", "no clear answer"),
    (r#"{"action":7}"#, "no clear answer"),
];

impl Play {
    fn got_one(&mut self, side: Side) -> String {
        let got = self.got(side);
        assert_eq!(got.len(), 1, "{got:?}");
        got.into_iter().next().expect("one")
    }

    fn is_denied(&mut self, why: &str) {
        assert_eq!(self.got(Side::Server), [""; 0]);
        let answer = self.got_one(Side::Client);
        assert!(answer.contains("-32000") && answer.contains(why), "{answer}");
    }
}
