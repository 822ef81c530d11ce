//! What was typed, chosen or written, and what follows from it.

use mcp_control::api::{Answer, Approve, Deny, Drop, ErrorAnswer, Lasting, Mark, Modify, NewBreakpoint};
use mcp_wire::reply::REFUSED_BY_HAND;
use serde_json::value::RawValue;

use super::{App, FILTER_AFTER};
use crate::Left;
use crate::clipboard;
use crate::key::Key;
use crate::library::{Export, SessionRef, expand};
use crate::news::{Act, Editing, Effect};
use crate::state::common::{OPENING, Overlay};
use crate::state::editor::{Editor, Wrote};
use crate::state::menu::{Choice, Chosen, Menu};
use crate::state::prompt::{Asking, Prompt, Typed};

/// A session file is verbatim; everything else is masked.
const SAVING: &str = "saving";

impl App {
    pub(super) fn prompt_key(&mut self, mut prompt: Prompt, key: Key) {
        let history = if prompt.asking.is_filter() { &self.filters } else { &self.lines };
        match prompt.key(key, history) {
            Typed::Nothing => self.common.overlay = Overlay::Prompt(prompt),
            Typed::Changed => {
                if prompt.asking == Asking::Filter {
                    self.filter_due = Some(self.common.now + FILTER_AFTER);
                } else if prompt.asking == Asking::ToolFilter {
                    self.tools.set_words(prompt.text());
                }
                self.common.overlay = Overlay::Prompt(prompt);
            }
            Typed::Left => {
                if prompt.asking == Asking::Filter {
                    self.filter_due = None;
                    let before = self.filter_before.take();
                    self.traffic.set_filter(before, &mut self.common);
                } else if prompt.asking == Asking::ToolFilter {
                    self.tools.leave_words();
                }
            }
            Typed::Given(text) => {
                let history = if prompt.asking.is_filter() { &mut self.filters } else { &mut self.lines };
                history.add(&text);
                self.given(prompt.asking, text);
            }
        }
    }

    /// Narrows the list to what is typed, if that is an expression yet.
    pub(super) fn apply_typed_filter(&mut self) {
        let Overlay::Prompt(prompt) = &self.common.overlay else { return };
        if prompt.asking == Asking::Filter && prompt.fault.is_none() {
            let text = prompt.text().trim().to_owned();
            self.traffic.set_filter(Some(text).filter(|text| !text.is_empty()), &mut self.common);
        }
    }

    fn given(&mut self, asking: Asking, text: String) {
        let common = &mut self.common;
        match asking {
            Asking::Filter => {
                self.filter_due = None;
                self.traffic.set_filter(Some(text).filter(|text| !text.is_empty()), common);
                if let Some(coach) = &mut self.coach {
                    coach.filtered();
                }
            }
            Asking::Breakpoint(old) => {
                let new = NewBreakpoint { name: old.clone(), filter: text };
                match old {
                    Some(old) => common.act(Act::ChangeBreakpoint(old, new)),
                    None => common.act(Act::AddBreakpoint(new)),
                }
            }
            Asking::Note(sequence) => {
                let mark = self.traffic.rows.get(sequence).and_then(|row| row.message.mark.clone());
                common.act(Act::Mark(sequence, Mark { mark, note: Some(text).filter(|text| !text.is_empty()) }));
            }
            Asking::Save => self.save_to(&text),
            Asking::Load => {
                if let Some(work) = common.begin(OPENING) {
                    common.wish(Effect::Load(absolute(&text), work));
                }
            }
            Asking::Find => self.detail.find(&text, common),
            Asking::Export(format) => self.export_to(format, &text),
            Asking::Search => self.sessions.search(text, common),
            Asking::AuditFilter => self.audit.set_filter(Some(text).filter(|text| !text.is_empty()), common),
            Asking::ToolFilter => self.tools.set_words(&text),
            Asking::Ignore => self.repeater.set_ignored(&text, common),
            Asking::DropWords(sequence) => {
                let error = ErrorAnswer { code: REFUSED_BY_HAND, message: text };
                common.act(Act::Drop(sequence, Drop { error: Some(error) }));
            }
            Asking::DenyWords(sequence) => {
                common.act(Act::Deny(sequence, Deny { lasting: Lasting::Once, message: Some(text) }));
            }
        }
    }

    /// Writes the session file here, where it can be seen how far that is, unless only the instance has all of
    /// it: where nothing is recorded, or in several sessions.
    fn save_to(&mut self, file: &str) {
        let instance = self.common.standing.as_ref().map(|standing| &standing.instance);
        let is_one = instance.is_some_and(|instance| instance.session.as_ref() == Some(&instance.id));
        match (is_one, &self.common.recording) {
            (false, None) => self.common.act(Act::Save(absolute(file))),
            _ => {
                self.exporting = None;
                self.write(SAVING, "json".to_owned(), file, None);
            }
        }
    }

    fn export_to(&mut self, format: String, file: &str) {
        let other = self.exporting.take();
        // The filter is about what is shown.
        let filter = self.traffic.filter.clone().filter(|_| other.is_none());
        self.exporting = other;
        self.write("exporting", format, file, filter);
    }

    fn write(&mut self, title: &str, format: String, file: &str, filter: Option<String>) {
        let session = match (self.exporting.take(), &self.common.recording, &self.common.standing) {
            (Some(session), ..) => SessionRef::Stored(session),
            (None, Some(row), _) => self.opened_from.clone().unwrap_or_else(|| SessionRef::Stored(row.id.clone())),
            (None, None, Some(standing)) => match &standing.instance.session {
                Some(session) => SessionRef::Stored(session.clone()),
                None => {
                    return self.common.complain("nothing is recorded (--no-record), so there is nothing to export");
                }
            },
            (None, None, None) => return self.common.complain("there is nothing to export yet"),
        };
        let export =
            Export { session, format, file: absolute(file), filter, redact: title != SAVING, overwrite: false };
        let Some(work) = self.common.begin(title) else { return };
        self.common.wish(Effect::Export(export, work));
    }

    pub(super) fn menu_key(&mut self, mut menu: Menu, key: Key) {
        match menu.key(key) {
            Chosen::Nothing => self.common.overlay = Overlay::Menu(menu),
            Chosen::It(choice) => self.chosen(choice),
            Chosen::Left => {}
        }
    }

    pub(super) fn chosen(&mut self, choice: Choice) {
        let common = &mut self.common;
        match choice {
            Choice::CopyJson | Choice::CopyPath | Choice::CopyCurl | Choice::CopyShell | Choice::CopyId => {
                self.copied(&choice);
            }
            Choice::DropSilently(sequence) => common.act(Act::Drop(sequence, Drop::default())),
            Choice::DropWithError(sequence) => common.prompt(Asking::DropWords(sequence), "dropped by a person"),
            Choice::AnswerWithResult(sequence) => self.edit(Editing::Answer(sequence), "{\n  \"result\": {}\n}", false),
            Choice::AnswerWithError(sequence) => {
                let text = format!("{{\n  \"error\": {{ \"code\": {REFUSED_BY_HAND}, \"message\": \"\" }}\n}}");
                self.edit(Editing::Answer(sequence), &text, false);
            }
            Choice::Approve(sequence, lasting) => {
                common.act(Act::Approve(sequence, Approve { lasting, raw: None }));
            }
            Choice::Deny(sequence, lasting) => common.act(Act::Deny(sequence, Deny { lasting, message: None })),
            Choice::DenyWithWords(sequence) => common.prompt(Asking::DenyWords(sequence), ""),
            Choice::RestartServer(server) => common.act(Act::RestartServer(server)),
            Choice::DisableServer(server) => common.act(Act::DisableServer(server)),
            Choice::Export(format) => {
                let name = self.file_name(format);
                self.common.prompt(Asking::Export(format.to_owned()), &name);
            }
            Choice::Quit => common.wish(Effect::End(Left::Detached)),
            Choice::EndProxy => common.wish(Effect::End(Left::EndWanted)),
        }
    }

    fn copied(&mut self, choice: &Choice) {
        let Some(sequence) = self.subject() else { return };
        let Some(message) = self.common.messages.get(sequence).cloned() else {
            self.common.wish(Effect::Message { sequence });
            return self.common.say("it is on its way; press the key again");
        };
        let raw = message.raw.as_ref().map(|raw| raw.get());
        let instance = self.common.standing.as_ref().map(|standing| &standing.instance);
        let url = instance.and_then(|instance| instance.server_url.clone());
        let command = instance.and_then(|instance| instance.server_command.clone());
        let text = match choice {
            Choice::CopyJson => raw.map(str::to_owned),
            Choice::CopyPath => self.detail.path(),
            Choice::CopyCurl => {
                raw.map(|raw| clipboard::as_curl(raw, url.as_deref().unwrap_or("http://127.0.0.1:8888/mcp")))
            }
            Choice::CopyShell => raw.map(|raw| clipboard::as_printf(raw, command.as_deref().unwrap_or("YOUR-SERVER"))),
            _ => Some(message.id.clone()),
        };
        match text {
            Some(text) => self.common.wish(Effect::Copy(text)),
            None => self.common.complain("there is nothing of that kind to copy here"),
        }
    }

    pub(super) fn editor_key(&mut self, mut editor: Box<Editor>, key: Key) {
        match editor.key(key) {
            Wrote::Left => match self.outlived(&editor) {
                Some(sequence) if editor.is_changed() => {
                    self.common.wish(Effect::Keep { sequence, text: editor.text() });
                }
                _ => {}
            },
            Wrote::Nothing => self.common.overlay = Overlay::Editor(editor),
            Wrote::Changed => {
                self.check_schema(&mut editor);
                self.common.overlay = Overlay::Editor(editor);
            }
            Wrote::Elsewhere(text) => self.common.wish(Effect::Editor { text, why: editor.why.clone() }),
            Wrote::Given(text) => self.written(editor.why.clone(), &text, editor.is_confirming),
        }
    }

    /// The message that is edited, if it is held no longer.
    pub(crate) fn outlived(&self, editor: &Editor) -> Option<u64> {
        match editor.why {
            Editing::Modify(sequence) | Editing::Answer(sequence) => Some(sequence),
            Editing::Request(_) | Editing::Arguments(_) => None,
        }
        .filter(|sequence| self.common.held_message(*sequence).is_none())
    }

    /// Says whether what is edited agrees with the schema of the tool.
    pub(super) fn check_schema(&self, editor: &mut Editor) {
        let text = editor.text();
        editor.schema = match &editor.why {
            Editing::Modify(_) | Editing::Request(_) => self.tools.check_call(&text),
            Editing::Arguments(tool) => self.tools.check_arguments(tool, &text),
            Editing::Answer(_) => None,
        };
    }

    /// A text was finished, here or in `$EDITOR`.
    pub(super) fn written(&mut self, why: Editing, text: &str, confirm: bool) {
        let Ok(raw) = RawValue::from_string(text.to_owned()) else {
            return self.edit(why, text, false);
        };
        match why {
            Editing::Modify(sequence) => self.modified(sequence, raw, confirm),
            Editing::Answer(sequence) => match serde_json::from_str::<Answer>(text) {
                Ok(answer) => self.common.act(Act::Answer(sequence, answer)),
                Err(error) => {
                    self.edit(Editing::Answer(sequence), text, false);
                    self.common.complain(format!("write a `result` or an `error`: {error}"));
                }
            },
            Editing::Request(run) => self.repeater.edited(run, raw.get(), &mut self.common),
            Editing::Arguments(tool) => self.tools.call(&tool, raw.get(), &mut self.common),
        }
    }

    fn modified(&mut self, sequence: u64, raw: Box<RawValue>, confirm: bool) {
        let is_asked = self.common.held_message(sequence).is_some_and(|held| held.asks.is_some());
        let original = self.common.messages.get(sequence).and_then(|message| message.raw.as_ref());
        // Who changes nothing means it as it came, not as it was laid out here.
        let is_same = original.is_some_and(|original| crate::json::pretty_of(original.get()) == raw.get());
        self.common.act(match is_asked {
            _ if is_same && !is_asked => Act::Forward(sequence),
            true if is_same => Act::Approve(sequence, Approve::default()),
            true => Act::Approve(sequence, Approve { lasting: Lasting::Once, raw: Some(raw) }),
            false => Act::Modify(sequence, Modify { raw, raw_headers: false, confirm }),
        });
    }
}

/// Where a path of the user's leads.
fn absolute(path: &str) -> std::path::PathBuf {
    let path = expand(path);
    std::path::absolute(&path).unwrap_or(path)
}
