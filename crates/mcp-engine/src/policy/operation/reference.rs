//! The reference of operations, written from the table of words: `docs/operations.md`.

use super::substring::TABLES;
use super::verbs::{
    DONE_TO, ENGINES, GROUPED, GROUPING, GROUPS, HOLDERS, JOINTS, KEYS, RIGHTS, RUN, SETTINGS, SHOWN, UNCUT, Verb,
};

/// For `docs/operations.md`.
pub fn markdown() -> String {
    let mut page = format!("{INTRODUCTION}\n## Verbs\n");
    for group in GROUPS {
        let yields = if group.yields { " Done to rights, it is **admin**." } else { "" };
        let (title, operation, about) = (group.title, group.operation, group.about);
        let verbs = group.verbs.iter().map(written).collect();
        page.push_str(&format!(
            "\n### {title}: {operation}\n\n{}{}",
            filled(&format!("{about}{yields}")),
            listed(verbs)
        ));
    }
    page.push_str(&format!("\n{NOUNS}"));
    let lists = [
        ("Rights, wherever they stand", RIGHTS),
        ("Who has rights, where they are what the verb is done to", HOLDERS),
        ("Settings, right behind the verb", SETTINGS),
        ("Groups of those, where the verb is done to them and stands beside them", GROUPED),
        ("Before a group that stands apart from its verb", GROUPING),
        ("Before `key` or `keys`", KEYS),
        ("Without a verb, at the end: something to look at, so **read**", SHOWN),
        ("Without a verb, at the end: something that runs what it is given, so **execute**", RUN),
        ("Takes statements, so that to `query` or `inspect` it is **execute**", ENGINES),
        ("Joins two verbs, so that both count", JOINTS),
        ("Begins or ends like a dangerous verb, and is none", UNCUT),
    ];
    for (title, words) in lists {
        let words = words.iter().map(|word| format!("`{word}`")).collect();
        page.push_str(&format!("\n{title}:\n{}", listed(words)));
    }
    page.push_str(&format!("\n{OBJECTS}"));
    for (verbs, objects, operation) in DONE_TO {
        let quoted = |words: &[&str]| words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        page.push_str(&format!("| {} | {} | `{operation}` |\n", quoted(verbs), quoted(objects)));
    }
    page.push_str(&format!("\n{SUBSTRINGS}"));
    for (operation, words) in TABLES {
        let words = words.iter().map(|word| format!("`{word}`")).collect();
        page.push_str(&format!("\n### {operation}\n{}", listed(words)));
    }
    page
}

/// Columns of the page.
const WIDTH: usize = 120;

const INTRODUCTION: &str = "\
# Operations

What a tool does is its operation. Rules go by it ([policy.md](policy.md)), and `mcp-proxy policy explain TOOL` shows it.

| operation | a tool that |
|---|---|
| `read` | looks, computes or converts, and leaves everything as it was |
| `write` | makes or changes something, says something to somebody, or is not known |
| `delete` | removes, empties or ends something |
| `execute` | runs, starts or stops something: code, a command, a job, a program |
| `admin` | changes who may do what |

How a tool gets it:

1. **What you say.** A name, or a pattern with `*`, and its operation. The first that matches counts.
2. **Its name**, by the words below.
3. **What the server says** makes a `read` a `write`: `destructiveHint: true` or `readOnlyHint: false`. It makes no
   `delete`, `execute` or `admin` of a tool, and nothing less of any. Rules that care about destruction match
   `hint:destructive`, or `op>=write`.

A name is cut into whole words, whatever its style: `getHTTPStatus`, `get_http_status` and `GET-HTTP-STATUS` are the
same. Only whole words count, so `get_settings` has no `set` in it, but for dangerous verbs of five letters or more: they
also count where a word begins or ends (`deleterepo`, `bulkremove`), unless it is a word of the dictionary (`preset`).
Behind the last `__` is the tool, before it the server, whose name counts only if the tool's has no verb.

- Every verb in its plain form counts. One that deletes decides, so that a rule against deleting holds wherever a name
  says so: `read_and_delete`, `cancel_delete` and `dry_run_delete` are `delete`. Otherwise the one that can do most
  decides: `get_or_create_label` is `write`.
- Verbs that are nouns as well (marked ° below) count where they come first, or after `and`, `or`, `then`, `/`, `.` or
  `:`. `list_commits` and `get_test_run` are `read`, `run_test` is `execute`. One that runs or deletes also counts at the
  end of a name that begins with such a noun: `query_stop`.
- Other forms count if there is no plain verb: `get_deleted_items` is `read`, `deleted_items` and `repo_deleter` are
  `delete`. And `deletion` or `deleting` next to a verb that does not just look makes it `delete`: `schedule_deletion`.
- To query a thing that takes statements is `execute`: `d1_query`. So is to write a query: `write_query`.
- What makes or changes something is `admin` if it is done to rights: `update_user`, `attach_role_policy`. What deletes
  stays `delete`, so that a rule against it holds there, too: `delete_user`.
- Letters that look like others are read as those. A name with any letter that is not plain ASCII is never `read`.
- A name without a word that is known is `write`.

A name is a guess, and a server can call its tools what it likes. Where it matters, say what a tool is.

Rules that were written for a proxy that looks for parts of names can keep its ways: `classify = \"substring\"` in the
rules file ([below](#by-substring)).
";

const NOUNS: &str = "\
## Other words
";

const OBJECTS: &str = "\
## Verbs that do something else to certain things

| verb | done to | is |
|---|---|---|
";

const SUBSTRINGS: &str = "\
## By substring

With `classify = \"substring\"` in a rules file ([policy.md](policy.md)) the tables above do not count. A tool has the first
of these operations, in this order, that has a word which is a part of its name in lower case, wherever that part stands.
A name without any is `write`. So `list_presets` is `delete` for its `reset`, and `list_issues` is `write`. What you say of
tools and the server's hints count as in the other mode, and a name with letters that are not plain is never `read`.
";

fn written(verb: &Verb) -> String {
    let mark = if verb.is_noun { "°" } else { "" };
    let others: Vec<&str> = verb.irregular.iter().chain(verb.nominal).copied().collect();
    match others.is_empty() {
        true => format!("`{}`{mark}", verb.word),
        false => format!("`{}`{mark} (`{}`)", verb.word, others.join("`, `")),
    }
}

fn listed(words: Vec<String>) -> String {
    format!("\n{}", filled(&words.join(", ")))
}

/// Text in lines that fit.
fn filled(text: &str) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    for word in text.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push_str(&format!("{line}\n"));
            line.clear();
        }
        line.push_str(if line.is_empty() { "" } else { " " });
        line.push_str(word);
    }
    format!("{lines}{line}\n")
}
