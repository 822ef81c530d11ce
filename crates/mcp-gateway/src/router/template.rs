//! Whether an address may be what a template of addresses expands to.

/// Says yes to a few more than would: what may stand in place of an expression is not looked at. The literal parts
/// have to be there, in their order, and the first and the last at the ends.
pub(super) fn may_expand_to(template: &str, address: &str) -> bool {
    let mut parts = template.split('{');
    let Some(mut rest) = parts.next().and_then(|first| address.strip_prefix(first)) else { return false };
    let literals: Vec<&str> = parts.filter_map(|part| part.split_once('}').map(|(_, literal)| literal)).collect();
    let Some((last, between)) = literals.split_last() else { return rest.is_empty() };
    for literal in between {
        match rest.split_once(literal) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_by_its_literal_parts() {
        assert!(may_expand_to("demo://text/{id}", "demo://text/3"));
        assert!(may_expand_to("a://{x}/b/{y}.txt", "a://1/b/2.txt"));
        assert!(may_expand_to("a://b{?q,r}", "a://b?q=1"));
        assert!(may_expand_to("a://b{?q}", "a://b"));
        assert!(may_expand_to("a://b", "a://b"));
    }

    #[test]
    fn others_are_not() {
        assert!(!may_expand_to("demo://text/{id}", "demo://blob/3"));
        assert!(!may_expand_to("a://{x}/b/{y}.txt", "a://1/c/2.txt"));
        assert!(!may_expand_to("a://{x}.txt", "a://1.png"));
        assert!(!may_expand_to("a://b", "a://bc"));
        assert!(!may_expand_to("a://{x", "b://1"));
    }
}
