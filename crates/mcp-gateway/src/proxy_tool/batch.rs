//! Several operations in one use of the tool: at the same time as far as that is good, answered together and in
//! their order. What fails stops nothing else.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::router::meta;
use bytes::Bytes;
use mcp_proxy_tool::arguments::{Call, Mistake, Operation};
use mcp_proxy_tool::shape::{self, Came, Outcome};
use mcp_wire::{Id, Kind, Message, reply, scan};

use super::Outer;
use super::inner::error_of;
use crate::client::GatewayClient;

/// Operations of one batch under way at a time, where servers and client allow as many.
const AT_ONCE: usize = 16;
/// Bytes of all answers of one batch; operations past it are refused.
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// What every word of an operation that does not say how far it is counts for, of what is left of it.
const A_STEP: f64 = 0.1;

pub(crate) struct Batch {
    outer: Rc<Outer>,
    operations: Vec<Result<Operation, Mistake>>,
    outcomes: RefCell<Vec<Option<Outcome>>>,
    /// How much of each is done, from 0 to 1.
    shares: RefCell<Vec<f64>>,
    /// The progress that was told last.
    told: Cell<f64>,
    /// What all outcomes come to.
    bytes: Cell<usize>,
    at_once: usize,
    /// What the client knows its progress by, as JSON.
    token: Option<Bytes>,
    next: Cell<usize>,
    under_way: Cell<usize>,
    is_advancing: Cell<bool>,
    is_given_up: Cell<bool>,
}

impl Batch {
    pub(crate) fn is_for(&self, id: &Id) -> bool {
        self.outer.id == *id
    }

    /// The client wants nothing of it any more.
    pub(crate) fn give_up(&self) {
        self.is_given_up.set(true);
    }

    /// What is said beside an operation: what was said beside the batch, with a token of its own.
    fn rest(&self, id: &Id) -> Vec<(String, Bytes)> {
        // A task has an id of its own, and a question one answer: neither could be told apart in a batch.
        let is_left_out = |name: &str| matches!(name, "task" | "inputResponses" | "requestState");
        let mut rest: Vec<(String, Bytes)> = Vec::new();
        let mut members = self.token.as_ref().map(|_| format!("\"progressToken\":{id}")).unwrap_or_default();
        for (name, value) in self.outer.rest.iter().filter(|(name, _)| !is_left_out(name)) {
            if name != "_meta" {
                rest.push((name.clone(), value.clone()));
                continue;
            }
            for (name, span) in scan::object_members(value).filter(|(name, _)| name != "progressToken") {
                let comma = if members.is_empty() { "" } else { "," };
                let said = String::from_utf8_lossy(&value[span.range()]);
                members.push_str(&format!("{comma}{}:{said}", serde_json::Value::from(&*name)));
            }
        }
        if !members.is_empty() {
            rest.push(("_meta".into(), format!("{{{members}}}").into()));
        }
        rest
    }

    /// What came of an operation, if there is room for it in the answer.
    fn within_bounds(&self, came: Came) -> Came {
        let (Came::Result(bytes) | Came::Error(bytes)) = &came;
        let sum = self.bytes.get().saturating_add(bytes.len());
        if sum > BYTES_MAX {
            return Came::Error(reply::batch_too_large());
        }
        self.bytes.set(sum);
        came
    }

    fn outcome(&self, at: usize, came: Came) -> Outcome {
        let (action, kind, path) = match &self.operations[at] {
            Ok(Operation::List { kind, .. }) => (Some("list"), Some(*kind), None),
            Ok(Operation::Info { kind, path }) => (Some("info"), Some(*kind), Some(path.clone())),
            Ok(Operation::Call(call)) => (Some("call"), Some(call.kind), Some(call.path.clone())),
            Err(_) => (None, None, None),
        };
        Outcome { action, kind, path, came }
    }
}

impl GatewayClient {
    pub(super) fn begin_batch(&self, outer: &Rc<Outer>, operations: Vec<Result<Operation, Mistake>>) {
        let meta = outer.rest.iter().find(|(name, _)| name == "_meta").map(|(_, meta)| meta);
        let token = meta.and_then(|meta| Some(meta.slice(scan::member_at(meta, ["progressToken"])?.range())));
        let batch = Rc::new(Batch {
            outer: Rc::clone(outer),
            outcomes: RefCell::new(operations.iter().map(|_| None).collect()),
            shares: RefCell::new(vec![0.0; operations.len()]),
            operations,
            told: Cell::new(0.0),
            bytes: Cell::new(0),
            at_once: self.at_once(),
            token,
            next: Cell::new(0),
            under_way: Cell::new(0),
            is_advancing: Cell::new(false),
            is_given_up: Cell::new(false),
        });
        self.own.borrow_mut().push(outer.id.clone());
        self.inners.begun(&batch);
        self.advance(&batch);
    }

    /// As much as a batch may have under way without anything being refused for it.
    fn at_once(&self) -> usize {
        let of_servers = self.servers().map(|server| server.settings.in_flight.saturating_add(server.settings.queue));
        let least = of_servers.min().unwrap_or(AT_ONCE).min(self.gateway.settings.in_flight_per_client);
        least.clamp(1, AT_ONCE)
    }

    /// Begins as many operations as may be under way, and answers once all are done.
    fn advance(&self, batch: &Rc<Batch>) {
        // What is done at once comes back here.
        if batch.is_advancing.replace(true) {
            return;
        }
        while batch.under_way.get() < batch.at_once
            && batch.next.get() < batch.operations.len()
            && !batch.is_given_up.get()
        {
            let at = batch.next.get();
            batch.next.set(at + 1);
            batch.under_way.set(batch.under_way.get() + 1);
            self.begin_operation(batch, at);
        }
        batch.is_advancing.set(false);
        let is_done = batch.under_way.get() == 0 && batch.next.get() == batch.operations.len();
        if is_done && self.is_still_wanted(&batch.outer.id) {
            let outcomes: Vec<Outcome> = batch.outcomes.take().into_iter().flatten().collect();
            self.say_of_tool(&batch.outer, &shape::batch(&outcomes));
        }
    }

    fn begin_operation(&self, batch: &Rc<Batch>, at: usize) {
        match &batch.operations[at] {
            Ok(Operation::Call(call)) => {
                if let Some(mistake) = self.left_open(call) {
                    return self.finish_operation(batch, at, Came::Result(shape::mistake(&mistake)));
                }
                let id = self.open_part(&batch.outer, batch, at);
                self.use_natively(&batch.outer, &id, call, &batch.rest(&id));
            }
            Ok(operation) => {
                let (me, batch, operation, era) = (self.rc(), Rc::clone(batch), operation.clone(), batch.outer.era);
                tokio::task::spawn_local(async move {
                    let came = me.looked_up(&operation, era).await;
                    me.finish_operation(&batch, at, came);
                });
            }
            Err(mistake) => self.finish_operation(batch, at, Came::Result(shape::mistake(mistake))),
        }
    }

    /// A call of a batch is answered.
    pub(crate) fn came_of(&self, batch: &Rc<Batch>, at: usize, answer: &Message) {
        let bytes = answer.bytes();
        let result = scan::member_at(bytes, ["result"]).filter(|_| answer.glance().kind == Kind::Response);
        let came = match (result, &batch.operations[at]) {
            (Some(result), Ok(Operation::Call(call))) => came_of_call(call, &bytes[result.range()]),
            _ => Came::Error(error_of(answer)),
        };
        self.finish_operation(batch, at, came);
    }

    fn finish_operation(&self, batch: &Rc<Batch>, at: usize, came: Came) {
        if batch.is_given_up.get() {
            return;
        }
        batch.under_way.set(batch.under_way.get() - 1);
        let came = batch.within_bounds(came);
        batch.shares.borrow_mut()[at] = 1.0;
        let outcome = batch.outcome(at, came);
        if batch.token.is_some() {
            let came = match &outcome.came {
                Came::Result(result) => ("result", result),
                Came::Error(error) => ("error", error),
            };
            let came = format!("{{\"index\":{at},\"{}\":{}}}", came.0, String::from_utf8_lossy(came.1));
            let what = [outcome.action.unwrap_or("operation"), outcome.path.as_deref().unwrap_or_default()];
            self.tell_progress(batch, Some(what.join(" ").trim_end()), Some(&came));
        }
        batch.outcomes.borrow_mut()[at] = Some(outcome);
        self.advance(batch);
    }

    /// Makes of the progress of one operation that of its batch. What is not that comes back.
    pub(crate) fn progress_of_batch(&self, about: Option<&Id>, message: Bytes) -> Option<Bytes> {
        let part = about.filter(|_| !self.inners.is_empty()).and_then(|id| self.inners.part_of(id));
        let Some((batch, at)) = part else { return Some(message) };
        let said = Message::new(message);
        if said.method().as_deref() != Some("notifications/progress") {
            return Some(said.bytes().clone());
        }
        let number = |name| {
            let span = scan::member_at(said.bytes(), ["params", name])?;
            std::str::from_utf8(&said.bytes()[span.range()]).ok()?.parse::<f64>().ok()
        };
        {
            let mut shares = batch.shares.borrow_mut();
            let share = shares[at];
            shares[at] = match (number("progress"), number("total").filter(|total| *total > 0.0)) {
                (Some(progress), Some(total)) => (progress / total).clamp(share, 1.0),
                _ => share + (1.0 - share) * A_STEP,
            };
        }
        let text = scan::member_at(said.bytes(), ["params", "message"]);
        let text = text.and_then(|span| scan::decode_string(&said.bytes()[span.range()]));
        self.tell_progress(&batch, text.as_deref(), None);
        None
    }

    fn tell_progress(&self, batch: &Batch, text: Option<&str>, partial: Option<&str>) {
        let Some(token) = &batch.token else { return };
        let progress = batch.shares.borrow().iter().sum::<f64>();
        // It has to increase each time.
        if progress <= batch.told.get() {
            return;
        }
        batch.told.set(progress);
        let mut params = format!(
            "{{\"progressToken\":{},\"progress\":{progress},\"total\":{}",
            String::from_utf8_lossy(token),
            batch.operations.len()
        );
        if let Some(text) = text {
            params.push_str(&format!(",\"message\":{}", serde_json::Value::from(text)));
        }
        if let Some(partial) = partial {
            params.push_str(&format!(",\"_meta\":{{\"{}\":{partial}}}", meta::PARTIAL));
        }
        let message = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{params}}}}}");
        self.say_about(&batch.outer.id, message.into());
    }
}

fn came_of_call(call: &Call, result: &[u8]) -> Came {
    let kind = scan::member_at(result, ["resultType"]).and_then(|span| scan::decode_string(&result[span.range()]));
    if kind.is_some_and(|kind| kind == "input_required") {
        return Came::Error(reply::asks_its_caller());
    }
    Came::Result(shape::call(call, result))
}
