//! How far long work has come, and the wish that it stop where that leaves something valid. For a command
//! that is a bar on standard error, which is not shown off a terminal, and Ctrl-C. A face that has the
//! terminal to itself is told through its [`Work`].

use std::io;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mcp_tui::library::Work;

use crate::failure::{Failure, exit};
use crate::report::say;

/// Time before a bar appears: shorter work is over before it could be read.
const SHOWN_AFTER: Duration = Duration::from_millis(500);

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Messages,
    Sessions,
    Bytes,
    /// Of a whole that is a hundred.
    Percent,
    /// Whatever somebody else counts.
    Steps,
}

/// Who waits for long work: hears how far it has come and what it has to say, and may stop it.
#[derive(Clone, Debug)]
pub(crate) enum Waiter {
    /// Whoever typed a command.
    Command,
    /// A face. What work has to say beside its outcome has no place on its screen.
    Face(Work),
}

impl Waiter {
    /// Begins work, as [`Progress::begin`] does for a command.
    pub(crate) fn begin(&self, what: &'static str, unit: Unit, total: Option<u64>) -> Progress {
        match self {
            Self::Command => Progress::begin(what, unit, total),
            Self::Face(work) => {
                work.set(0, total.unwrap_or(0));
                Progress(Shown::Told(work.clone()))
            }
        }
    }

    pub(crate) fn say(&self, text: &str) {
        match self {
            Self::Command => say(text),
            Self::Face(_) => {}
        }
    }

    /// Whether nobody wants the work any longer.
    pub(crate) fn has_left(&self) -> bool {
        match self {
            Self::Command => is_interrupted(),
            Self::Face(work) => work.is_cancelled(),
        }
    }
}

/// Nobody wants it any longer: stop, and leave something valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

impl From<Interrupted> for Failure {
    fn from(Interrupted: Interrupted) -> Self {
        Self::new(exit::INTERRUPTED, "interrupted")
    }
}

/// Work under way. A command's work is told of Ctrl-C from its beginning on, which then no longer ends the
/// program: the work hears it from [`Progress::advance`] and stops itself. A second Ctrl-C ends the program at
/// once.
///
/// What is shown vanishes when this is dropped; what is to stay, a command says itself.
pub(crate) struct Progress(Shown);

enum Shown {
    Bar(Bar),
    Told(Work),
}

impl Progress {
    /// Work of a command. `what` is what people read: `indexing`, `exporting`. Without a total there is no
    /// bar, only a count.
    pub(crate) fn begin(what: &'static str, unit: Unit, total: Option<u64>) -> Self {
        Self(Shown::Bar(Bar::begin(what, unit, total)))
    }

    /// Work that cannot tell how far it is, and leaves nothing behind: Ctrl-C ends the program.
    pub(crate) fn waiting(what: &'static str) -> Waiting {
        let bar = Bar::begin(what, Unit::Bytes, None);
        bar.bar.set_style(style_of("{msg} {spinner}"));
        let (over, is_over) = std::sync::mpsc::sync_channel::<()>(0);
        let watch = move || {
            while let Err(RecvTimeoutError::Timeout) = is_over.recv_timeout(SHOWN_AFTER / 5) {
                if bar.check().is_err() {
                    drop(bar);
                    return end_at_once();
                }
                bar.bar.tick();
            }
        };
        // Where no thread can be had, nothing is shown.
        let thread = std::thread::Builder::new().name("progress".into()).spawn(watch).ok();
        Waiting { over: Some(over), thread }
    }

    /// So much more is done.
    pub(crate) fn advance(&self, by: u64) -> Result<(), Interrupted> {
        match &self.0 {
            Shown::Bar(bar) => bar.bar.inc(by),
            Shown::Told(work) => {
                let (done, total) = work.done();
                work.set(done + by, total);
            }
        }
        self.check()
    }

    /// So much is done in all.
    pub(crate) fn reach(&self, position: u64) -> Result<(), Interrupted> {
        match &self.0 {
            Shown::Bar(bar) => bar.bar.set_position(position),
            Shown::Told(work) => work.set(position, work.done().1),
        }
        self.check()
    }

    /// Shows what there is to show, and tells whether to stop.
    pub(crate) fn check(&self) -> Result<(), Interrupted> {
        match &self.0 {
            Shown::Bar(bar) => bar.check(),
            Shown::Told(work) => go_on(!work.is_cancelled()),
        }
    }

    /// Says a line above the bar, which would otherwise be drawn through it.
    pub(crate) fn say(&self, text: &str) {
        if let Shown::Bar(bar) = &self.0 {
            bar.bar.suspend(|| say(text));
        }
    }
}

fn go_on(is_wanted: bool) -> Result<(), Interrupted> {
    if is_wanted { Ok(()) } else { Err(Interrupted) }
}

struct Bar {
    bar: ProgressBar,
    begun: Instant,
    shown: AtomicBool,
}

impl Bar {
    fn begin(what: &'static str, unit: Unit, total: Option<u64>) -> Self {
        listen();
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        bar.set_style(style(unit, total.is_some()));
        bar.set_message(what);
        Self { bar, begun: Instant::now(), shown: AtomicBool::new(false) }
    }

    fn check(&self) -> Result<(), Interrupted> {
        if !self.shown.load(Ordering::Relaxed) && self.begun.elapsed() >= SHOWN_AFTER {
            self.shown.store(true, Ordering::Relaxed);
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        go_on(!is_interrupted())
    }
}

/// Shown until it is dropped.
pub(crate) struct Waiting {
    over: Option<std::sync::mpsc::SyncSender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.over = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Whether Ctrl-C was pressed since work began that can be stopped.
pub(crate) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

fn style(unit: Unit, has_total: bool) -> ProgressStyle {
    let (position, total, rate) = match unit {
        Unit::Messages => ("{human_pos}", "{human_len} messages", "{per_sec}"),
        Unit::Sessions => ("{human_pos}", "{human_len} sessions", "{per_sec}"),
        Unit::Percent => return style_of("{msg} [{bar:30}] {percent}%"),
        Unit::Steps => return style_of("{msg} {spinner} {human_pos}"),
        Unit::Bytes => ("{binary_bytes}", "{binary_total_bytes}", "{binary_bytes_per_sec}"),
    };
    let template = if has_total {
        format!("{{msg}} [{{bar:30}}] {position}/{total} {rate}, {{eta}} left")
    } else {
        format!("{{msg}} {{spinner}} {position} {rate}")
    };
    style_of(&template)
}

fn style_of(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).expect("the template is a constant");
    style.progress_chars("=> ").tick_chars("|/-\\ ")
}

/// Has Ctrl-C ask instead of kill, from now on.
fn listen() {
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| {
        // Where it cannot be heard, Ctrl-C ends the program as ever.
        if let Ok(mut interrupts) = interrupts() {
            let _ = std::thread::Builder::new().name("ctrl-c".into()).spawn(move || {
                if interrupts.wait() {
                    INTERRUPTED.store(true, Ordering::Relaxed);
                    if interrupts.wait() {
                        end_at_once();
                    }
                }
            });
        }
    });
}

struct Interrupts {
    runtime: tokio::runtime::Runtime,
    signal: tokio::signal::unix::Signal,
}

fn interrupts() -> io::Result<Interrupts> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let signal = {
        let _inside = runtime.enter();
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?
    };
    Ok(Interrupts { runtime, signal })
}

impl Interrupts {
    /// Waits for Ctrl-C; false if there will be none.
    fn wait(&mut self) -> bool {
        self.runtime.block_on(self.signal.recv()).is_some()
    }
}

#[expect(clippy::disallowed_methods, reason = "no server runs in these commands, and files appear whole or not at all")]
fn end_at_once() {
    std::process::exit(i32::from(exit::INTERRUPTED));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_style_is_a_template() {
        for unit in [Unit::Messages, Unit::Sessions, Unit::Bytes, Unit::Percent, Unit::Steps] {
            style(unit, true);
            style(unit, false);
        }
    }

    #[test]
    fn work_goes_on_until_it_is_asked_to_stop() {
        let progress = Progress::begin("testing", Unit::Messages, Some(3));
        assert_eq!(progress.advance(1), Ok(()));
        assert_eq!(progress.reach(3), Ok(()));
        assert_eq!(Failure::from(Interrupted).code, exit::INTERRUPTED);
    }

    #[test]
    fn a_face_hears_of_work_and_stops_it() {
        let work = Work::default();
        let waiter = Waiter::Face(work.clone());
        let progress = waiter.begin("testing", Unit::Messages, Some(7));
        assert_eq!(progress.advance(2), Ok(()));
        assert_eq!(progress.advance(3), Ok(()));
        assert_eq!(work.done(), (5, 7));
        assert_eq!(progress.reach(6), Ok(()));
        assert!(!waiter.has_left());
        work.cancel();
        assert_eq!((progress.reach(7), waiter.has_left(), work.done()), (Err(Interrupted), true, (7, 7)));
    }
}
