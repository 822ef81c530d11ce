//! What each dated revision of the protocol allows. This is the only file that compares dates; others
//! ask in the words of the protocol.

/// Header names, lower case as HTTP libraries want them; readers do not care.
pub const VERSION_HEADER: &str = "mcp-protocol-version";
pub const SESSION_HEADER: &str = "mcp-session-id";
pub const LAST_EVENT_HEADER: &str = "last-event-id";
pub const METHOD_HEADER: &str = "mcp-method";
pub const NAME_HEADER: &str = "mcp-name";
/// The member of `_meta` by which a request of the newest revision names it.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// What comes before the name that a tool gives to one of its arguments.
pub const PARAM_HEADER_PREFIX: &str = "mcp-param-";

/// The revisions there are, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

impl Revision {
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// The newest that opens with a handshake.
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;

    pub const NEWEST: Self = Self::V2026_07_28;

    pub fn parse(text: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str().as_bytes() == text)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    pub fn era(self) -> Era {
        if self <= Self::NEWEST_LEGACY { Era::Legacy } else { Era::Modern }
    }

    /// A server opens a stream with an event that has an id and no data, so that a client can resume
    /// even before the first message.
    pub fn primes_streams(self) -> bool {
        self >= Self::V2025_11_25 && self.era() == Era::Legacy
    }

    /// A client names the revision in a header of each request.
    pub fn sends_version_header(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Whoever uses a client can be asked something.
    pub fn has_elicitation(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// They can be asked to open an address for it.
    pub fn has_elicitation_by_url(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// Several messages may come as one JSON array.
    pub fn has_batches(self) -> bool {
        self == Self::V2025_03_26
    }
}

/// The two ways to converse: open with `initialize` and keep a session, or say everything in each
/// request. The names are the specification's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(
    feature = "schema",
    derive(utoipa::ToSchema),
    schema(as = ServerEra, description = "Whether conversations with it begin with `initialize`.")
)]
pub enum Era {
    Legacy,
    Modern,
}

impl Era {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }

    /// What the version header of a request says. A date after the legacy ones is modern even if it
    /// is not known here, so that such a request is refused in terms its sender understands. What is
    /// no date says nothing.
    pub fn of_header(value: Option<&[u8]>) -> Self {
        match value {
            Some(value) if is_date(value) && value > Revision::NEWEST_LEGACY.as_str().as_bytes() => Self::Modern,
            _ => Self::Legacy,
        }
    }
}

/// Dates of this form sort as their text does.
fn is_date(text: &[u8]) -> bool {
    text.len() == "2024-11-05".len()
        && text
            .iter()
            .enumerate()
            .all(|(at, byte)| if matches!(at, 4 | 7) { *byte == b'-' } else { byte.is_ascii_digit() })
}

/// The member of `params` that says what a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Name,
    Uri,
    TaskId,
}

/// What the name header of a request repeats, for the methods that have one.
pub fn subject_of(method: &str) -> Option<Subject> {
    match method {
        "tools/call" | "prompts/get" => Some(Subject::Name),
        "resources/read" => Some(Subject::Uri),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some(Subject::TaskId),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_are_spelled_as_they_are_read() {
        for revision in Revision::ALL {
            assert_eq!(Revision::parse(revision.as_str().as_bytes()), Some(revision));
            assert_eq!(Era::of_header(Some(revision.as_str().as_bytes())), revision.era());
        }
        assert!(Revision::ALL.is_sorted_by_key(|revision| revision.as_str()));
        assert_eq!(Revision::parse(b"2025-11-26"), None);
        assert_eq!(Revision::parse(b""), None);
    }

    #[test]
    fn only_a_later_date_is_modern() {
        let is_modern = |value: &str| Era::of_header(Some(value.as_bytes())) == Era::Modern;
        assert_eq!(Era::of_header(None), Era::Legacy);
        for value in ["2026-07-28", "2025-11-26", "2027-01-01"] {
            assert!(is_modern(value), "{value}");
        }
        for value in
            ["2025-11-25", "2025-01-01", "", "draft", "9", "2026-07-28 ", "2026-07-28, 2026-07-28", "2026/07/28"]
        {
            assert!(!is_modern(value), "{value}");
        }
    }

    #[test]
    fn what_each_revision_has() {
        let those = |has: fn(Revision) -> bool| -> Vec<_> { Revision::ALL.into_iter().filter(|r| has(*r)).collect() };
        use Revision::*;
        assert_eq!(those(Revision::primes_streams), [V2025_11_25]);
        assert_eq!(those(Revision::sends_version_header), [V2025_06_18, V2025_11_25, V2026_07_28]);
        assert_eq!(those(Revision::has_batches), [V2025_03_26]);
        assert_eq!(those(Revision::has_elicitation), [V2025_06_18, V2025_11_25, V2026_07_28]);
        assert_eq!(those(Revision::has_elicitation_by_url), [V2025_11_25, V2026_07_28]);
        assert_eq!(those(|r| r.era() == Era::Modern), [V2026_07_28]);
    }

    #[test]
    fn subjects() {
        assert_eq!(subject_of("tools/call"), Some(Subject::Name));
        assert_eq!(subject_of("resources/read"), Some(Subject::Uri));
        assert_eq!(subject_of("tasks/update"), Some(Subject::TaskId));
        assert_eq!(subject_of("tools/list"), None);
        assert_eq!(subject_of("Tools/call"), None);
    }
}
