//! The terminal itself: taken when drawing begins, and given back as it was however that ends.

use std::io::{self, Stdout, Write};
use std::mem::ManuallyDrop;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture};
use crossterm::terminal::{self, EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::{cursor, execute};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::{Position, Rect};

/// Whether there is something to give back. A panic anywhere in the process asks.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

pub(crate) struct Term {
    /// Never dropped: that shows the cursor, as `leave` does, and panics where terminal and standard error are gone.
    pub terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
}

impl Term {
    pub(crate) fn take() -> io::Result<Self> {
        give_back_on_panic();
        enter()?;
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout())).inspect_err(|_| leave())?;
        Ok(Self { terminal: ManuallyDrop::new(terminal) })
    }

    /// Does something that needs the terminal as it was, then takes it again.
    pub(crate) fn lend<R>(&mut self, work: impl FnOnce() -> R) -> io::Result<R> {
        leave();
        let done = work();
        enter()?;
        self.clear()?;
        Ok(done)
    }

    /// Has everything drawn anew. The terminal is asked nothing, as `Terminal::clear` would ask for the
    /// cursor: the answer comes among the keys, and not at all where nobody gives one.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::from((Position::ORIGIN, size)))
    }

    /// Writes what is no part of the picture, such as a text for the clipboard.
    pub(crate) fn write(&mut self, sequence: &[u8]) -> io::Result<()> {
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

/// Whether the terminal is ours to draw on.
pub(crate) fn is_taken() -> bool {
    IS_TAKEN.load(Ordering::SeqCst)
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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::process::{Child, Command, Stdio};

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{Termios, tcgetattr};

    use super::*;

    /// Set for the process that takes the terminal.
    const ENDS_BY: &str = "MCP_TUI_TEST_ENDS_BY";

    /// Run by itself this does nothing; the tests below run it in a process on a terminal of its own.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the harness cannot print its verdict on a terminal that is gone")]
    fn takes_the_terminal() {
        let Some(end) = std::env::var_os(ENDS_BY) else { return };
        let mut term = Term::take().unwrap();
        term.terminal.draw(|frame| frame.render_widget("drawn", frame.area())).unwrap();
        match end.to_str() {
            Some("panic") => panic!("as a bug would"),
            Some("other thread") => drop(std::thread::spawn(|| panic!("elsewhere")).join()),
            Some("closed") => {
                term.write(b"ready").unwrap();
                // Nothing is typed, so that this returns when the terminal is closed.
                let _ = io::stdin().read(&mut [0]);
                drop(term);
                std::process::exit(0);
            }
            _ => drop(term),
        }
    }

    fn modes(of: &Termios) -> String {
        format!("{:?}", (of.input_modes, of.output_modes, of.control_modes, of.local_modes))
    }

    /// Both ends of a new terminal.
    fn terminal() -> (File, File) {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
        (File::from(ours), File::options().read(true).write(true).open(name).unwrap())
    }

    fn taking(theirs: &File, end: &str) -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "term::tests::takes_the_terminal", "--nocapture"])
            .env(ENDS_BY, end)
            .stdin(Stdio::from(OwnedFd::from(theirs.try_clone().unwrap())))
            .stdout(Stdio::from(OwnedFd::from(theirs.try_clone().unwrap())))
            .stderr(Stdio::from(OwnedFd::from(theirs.try_clone().unwrap())))
            .spawn()
            .unwrap()
    }

    #[track_caller]
    fn is_given_back(end: &str) -> String {
        let (mut screen, theirs) = terminal();
        let before = modes(&tcgetattr(&theirs).unwrap());
        let mut child = taking(&theirs, end);
        let reading = std::thread::spawn(move || {
            let (mut shown, mut piece) = (Vec::new(), [0; 4096]);
            while let Ok(count @ 1..) = screen.read(&mut piece) {
                shown.extend_from_slice(&piece[..count]);
            }
            String::from_utf8_lossy(&shown).into_owned()
        });
        child.wait().unwrap();
        assert_eq!(modes(&tcgetattr(&theirs).unwrap()), before, "{end}");
        drop(theirs);
        let shown = reading.join().unwrap();
        let (entered, left) = (shown.find("\x1b[?1049h").expect("entered"), shown.rfind("\x1b[?1049l").expect("left"));
        assert!(entered < left && shown[left..].contains("\x1b[?25h"), "the cursor is shown again: {shown:?}");
        shown
    }

    #[test]
    fn the_terminal_is_given_back() {
        is_given_back("itself");
    }

    #[test]
    fn the_terminal_is_given_back_by_a_panic_before_its_words() {
        for end in ["panic", "other thread"] {
            let shown = is_given_back(end);
            let (left, words) = (shown.find("\x1b[?1049l").unwrap(), shown.find("panicked at").unwrap());
            assert!(left < words, "{shown:?}");
        }
    }

    #[test]
    fn a_terminal_that_was_closed_is_left_without_a_panic() {
        let (mut screen, theirs) = terminal();
        let mut child = taking(&theirs, "closed");
        drop(theirs);
        let (mut shown, mut piece) = (Vec::new(), [0; 4096]);
        while !String::from_utf8_lossy(&shown).contains("ready") {
            let count = screen.read(&mut piece).unwrap();
            shown.extend_from_slice(&piece[..count]);
        }
        drop(screen);
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}
