//! A recorded message, as filters ask about it.

use std::borrow::Cow;

use mcp_filter::Subject;

use super::Told;
use crate::recorded::Direction;

impl Subject for Told {
    fn direction(&self) -> Option<Direction> {
        Some(self.recorded.direction)
    }

    fn kind(&self) -> Option<&str> {
        Some(self.kind.as_str())
    }

    fn method(&self) -> Option<Cow<'_, str>> {
        self.method()
    }

    fn tool(&self) -> Option<Cow<'_, str>> {
        self.subject()
    }

    fn server(&self) -> Option<Cow<'_, str>> {
        self.server.as_deref().map(Cow::Borrowed)
    }

    fn client(&self) -> Option<Cow<'_, str>> {
        self.client.as_deref().map(Cow::Borrowed)
    }

    fn status(&self) -> Option<&str> {
        self.status().map(|status| status.as_str())
    }

    fn code(&self) -> Option<i64> {
        self.status()?.code()
    }

    fn id(&self) -> Option<&[u8]> {
        self.id()
    }

    fn operation(&self) -> Option<&str> {
        self.op()
    }

    fn duration_ns(&self) -> Option<u64> {
        self.duration_ns()
    }

    fn size(&self) -> Option<u64> {
        Some(self.recorded.raw.len() as u64)
    }

    fn sequence(&self) -> Option<u64> {
        Some(self.recorded.sequence)
    }

    /// Of an event, what happened.
    fn body(&self) -> Option<&[u8]> {
        Some(self.recorded.event.as_ref().map_or(&*self.recorded.raw, |event| event.as_bytes()))
    }

    fn header(&self, index: usize) -> Option<(&str, &str)> {
        self.headers.as_ref()?.0.get(index).map(|(name, value)| (name.as_str(), value.as_str()))
    }

    fn revision(&self) -> Option<Cow<'_, str>> {
        self.revision.as_deref().map(Cow::Borrowed)
    }

    fn rule(&self) -> Option<Cow<'_, str>> {
        self.recorded.verdict.as_deref()?.rule.as_deref().map(Cow::Borrowed)
    }

    fn verdict(&self) -> Option<&str> {
        self.recorded.verdict.as_deref().map(|verdict| verdict.what.as_str())
    }

    fn held(&self) -> bool {
        self.recorded.held
    }

    fn edited(&self) -> bool {
        self.recorded.modified
    }

    fn mark(&self) -> Option<Cow<'_, str>> {
        self.recorded.mark.as_deref().map(Cow::Borrowed)
    }

    fn noise(&self) -> bool {
        self.recorded.noise
    }

    fn origin(&self) -> Option<&str> {
        Some(self.origin())
    }

    fn replay(&self) -> bool {
        self.is_replay
    }
}

#[cfg(test)]
mod tests {
    use mcp_filter::Filter;

    use crate::Direction;
    use crate::recorded::{Recorded, SessionHeader, Transport};
    use crate::segment::{Verdict, VerdictKind};
    use crate::story::Story;

    /// The sequences of the messages that match.
    #[track_caller]
    fn check(expression: &str, expected: &[u64]) {
        let header = SessionHeader {
            server_command: Some("node server.js".into()),
            name: Some("files".into()),
            notes: [(SessionHeader::REPLAYS.to_owned(), "1".to_owned())].into(),
            ..SessionHeader::begun(uuid::Uuid::nil(), 0, Transport::Stdio)
        };
        let (what, rule) = (VerdictKind::Deny, Some("no-reading".into()));
        let denial = Box::new(Verdict { what, rule, operation: Some("read"), audit: None });
        let (filter, mut story) = (Filter::parse(expression).unwrap(), Story::of(&header));
        let matching = MESSAGES.iter().zip(1..).filter_map(|((up, raw), sequence)| {
            let direction = if *up { Direction::ClientToServer } else { Direction::ServerToClient };
            let told = story.tell(Recorded {
                time_ns: sequence * 1_000_000_000,
                noise: *raw == "starting",
                held: sequence == 6,
                modified: sequence == 3,
                mark: (sequence == 7).then(|| "why?".into()),
                event: raw.is_empty().then(|| "too large".into()),
                verdict: (sequence == 3).then(|| denial.clone()),
                ..Recorded::bare(sequence, direction, *raw)
            });
            filter.matches(&told).then_some(sequence)
        });
        assert_eq!(matching.collect::<Vec<_>>(), expected, "{expression}");
    }

    const MESSAGES: &[(bool, &str)] = &[
        (false, "starting"),
        (
            true,
            r#"{"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"ide"}}}"#,
        ),
        (true, r#"{"id":2,"method":"tools/call","params":{"name":"read","arguments":{"path":"/etc"}}}"#),
        (false, r#"{"id":1,"result":{"protocolVersion":"2025-06-18"}}"#),
        (false, r#"{"id":2,"result":{"isError":true}}"#),
        (true, r#"{"id":3,"method":"resources/read","params":{"uri":"file:///a"}}"#),
        (false, r#"{"id":3,"error":{"code":-32002,"message":"gone"}}"#),
        (false, ""),
        (false, "{}"),
    ];

    #[test]
    fn recorded_messages_are_judged() {
        check("", &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        check("tool:read", &[3, 5]);
        check("tool:file:*", &[6, 7]);
        check("method:initialize", &[2, 4]);
        check("status:err", &[5, 7]);
        check("status:ok", &[4]);
        check("code:-32002", &[7]);
        check("kind:response", &[4, 5, 7]);
        check("kind:noise", &[1]);
        check("noise:yes", &[1]);
        check("kind:event", &[8]);
        check("kind:json", &[9]);
        check("\"too large\"", &[8]);
        check("> $.params.arguments.path", &[3]);
        check("dur>1s", &[4, 5]);
        check("dur:1s", &[7]);
        check("client:ide era:legacy kind:error", &[7]);
        check("server:files id:2", &[3, 5]);
        check("size<3", &[8, 9]);
        check("replay:yes", &[2, 3, 6]);
        check("held:yes", &[6]);
        check("edited:yes", &[3]);
        check("mark:*", &[7]);
        check("mark:why? held:no", &[7]);
        check("verdict:deny", &[3]);
        check("verdict:allow", &[]);
        check("rule:no-*", &[3]);
        check("op:read", &[3, 5]);
        check("op:read status:err", &[5]);
    }
}
