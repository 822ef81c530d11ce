//! Random text and JSON for tests: the same at every run, and rich in what is hostile.

/// A small generator with a fixed start.
pub(crate) struct Chance(u64);

/// What texts are made of: controls, marks, wide, joined, hidden and turning characters among plain ones.
const CHARS: [char; 44] = [
    'a',
    'b',
    'Z',
    '0',
    '9',
    ' ',
    '.',
    '_',
    '"',
    '\\',
    '/',
    '[',
    ']',
    '{',
    '}',
    '$',
    '*',
    '\n',
    '\t',
    '\r',
    '\0',
    '\x1b',
    '\x7f',
    '\u{9b}',
    '\u{ad}',
    'é',
    'ß',
    '漢',
    '字',
    '한',
    '\u{1100}',
    '\u{1161}',
    '\u{301}',
    '\u{20dd}',
    '\u{fe0f}',
    '\u{200d}',
    '\u{202e}',
    '\u{e0041}',
    '\u{600}',
    '👩',
    '🇩',
    '\u{915}',
    '\u{94d}',
    '\u{3164}',
];

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }

    pub(crate) fn text(&mut self, chars_max: usize) -> String {
        let mut text = String::new();
        for _ in 0..self.below(chars_max + 1) {
            let c = match self.below(8) {
                0 => char::from_u32(self.below(0x11_0000) as u32).unwrap_or('?'),
                _ => CHARS[self.below(CHARS.len())],
            };
            text.extend(std::iter::repeat_n(c, if self.below(40) == 0 { 20 } else { 1 }));
        }
        text
    }

    /// JSON with odd spacing, odd numbers, and keys of any kind.
    pub(crate) fn json(&mut self, depth_max: usize) -> String {
        let blank = [" ", "", "\n", "\t "][self.below(4)];
        let value = match self.below(if depth_max == 0 { 5 } else { 8 }) {
            0 => "null".to_owned(),
            1 => ["true", "false"][self.below(2)].to_owned(),
            2 => ["0", "-0", "1.0", "1e5", "12E-3", "-7.25", "123456789"][self.below(7)].to_owned(),
            3 | 4 => self.string(),
            5 => {
                let items: Vec<String> = (0..self.below(5)).map(|_| self.json(depth_max - 1)).collect();
                format!("[{blank}{}]", items.join(","))
            }
            _ => {
                let member = |chance: &mut Self| format!("{}{blank}:{}", chance.string(), chance.json(depth_max - 1));
                let members: Vec<String> = (0..self.below(5)).map(|_| member(self)).collect();
                format!("{{{blank}{}}}", members.join(","))
            }
        };
        format!("{blank}{value}{blank}")
    }

    fn string(&mut self) -> String {
        match self.below(4) {
            0 => "\"\\u00e9\\ud83d\\ude00\\/\"".to_owned(),
            _ => serde_json::to_string(&self.text(6)).expect("a string"),
        }
    }
}
