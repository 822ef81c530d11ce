//! What servers ask of clients. A question goes to the client whose call it belongs to; where that
//! cannot be told, or the client could not answer, the server is told so.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};

use crate::router::era::ClientFacts;
use bytes::Bytes;
use mcp_wire::reply::{self, Refusal};
use mcp_wire::revision::Era;
use mcp_wire::splice::splice_all;
use mcp_wire::{Id, Message, scan};

use crate::client::GatewayClient;
use crate::upstream::UpstreamConnection;
use crate::upstream::calls::OwnId;

/// Questions to one client without an answer.
const OPEN_MAX: usize = 256;

/// Questions to one client that it has not answered, by the ids that it knows.
#[derive(Default)]
pub(crate) struct Questions(RefCell<HashMap<i64, Question>>);

struct Question {
    connection: Weak<UpstreamConnection>,
    /// As the server knows it.
    id: OwnId,
    /// The client's call that it belongs to.
    about: Option<Id>,
    token: Option<Id>,
    /// The question and its sequence, until the client was answered `initialize`.
    unasked: Option<(u64, Bytes)>,
}

impl UpstreamConnection {
    /// The server asks something.
    pub(crate) fn hear_question(&self, message: &Message, sequence: u64) {
        let Some(id) = message.glance().id.map(|span| OwnId::new(message.slice(span))) else { return };
        let method = message.method().unwrap_or_default();
        if method == "ping" {
            return self.tell(reply::answer_with_result(&id.id(), b"{}"));
        }
        if self.era.get() == Era::Modern {
            // No revision that it speaks has such a thing.
            return self.refuse_question(&id.id(), "requests to clients are not part of this revision");
        }
        let (client, about) = match self.call_in_question() {
            Some((client, about)) => (client, Some(about)),
            None => match self.only_visitor() {
                Some(client) => (client, None),
                None => return self.refuse_question(&id.id(), "it cannot be told which client this is for"),
            },
        };
        if client.speaks_modern() {
            return self.refuse_question(&id.id(), "the client speaks a revision in which it cannot be asked");
        }
        if !client.has_said_who_it_is() {
            return self.refuse_question(&id.id(), "the client has not said yet what it can answer");
        }
        if !can_answer(&client.facts(), &method) {
            return self.refuse_question(&id.id(), "the client did not declare that it can answer this");
        }
        client.ask(self, message, id, about, sequence);
    }

    /// The client that it is for, if there is only one.
    pub(crate) fn only_visitor(&self) -> Option<Rc<GatewayClient>> {
        let mut all = self.attached();
        let only = if all.len() == 1 { all.pop() } else { None };
        only.filter(|client| !self.claims.are_another(client.number))
    }

    fn refuse_question(&self, id: &Id, what: &str) {
        self.note(&format!("the question before this was refused: {what}"));
        self.tell(reply::error(id, &Refusal::CannotAsk { what: what.to_owned() }));
    }

    /// The server takes back a question.
    pub(crate) fn hear_cancelled(&self, message: &Message, sequence: u64) {
        let Some(id) = message.cancelled_id() else { return };
        for client in self.attached() {
            client.withdraw_question(self, &id, message, sequence);
        }
    }

    /// A call is over, and with it what was asked because of it.
    pub(crate) fn withdraw_questions_about(&self, client: &GatewayClient, about: &Id) {
        client.questions.0.borrow_mut().retain(|_, question| {
            !(question.about.as_ref() == Some(about) && std::ptr::eq(question.connection.as_ptr(), self))
        });
    }

    /// The client took back a call; what it was asked because of that needs no answer.
    pub(crate) fn withdraw_questions(&self, client: &GatewayClient) {
        let has_calls = self.calls.borrow().clients().any(|(_, call)| std::ptr::eq(call.client.as_ptr(), client));
        if !has_calls {
            client.forget_questions_of(self);
        }
    }
}

/// Whether a client said that it can answer such a question.
fn can_answer(facts: &ClientFacts, method: &str) -> bool {
    let capability = match method {
        "sampling/createMessage" => "sampling",
        "elicitation/create" => "elicitation",
        "roots/list" => "roots",
        // Nobody can tell.
        _ => return true,
    };
    scan::member_at(&facts.capabilities, [capability]).is_some()
}

impl GatewayClient {
    pub(crate) fn speaks_modern(&self) -> bool {
        self.has_no_handshake()
    }

    fn ask(&self, connection: &UpstreamConnection, message: &Message, id: OwnId, about: Option<Id>, sequence: u64) {
        if self.questions.0.borrow().len() >= OPEN_MAX {
            return connection.refuse_question(&id.id(), "the client has too many questions to answer");
        }
        let number = self.gateway.questions.get() + 1;
        self.gateway.questions.set(number);
        let Some(span) = message.glance().id else { return };
        let bytes = splice_all(message.bytes(), &mut [(span, number.to_string())]);
        let (unasked, bytes) = if self.is_open.get() { (None, Some(bytes)) } else { (Some((sequence, bytes)), None) };
        let (connection, token) = (Rc::downgrade(&connection.rc()), message.progress_token());
        let question = Question { connection, id, about: about.clone(), token, unasked };
        self.questions.0.borrow_mut().insert(number, question);
        if let Some(bytes) = bytes {
            self.hear(sequence, about.as_ref(), bytes);
        }
    }

    /// Asks what servers asked before the client was answered `initialize`, in their order.
    pub(crate) fn ask_what_waits(&self) {
        let mut waiting: Vec<_> = {
            let mut questions = self.questions.0.borrow_mut();
            let unasked = |(number, it): (&i64, &mut Question)| Some((*number, it.about.clone(), it.unasked.take()?));
            questions.iter_mut().filter_map(unasked).collect()
        };
        waiting.sort_unstable_by_key(|(number, ..)| *number);
        for (_, about, (sequence, bytes)) in waiting {
            self.hear(sequence, about.as_ref(), bytes);
        }
    }

    /// The client answers a question.
    pub(crate) fn reply(&self, message: &Message, sequence: u64) {
        let question = match message.id() {
            Some(Id::Integer(number)) => self.questions.0.borrow_mut().remove(&number),
            _ => None,
        };
        let (Some(question), Some(span)) = (question, message.glance().id) else {
            return self.note("the answer before this is to no open question, and was not passed on");
        };
        if let Some(connection) = question.connection.upgrade() {
            connection.reply_for(self, sequence, splice_all(message.bytes(), &mut [(span, question.id.bytes())]));
        }
    }

    /// The client says how far it is with a question.
    pub(crate) fn progress_of_question(&self, message: &Message, sequence: u64) {
        let Some(token) = message.progress_token() else { return };
        let connection = {
            let questions = self.questions.0.borrow();
            let question = questions.values().find(|question| question.token.as_ref() == Some(&token));
            question.and_then(|question| question.connection.upgrade())
        };
        if let Some(connection) = connection {
            connection.tell_for(self, sequence, message.bytes().clone());
        }
    }

    fn withdraw_question(&self, connection: &UpstreamConnection, id: &Id, message: &Message, sequence: u64) {
        let found = {
            let questions = self.questions.0.borrow();
            let mut all = questions.iter();
            all.find(|(_, it)| std::ptr::eq(it.connection.as_ptr(), connection) && it.id.id() == *id)
                .map(|(number, _)| *number)
        };
        let (Some(number), Some(span)) = (found, message.peek().request_id) else { return };
        let question = self.questions.0.borrow_mut().remove(&number);
        if question.as_ref().is_some_and(|question| question.unasked.is_some()) {
            return;
        }
        let bytes: Bytes = splice_all(message.bytes(), &mut [(span, number.to_string())]);
        self.hear(sequence, question.and_then(|question| question.about).as_ref(), bytes);
    }

    /// Whether a server waits for its answer.
    pub(crate) fn is_asked_by(&self, connection: &UpstreamConnection) -> bool {
        self.questions.0.borrow().values().any(|question| std::ptr::eq(question.connection.as_ptr(), connection))
    }

    pub(crate) fn forget_questions_of(&self, connection: &UpstreamConnection) {
        self.questions.0.borrow_mut().retain(|_, question| !std::ptr::eq(question.connection.as_ptr(), connection));
    }
}
