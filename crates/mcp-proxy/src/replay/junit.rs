//! What came of a replay, as the XML that build servers read: a test case for each call.

use std::fmt::Write;

use mcp_engine::compare::{Change, Excerpt};
use mcp_engine::replay::{Outcome, Verdict};
use mcp_wire::visible::visible;

use super::{Played, words};

pub(super) fn junit(played: &Played) -> String {
    let tally = played.outcomes.tally();
    let heard_else =
        played.outcomes.heard.iter().filter(|(_, count)| played.compares_notifications && count.now != count.recorded);
    let heard_else: Vec<_> = heard_else.collect();
    let tests = played.outcomes.calls.len() + heard_else.len();
    let failures = tally.drifted + heard_else.len();
    let counts = format!(
        "tests=\"{tests}\" failures=\"{failures}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3}\"",
        tally.no_answer,
        tally.skipped + tally.not_compared,
        played.took.as_secs_f64()
    );
    let name = format!("replay of {}", played.recorded.id);
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(xml, "<testsuites {counts}>\n  <testsuite name=\"{}\" {counts}>", escaped(&name));
    for outcome in &played.outcomes.calls {
        case(&mut xml, played, outcome);
    }
    for (method, count) in heard_else {
        let what = format!("came {} times, in the recording {}", count.now, count.recorded);
        let _ = writeln!(
            xml,
            "    <testcase classname=\"notifications\" name=\"{}\">\n      <failure message=\"{what}\"/>\n    </testcase>",
            escaped(method)
        );
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

fn case(xml: &mut String, played: &Played, outcome: &Outcome) {
    let line = played.transcript.line(outcome.line);
    let name = format!("#{:03} {}", line.sequence, line.call());
    let seconds = outcome.took_ns.unwrap_or(0) as f64 / 1e9;
    let (_, what) = words::verdict(outcome, played.timeout);
    let _ = write!(
        xml,
        "    <testcase classname=\"{}\" name=\"{}\" time=\"{seconds:.3}\"",
        escaped(&line.method()),
        escaped(&name)
    );
    let (element, body) = match &outcome.verdict {
        Verdict::Same => return xml.push_str("/>\n"),
        Verdict::Drifted(_) => ("failure", details(outcome)),
        Verdict::NoAnswer(_) => ("error", String::new()),
        Verdict::NotCompared(_) | Verdict::Skipped(_) => ("skipped", String::new()),
    };
    let _ = writeln!(
        xml,
        ">\n      <{element} message=\"{}\">{}</{element}>\n    </testcase>",
        escaped(&what),
        escaped(&body)
    );
}

fn details(outcome: &Outcome) -> String {
    let Verdict::Drifted(found) = &outcome.verdict else { return String::new() };
    let mut text = String::new();
    for difference in &found.kept {
        let _ = writeln!(text, "{}", difference.path);
        let (recorded, now): (Option<&Excerpt>, Option<&Excerpt>) = match &difference.change {
            Change::Changed { recorded, now } => (Some(recorded), Some(now)),
            Change::Missing { recorded } => (Some(recorded), None),
            Change::Added { now } => (None, Some(now)),
            Change::Reordered => {
                text.push_str("  the same items in another order\n");
                (None, None)
            }
        };
        for (sign, value) in [('-', recorded), ('+', now)] {
            if let Some(value) = value {
                let _ = writeln!(text, "  {sign} {}", value.text);
            }
        }
    }
    text
}

/// Text for XML: what it cannot carry is made visible, what it takes for its own is spelled out.
fn escaped(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| visible(line).to_string()).collect();
    let text = lines.join("\n").replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    // Code points that are no characters, which XML forbids and `visible` lets pass.
    text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn hostile_text_stays_text() {
        assert_eq!(
            escaped("<a b=\"c\">&\u{1b}[31m\0\nnext]]>"),
            "&lt;a b=&quot;c&quot;&gt;&amp;\u{241b}[31m\u{2400}\nnext]]&gt;"
        );
        assert_eq!(escaped("\u{ffff}\u{fffe}"), "\u{fffd}\u{fffd}");
    }
}
