//! What rules decided about a message. Mostly that is known as the message is recorded, and is part of its record, so
//! that whoever reads the one has the other. What is decided later stands where it was.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use mcp_wire::VerdictKind;
use uuid::Uuid;

/// A longer name of a rule is cut in the record: people type these names.
const RULE_BYTES_MAX: usize = 256;
/// What stands before the name of the rule.
const FIXED_LEN: usize = 28;
/// The classes of operations, in the order of their numbers.
const OPERATIONS: [&str; 5] = ["read", "write", "delete", "execute", "admin"];

/// Numbers from 1, which stay as they are.
fn number(what: VerdictKind) -> u8 {
    match what {
        VerdictKind::Allow => 1,
        VerdictKind::Deny => 2,
        VerdictKind::Ask => 3,
        VerdictKind::Observe => 4,
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub what: VerdictKind,
    /// The rule that says so; without one it is what counts where no rule matches.
    pub rule: Option<Arc<str>>,
    /// The class of operation that the message asks for: see [`operation_named`].
    pub operation: Option<&'static str>,
    /// Where the audit says it.
    pub audit: Option<AuditId>,
}

/// A decision in an audit log: whose log, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AuditId {
    pub instance: Uuid,
    pub number: u64,
}

impl AuditId {
    /// Reads what it prints as.
    pub fn parse(text: &str) -> Option<Self> {
        let (instance, number) = text.split_once('/')?;
        Some(Self { instance: Uuid::try_parse(instance).ok()?, number: number.parse().ok()? })
    }
}

impl fmt::Display for AuditId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.instance, self.number)
    }
}

/// The class of operation that is called so.
pub fn operation_named(name: &str) -> Option<&'static str> {
    OPERATIONS.into_iter().find(|operation| *operation == name)
}

impl Verdict {
    /// What stands before the name of the rule, and that.
    pub(super) fn encode(&self) -> ([u8; FIXED_LEN], &str) {
        let rule = self.rule.as_deref().unwrap_or_default();
        let rule = &rule[..rule.floor_char_boundary(RULE_BYTES_MAX)];
        let operation = self.operation.and_then(|name| OPERATIONS.iter().position(|operation| *operation == name));
        let mut fixed = [0; FIXED_LEN];
        fixed[0] = number(self.what);
        fixed[1] = operation.map_or(0, |at| at as u8 + 1);
        fixed[2] = u8::from(self.rule.is_some()) | u8::from(self.audit.is_some()) << 1;
        if let Some(AuditId { instance, number }) = self.audit {
            fixed[4..12].copy_from_slice(&number.to_le_bytes());
            fixed[12..].copy_from_slice(instance.as_bytes());
        }
        (fixed, rule)
    }

    /// Takes what was decided off the front of `payload`: its length, and that many bytes. `None` if they are not there.
    pub(super) fn take(payload: &mut Bytes) -> Option<Option<Self>> {
        let length = usize::from(u16::from_le_bytes(*payload.first_chunk()?));
        let rest = payload.len().checked_sub(2 + length)?;
        let verdict = payload.split_to(payload.len() - rest);
        Some(Self::decode(&verdict[2..]))
    }

    /// `None` if no version of this program wrote this, or one that knows more kinds.
    pub fn decode(payload: &[u8]) -> Option<Self> {
        let (fixed, rule) = payload.split_first_chunk::<FIXED_LEN>()?;
        let what = VerdictKind::ALL.into_iter().find(|kind| number(*kind) == fixed[0])?;
        let operation = usize::from(fixed[1]).checked_sub(1).and_then(|at| OPERATIONS.get(at).copied());
        let rule = (fixed[2] & 1 != 0).then(|| String::from_utf8_lossy(rule).into());
        let number = u64::from_le_bytes(*fixed[4..].first_chunk()?);
        let instance = Uuid::from_bytes(*fixed[12..].first_chunk()?);
        let audit = (fixed[2] & 2 != 0).then_some(AuditId { instance, number });
        Some(Self { what, rule, operation, audit })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn payload(verdict: &Verdict) -> Vec<u8> {
        let (fixed, rule) = verdict.encode();
        [&fixed[..], rule.as_bytes()].concat()
    }

    #[test]
    fn every_kind_has_its_number() {
        for (what, expected) in VerdictKind::ALL.into_iter().zip(1..) {
            assert_eq!(number(what), expected);
        }
        assert_eq!(operation_named("eat"), None);
        assert_eq!(
            (Verdict::decode(&[5; 40]), Verdict::decode(&[0; 40]), Verdict::decode(&[1; 27])),
            (None, None, None)
        );
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let rule = Some(Arc::from(format!("a{}", "é".repeat(RULE_BYTES_MAX))));
        let verdict = Verdict { what: VerdictKind::Deny, rule, operation: None, audit: None };
        assert_eq!(Verdict::decode(&payload(&verdict)).unwrap().rule.unwrap().len(), RULE_BYTES_MAX - 1);
    }

    #[test]
    fn an_id_is_what_it_prints_as() {
        let id = AuditId { instance: Uuid::from_u128(7), number: 12 };
        assert_eq!(id.to_string(), "00000000-0000-0000-0000-000000000007/12");
        assert_eq!(AuditId::parse(&id.to_string()), Some(id));
        assert_eq!([AuditId::parse("7/12"), AuditId::parse("x"), AuditId::parse("")], [None; 3]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            kind in 0usize..4, operation in 0usize..6, rule: Option<String>, instance: Option<u128>, number: u64,
        ) {
            let verdict = Verdict {
                what: VerdictKind::ALL[kind],
                rule: rule.map(|rule| rule[..rule.floor_char_boundary(RULE_BYTES_MAX)].into()),
                operation: OPERATIONS.get(operation).copied(),
                audit: instance.map(|instance| AuditId { instance: Uuid::from_u128(instance), number }),
            };
            prop_assert_eq!(Verdict::decode(&payload(&verdict)), Some(verdict));
        }

        #[test]
        fn any_bytes_can_be_read(bytes: Vec<u8>) {
            Verdict::decode(&bytes);
        }
    }
}
