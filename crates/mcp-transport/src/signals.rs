//! The signals that ask the proxy to end.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

/// The signals that ask us to end.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    patience: Duration,
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
            heard: None,
        })
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
        tokio::select! {
            _ = self.interrupt.recv() => true,
            _ = self.terminate.recv() => false,
            _ = self.hang_up.recv() => false,
        }
    }
}
