//! What the server offers: tools, prompts and resources, as the newest lists that passed have them.

mod catalogue;
#[cfg(test)]
pub(crate) mod fixtures;
mod offer;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use mcp_control::api::{Message, MessageKind, Page, PageQuery};
use mcp_wire::revision::{Era, Revision};

pub(crate) use catalogue::Catalogue;
pub(crate) use offer::{Offer, Sort};

use super::common::{Common, Overlay, Repeat};
use super::cursor::{Cursor, Scroll};
use super::editor::Editor;
use super::prompt::Asking;
use crate::command::{Command, Screen};
use crate::json::{Document, Pretty, Wrap};
use crate::news::{Asker, Editing, Effect, Ticket};
use crate::schema::{self, Verdict};

/// Answers to requests for lists.
const LISTS: &str = "method:tools/list,prompts/list,resources/list,resources/templates/list kind:response origin:*";
/// Answers that are read; a server with more pages than this has its oldest left out.
const PAGE: u32 = 50;
/// Lists that are fetched because they were too long for a page.
const FETCHED_MAX: usize = 8;

/// A view of a definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum View {
    #[default]
    Description,
    Schema,
    /// As the server spelled it.
    Definition,
}

impl View {
    pub(crate) const ALL: [Self; 3] = [Self::Description, Self::Schema, Self::Definition];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Description => "Description",
            Self::Schema => "Schema",
            Self::Definition => "Definition",
        }
    }

    fn step(self, by: usize) -> Self {
        let at = Self::ALL.iter().position(|view| *view == self).unwrap_or(0);
        Self::ALL[(at + by) % Self::ALL.len()]
    }
}

#[derive(Default)]
pub(crate) struct Tools {
    pub catalogue: Catalogue,
    /// What of the catalogue has the words that were asked for, and those words.
    pub found: Vec<Arc<Offer>>,
    pub words: String,
    /// The words that counted before others were typed.
    words_before: String,
    pub cursor: Cursor,
    /// Keys go to the definition and not to the list.
    pub is_on_definition: bool,
    pub is_zoomed: bool,
    pub view: View,
    pub scroll: Scroll,
    pub shown: Shown,
    /// Why nothing could be read.
    pub trouble: Option<String>,
    /// Lists were read once.
    pub is_read: bool,
    asked: Option<Ticket>,
    /// A list passed that was not read yet.
    is_stale: bool,
    /// `_meta` of the request of a list, as it was spelled.
    meta: Option<(u64, Option<String>)>,
}

/// A definition as it is drawn, made once.
#[derive(Default)]
pub(crate) struct Shown {
    of: Option<Arc<Offer>>,
    pub schema: Option<Pretty>,
    pub definition: Option<Wrap>,
}

impl Tools {
    /// The screen is shown.
    pub(crate) fn enter(&mut self, common: &mut Common) {
        self.load(common);
    }

    fn load(&mut self, common: &mut Common) {
        let query = PageQuery { limit: Some(PAGE), filter: Some(LISTS.to_owned()), ..PageQuery::default() };
        let ticket = common.ticket(Asker::Tools);
        (self.asked, self.is_stale) = (Some(ticket), false);
        common.wish(Effect::Page { ticket, query });
    }

    /// Somebody needs schemas: reads the lists, unless they were.
    pub(crate) fn want(&mut self, common: &mut Common) {
        if self.asked.is_none() && (!self.is_read || self.is_stale) {
            self.load(common);
        }
    }

    pub(crate) fn is_loading(&self) -> bool {
        self.asked.is_some()
    }

    /// A message passed; it may be a list.
    pub(crate) fn see(&mut self, message: &Message) {
        let is_list = Sort::listed_by(message.method.as_deref()).is_some();
        self.is_stale |= is_list && message.kind == MessageKind::Response;
    }

    pub(crate) fn tick(&mut self, common: &mut Common) {
        if self.is_stale && matches!(common.screen, Screen::Tools | Screen::Held) {
            self.want(common);
        }
    }

    pub(crate) fn page(&mut self, ticket: Ticket, page: Result<Page, String>, common: &mut Common) {
        if self.asked.take_if(|asked| *asked == ticket).is_none() {
            return;
        }
        self.is_read = true;
        match page {
            Ok(page) => {
                self.trouble = None;
                let missing = self.catalogue.take(page.messages.iter());
                missing.into_iter().take(FETCHED_MAX).for_each(|sequence| common.wish(Effect::Message { sequence }));
                self.changed(common);
            }
            Err(words) => self.trouble = Some(words),
        }
    }

    /// A whole message came: a list that was too long for a page, or the request for one.
    pub(crate) fn came(&mut self, message: &Message, common: &mut Common) {
        if self.catalogue.is_coming(message.sequence) {
            self.catalogue.take(std::iter::once(message));
            self.changed(common);
        }
        if let Some((_, meta)) = self.meta.as_mut().filter(|(of, _)| *of == message.sequence) {
            *meta = message.raw.as_ref().and_then(|raw| meta_of(raw.get()));
        }
    }

    fn changed(&mut self, common: &mut Common) {
        let name = self.selected().map(|offer| (offer.sort, offer.name.clone()));
        self.find();
        if let Some((sort, name)) = name {
            let is_it = |offer: &Arc<Offer>| offer.sort == sort && offer.name == name;
            self.cursor.at = self.found.iter().position(is_it).unwrap_or(self.cursor.at);
        }
        self.want_meta(common);
    }

    /// Modern requests say in `_meta` who speaks; a call is to say the same.
    fn want_meta(&mut self, common: &mut Common) {
        let tool = self.catalogue.offers.iter().rev().find(|offer| offer.sort == Sort::Tool);
        let is_modern = |offer: &&Arc<Offer>| {
            let revision = offer.revision.as_deref().and_then(|date| Revision::parse(date.as_bytes()));
            revision.is_some_and(|revision| revision.era() == Era::Modern)
        };
        let Some(request) = tool.filter(is_modern).and_then(|offer| offer.request) else { return };
        if self.meta.as_ref().is_none_or(|(of, _)| *of != request) {
            self.meta = Some((request, None));
            common.wish(Effect::Message { sequence: request });
        }
    }

    fn find(&mut self) {
        let words: Vec<String> = self.words.split_whitespace().map(str::to_lowercase).collect();
        self.found = self.catalogue.offers.iter().filter(|offer| offer.has(&words)).cloned().collect();
        self.cursor.at = self.cursor.at.min(self.found.len().saturating_sub(1));
    }

    /// Narrows the list to what has these words.
    pub(crate) fn set_words(&mut self, words: &str) {
        self.words = words.trim().to_owned();
        self.find();
        self.scroll = Scroll::default();
    }

    /// What was typed does not count.
    pub(crate) fn leave_words(&mut self) {
        let before = std::mem::take(&mut self.words_before);
        self.set_words(&before);
    }

    pub(crate) fn selected(&self) -> Option<&Arc<Offer>> {
        self.found.get(self.cursor.at)
    }

    pub(crate) fn select_line(&mut self, line: usize) {
        self.is_on_definition = false;
        if line < self.found.len() {
            (self.cursor.at, self.scroll) = (line, Scroll::default());
        }
    }

    /// Does what the command says, if that is this screen's to do.
    pub(crate) fn command(&mut self, command: Command, common: &mut Common) -> bool {
        match command {
            Command::Filter => {
                self.words_before.clone_from(&self.words);
                common.prompt(Asking::ToolFilter, &self.words);
            }
            Command::NextPane | Command::PreviousPane => self.is_on_definition = !self.is_on_definition,
            Command::NextView => self.show(self.view.step(1)),
            Command::PreviousView => self.show(self.view.step(View::ALL.len() - 1)),
            Command::Zoom => self.is_zoomed = !self.is_zoomed,
            Command::Back if self.is_zoomed => self.is_zoomed = false,
            Command::Back if self.is_on_definition => self.is_on_definition = false,
            Command::Back if !self.words.is_empty() => self.set_words(""),
            Command::Open | Command::Try | Command::Edit | Command::Replay => self.try_it(false, common),
            Command::Editor => self.try_it(true, common),
            Command::Copy => match self.selected() {
                Some(offer) => common.wish(Effect::Copy(offer.definition.clone())),
                None => common.say("nothing is selected"),
            },
            command if self.is_on_definition => return self.scroll.motion(command),
            command => return self.motion(command),
        }
        true
    }

    fn motion(&mut self, command: Command) -> bool {
        let before = self.cursor.at;
        let is_moved = self.cursor.motion(command, self.found.len());
        if before != self.cursor.at {
            self.scroll = Scroll::default();
        }
        is_moved
    }

    fn show(&mut self, view: View) {
        (self.view, self.scroll) = (view, Scroll::default());
    }

    /// Asks for the arguments of a call.
    fn try_it(&mut self, is_elsewhere: bool, common: &mut Common) {
        let Some(offer) = self.selected() else { return common.say("nothing is selected") };
        if offer.sort != Sort::Tool {
            return common.say(format!("this is a {}; only tools can be called from here", offer.sort.word()));
        }
        let text = offer.schema.as_deref().map_or("{}".to_owned(), schema::skeleton);
        let why = Editing::Arguments(offer.name.clone());
        if is_elsewhere {
            return common.wish(Effect::Editor { text, why });
        }
        let mut editor = Editor::new(why, &text);
        editor.schema = self.check_arguments(&offer.name, &text);
        common.overlay = Overlay::Editor(Box::new(editor));
    }

    /// Whether a tool of this name was listed.
    pub(crate) fn knows(&self, tool: &str) -> bool {
        self.catalogue.tool(tool).is_some()
    }

    /// What the tool's schema says of a whole `tools/call`, if both are known: good or bad, in a line.
    pub(crate) fn check_call(&self, message: &str) -> Option<(bool, String)> {
        let message = Document::parse(message).ok()?;
        let member = |node, name: &str| message.member(node, name);
        if message.string(member(0, "method")?)? != "tools/call" {
            return None;
        }
        let params = member(0, "params")?;
        let tool = message.string(member(params, "name")?)?;
        let arguments = member(params, "arguments").map_or("{}", |arguments| message.source(arguments));
        self.check(&tool, arguments, "$.arguments")
    }

    /// The same of arguments.
    pub(crate) fn check_arguments(&self, tool: &str, arguments: &str) -> Option<(bool, String)> {
        self.check(tool, arguments, "$")
    }

    fn check(&self, tool: &str, arguments: &str, root: &str) -> Option<(bool, String)> {
        let schema = self.catalogue.tool(tool)?.schema.as_deref()?;
        match schema::check(schema, arguments) {
            Verdict::Valid => Some((true, "valid against inputSchema".to_owned())),
            Verdict::Invalid(faults) => {
                let (path, words) = faults.first()?;
                let more = if faults.len() > 1 { format!(" (and {} more)", faults.len() - 1) } else { String::new() };
                let path = path.strip_prefix('$').unwrap_or(path);
                Some((false, format!("{root}{path}: {words}{more}")))
            }
            Verdict::NoSchema => None,
            Verdict::Unusable(words) => Some((false, format!("not checked: {words}"))),
        }
    }

    /// Calls a tool with these arguments, in the repeater.
    pub(crate) fn call(&mut self, tool: &str, arguments: &str, common: &mut Common) {
        let request = self.catalogue.tool(tool).and_then(|offer| offer.request);
        let Some(sequence) = request else {
            return common.complain("the request that listed this tool is not known, so nobody can be spoken for");
        };
        // Pages of one list are asked for by one client, so what it says of itself is the same.
        let (sequence, meta) = match &self.meta {
            Some((of, Some(meta))) => (*of, format!(r#","_meta":{meta}"#)),
            _ => (sequence, String::new()),
        };
        let name = serde_json::to_string(tool).expect("a string is JSON");
        let raw = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":{name},"arguments":{arguments}{meta}}}}}"#
        );
        let title = format!("tools/call [{}]", crate::text::clean(tool));
        common.repeat = Some(Repeat { sequence, raw, title, is_sent: true });
    }
}

/// `params._meta` of a message, as it was spelled.
fn meta_of(raw: &str) -> Option<String> {
    let message = Document::parse(raw).ok()?;
    let meta = message.member(message.member(0, "params")?, "_meta")?;
    Some(message.source(meta).to_owned())
}

impl Shown {
    /// Another definition is drawn, or the same one again.
    pub(crate) fn turn_to(&mut self, offer: &Arc<Offer>) {
        if !self.of.as_ref().is_some_and(|of| Arc::ptr_eq(of, offer)) {
            *self = Self { of: Some(Arc::clone(offer)), ..Self::default() };
        }
    }

    pub(crate) fn schema(&mut self, offer: &Offer) -> Option<&Pretty> {
        if self.schema.is_none() {
            let document = Document::parse(offer.schema.as_deref()?).ok()?;
            self.schema = Some(Pretty::new(Arc::new(document)));
        }
        self.schema.as_ref()
    }

    pub(crate) fn definition(&mut self, offer: &Offer, width: usize) -> &mut Wrap {
        self.definition.take_if(|wrap| wrap.width() != width);
        self.definition.get_or_insert_with(|| Wrap::new(offer.definition.as_str(), width))
    }
}
