//! Commands that count on more than one screen: those about the message that is looked at, and those
//! about the whole.

use mcp_control::api::{Lasting, Mark, MessageKind, Mode};

use super::App;
use crate::Left;
use crate::command::{Command, Screen};
use crate::library::EXPORT_FORMATS;
use crate::news::{Act, Editing, Effect};
use crate::state::coach::Coach;
use crate::state::common::{Overlay, Repeat};
use crate::state::editor::{Editor, TEXT_BYTES_MAX};
use crate::state::fate;
use crate::state::menu::{Choice, Menu};
use crate::state::palette::Palette;
use crate::state::prompt::Asking;
use crate::state::traffic::Row;

/// What a mark looks like unless somebody gives another.
const MARK: &str = "*";

impl App {
    /// A command that no screen took for its own.
    pub(super) fn general(&mut self, command: Command) {
        match command {
            Command::Help => self.common.overlay = Overlay::Help { scroll: 0 },
            Command::Palette => self.common.overlay = Overlay::Palette(Palette::new(self.common.screen)),
            Command::Filter => self.ask_filter(),
            Command::Back => self.back(),
            Command::Quit => self.quit(),
            Command::Detach => self.common.wish(Effect::End(Left::Detached)),
            Command::Hold => self.toggle_hold(),
            Command::HoldWhere | Command::NewBreakpoint => self.ask_breakpoint(),
            Command::TakeLease => self.common.wish(Effect::Lease { take: true }),
            Command::Forward => self.forward(),
            Command::ForwardAll => self.common.act(Act::ForwardAll),
            Command::Modify => self.modify(false),
            Command::Editor => self.modify(true),
            Command::Drop => self.drop_held(),
            Command::Answer => self.answer(),
            Command::Approve => self.approve(),
            Command::Deny => self.deny(),
            Command::Replay => self.replay(),
            Command::Mark => self.mark(),
            Command::Note => self.note(),
            Command::Copy => self.copy(),
            Command::Compare => self.compare_marked(),
            Command::Save => self.save(),
            Command::Load => self.common.prompt(Asking::Load, ""),
            Command::Export => self.export(),
            Command::Zoom => self.detail.is_zoomed = !self.detail.is_zoomed,
            Command::Refresh => self.refresh(),
            Command::SkipStep => self.coach.iter_mut().for_each(Coach::skip),
            Command::Suspend => self.common.wish(Effect::Suspend),
            _ => {}
        }
    }

    /// The message that commands are about: the selected one of the list, or of the queue.
    pub(crate) fn subject(&self) -> Option<u64> {
        match self.common.screen {
            Screen::Held => self.held.selected(&self.common),
            Screen::Repeater => self.repeater.subject(),
            Screen::Waterfall => self.waterfall.selected(),
            _ => self.traffic.selected,
        }
    }

    /// The held message that is meant: the selected one, or the only one.
    fn held_subject(&mut self) -> Option<u64> {
        let selected = self.subject().filter(|sequence| self.common.held_message(*sequence).is_some());
        let only = match self.common.held() {
            [held] => Some(held.sequence),
            _ => None,
        };
        let subject = selected.or(only);
        if subject.is_none() {
            match self.common.held().len() {
                0 => self.common.say("nothing is held; `i` holds what comes"),
                held => self.common.say(format!("{held} messages are held; `2` shows them")),
            }
        }
        subject
    }

    fn is_asked(&self, sequence: u64) -> bool {
        self.common.held_message(sequence).is_some_and(|held| held.asks.is_some())
    }

    fn forward(&mut self) {
        let Some(sequence) = self.held_subject() else { return };
        match self.is_asked(sequence) {
            true => self.approve(),
            false => self.common.act(Act::Forward(sequence)),
        }
    }

    fn drop_held(&mut self) {
        let Some(sequence) = self.held_subject() else { return };
        if self.is_asked(sequence) {
            return self.deny();
        }
        let silently = ('d', "silently", Choice::DropSilently(sequence));
        let with_error = ('e', "and tell the sender with an error", Choice::DropWithError(sequence));
        // Silence leaves the sender of a request waiting, so Enter does not choose it.
        let message = self.common.held_message(sequence).map(|held| &held.message);
        let choices = match message.is_some_and(|message| message.kind == MessageKind::Request) {
            true => [with_error, silently],
            false => [silently, with_error],
        };
        self.common.menu(format!("Drop #{sequence}"), choices);
    }

    fn answer(&mut self) {
        let Some(sequence) = self.held_subject() else { return };
        self.common.menu(
            format!("Answer #{sequence} in its peer's place"),
            [
                ('r', "with a result", Choice::AnswerWithResult(sequence)),
                ('e', "with an error", Choice::AnswerWithError(sequence)),
            ],
        );
    }

    fn approve(&mut self) {
        let Some(sequence) = self.held_subject() else { return };
        if !self.is_asked(sequence) {
            return self.common.say(format!("no rule asks about #{sequence}; `f` forwards it"));
        }
        self.common.menu(
            format!("Approve #{sequence}"),
            [
                ('o', "once", Choice::Approve(sequence, Lasting::Once)),
                ('s', "for this session", Choice::Approve(sequence, Lasting::Session)),
                ('r', "always: write it beside the rules", Choice::Approve(sequence, Lasting::Rule)),
            ],
        );
    }

    fn deny(&mut self) {
        let Some(sequence) = self.held_subject() else { return };
        if !self.is_asked(sequence) {
            return self.common.say(format!("no rule asks about #{sequence}; `d` drops it"));
        }
        self.common.menu(
            format!("Deny #{sequence}"),
            [
                ('o', "once", Choice::Deny(sequence, Lasting::Once)),
                ('w', "once, with words to the sender", Choice::DenyWithWords(sequence)),
                ('s', "for this session", Choice::Deny(sequence, Lasting::Session)),
                ('r', "always: write it beside the rules", Choice::Deny(sequence, Lasting::Rule)),
            ],
        );
    }

    fn modify(&mut self, is_elsewhere: bool) {
        let Some(sequence) = self.held_subject() else { return };
        let Some(message) = self.common.messages.get(sequence).cloned() else {
            self.common.wish(Effect::Message { sequence });
            return self.common.say("it is on its way; press the key again");
        };
        let Some(raw) = &message.raw else {
            return self.common.complain("this message is not JSON, and cannot be edited here");
        };
        self.edit(Editing::Modify(sequence), &crate::json::pretty_of(raw.get()), is_elsewhere);
    }

    /// Edits a text here, or in `$EDITOR` if somebody wants that or it is long.
    pub(super) fn edit(&mut self, why: Editing, text: &str, is_elsewhere: bool) {
        if is_elsewhere || text.len() > TEXT_BYTES_MAX {
            return self.common.wish(Effect::Editor { text: text.to_owned(), why });
        }
        self.tools.want(&mut self.common);
        let mut editor = Editor::new(why, text);
        self.check_schema(&mut editor);
        self.common.overlay = Overlay::Editor(Box::new(editor));
    }

    fn replay(&mut self) {
        let Some(sequence) = self.subject() else { return };
        let Some(message) = self.common.messages.get(sequence).cloned() else {
            self.common.wish(Effect::Message { sequence });
            return self.common.say("it is on its way; press the key again");
        };
        let (Some(raw), true) = (&message.raw, crate::state::common::is_to_server(&message)) else {
            return self.common.complain("only what a client sent can be sent again; `p` leads to the request");
        };
        let title = crate::view::words::what(&message);
        self.common.repeat = Some(Repeat { sequence, raw: raw.get().to_owned(), title, is_sent: true });
    }

    fn mark(&mut self) {
        let Some(row) = self.traffic.selected_row() else { return };
        let message = &row.message;
        let mark = if message.mark.is_some() { None } else { Some(MARK.to_owned()) };
        let (sequence, note) = (message.sequence, message.note.clone());
        self.common.act(Act::Mark(sequence, Mark { mark, note }));
    }

    fn note(&mut self) {
        let Some(row) = self.traffic.selected_row() else { return };
        let (sequence, note) = (row.message.sequence, row.message.note.clone().unwrap_or_default());
        self.common.prompt(Asking::Note(sequence), &note);
    }

    fn copy(&mut self) {
        if self.subject().is_none() {
            return self.common.say("nothing is selected");
        }
        self.common.menu(
            "Copy",
            [
                ('j', "the message as JSON", Choice::CopyJson),
                ('p', "the path of what is selected in the tree", Choice::CopyPath),
                ('c', "a curl command", Choice::CopyCurl),
                ('s', "a shell line for a server on stdio", Choice::CopyShell),
                ('i', "its id", Choice::CopyId),
            ],
        );
    }

    /// Compares the selected message with the marked one.
    fn compare_marked(&mut self) {
        let selected = self.traffic.selected;
        let is_other = |row: &&Row| row.message.mark.is_some() && Some(row.message.sequence) != selected;
        match self.traffic.rows.iter().rev().find(is_other).map(|row| row.message.sequence) {
            Some(marked) => self.detail.compare_with(marked, &mut self.common),
            None => self.common.say("mark another message with the space bar first"),
        }
    }

    fn ask_filter(&mut self) {
        self.filter_before.clone_from(&self.traffic.filter);
        let filter = self.traffic.filter.clone().unwrap_or_default();
        self.common.screen = Screen::Traffic;
        self.common.prompt(Asking::Filter, &filter);
    }

    fn ask_breakpoint(&mut self) {
        let row = self.traffic.selected_row();
        let suggestion = row.and_then(|row| match (&row.message.tool, &row.message.method) {
            (Some(tool), _) => Some(format!("tool:{}", crate::view::words::quoted(tool))),
            (None, Some(method)) => Some(format!("method:{}", crate::view::words::quoted(method))),
            _ => None,
        });
        self.common.prompt(Asking::Breakpoint(None), &suggestion.unwrap_or_default());
    }

    fn toggle_hold(&mut self) {
        let mode = match self.common.mode() {
            Mode::Passthrough => Mode::Intercept,
            Mode::Intercept => Mode::Passthrough,
        };
        self.common.act(Act::Mode(mode));
    }

    /// Out of what is open, one thing at a time.
    fn back(&mut self) {
        if let Some(job) = &self.common.job {
            job.work.cancel();
        } else if self.common.screen != Screen::Traffic {
            self.common.screen = Screen::Traffic;
        } else if self.detail.is_zoomed {
            self.detail.is_zoomed = false;
        } else if self.detail.has_keys {
            self.detail.has_keys = false;
        } else if self.traffic.filter.is_some() {
            self.traffic.set_filter(None, &mut self.common);
        } else if self.common.recording.is_some() {
            self.common.wish(Effect::Leave);
        }
    }

    fn quit(&mut self) {
        let asks = fate::leaving(&self.common);
        match (self.common.own_instance, self.common.held_by_us()) {
            (true, _) => self.common.menu(
                asks,
                [
                    ('d', "close this screen; the proxy goes on while clients are connected", Choice::Quit),
                    ('e', "end the proxy", Choice::EndProxy),
                ],
            ),
            (false, []) => self.common.wish(Effect::End(Left::Detached)),
            (false, _) => self.common.menu(asks, [('y', "leave", Choice::Quit)]),
        }
    }

    /// Whether to leave depends on what is held by now, and for how long.
    pub(super) fn ask_again_about_leaving(&mut self) {
        let Overlay::Menu(menu) = &mut self.common.overlay else { return };
        if !menu.choices.iter().any(|(.., choice)| *choice == Choice::Quit) {
            return;
        }
        let mut menu = std::mem::replace(menu, Menu::new("", []));
        menu.title = fate::leaving(&self.common);
        self.common.overlay = Overlay::Menu(menu);
    }

    fn session_name(&self) -> Option<String> {
        let standing = self.common.standing.as_ref().map(|standing| &standing.instance);
        let recording = self.common.recording.as_ref().map(|row| row.id.clone());
        self.exporting
            .clone()
            .or(recording)
            .or(standing.map(|instance| instance.session.clone().unwrap_or_else(|| instance.id.clone())))
    }

    fn save(&mut self) {
        self.exporting = None;
        self.common.prompt(Asking::Save, &self.file_name("json"));
    }

    pub(super) fn file_name(&self, end: &str) -> String {
        let id: String = self.session_name().unwrap_or_default().chars().take(8).collect();
        format!("session-{id}.{end}")
    }

    fn export(&mut self) {
        let is_of_list = self.common.screen == Screen::Sessions;
        self.exporting = self.sessions.subject().filter(|_| is_of_list).map(str::to_owned);
        let letters = ['j', 'n', 'a', 'm', 'h', 'c'];
        let choices =
            letters.into_iter().zip(EXPORT_FORMATS).map(|(letter, format)| (letter, format, Choice::Export(format)));
        self.common.menu("Export as", choices);
    }

    fn refresh(&mut self) {
        self.common.wish(Effect::Redraw);
        if self.common.screen == Screen::Traffic {
            self.traffic.begin(&mut self.common);
        } else {
            self.show(self.common.screen);
        }
    }
}
