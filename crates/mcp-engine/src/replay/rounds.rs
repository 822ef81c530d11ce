//! A call that is repeated because the server wanted something first: the recorded repetition, with
//! what the server wants now.

use bytes::Bytes;
use mcp_wire::splice::splice;
use mcp_wire::{Id, scan};

/// `request` made into the next round: it hands back the state that `answer` gives (and none if it
/// gives none), with `responses` to what it asks. Where there are none, those in `request` have to do.
pub(super) fn next_round(request: &Bytes, answer: &[u8], responses: Option<&[u8]>) -> Bytes {
    let Some(span) = scan::member_at(request, ["params"]) else { return request.clone() };
    let state = scan::member_at(answer, ["result", "requestState"]).map(|span| &answer[span.range()]);
    let asks = scan::member_at(answer, ["result", "inputRequests"]).is_some();
    let params = with_member(&request[span.range()], "requestState", state);
    let params = match (asks, responses) {
        (true, None) => params,
        (_, responses) => with_member(&params, "inputResponses", responses.filter(|_| asks)),
    };
    splice(request, span, &params)
}

/// `object` with `value` as its member `name`, or without that member. Nothing else changes.
fn with_member(object: &[u8], name: &str, value: Option<&[u8]>) -> Vec<u8> {
    match (scan::member_at(object, [name]), value) {
        (Some(span), Some(value)) => splice(object, span, value).into(),
        (None, None) => object.to_vec(),
        (None, Some(value)) => {
            let body = object.trim_ascii_end().strip_suffix(b"}").unwrap_or(object);
            let comma: &[u8] = if scan::object_members(object).next().is_some() { b"," } else { b"" };
            [body, comma, b"\"", name.as_bytes(), b"\":", value, b"}"].concat()
        }
        (Some(_), None) => {
            let kept = scan::object_members(object).filter(|(key, _)| key != name);
            let members = kept
                .map(|(key, span)| [Id::Text(key.into()).to_string().as_bytes(), b":", &object[span.range()]].concat());
            [b"{".to_vec(), members.collect::<Vec<_>>().join(&b","[..]), b"}".to_vec()].concat()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(request: &'static str, answer: &str, responses: Option<&str>, expected: &str) {
        let made = next_round(&request.into(), answer.as_bytes(), responses.map(str::as_bytes));
        assert_eq!(String::from_utf8_lossy(&made), expected);
    }

    #[test]
    fn a_round_hands_back_what_it_was_given() {
        check(
            r#"{"id":2,"params":{"name":"t", "requestState":"old","inputResponses":{"k":1}}}"#,
            r#"{"result":{"requestState":"new","inputRequests":{}}}"#,
            Some(r#"{"k":2}"#),
            r#"{"id":2,"params":{"name":"t", "requestState":"new","inputResponses":{"k":2}}}"#,
        );
        check(
            r#"{"params":{"name":"t" }}"#,
            r#"{"result":{"requestState":"s"}}"#,
            None,
            r#"{"params":{"name":"t" ,"requestState":"s"}}"#,
        );
        check(r#"{"params":{}}"#, r#"{"result":{"requestState":"s"}}"#, None, r#"{"params":{"requestState":"s"}}"#);
        check(
            r#"{"params":{"a":1,"requestState":"old","b":{"c":1e5}}}"#,
            r#"{"result":{"inputRequests":{"k":{}}}}"#,
            Some(r#"{"k":2}"#),
            r#"{"params":{"a":1,"b":{"c":1e5},"inputResponses":{"k":2}}}"#,
        );
        check(r#"{"id":1}"#, r#"{"result":{"requestState":"s"}}"#, None, r#"{"id":1}"#);
    }
}
