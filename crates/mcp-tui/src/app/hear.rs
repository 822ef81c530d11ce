//! What is heard from outside, and where it goes.

use mcp_control::api::{Approve, Code, Event, Mode, Modify};

use super::App;
use crate::Left;
use crate::command::Command;
use crate::library::{Exported, SessionRef, Trouble};
use crate::news::{Act, Acted, Asker, Editing, Effect, News, Refused};
use crate::state::coach::Coach;
use crate::state::common::{OPENING, Overlay};
use crate::text;

impl App {
    pub(crate) fn hear(&mut self, news: News) {
        let common = &mut self.common;
        match news {
            News::Events(events) => events.into_iter().for_each(|event| self.event(event)),
            News::Lost(words) => common.lost = Some(words),
            News::Leased(leased) => self.leased(leased),
            News::Page(ticket, page) => match ticket.asker {
                Asker::Traffic => self.traffic.page(ticket, page, common),
                Asker::Find => self.traffic.found(ticket, page, common),
                Asker::Count => self.traffic.counted(page),
                Asker::Waterfall => self.waterfall.page(ticket, page, common),
                Asker::Tools => {
                    self.tools.page(ticket, page, common);
                    self.check_open_editor();
                }
                Asker::Repeater => self.repeater.page(ticket, page, common),
            },
            News::Message(sequence, message) => match message {
                Ok(message) => {
                    self.repeater.came(&message);
                    self.tools.came(&message, common);
                    common.messages.keep(*message);
                    self.detail.came(sequence, common);
                    self.held.came(sequence);
                    self.check_open_editor();
                }
                Err(words) => {
                    self.repeater.failed(sequence, &words);
                    self.held.failed(sequence, &words);
                    self.detail.failed(sequence, words);
                }
            },
            News::Exchange(sequence, exchange) => self.detail.exchange(sequence, exchange),
            News::Explanation(sequence, explanation) => self.detail.explanation(sequence, explanation),
            News::Policy(policy) => self.breakpoints.policy(policy),
            News::Servers(servers) => self.servers.list(servers, common),
            News::Acted(act, acted) => self.acted(act, acted),
            News::Sessions(rows) => self.sessions.list(rows, common),
            News::Hits(words, hits) => self.sessions.hits(&words, hits, common),
            News::Opened(from, opened) => {
                common.end(OPENING);
                match opened {
                    Ok(recording) => {
                        self.opened_from = Some(from);
                        self.opened(recording.about());
                    }
                    Err(words) => {
                        common.opening = None;
                        common.complain(words);
                    }
                }
            }
            News::Exported(exported) => self.exported(exported),
            News::Compared(comparison) => {
                common.job = None;
                self.sessions.compared(comparison, common);
            }
            News::Audit(filter, decisions) => self.audit.list(filter.as_deref(), decisions, common),
            News::Edited(why, before, text) => match text {
                Ok(Some(text)) => self.edited_elsewhere(why, &text),
                Ok(None) => {
                    common.say("nothing was changed in the editor");
                    self.take_up(why, &before, None);
                }
                Err(words) => {
                    common.complain(words.clone());
                    self.take_up(why, &before, Some(&words));
                }
            },
            News::Kept(sequence, kept) => match kept {
                Ok(file) => {
                    let file = text::clean(&file.to_string_lossy()).into_owned();
                    common.say(format!("#{sequence} was not sent; your edit is kept in {file}"));
                }
                Err(words) => common.complain(words),
            },
            News::Copied(copied) => match copied {
                Ok(()) => common.say("copied"),
                Err(words) => common.complain(words),
            },
        }
        self.follow_up();
    }

    /// A schema may have come that was not there when the editor opened.
    fn check_open_editor(&mut self) {
        let mut overlay = std::mem::take(&mut self.common.overlay);
        if let Overlay::Editor(editor) = &mut overlay {
            self.check_schema(editor);
        }
        self.common.overlay = overlay;
    }

    fn exported(&mut self, exported: Result<Exported, Trouble>) {
        self.common.job = None;
        match exported {
            Ok(done) => {
                let masked = if done.masked > 0 { format!(", {} values masked", done.masked) } else { String::new() };
                let file = text::clean(&done.file.to_string_lossy()).into_owned();
                self.common.say(format!("{} messages written to {file}{masked}", done.messages));
                self.coach.iter_mut().for_each(Coach::saved);
            }
            Err(words) => self.common.complain(words),
        }
    }

    fn edited_elsewhere(&mut self, why: Editing, text: &str) {
        self.written(why, text.trim_end(), false);
    }

    /// A recording is shown, or once more what is live.
    fn opened(&mut self, row: crate::library::SessionRow) {
        let wanted = self.common.opening.take().filter(|(session, _)| *session == row.id);
        self.common.recording = Some(row);
        // What is live is shown whole when somebody comes back to it.
        self.common.wish(Effect::Watch { filter: None });
        self.begin_anew();
        self.common.go_to = wanted.map(|(_, sequence)| sequence);
    }

    pub(crate) fn show_live(&mut self) {
        (self.common.recording, self.opened_from) = (None, None);
        self.begin_anew();
    }

    fn begin_anew(&mut self) {
        self.common.screen = crate::command::Screen::Traffic;
        self.traffic.filter = None;
        self.traffic.reset(&mut self.common);
        self.detail = Default::default();
        self.waterfall = Default::default();
        self.tools = Default::default();
        self.held = Default::default();
    }

    fn event(&mut self, event: Event) {
        let common = &mut self.common;
        let is_live = common.recording.is_none();
        match event {
            Event::Snapshot(snapshot) => {
                let is_first = common.standing.is_none();
                let was_lost = common.lost.take().is_some();
                if is_live {
                    snapshot.held.iter().for_each(|held| common.messages.see(&held.message));
                }
                common.stand(snapshot);
                let last_sequence = common.standing.as_ref().map_or(0, |standing| standing.last_sequence);
                if is_live {
                    self.traffic.stream_begins(last_sequence);
                    if is_first || was_lost {
                        self.traffic.begin(common);
                    }
                }
            }
            Event::Message(message) | Event::Fault(message) if is_live => {
                common.meet(&message);
                self.repeater.see(&message, common);
                self.tools.see(&message);
                self.waterfall.see(&message);
                self.traffic.see(*message, common);
            }
            Event::Message(_) | Event::Fault(_) => {}
            Event::Held(held) => {
                if is_live {
                    common.messages.see(&held.message);
                    self.tools.want(common);
                }
                common.hold(*held);
            }
            Event::Outcome(outcome) => {
                common.let_go(&outcome);
                if !is_live {
                    return;
                }
                self.waterfall.decide(&outcome);
                self.traffic.decide(&outcome, common);
                self.detail.changed(outcome.sequence, common);
            }
            // What is said of live messages is not said of those of a recording.
            Event::Verdict(_) | Event::Marked(_) if !is_live => {}
            Event::Verdict(verdict) => {
                self.waterfall.judge(&verdict);
                self.traffic.judge(verdict, common);
            }
            Event::Marked(marked) => {
                let sequence = marked.sequence;
                self.traffic.mark(marked, common);
                self.detail.changed(sequence, common);
            }
            Event::Mode(change) => {
                common.standing.iter_mut().for_each(|standing| standing.mode = change.mode);
            }
            Event::Breakpoints(list) => {
                common.standing.iter_mut().for_each(|standing| standing.breakpoints.clone_from(&list.breakpoints));
            }
            Event::Policy(governed) => {
                common.standing.iter_mut().for_each(|standing| standing.instance.policy = Some(governed.clone()));
                common.wish(Effect::Policy);
            }
            Event::Lease(state) => common.lease(state.lease),
            Event::Gap(_) if is_live => self.traffic.miss(),
            Event::Gap(_) => {}
            Event::End(ended) => self.ended(ended.why),
        }
    }

    /// The instance is no more. What it recorded can be read on.
    fn ended(&mut self, why: String) {
        let session = self.common.standing.as_ref().and_then(|standing| standing.instance.session.clone());
        match session.filter(|_| !self.common.own_instance && self.common.recording.is_none()) {
            Some(session) => {
                self.common.say(format!("{why}; this is its recording"));
                self.common.wish(Effect::Open(SessionRef::Stored(session)));
            }
            None if self.common.recording.is_some() => self.common.say(why.clone()),
            None => self.common.wish(Effect::End(Left::InstanceEnded(why.clone()))),
        }
        self.common.ended = Some(why);
    }

    fn leased(&mut self, leased: Result<String, Refused>) {
        self.common.leased(leased.as_ref().ok().cloned());
        if let Err(refused) = leased {
            match refused.code {
                Some(Code::Locked) => self.common.say(format!("{}; `T` takes control", refused.words)),
                _ => self.common.complain(refused.words),
            }
        }
    }

    fn acted(&mut self, act: Act, acted: Result<Acted, Refused>) {
        let acted = match acted {
            Ok(acted) => acted,
            Err(refused) => return self.refused(act, refused),
        };
        if let Some(coach) = &mut self.coach {
            coach.acted(&act, &self.common);
        }
        let common = &mut self.common;
        match (act, acted) {
            (Act::Replay { run, .. }, Acted::Replayed(sequence)) => self.repeater.sent(run, sequence, common),
            (_, Acted::Saved { files, messages }) => {
                common.say(format!("{messages} messages written to {}", files.join(", ")));
            }
            (Act::AddBreakpoint(new) | Act::ChangeBreakpoint(_, new), Acted::Named(name)) => {
                common.say(format!("{name} holds {}", new.filter))
            }
            (Act::Mode(Mode::Intercept), _) => {
                // What is held next comes last.
                self.traffic.motion(Command::Last, common);
                common.say("every message is held from now on");
            }
            (Act::Mode(Mode::Passthrough), Acted::Released(released @ 1..)) => {
                common.say(format!("everything goes on at once, and {released} that were held"));
            }
            (Act::Mode(Mode::Passthrough), _) => common.say("everything goes on at once"),
            (Act::ForwardAll, Acted::Released(released)) => common.say(format!("{released} sent on")),
            (Act::Forward(sequence), _) => common.say(format!("#{sequence} sent on as it came")),
            (Act::Modify(sequence, _), _) => common.say(format!("#{sequence} sent on as you wrote it")),
            (Act::Drop(sequence, _), _) => common.say(format!("#{sequence} dropped")),
            (Act::Answer(sequence, _), _) => common.say(format!("#{sequence} answered")),
            (Act::Approve(sequence, _), _) => common.say(format!("#{sequence} approved")),
            (Act::Deny(sequence, _), _) => common.say(format!("#{sequence} denied")),
            (Act::RestartServer(id), _) => {
                common.say(format!("{} was ended; it starts again for whoever uses it", text::clean(&id)));
                self.servers.acted(common);
            }
            (Act::DisableServer(id), _) => {
                common.say(format!("{} is disabled", text::clean(&id)));
                self.servers.acted(common);
            }
            (Act::EnableServer(id), _) => {
                common.say(format!("{} is enabled", text::clean(&id)));
                self.servers.acted(common);
            }
            (Act::RemoveBreakpoint(name), _) => common.say(format!("{name} is gone")),
            _ => {}
        }
    }

    /// Goes on with a text, unless something else has been begun meanwhile.
    fn take_up(&mut self, why: Editing, text: &str, refused: Option<&str>) {
        match (&self.common.overlay, &why) {
            (Overlay::None, _) => self.edit(why, text, false),
            (_, Editing::Modify(sequence) | Editing::Answer(sequence)) => {
                return self.common.wish(Effect::Keep { sequence: *sequence, text: text.to_owned() });
            }
            _ => return,
        }
        if let (Overlay::Editor(editor), Some(words)) = (&mut self.common.overlay, refused) {
            editor.refuse(words);
        }
    }

    fn refused(&mut self, act: Act, refused: Refused) {
        match (act, refused.code) {
            // What is no message any more is sent only if somebody means it.
            (Act::Modify(sequence, modify), Some(Code::NotJsonRpc)) => {
                self.take_up(Editing::Modify(sequence), modify.raw.get(), None);
                if let Overlay::Editor(editor) = &mut self.common.overlay {
                    editor.is_confirming = true;
                }
                self.common.complain("this is no JSON-RPC message any more; ctrl-s once more sends it nevertheless");
            }
            (Act::Modify(sequence, Modify { raw, .. }), Some(Code::NotHeld))
            | (Act::Approve(sequence, Approve { raw: Some(raw), .. }), Some(Code::NotHeld)) => {
                self.common.wish(Effect::Keep { sequence, text: raw.get().to_owned() });
            }
            (Act::Answer(sequence, answer), Some(Code::NotHeld)) => {
                let text = serde_json::to_string(&answer).unwrap_or_default();
                self.common.wish(Effect::Keep { sequence, text: crate::json::pretty_of(&text) });
            }
            // What somebody wrote is not lost because it could not be sent.
            (Act::Modify(sequence, Modify { raw, .. }), _)
            | (Act::Approve(sequence, Approve { raw: Some(raw), .. }), _) => {
                self.take_up(Editing::Modify(sequence), raw.get(), Some(&refused.words));
                self.common.complain(refused.words);
            }
            (Act::Answer(sequence, answer), _) => {
                let text = serde_json::to_string(&answer).unwrap_or_default();
                self.take_up(Editing::Answer(sequence), &crate::json::pretty_of(&text), Some(&refused.words));
                self.common.complain(refused.words);
            }
            (Act::Replay { run, .. }, _) => self.repeater.refused(run, refused.words),
            (_, Some(Code::Locked)) => self.common.complain(format!("{}; `T` takes control", refused.words)),
            (_, _) => self.common.complain(refused.words),
        }
    }
}
