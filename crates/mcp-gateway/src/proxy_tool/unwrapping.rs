//! A server that keeps what it has behind one tool of its own, shown as if it did not: its lists are read through
//! that tool, and what clients use goes out as calls of it and comes back as if the server had been asked directly.
//! How the tool is spoken with is for `mcp-proxy-tool` to know.

use std::rc::Rc;

use crate::router::ListKind;
use bytes::Bytes;
use mcp_proxy_tool::detect::{self, ProxyTool};
use mcp_proxy_tool::select::Paging;
use mcp_proxy_tool::unwrap::{self, NotNative};
use mcp_proxy_tool::{Type, wrap};
use mcp_wire::fold::skeleton;
use mcp_wire::revision::Era;
use mcp_wire::splice::splice_all;
use mcp_wire::{Kind, Message, reply, scan};

use crate::catalog::listed::{Unread, error_text, json_text};
use crate::settings::UnwrapTool;
use crate::upstream::UpstreamConnection;

/// A list that was read through a tool, and the bound that cut it short.
type Behind = (Bytes, Option<String>);

/// Items requested at a time through a proxy tool that knows pages.
const PAGE_ITEMS: usize = 500;

impl UpstreamConnection {
    /// The tool that everything of the server is used through, if it is looked behind.
    pub(crate) fn unwraps(&self) -> Option<Rc<ProxyTool>> {
        self.unwraps.borrow().clone()
    }

    /// Whether that is the tool itself, spelled in whatever way.
    pub(crate) fn looks_behind(&self, tool: &str) -> bool {
        self.unwraps
            .borrow()
            .as_ref()
            .is_some_and(|known| known.name == tool || skeleton(&known.name) == skeleton(tool))
    }

    /// Finds the server's proxy tool, if it is to be looked behind. Its introduction comes back, as clients are to
    /// see it.
    pub(crate) async fn look_behind(&self, introduction: Bytes) -> Result<Bytes, String> {
        let Some(wanted) = &self.server.settings.unwrap_proxy_tool else { return Ok(introduction) };
        let name = match wanted {
            UnwrapTool::Found => None,
            UnwrapTool::Named(name) => Some(name.as_str()),
        };
        let items = self.own_tools(&introduction).await?;
        let Some(tool) = detect::find(items.iter().map(|item| &**item), name) else {
            let what = name.map_or("no proxy tool".into(), |name| format!("no tool called `{name}`"));
            let text = format!("server \"{}\" has {what}, and is shown as it is", self.server.id());
            self.note(&text);
            if let Some(gateway) = self.server.gateway.upgrade() {
                gateway.runtime.tell_once(&text);
            }
            return Ok(introduction);
        };
        if let (Some(link), Some(gateway)) = (self.link(), self.server.gateway.upgrade()) {
            gateway.runtime.look(|pipeline| pipeline.governance.unwrap_leg(&link.conversation.borrow(), &tool.name));
        }
        *self.unwraps.borrow_mut() = Some(Rc::new(tool));
        Ok(declaring_all(&introduction))
    }

    /// The tools that the server lists itself.
    async fn own_tools(&self, introduction: &Bytes) -> Result<Vec<Bytes>, String> {
        let (mut items, mut cursors) = (Vec::new(), Vec::<String>::new());
        if scan::member_at(introduction, ["result", "capabilities", "tools"]).is_none() {
            return Ok(items);
        }
        let (pages_max, items_max) = self.list_bounds();
        while cursors.len() < pages_max && items.len() < items_max {
            let params = cursors.last().map(|cursor| format!("{{\"cursor\":{}}}", json_text(cursor)));
            let answer = self.ask(ListKind::Tools.method(), params.as_deref()).await;
            let answer = answer.map_err(|_| "it ended, or did not answer, before it said which tools it has")?;
            if let Some(list) = scan::member_at(&answer, ["result", ListKind::Tools.result_key()]) {
                let list = answer.slice(list.range());
                items.extend(scan::batch_items(&list).map(|item| list.slice(item.range())));
            }
            let next = scan::member_at(&answer, ["result", "nextCursor"]);
            match next.and_then(|span| scan::decode_string(&answer[span.range()])) {
                Some(next) if !next.is_empty() && !cursors.iter().any(|known| *known == next) => {
                    cursors.push(next.into_owned());
                }
                _ => break,
            }
        }
        Ok(items)
    }

    /// A list, read through the tool, as the server's own answer to a request for it; and the bound that cut it.
    pub(crate) async fn read_behind(&self, tool: &ProxyTool, kind: ListKind) -> Result<Behind, Unread> {
        let mut items: Vec<Bytes> = Vec::new();
        let ((pages_max, items_max), mut cut) = (self.list_bounds(), None);
        let mut offset = 0;
        for page in 0.. {
            let paging = match tool.knows_paging {
                true => Paging { limit: Some(PAGE_ITEMS), offset: (offset > 0).then_some(offset) },
                false => Paging::default(),
            };
            let params = wrap::list(tool, type_of(kind), paging);
            let answer = self.ask("tools/call", Some(&String::from_utf8_lossy(&params))).await;
            let answer = answer.map_err(|_| match self.is_over() {
                true => Unread::gone(&self.refusal()),
                false => Unread::late(),
            })?;
            if Message::new(answer.clone()).glance().kind == Kind::Error {
                let why = format!("{} through its proxy tool failed: {}", kind.method(), error_text(&answer));
                return Err(Unread::failed(why));
            }
            let result = scan::member_at(&answer, ["result"]).map(|span| &answer[span.range()]);
            let listed = unwrap::list(tool, type_of(kind), result.unwrap_or_default())
                .map_err(|why| format!("{} through its proxy tool failed: {}", kind.method(), shortened(&why)))
                .map_err(Unread::failed)?;
            offset += listed.items.len();
            let (is_last, count) = match listed.page {
                Some(page) => (offset >= page.total || listed.items.is_empty(), page.total),
                None => (true, offset),
            };
            items.extend(listed.items);
            if is_last {
                break;
            }
            if page + 1 >= pages_max || items.len() >= items_max {
                let read = items.len();
                cut = Some(format!("only {read} of {count} items are read (`list_pages`, `list_items`)"));
                break;
            }
        }
        let answer = as_answer(kind, items.iter().filter(|item| is_of(tool, kind, item)));
        if kind == ListKind::Tools
            && let (Some(link), Some(gateway)) = (self.link(), self.server.gateway.upgrade())
        {
            gateway.runtime.look(|pipeline| pipeline.governance.learn_tools(&link.conversation.borrow(), &answer));
        }
        Ok((answer, cut))
    }

    /// A request as it is sent to a server that is looked behind, and what it uses; as it is, if it goes there
    /// directly.
    pub(crate) fn wrapped(&self, method: &str, request: Message) -> (Message, Option<Type>) {
        let Some(tool) = self.unwraps() else { return (request, None) };
        // What a task came to is the tool's result.
        if method == "tasks/result" {
            return (request, Some(Type::Tool));
        }
        let Some(kind) = Type::ALL.into_iter().find(|kind| kind.method() == method) else { return (request, None) };
        let bytes = request.bytes();
        let spans = (scan::member_at(bytes, ["method"]), scan::member_at(bytes, ["params"]));
        let (Some(method), Some(params)) = spans else { return (request, None) };
        let Some(wrapped) = wrap::call(&tool, kind, &bytes[params.range()]) else { return (request, None) };
        let mut edits = [(method, Bytes::from_static(b"\"tools/call\"")), (params, wrapped)];
        (splice_all(bytes, &mut edits).into(), Some(kind))
    }
}

/// The answer to a call of the tool as the answer to what was asked for.
pub(crate) fn unwrapped(kind: Type, answer: Bytes, era: Era) -> Bytes {
    let Some(span) = scan::member_at(&answer, ["result"]) else { return answer };
    match unwrap::call(kind, &answer[span.range()], era) {
        Ok(native) => splice_all(&answer, &mut [(span, native)]),
        Err(why) => match Message::new(answer.clone()).id() {
            Some(id) => reply::failed_inside(&id, &why.to_string()),
            None => answer,
        },
    }
}

fn type_of(kind: ListKind) -> Type {
    match kind {
        ListKind::Tools => Type::Tool,
        ListKind::Prompts => Type::Prompt,
        ListKind::Resources | ListKind::Templates => Type::Resource,
    }
}

/// Whether an item of what the tool lists belongs into a list. The tool itself does not: nobody is to see it.
fn is_of(tool: &ProxyTool, kind: ListKind, item: &[u8]) -> bool {
    match kind {
        ListKind::Tools => {
            let name = scan::member_at(item, ["name"]).and_then(|span| scan::decode_string(&item[span.range()]));
            name.is_none_or(|name| name != tool.name)
        }
        ListKind::Prompts => true,
        ListKind::Resources => !unwrap::is_template(item),
        ListKind::Templates => unwrap::is_template(item),
    }
}

fn as_answer<'a>(kind: ListKind, items: impl Iterator<Item = &'a Bytes>) -> Bytes {
    let mut answer = format!("{{\"result\":{{\"{}\":[", kind.result_key()).into_bytes();
    for (number, item) in items.enumerate() {
        answer.extend_from_slice(if number == 0 { b"" } else { b"," });
        answer.extend_from_slice(item);
    }
    answer.extend_from_slice(b"]}}");
    answer.into()
}

/// An introduction that says that there are tools, resources and prompts. That the tools changed is all that the
/// server can say of any of them.
fn declaring_all(introduction: &Bytes) -> Bytes {
    const SHOWN: [&str; 3] = ["tools", "resources", "prompts"];
    let Some(span) = scan::member_at(introduction, ["result", "capabilities"]) else { return introduction.clone() };
    let declared = &introduction[span.range()];
    let is_set =
        |path: [&str; 2]| scan::member_at(declared, path).is_some_and(|span| &declared[span.range()] == b"true");
    let tells_changes = is_set(["tools", "listChanged"]);
    let mut members: Vec<String> = scan::object_members(declared)
        .filter(|(key, _)| !SHOWN.contains(&&**key))
        .map(|(key, value)| format!("{}:{}", json_text(&key), String::from_utf8_lossy(&declared[value.range()])))
        .collect();
    for name in SHOWN {
        let subscribe = if is_set([name, "subscribe"]) { ",\"subscribe\":true" } else { "" };
        members.push(format!("\"{name}\":{{\"listChanged\":{tells_changes}{subscribe}}}"));
    }
    splice_all(introduction, &mut [(span, format!("{{{}}}", members.join(",")))])
}

/// What went wrong, in as many words as fit.
fn shortened(why: &NotNative) -> String {
    /// Characters shown of the fault in a proxy tool's answer.
    const CHARS_MAX: usize = 200;
    why.to_string().chars().take(CHARS_MAX).collect()
}

#[cfg(test)]
mod tests;
