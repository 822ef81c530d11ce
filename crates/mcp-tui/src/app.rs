//! The terminal as a whole: which screen has the keys, what time does, what is left to be done.

mod act;
mod choose;
mod hear;
#[cfg(test)]
mod tests;

use ratatui::layout::Rect;

use crate::command::{Command, Screen};
use crate::key::Key;
use crate::keymap::Keymap;
use crate::library::SessionRef;
use crate::mouse::Hit;
use crate::news::{Editing, Effect};
use crate::state::audit::Audit;
use crate::state::breakpoints::Breakpoints;
use crate::state::coach::Coach;
use crate::state::common::{Common, Overlay};
use crate::state::detail::Detail;
use crate::state::held::HeldScreen;
use crate::state::menu::Choice;
use crate::state::palette::Palette;
use crate::state::prompt::History;
use crate::state::repeater::Repeater;
use crate::state::servers::Servers;
use crate::state::sessions::Sessions;
use crate::state::tools::Tools;
use crate::state::traffic::Traffic;
use crate::state::waterfall::Waterfall;

pub(crate) struct App {
    pub common: Common,
    pub keymap: Keymap,
    pub traffic: Traffic,
    pub detail: Detail,
    pub held: HeldScreen,
    pub repeater: Repeater,
    pub waterfall: Waterfall,
    pub tools: Tools,
    pub breakpoints: Breakpoints,
    pub servers: Servers,
    pub audit: Audit,
    pub sessions: Sessions,
    /// Leads through the demo.
    pub coach: Option<Coach>,
    /// What was drawn where, for the mouse.
    pub hits: Vec<(Rect, Hit)>,
    filters: History,
    lines: History,
    /// The filter that counted before one was typed.
    filter_before: Option<String>,
    /// The session that is exported in place of the one that is shown.
    exporting: Option<String>,
    /// What to do next was left open: the filter is applied once typing pauses.
    /// Where the recording that is shown was opened from.
    opened_from: Option<SessionRef>,
    filter_due: Option<u64>,
}

/// Pause in typing before a filter is applied, in milliseconds.
const FILTER_AFTER: u64 = 120;

impl App {
    pub(crate) fn new(common: Common, keymap: Keymap) -> Self {
        Self {
            common,
            keymap,
            traffic: Traffic::default(),
            detail: Detail::default(),
            held: HeldScreen::default(),
            repeater: Repeater::default(),
            waterfall: Waterfall::default(),
            tools: Tools::default(),
            breakpoints: Breakpoints::default(),
            servers: Servers::default(),
            audit: Audit::default(),
            sessions: Sessions::default(),
            coach: None,
            hits: Vec::new(),
            filters: History::default(),
            lines: History::default(),
            filter_before: None,
            exporting: None,
            opened_from: None,
            filter_due: None,
        }
    }

    /// What is wanted of the world outside since this was asked last.
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        self.common.take_effects()
    }

    pub(crate) fn key(&mut self, key: Key) {
        match std::mem::take(&mut self.common.overlay) {
            Overlay::None => self.screen_key(key),
            Overlay::Prompt(prompt) => self.prompt_key(prompt, key),
            Overlay::Palette(palette) => self.palette_key(palette, key),
            Overlay::Menu(menu) => self.menu_key(menu, key),
            Overlay::Editor(editor) => self.editor_key(editor, key),
            Overlay::Help { scroll } => self.help_key(scroll, key),
        }
        self.follow_up();
    }

    pub(crate) fn paste(&mut self, text: &str) {
        match &mut self.common.overlay {
            Overlay::Prompt(prompt) => {
                prompt.paste(text);
                if prompt.asking.is_filter() {
                    self.filter_due = Some(self.common.now + FILTER_AFTER);
                }
            }
            Overlay::Editor(_) => {
                let Overlay::Editor(mut editor) = std::mem::take(&mut self.common.overlay) else { return };
                editor.paste(text);
                self.check_schema(&mut editor);
                self.common.overlay = Overlay::Editor(editor);
            }
            _ => {}
        }
    }

    fn screen_key(&mut self, key: Key) {
        // Everybody knows this one.
        let interrupts = key == "ctrl-c".parse().expect("a key");
        match self.keymap.command(self.common.screen, key) {
            Some(command) => self.command(command),
            None if interrupts => self.command(Command::Quit),
            None => {}
        }
    }

    pub(crate) fn command(&mut self, command: Command) {
        if let Some(screen) = command.screen() {
            return self.show(screen);
        }
        let (common, before) = (&mut self.common, self.traffic.selected);
        let is_done = match common.screen {
            Screen::Traffic => self.traffic_command(command),
            Screen::Held => self.held.command(command, common),
            Screen::Repeater => self.repeater_command(command),
            Screen::Waterfall => self.waterfall.command(command, common),
            Screen::Tools => self.tools.command(command, common),
            Screen::Breakpoints => self.breakpoints.command(command, common),
            Screen::Servers => self.servers.command(command, common),
            Screen::Audit => self.audit.command(command, common),
            Screen::Sessions => self.sessions.command(command, common),
        };
        if !is_done {
            self.general(command);
        }
        if let Some(coach) = &mut self.coach {
            coach.did(command, self.traffic.selected != before, &self.common);
        }
    }

    pub(crate) fn show(&mut self, screen: Screen) {
        self.common.screen = screen;
        let common = &mut self.common;
        match screen {
            Screen::Traffic => {}
            Screen::Held => {
                self.tools.want(common);
                self.held.enter(common);
            }
            Screen::Repeater => self.repeater.enter(common),
            Screen::Waterfall => self.waterfall.enter(self.traffic.filter.clone(), common),
            Screen::Tools => self.tools.enter(common),
            Screen::Breakpoints => self.breakpoints.enter(common),
            Screen::Servers => self.servers.enter(common),
            Screen::Audit => self.audit.enter(common),
            Screen::Sessions => self.sessions.enter(common),
        }
    }

    fn traffic_command(&mut self, command: Command) -> bool {
        let common = &mut self.common;
        if self.detail.has_keys && self.detail.command(command, common) {
            return true;
        }
        if self.traffic.motion(command, common) {
            return true;
        }
        match command {
            Command::NextMatch => self.traffic.find(true, common),
            Command::PreviousMatch => self.traffic.find(false, common),
            Command::Pair => match self.traffic.pair() {
                Some(pair) => self.traffic.go_to(pair, common),
                None => common.say("no message belongs to this one"),
            },
            Command::Across => match self.traffic.across() {
                Some(other) => self.traffic.go_to(other, common),
                None => common.say("no message led to this one, and it led to none that is listed"),
            },
            Command::NextPane | Command::PreviousPane => self.detail.has_keys = !self.detail.has_keys,
            Command::Open => self.detail.has_keys = true,
            Command::NextView | Command::PreviousView => {
                self.detail.command(command, common);
            }
            _ => return false,
        }
        true
    }

    fn repeater_command(&mut self, command: Command) -> bool {
        if !matches!(command, Command::Edit | Command::Editor) {
            return self.repeater.command(command, &mut self.common);
        }
        match self.repeater.edited_text() {
            Some((tab, text)) => self.edit(Editing::Request(tab), &text, command == Command::Editor),
            None => self.common.say("there is nothing to edit yet"),
        }
        true
    }

    fn palette_key(&mut self, mut palette: Palette, key: Key) {
        use crate::state::palette::Picked;
        match palette.key(key) {
            Picked::Nothing => self.common.overlay = Overlay::Palette(palette),
            Picked::It(command) => self.command(command),
            Picked::Left => {}
        }
    }

    fn help_key(&mut self, scroll: usize, key: Key) {
        let scroll = match self.keymap.command(self.common.screen, key) {
            Some(Command::Down) => scroll + 1,
            Some(Command::Up) => scroll.saturating_sub(1),
            Some(Command::PageDown) => scroll + 10,
            Some(Command::PageUp) => scroll.saturating_sub(10),
            Some(Command::First) => 0,
            _ => return,
        };
        self.common.overlay = Overlay::Help { scroll };
    }

    /// A line of the screen's own list was clicked.
    pub(crate) fn select_line(&mut self, line: usize) {
        match self.common.screen {
            Screen::Held => self.held.select_line(line, &mut self.common),
            Screen::Repeater => self.repeater.is_on_answer = false,
            Screen::Waterfall => self.waterfall.select(line),
            Screen::Tools => self.tools.select_line(line),
            Screen::Breakpoints => self.breakpoints.select_line(line),
            Screen::Servers => self.servers.select(line),
            Screen::Audit => self.audit.select(line),
            Screen::Sessions => self.sessions.select(line),
            _ => {}
        }
    }

    /// Whether the pane beside the list has the keys, where a screen has such a pane.
    pub(crate) fn is_beside(&mut self) -> Option<&mut bool> {
        match self.common.screen {
            Screen::Traffic => Some(&mut self.detail.has_keys),
            Screen::Held => Some(&mut self.held.is_on_message),
            Screen::Repeater => Some(&mut self.repeater.is_on_answer),
            Screen::Tools => Some(&mut self.tools.is_on_definition),
            Screen::Servers => Some(&mut self.servers.is_on_facts),
            Screen::Audit => Some(&mut self.audit.is_on_record),
            _ => None,
        }
    }

    pub(crate) fn choose(&mut self, choice: Choice) {
        self.chosen(choice);
    }

    /// After something was done that no key asked for.
    pub(crate) fn settle(&mut self) {
        self.follow_up();
    }

    /// Does what one screen wants of another, and shows what is selected now.
    fn follow_up(&mut self) {
        if let Some(sequence) = self.common.go_to.take() {
            self.common.screen = Screen::Traffic;
            self.traffic.go_to(sequence, &mut self.common);
        }
        if let Some(repeat) = self.common.repeat.take() {
            self.common.screen = Screen::Repeater;
            self.repeater.take(repeat, &mut self.common);
        }
        self.held.settle(&mut self.common);
        self.look();
    }

    /// The detail shows what is selected.
    fn look(&mut self) {
        let selected = self.traffic.selected;
        let pair = self.traffic.pair();
        self.detail.look_at(selected, pair, &mut self.common);
    }

    /// Time has passed: milliseconds since the beginning.
    pub(crate) fn tick(&mut self, now: u64) {
        self.common.tick(now);
        if self.filter_due.take_if(|due| *due <= now).is_some() {
            self.apply_typed_filter();
        }
        self.traffic.tick(&mut self.common);
        self.repeater.tick(&mut self.common);
        self.waterfall.tick(&mut self.common);
        self.tools.tick(&mut self.common);
        self.servers.tick(&mut self.common);
        self.audit.tick(&mut self.common);
        self.ask_again_about_leaving();
        self.follow_up();
    }

    /// When [`App::tick`] is due at the latest, in milliseconds from now.
    pub(crate) fn tick_within(&self) -> u64 {
        let is_moving = self.common.screen == Screen::Waterfall && self.waterfall.has_open();
        let is_counting = !self.common.held().is_empty() || self.common.job.is_some() || is_moving;
        let usual = if is_counting { 250 } else { 500 };
        let due = [self.filter_due, self.repeater.due()].into_iter().flatten().min();
        due.map_or(usual, |due| due.saturating_sub(self.common.now).clamp(1, usual))
    }
}
