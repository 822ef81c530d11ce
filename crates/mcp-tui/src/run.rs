//! The loop: keys, news and time go into the state, what it wants is carried out, and what has changed
//! is drawn.

mod editor;
mod stop;

use std::time::{Duration, Instant};

use crossterm::event::{Event, EventStream, KeyEventKind};
use futures_util::StreamExt;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::app::App;
use crate::clipboard;
use crate::key::Key;
use crate::link::Link;
use crate::news::{Effect, News};
use crate::term::{self, Term};
use crate::theme::Theme;
use crate::{Left, TuiError, mouse, view};

/// Pause between two drawings of events; keys are drawn at once.
const FRAME: Duration = Duration::from_millis(33);

pub(crate) struct Runner {
    pub app: App,
    pub link: Link,
    pub news: tokio::sync::mpsc::Receiver<News>,
    pub theme: Theme,
    /// An editor had the terminal since the last turn of the loop.
    pub was_in_editor: bool,
}

/// Absent while something else has the terminal.
type Keys = Option<EventStream>;

/// What ends a terminal program from outside.
struct Endings {
    terminated: Signal,
    hung_up: Signal,
    interrupted: Signal,
    quit: Signal,
}

impl Endings {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminated: signal(SignalKind::terminate())?,
            hung_up: signal(SignalKind::hangup())?,
            interrupted: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    async fn any(&mut self) {
        tokio::select! {
            _ = self.terminated.recv() => {}
            _ = self.hung_up.recv() => {}
            _ = self.interrupted.recv() => {}
            _ = self.quit.recv() => {}
        }
    }
}

impl Runner {
    pub(crate) async fn run(mut self) -> Result<Left, TuiError> {
        let (mut endings, mut stops) = (Endings::new()?, stop::Stops::new()?);
        let mut term = Term::take()?;
        let mut keys = Some(EventStream::new());
        let begun = Instant::now();
        let (mut drawn_at, mut is_due) = (begun - FRAME, true);
        loop {
            if let Some(left) = self.carry_out(&mut term, &mut keys)? {
                self.link.leave().await;
                return Ok(left);
            }
            if std::mem::take(&mut self.was_in_editor) {
                stops.forget().await;
            }
            // Something has failed elsewhere in this process, and its words are on the screen.
            if !term::is_taken() {
                return Ok(Left::EndWanted);
            }
            if is_due && drawn_at.elapsed() >= FRAME {
                self.draw(&mut term)?;
                (drawn_at, is_due) = (Instant::now(), false);
            }
            let wait = match is_due {
                true => FRAME.saturating_sub(drawn_at.elapsed()),
                false => Duration::from_millis(self.app.tick_within()),
            };
            tokio::select! {
                biased;
                () = endings.any() => {
                    self.link.leave().await;
                    return Ok(Left::EndWanted);
                }
                () = stops.requested() => {
                    self.aside(&mut term, &mut keys, stop::here)?;
                    is_due = true;
                }
                event = async { keys.as_mut()?.next().await } => {
                    match event {
                        Some(Ok(event)) => self.input(event),
                        // The terminal is gone.
                        Some(Err(_)) | None => return Ok(Left::EndWanted),
                    }
                    // What somebody typed is shown at once.
                    (is_due, drawn_at) = (true, begun - FRAME);
                }
                news = self.news.recv() => {
                    if let Some(news) = news {
                        self.hear(news);
                    }
                    is_due = true;
                }
                () = tokio::time::sleep(wait) => is_due = true,
            }
            self.app.tick(begun.elapsed().as_millis() as u64);
        }
    }

    fn draw(&mut self, term: &mut Term) -> Result<(), TuiError> {
        term.terminal.draw(|frame| view::draw(&mut self.app, frame, &self.theme))?;
        Ok(())
    }

    fn input(&mut self, event: Event) {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.app.key(Key::from(key)),
            Event::Paste(text) => self.app.paste(&text),
            Event::Mouse(event) => mouse::mouse(&mut self.app, event),
            _ => {}
        }
    }

    fn hear(&mut self, news: News) {
        if let News::Opened(_, Ok(recording)) = &news {
            self.link.show(Some(std::sync::Arc::clone(recording)));
        }
        self.app.hear(news);
    }

    /// Carries out what the state wants. Returns how the user leaves, once that is wanted.
    fn carry_out(&mut self, term: &mut Term, keys: &mut Keys) -> Result<Option<Left>, TuiError> {
        for effect in self.app.take_effects() {
            match effect {
                Effect::End(left) => return Ok(Some(left)),
                Effect::Redraw => term.clear()?,
                Effect::Leave if self.link.has_instance() && self.app.common.ended.is_none() => {
                    self.link.show(None);
                    self.app.show_live();
                }
                Effect::Leave => self.app.common.say("there is nothing live to go back to; `q` leaves"),
                Effect::Copy(text) => {
                    let copied = clipboard::copy_sequence(&text, std::env::var_os("TMUX").is_some())
                        .map(|sequence| term.write(sequence.as_bytes()));
                    self.app.hear(News::Copied(copied.map(|_| ())));
                }
                Effect::Suspend if self.app.common.own_instance => {
                    self.app.common.complain("this process carries the messages, and suspending would stop them");
                }
                Effect::Suspend => self.aside(term, keys, stop::here)?,
                Effect::Editor { text, why } => {
                    let edited = self.aside(term, keys, || editor::edit(&text))?;
                    self.was_in_editor = true;
                    self.app.hear(News::Edited(why, text, edited));
                }
                Effect::Keep { sequence, text } => self.app.hear(News::Kept(sequence, editor::keep(&text))),
                effect => self.link.carry_out(effect),
            }
        }
        Ok(None)
    }

    /// Does something that needs terminal and keys for itself.
    fn aside<R>(&mut self, term: &mut Term, keys: &mut Keys, work: impl FnOnce() -> R) -> Result<R, TuiError> {
        // The stream reads ahead on a thread of its own, which would take keys from the editor. A new one waits
        // for that thread, which ends when the old stream is dropped or a key is pressed.
        *keys = None;
        let done = term.lend(work)?;
        *keys = Some(EventStream::new());
        Ok(done)
    }
}
