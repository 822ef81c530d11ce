//! The signals that ask the proxy to end.

use std::io;
use std::time::Duration;

use mcp_link::Interrupts;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use crate::os;

/// The signals that ask us to end.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    patience: Duration,
    /// What SIGHUP is answered with, where no window can have been closed.
    on_hang_up: Option<Box<dyn Fn()>>,
    /// The first one, and when it counts. Whoever waits for it may stop doing so and begin again.
    heard: Option<(bool, Instant)>,
}

impl Signals {
    pub fn listen() -> io::Result<Self> {
        Self::listen_with(Duration::ZERO)
    }

    /// The first signal counts only after `patience`, or with another one. For a proxy whose client is in this process,
    /// hears the signal as well, and gets that long to take back what it asked for.
    pub fn listen_with(patience: Duration) -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            patience,
            on_hang_up: None,
            heard: None,
        })
    }

    /// The signals of a listener. Without a controlling terminal SIGHUP is how an administrator asks a daemon to reload:
    /// it ends nothing, and `on_hang_up` says so. With one the window was closed.
    pub fn of_listener(on_hang_up: impl Fn() + 'static) -> io::Result<Self> {
        let mut signals = Self::listen()?;
        // Asked now: the terminal of a closed window is no longer ours.
        if !os::has_controlling_terminal() {
            signals.on_hang_up = Some(Box::new(on_hang_up));
        }
        Ok(signals)
    }

    /// True if a person at a terminal sent it.
    pub async fn next(&mut self) -> bool {
        if self.patience.is_zero() {
            return self.another().await;
        }
        let (is_interrupt, counts_at) = match self.heard {
            Some(heard) => heard,
            None => {
                let is_interrupt = self.another().await;
                *self.heard.insert((is_interrupt, Instant::now() + self.patience))
            }
        };
        tokio::select! {
            () = sleep_until(counts_at) => {}
            _ = self.another() => {}
        }
        self.patience = Duration::ZERO;
        is_interrupt
    }

    async fn another(&mut self) -> bool {
        loop {
            return tokio::select! {
                _ = self.interrupt.recv() => true,
                _ = self.terminate.recv() => false,
                _ = self.hang_up.recv() => match &self.on_hang_up {
                    Some(on_hang_up) => {
                        on_hang_up();
                        continue;
                    }
                    None => false,
                },
            };
        }
    }
}

impl Interrupts for Signals {
    async fn next(&mut self) -> bool {
        self.next().await
    }
}
