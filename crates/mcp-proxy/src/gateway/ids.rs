//! Ids of servers, and names of tools of our own. Names are given out as `<id>__<name>`, and have to be told apart
//! again.

/// Letters of a server's id: no client shows longer names.
pub(super) const ID_MAX: usize = 64;

/// Why this cannot be one.
pub(super) fn check(id: &str) -> Result<(), &'static str> {
    if id.is_empty() {
        return Err("it is empty");
    }
    if id.len() > ID_MAX {
        return Err("it is longer than 64 letters");
    }
    if !id.bytes().all(is_plain) {
        return Err("it has something else in it than letters, digits, `-` and `_`");
    }
    if id.contains("__") {
        return Err("`__` is what stands between it and a name");
    }
    // `a_` and a tool `b` would be `a___b`, and so would be `a` and `_b`.
    if id.ends_with('_') {
        return Err("it ends in `_`, which would run into the `__` behind it");
    }
    Ok(())
}

/// An id made of what a client calls a server.
pub(super) fn tidied(name: &str) -> String {
    let mut id = String::new();
    for c in name.trim().chars() {
        let c = if u8::try_from(c).is_ok_and(is_plain) { c } else { '-' };
        if !(c == '_' && id.ends_with('_')) && id.len() < ID_MAX {
            id.push(c);
        }
    }
    if id.ends_with('_') {
        id.pop();
        id.push('-');
    }
    id
}

/// Letters of the name of a proxy tool: clients accept no longer ones.
const TOOL_NAME_MAX: usize = 64;

/// Why a tool cannot be called this.
pub(super) fn check_tool(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("it is empty");
    }
    if name.len() > TOOL_NAME_MAX {
        return Err("it is longer than 64 letters");
    }
    if !name.bytes().all(|byte| is_plain(byte) || byte == b':' || byte == b'.') {
        return Err("it has something else in it than letters, digits, `-`, `_`, `:` and `.`");
    }
    Ok(())
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_have_names_that_clients_take() {
        for right in ["proxy", "mcp:proxy", "a.b-c_d", &"x".repeat(64)] {
            assert!(check_tool(right).is_ok(), "{right}");
        }
        for wrong in ["", "a b", "a/b", "ä", "a\n", &"x".repeat(65)] {
            assert!(check_tool(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_clients_call_a_server_becomes_an_id() {
        for (name, id) in [
            ("github", "github"),
            ("GitHub MCP", "GitHub-MCP"),
            ("io.github.user/weather", "io-github-user-weather"),
            ("a__b", "a_b"),
            ("a____b", "a_b"),
            ("a_", "a-"),
            ("_a", "_a"),
            ("größe", "gr--e"),
            (" x ", "x"),
            ("", ""),
        ] {
            assert_eq!(tidied(name), id, "{name}");
            assert!(id.is_empty() || check(id).is_ok(), "{id}");
        }
        assert!(check(&tidied(&"x_".repeat(100))).is_ok());
        for wrong in ["", "a__b", "a.b", "a b", "a_", "ä", &"x".repeat(65)] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }
}
