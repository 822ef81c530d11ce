//! Files with something wrong in them: read, or refused with a place, but never a panic.

use super::{EVERYTHING, load};

const FILES: [(&str, &str); 4] = [
    ("f.json", EVERYTHING),
    (
        "f.json",
        r#"{"inputs": [{"id": "x", "default": "d"}], "servers": {"ä": {"type": "stdio", "command": "x", "args": ["${input:x}", "${env:TOKEN}", "${workspaceFolder}"]}, "b": {"type": "http", "url": "http://h/", "headers": {"A": "Bearer ${env:TOKEN}"}}}}"#,
    ),
    (
        "f.toml",
        "[mcp_servers.a]\ncommand = 'x'\nargs = ['${HOME}', 'é']\nenv = {K = '${env:TOKEN}'}\nenv_vars = ['TOKEN']\n[mcp_servers.b]\nurl = 'http://h/'\nbearer_token_env_var = 'TOKEN'\nstartup_timeout_sec = 1.5\n",
    ),
    (
        "f.yaml",
        "extensions:\n  a:\n    cmd: npx\n    args: [-y, 'x y']\n    envs: {K: v}\n    type: stdio\n    timeout: 30\n  b: {type: sse, uri: 'http://h/', enabled: false}\n",
    ),
];
const MUTATIONS: usize = 1_000;

/// Numbers without a meaning, the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit.max(1) as u64).unwrap()
    }
}

fn mutated(text: &str, dice: &mut Dice) -> String {
    const PIECES: [&str; 22] = [
        "null",
        "{}",
        "[]",
        "\"\"",
        "7",
        "-1e999",
        "true",
        "${",
        "${env:",
        "${input:x}",
        "}",
        "{",
        "\"",
        ",",
        ":",
        "\n",
        "__",
        "ä",
        "\u{202e}",
        "\\u0000",
        "'",
        "=",
    ];
    let mut letters: Vec<char> = text.chars().collect();
    for _ in 0..=dice.below(3) {
        let at = dice.below(letters.len());
        let end = (at + dice.below(12)).min(letters.len());
        let piece: Vec<char> = PIECES[dice.below(PIECES.len())].chars().collect();
        match dice.below(4) {
            0 => drop(letters.drain(at..end)),
            1 => drop(letters.splice(at..at, piece)),
            2 => drop(letters.splice(at..end, piece)),
            _ => {
                let copied = letters[at..end].to_vec();
                let to = dice.below(letters.len());
                drop(letters.splice(to..to, copied));
            }
        }
    }
    letters.into_iter().collect()
}

#[test]
fn whatever_is_in_a_file_is_read_or_refused_with_its_place() {
    let (mut dice, mut refused) = (Dice(0x5eed_1234_5678_9abc), 0);
    for round in 0..MUTATIONS {
        let (name, text) = FILES[round % FILES.len()];
        let text = mutated(text, &mut dice);
        match load(name, &text) {
            Ok(loaded) => drop(loaded.config),
            Err(shown) => {
                refused += 1;
                let mistakes = shown.split_once("\n\n").expect("what is wrong follows").1;
                let place = mistakes.strip_prefix(name).and_then(|rest| rest.strip_prefix(':')).unwrap_or_default();
                assert!(place.starts_with(|c: char| c.is_ascii_digit()), "{text}\n\n{shown}");
            }
        }
    }
    assert!((MUTATIONS / 4..MUTATIONS).contains(&refused), "{refused} of {MUTATIONS} were refused");
}
