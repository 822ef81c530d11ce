//! Requests that are sent again: each has a tab with what is sent and with every run of it. Answers come
//! as messages that say what they answer. Events tell of most of them; a filter or a crowd may keep some
//! away, so whoever waits looks into the history too.

mod drawn;
mod tab;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use mcp_control::api::{Message, Page, PageQuery, Replay};
use serde_json::value::RawValue;

pub(crate) use drawn::{Drawn, Text};
pub(crate) use tab::{Against, Answer, Became, Content, Original, Run, Tab};

use super::common::{Common, Repeat};
use super::prompt::Asking;
use crate::command::Command;
use crate::news::{Act, Asker, Effect, Ticket};
use crate::{diff, json};

/// Requests at a time; the oldest is closed.
const TABS_MAX: usize = 20;
/// Bytes of answers kept over all tabs.
const CONTENT_BYTES_MAX: usize = 32 << 20;
/// Wait for an answer, in milliseconds, unless messages may be held for longer.
const WAIT_MAX: u64 = 60_000;
/// Answers of one page, and pages that are looked through for the recorded one.
const PAGE: u32 = 100;
const PAGES_MAX: u32 = 20;
const ANSWERS_ONLY: &str = "kind:response,error";
/// Answers that came while it was not yet known as which message a run was sent.
const EARLY_MAX: usize = 32;
/// Answers of which varying paths are learned.
const LEARNED_FROM: usize = 5;

#[derive(Default)]
pub(crate) struct Repeater {
    pub tabs: Vec<Tab>,
    /// The tab that is looked at.
    pub shown: usize,
    /// Keys go to the answer and not to the request.
    pub is_on_answer: bool,
    pub drawn: Drawn,
    /// The last number of a tab or a run.
    numbers: u64,
    asked: Option<(Ticket, Wanted)>,
    early: VecDeque<(u64, Message)>,
}

/// What is looked for in the history.
#[derive(Clone, Copy)]
enum Wanted {
    Run(u64),
    /// The recorded answer of a tab's request.
    Original(u64),
}

impl Repeater {
    /// The screen is shown.
    pub(crate) fn enter(&mut self, _common: &mut Common) {}

    pub(crate) fn tab(&self) -> Option<&Tab> {
        self.tabs.get(self.shown)
    }

    /// The message that general commands are about.
    pub(crate) fn subject(&self) -> Option<u64> {
        let tab = self.tab()?;
        let run = tab.shown_run().and_then(Run::sequence).filter(|_| self.is_on_answer);
        run.or(Some(tab.sequence))
    }

    /// What is edited, by the number that [`Repeater::edited`] takes.
    pub(crate) fn edited_text(&self) -> Option<(u64, String)> {
        self.tab().map(|tab| (tab.id, json::pretty_of(&tab.text)))
    }

    /// Does what the command says, if that is this screen's to do.
    pub(crate) fn command(&mut self, command: Command, common: &mut Common) -> bool {
        match command {
            Command::Replay => self.send(common),
            Command::CloseTab => self.close(),
            Command::Compare => self.compare(common),
            Command::Ignore => self.ask_ignored(common),
            Command::Mark => self.mark(common),
            Command::NextPane => self.step_pane(true),
            Command::PreviousPane => self.step_pane(false),
            Command::NextView => self.step_run(1, true),
            Command::PreviousView => self.step_run(-1, true),
            Command::Right => self.step_run(1, false),
            Command::Left => self.step_run(-1, false),
            Command::Open => common.go_to = self.subject(),
            command => return self.scroll(command),
        }
        true
    }

    fn scroll(&mut self, command: Command) -> bool {
        let is_on_answer = self.is_on_answer;
        let Some(tab) = self.tabs.get_mut(self.shown) else { return false };
        match is_on_answer {
            true => tab.answer_scroll.motion(command),
            false => tab.request_scroll.motion(command),
        }
    }

    /// From the request to its answer, and on to the next request.
    fn step_pane(&mut self, is_on: bool) {
        let tabs = self.tabs.len().max(1);
        if self.is_on_answer == is_on {
            self.shown = (self.shown + if is_on { 1 } else { tabs - 1 }) % tabs;
        }
        self.is_on_answer = !self.is_on_answer;
    }

    fn step_run(&mut self, by: isize, is_round: bool) {
        let Some(tab) = self.tabs.get_mut(self.shown) else { return };
        let (at, len) = (tab.shown as isize + by, tab.runs.len() as isize);
        if len > 0 {
            tab.show(if is_round { at.rem_euclid(len) } else { at.clamp(0, len - 1) } as usize);
        }
    }

    pub(crate) fn show_tab(&mut self, tab: usize) {
        self.shown = tab.min(self.tabs.len().saturating_sub(1));
    }

    pub(crate) fn show_run(&mut self, run: usize) {
        self.is_on_answer = true;
        if let Some(tab) = self.tabs.get_mut(self.shown) {
            tab.show(run);
        }
    }

    fn close(&mut self) {
        if self.shown < self.tabs.len() {
            self.tabs.remove(self.shown);
        }
        self.show_tab(self.shown);
        self.is_on_answer = false;
    }

    /// Takes a request that some other screen wants sent.
    pub(crate) fn take(&mut self, repeat: Repeat, common: &mut Common) {
        if let Some(words) = common.cannot_act() {
            return common.complain(words);
        }
        let is_sent = repeat.is_sent;
        let is_it = |tab: &Tab| tab.sequence == repeat.sequence && *tab.taken == *repeat.raw;
        self.shown = match self.tabs.iter().position(is_it) {
            Some(tab) => tab,
            None => self.add(repeat, common),
        };
        if is_sent {
            self.send(common);
        }
    }

    fn add(&mut self, repeat: Repeat, common: &mut Common) -> usize {
        let client_sent = common.messages.get(repeat.sequence).and_then(|message| message.raw.as_ref());
        let is_as_sent = client_sent.is_some_and(|raw| raw.get() == repeat.raw);
        if self.tabs.len() >= TABS_MAX {
            self.tabs.remove(0);
            common.say("the oldest request was closed");
        }
        let id = self.number();
        self.tabs.push(Tab::new(id, repeat, is_as_sent));
        self.is_on_answer = false;
        self.tabs.len() - 1
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn send(&mut self, common: &mut Common) {
        if let Some(words) = common.cannot_act() {
            return common.complain(words);
        }
        let run = self.number();
        let Some(tab) = self.tabs.get_mut(self.shown) else {
            return common.say("there is no request here; `r` on a message of Traffic brings one");
        };
        let raw = match tab.is_as_sent && !tab.is_edited() {
            true => None,
            false => match RawValue::from_string(tab.text.as_ref().to_owned()) {
                Ok(raw) => Some(raw),
                Err(_) => return common.complain("this is not JSON; `m` edits it"),
            },
        };
        tab.begin(run);
        common.act(Act::Replay { sequence: tab.sequence, replay: Replay { raw }, run });
    }

    /// A run was sent, as such a message.
    pub(crate) fn sent(&mut self, run: u64, sequence: u64, common: &mut Common) {
        let Some(tab) = self.tabs.iter_mut().find(|tab| tab.runs.iter().any(|other| other.id == run)) else { return };
        tab.sent(run, sequence, common.now);
        if let Some(at) = self.early.iter().position(|(request, _)| *request == sequence)
            && let Some((_, answer)) = self.early.remove(at)
        {
            self.answered(sequence, &answer, common);
        }
        if !self.is_sending() {
            self.early.clear();
        }
    }

    pub(crate) fn refused(&mut self, run: u64, words: String) {
        let mut runs = self.tabs.iter_mut().flat_map(|tab| &mut tab.runs);
        if let Some(run) = runs.find(|other| other.id == run) {
            run.became = Became::Refused(words);
        }
    }

    fn is_sending(&self) -> bool {
        self.tabs.iter().flat_map(|tab| &tab.runs).any(|run| matches!(run.became, Became::Sending))
    }

    /// A message passed; it may answer a run.
    pub(crate) fn see(&mut self, message: &Message, common: &mut Common) {
        let Some(request) = message.answers.filter(|_| !self.tabs.is_empty()) else { return };
        if !self.answered(request, message, common) && self.is_sending() {
            self.early.push_back((request, message.clone()));
            if self.early.len() > EARLY_MAX {
                self.early.pop_front();
            }
        }
    }

    /// Keeps an answer if somebody waits for it.
    fn answered(&mut self, request: u64, message: &Message, common: &mut Common) -> bool {
        let mut is_wanted = false;
        for tab in &mut self.tabs {
            let is_new = !matches!(tab.original, Original::Known(_) | Original::Unknown);
            if tab.sequence == request && is_new {
                tab.original = Original::Known(Answer::of(message));
                is_wanted = true;
            }
            for run in &mut tab.runs {
                if matches!(&run.became, Became::Waiting(waiting) if waiting.sequence == request) {
                    run.became = Became::Answered(Answer::of(message));
                    is_wanted = true;
                }
            }
        }
        if is_wanted && message.raw_omitted {
            common.wish(Effect::Message { sequence: message.sequence });
        }
        if is_wanted {
            self.make_room();
        }
        is_wanted
    }

    /// A whole message came; it may be an answer that was too long for a list.
    pub(crate) fn came(&mut self, message: &Message) {
        self.fill(message.sequence, || Answer::of(message).content);
        self.make_room();
    }

    pub(crate) fn failed(&mut self, sequence: u64, words: &str) {
        self.fill(sequence, || Content::Missing(words.to_owned()));
    }

    fn fill(&mut self, sequence: u64, content: impl Fn() -> Content) {
        let answers = self.tabs.iter_mut().flat_map(Tab::all_answers);
        answers
            .filter(|answer| answer.sequence == sequence && matches!(answer.content, Content::Coming))
            .for_each(|answer| answer.content = content());
    }

    /// Lets go of the contents that are oldest.
    fn make_room(&mut self) {
        let mut answers: Vec<&mut Answer> = self.tabs.iter_mut().flat_map(Tab::all_answers).collect();
        let mut bytes: usize = answers.iter().filter_map(|answer| answer.text()).map(|text| text.len()).sum();
        answers.sort_by_key(|answer| answer.sequence);
        // The newest stays, however large it is.
        answers.pop();
        for answer in answers {
            if bytes <= CONTENT_BYTES_MAX {
                return;
            }
            if let Some(text) = answer.text() {
                bytes -= text.len();
                answer.content = Content::Gone;
            }
        }
    }

    /// The request was edited.
    pub(crate) fn edited(&mut self, tab: u64, raw: &str, common: &mut Common) {
        let Some(tab) = self.tabs.iter_mut().find(|other| other.id == tab) else { return };
        // What was only laid out to be read is sent as it was.
        if raw == json::pretty_of(&tab.text) {
            return common.say("nothing was changed");
        }
        tab.text = if raw == json::pretty_of(&tab.taken) { tab.taken.clone() } else { raw.into() };
        tab.edition += 1;
        common.say("`r` sends it as it is now");
    }

    fn compare(&mut self, common: &mut Common) {
        let Some(tab) = self.tabs.get_mut(self.shown) else { return };
        tab.against = match tab.against {
            Against::Nothing => Against::RunBefore,
            Against::RunBefore if tab.marked_run().is_some() => Against::Marked,
            Against::RunBefore | Against::Marked => Against::Original,
            Against::Original => Against::Nothing,
        };
        if tab.against == Against::Original && matches!(tab.original, Original::Unknown | Original::NotFound) {
            tab.original = Original::Looking { after: tab.sequence, pages: 0 };
            self.look(common);
        }
    }

    /// Any run can be compared with the marked one.
    fn mark(&mut self, common: &mut Common) {
        let Some(tab) = self.tabs.get_mut(self.shown) else { return };
        tab.mark();
        match tab.marked {
            Some(run) => {
                tab.against = Against::Marked;
                common.say(format!("run {run} is marked; the others are compared with it"));
            }
            None => tab.against = Against::Nothing,
        }
    }

    fn ask_ignored(&mut self, common: &mut Common) {
        let Some(tab) = self.tab() else { return };
        let mut paths = tab.ignored.clone();
        if !tab.is_ignored_said {
            let answers: Vec<&str> = tab.answers().take(LEARNED_FROM).map(AsRef::as_ref).collect();
            paths.extend(diff::learn(&answers).into_iter().filter(|path| path != tab::ID));
        }
        common.prompt(Asking::Ignore, &paths.join(" "));
    }

    /// Paths that comparisons leave out, with blanks between them.
    pub(crate) fn set_ignored(&mut self, paths: &str, common: &mut Common) {
        let Some(tab) = self.tabs.get_mut(self.shown) else { return };
        (tab.ignored, tab.is_ignored_said) = (split(paths), true);
        common.say(match tab.ignored.len() {
            0 => "everything is compared".to_owned(),
            1 => "one path is left out".to_owned(),
            paths => format!("{paths} paths are left out"),
        });
    }

    pub(crate) fn tick(&mut self, common: &mut Common) {
        // Pages are those of the recording now.
        if common.recording.is_some() {
            self.asked = None;
            return;
        }
        let limit = common.standing.as_ref().and_then(|standing| standing.hold_limit_ms).unwrap_or(0).max(WAIT_MAX);
        self.waiting().for_each(|(_, waiting)| waiting.is_given_up |= waiting.since + limit <= common.now);
        self.look(common);
    }

    /// Looks into the history for what is waited for.
    fn look(&mut self, common: &mut Common) {
        if self.asked.is_some() || common.recording.is_some() {
            return;
        }
        let now = common.now;
        let is_due = |waiting: &tab::Waiting| !waiting.is_given_up && waiting.next <= now;
        let wanted = self.waiting().find(|(_, waiting)| is_due(waiting)).map(|(run, waiting)| {
            waiting.next = now + tab::LOOK_EVERY;
            (Wanted::Run(run), waiting.after)
        });
        let original = self.tabs.iter().find_map(|tab| match tab.original {
            Original::Looking { after, .. } => Some((Wanted::Original(tab.id), after)),
            _ => None,
        });
        let Some((wanted, after)) = wanted.or(original) else { return };
        let ticket = common.ticket(Asker::Repeater);
        self.asked = Some((ticket, wanted));
        let (limit, filter) = (Some(PAGE), Some(ANSWERS_ONLY.to_owned()));
        common.wish(Effect::Page { ticket, query: PageQuery { after: Some(after), limit, filter, before: None } });
    }

    fn waiting(&mut self) -> impl Iterator<Item = (u64, &mut tab::Waiting)> {
        let runs = self.tabs.iter_mut().flat_map(|tab| &mut tab.runs);
        runs.filter_map(|run| match &mut run.became {
            Became::Waiting(waiting) => Some((run.id, waiting)),
            _ => None,
        })
    }

    pub(crate) fn page(&mut self, ticket: Ticket, page: Result<Page, String>, common: &mut Common) {
        let Some((_, wanted)) = self.asked.take_if(|(asked, _)| *asked == ticket) else { return };
        // Whoever waits for a run looks again at its time.
        let Ok(page) = page else {
            if let Wanted::Original(id) = wanted {
                self.original_is(id, Original::NotFound);
            }
            return;
        };
        for message in &page.messages {
            if let Some(request) = message.answers {
                self.answered(request, message, common);
            }
        }
        let newer = page.newer.unwrap_or(0);
        let is_at_end = newer >= page.last_sequence || page.newer.is_none();
        match wanted {
            Wanted::Run(id) => {
                if let Some((_, waiting)) = self.waiting().find(|(run, _)| *run == id) {
                    waiting.after = waiting.after.max(newer);
                    waiting.next = if is_at_end { waiting.next } else { common.now };
                }
            }
            Wanted::Original(id) => self.look_on(id, newer, is_at_end),
        }
        self.look(common);
    }

    fn look_on(&mut self, tab: u64, newer: u64, is_at_end: bool) {
        let Some(tab) = self.tabs.iter_mut().find(|other| other.id == tab) else { return };
        let Original::Looking { after, pages } = tab.original else { return };
        tab.original = match is_at_end || newer <= after || pages >= PAGES_MAX {
            true => Original::NotFound,
            false => Original::Looking { after: newer, pages: pages + 1 },
        };
    }

    fn original_is(&mut self, tab: u64, original: Original) {
        if let Some(tab) = self.tabs.iter_mut().find(|other| other.id == tab) {
            tab.original = original;
        }
    }

    /// When [`Repeater::tick`] has something to do.
    pub(crate) fn due(&self) -> Option<u64> {
        let runs = self.tabs.iter().flat_map(|tab| &tab.runs);
        let next = runs.filter_map(|run| match &run.became {
            Became::Waiting(waiting) if !waiting.is_given_up => Some(waiting.next),
            _ => None,
        });
        next.min().filter(|_| self.asked.is_none())
    }
}

/// Paths of a line. Blanks within quotes belong to a name.
fn split(line: &str) -> Vec<String> {
    let mut paths = vec![String::new()];
    let (mut is_quoted, mut is_escaped) = (false, false);
    for c in line.chars() {
        is_quoted ^= c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        match (c.is_whitespace() && !is_quoted, paths.last_mut()) {
            (false, Some(path)) => path.push(c),
            _ => paths.push(String::new()),
        }
    }
    paths.retain(|path| !path.is_empty());
    paths
}
