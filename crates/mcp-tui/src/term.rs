//! The terminal itself: taken when drawing begins, and given back as it was however that ends.

use std::io::{self, Stdout, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture};
use crossterm::terminal::{self, EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::{cursor, execute};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

/// Whether there is something to give back. A panic anywhere in the process asks.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

pub struct Term {
    pub terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Term {
    pub fn take() -> io::Result<Self> {
        give_back_on_panic();
        enter()?;
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout())).inspect_err(|_| leave())?;
        Ok(Self { terminal })
    }

    /// Does something that needs the terminal as it was, then takes it again.
    pub fn lend<R>(&mut self, work: impl FnOnce() -> R) -> io::Result<R> {
        leave();
        let done = work();
        enter()?;
        self.terminal.clear()?;
        Ok(done)
    }

    /// Writes what is no part of the picture, such as a text for the clipboard.
    pub fn write(&mut self, sequence: &[u8]) -> io::Result<()> {
        let mut stdout = io::stdout();
        stdout.write_all(sequence)?;
        stdout.flush()
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        leave();
    }
}

fn enter() -> io::Result<()> {
    IS_TAKEN.store(true, Ordering::SeqCst);
    let entered = terminal::enable_raw_mode().and_then(|()| {
        execute!(io::stdout(), EnterAlternateScreen, EnableMouseCapture, EnableBracketedPaste, cursor::Hide)
    });
    entered.inspect_err(|_| leave())
}

/// Gives the terminal back. Whatever of that fails, the rest is done: it may be gone already.
fn leave() {
    if IS_TAKEN.swap(false, Ordering::SeqCst) {
        let _ = execute!(io::stdout(), DisableBracketedPaste, DisableMouseCapture, LeaveAlternateScreen, cursor::Show);
        let _ = terminal::disable_raw_mode();
    }
}

/// The message of a panic is readable only on a terminal that was given back.
fn give_back_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            leave();
            before(panic);
        }));
    });
}
