//! What methods are about, as far as rules are concerned.

use super::operation::{Annotations, Classifier, Operation};

/// What a request or notification asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concern {
    /// A tool, whose name tells the operation.
    Tool,
    Operation(Operation),
    /// Something that one side asks of the other and that is no operation on the server: sampling,
    /// elicitation, roots.
    Other,
    /// What client and server need to talk at all. Rules decide about it only if they name its method.
    Plumbing,
}

impl Concern {
    pub fn of(method: &str) -> Self {
        match method {
            "tools/call" => Self::Tool,
            "resources/read"
            | "resources/subscribe"
            | "resources/unsubscribe"
            | "prompts/get"
            | "completion/complete"
            | "tasks/get"
            | "tasks/list"
            | "tasks/result"
            | "subscriptions/listen" => Self::Operation(Operation::Read),
            "sampling/createMessage" | "elicitation/create" | "roots/list" => Self::Other,
            "initialize"
            | "ping"
            | "server/discover"
            | "logging/setLevel"
            | "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list" => Self::Plumbing,
            _ if method.starts_with("notifications/") => Self::Plumbing,
            // What nobody knows may change something.
            _ => Self::Operation(Operation::Write),
        }
    }
}

/// The operation that a request of the client's is, as far as names tell.
pub fn operation_of(method: &str, tool: Option<&str>, classifier: &Classifier) -> Option<Operation> {
    Concern::of(method).operation(tool, classifier, Annotations::default())
}

impl Concern {
    pub(super) fn operation(
        self,
        tool: Option<&str>,
        classifier: &Classifier,
        annotations: Annotations,
    ) -> Option<Operation> {
        match self {
            Self::Tool => tool.map(|tool| classifier.classify(tool, annotations).operation),
            Self::Operation(operation) => Some(operation),
            Self::Other | Self::Plumbing => None,
        }
    }
}
