//! A configuration as text, in each of the formats that it can be read in.

use std::time::Duration;

#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    Text(String),
    Number(u64),
    Flag(bool),
    List(Vec<Shown>),
    Table(Vec<(String, Shown)>),
}

impl From<&str> for Shown {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for Shown {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Shown {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

/// With the largest unit that leaves it whole.
impl From<Duration> for Shown {
    fn from(duration: Duration) -> Self {
        let (ms, fraction) = (duration.as_millis(), duration.subsec_nanos() % 1_000_000);
        Self::Text(match (ms, fraction) {
            (_, 1..) => format!("{}ms", duration.as_secs_f64() * 1000.0),
            (ms, _) if ms % 3_600_000 == 0 => format!("{}h", ms / 3_600_000),
            (ms, _) if ms % 60_000 == 0 && ms > 60_000 => format!("{}m", ms / 60_000),
            (ms, _) if ms % 1_000 == 0 => format!("{}s", ms / 1_000),
            (ms, _) => format!("{ms}ms"),
        })
    }
}

impl Shown {
    pub fn json(&self) -> String {
        let mut text = String::new();
        self.write_json(&mut text, 0);
        text.push('\n');
        text
    }

    fn write_json(&self, out: &mut String, depth: usize) {
        let indent = |out: &mut String, depth: usize| {
            out.push('\n');
            out.push_str(&"  ".repeat(depth));
        };
        match self {
            Self::List(items) if items.iter().any(Self::is_table) => {
                out.push('[');
                for (number, item) in items.iter().enumerate() {
                    out.push_str(if number == 0 { "" } else { "," });
                    indent(out, depth + 1);
                    item.write_json(out, depth + 1);
                }
                indent(out, depth);
                out.push(']');
            }
            Self::Table(members) if !members.is_empty() => {
                out.push('{');
                for (number, (key, value)) in members.iter().enumerate() {
                    out.push_str(if number == 0 { "" } else { "," });
                    indent(out, depth + 1);
                    out.push_str(&format!("{}: ", quoted(key)));
                    value.write_json(out, depth + 1);
                }
                indent(out, depth);
                out.push('}');
            }
            other => out.push_str(&other.on_one_line(": ", quoted)),
        }
    }

    fn is_table(&self) -> bool {
        matches!(self, Self::Table(_))
    }

    /// `sign` stands between a key and its value, `key` spells the first.
    fn on_one_line(&self, sign: &str, key: fn(&str) -> String) -> String {
        match self {
            Self::Text(text) => quoted(text),
            Self::Number(number) => number.to_string(),
            Self::Flag(flag) => flag.to_string(),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(|item| item.on_one_line(sign, key)).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Table(members) => {
                let members: Vec<String> = members
                    .iter()
                    .map(|(name, value)| format!("{}{sign}{}", key(name), value.on_one_line(sign, key)))
                    .collect();
                if members.is_empty() { "{}".into() } else { format!("{{ {} }}", members.join(", ")) }
            }
        }
    }

    /// Lists of tables come last, as `[[name]]`; tables in them stand on one line.
    pub fn toml(&self) -> String {
        let Self::Table(members) = self else { return self.on_one_line(" = ", toml_key) };
        let line =
            |(key, value): &(String, Self)| format!("{} = {}\n", toml_key(key), value.on_one_line(" = ", toml_key));
        let is_last = |value: &Self| matches!(value, Self::List(items) if items.iter().any(Self::is_table));
        let mut text: String = members.iter().filter(|(_, value)| !is_last(value)).map(line).collect();
        for (key, value) in members.iter().filter(|(_, value)| is_last(value)) {
            let Self::List(items) = value else { continue };
            for item in items {
                let Self::Table(members) = item else { continue };
                text.push_str(&format!("\n[[{}]]\n", toml_key(key)));
                text.extend(members.iter().map(line));
            }
        }
        text
    }

    pub fn yaml(&self) -> String {
        let mut text = String::new();
        self.write_yaml(&mut text, 0);
        text
    }

    fn write_yaml(&self, out: &mut String, depth: usize) {
        let Self::Table(members) = self else { return };
        for (number, (key, value)) in members.iter().enumerate() {
            // The first key of an item stands behind its dash.
            if number > 0 || depth == 0 {
                out.push_str(&"  ".repeat(depth));
            }
            out.push_str(&format!("{}:", quoted_unless_plain(key)));
            match value {
                Self::List(items) if items.iter().any(Self::is_table) => {
                    out.push('\n');
                    for item in items {
                        out.push_str(&format!("{}- ", "  ".repeat(depth)));
                        item.write_yaml(out, depth + 1);
                    }
                }
                other => out.push_str(&format!(" {}\n", other.on_one_line(": ", quoted_unless_plain))),
            }
        }
    }
}

/// As JSON has it, which TOML and YAML read alike.
fn quoted(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    // TOML wants this one escaped, too.
    json.replace('\u{7f}', "\\u007f")
}

fn is_plain(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

fn toml_key(key: &str) -> String {
    if is_plain(key) { key.to_owned() } else { quoted(key) }
}

/// A key that begins with a letter is no number, and no dash of a list.
fn quoted_unless_plain(key: &str) -> String {
    let is_word = key.starts_with(|c: char| c.is_ascii_alphabetic());
    if is_plain(key) && is_word && !["true", "false", "null"].contains(&key.to_ascii_lowercase().as_str()) {
        key.to_owned()
    } else {
        quoted(key)
    }
}
