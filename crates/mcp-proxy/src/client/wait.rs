//! How far a call has come, shown while it lasts.

use std::sync::Mutex;

use mcp_client::{Progress as Told, Use};

use super::args::ServerArgs;
use crate::progress::{Progress, Unit};
use crate::report::say;

/// A whole, in the steps that are shown of it.
const WHOLE: f64 = 100.0;

/// Progress is asked for: as lines with --verbose, as a bar where standard error is a terminal.
pub(super) fn showing(args: &ServerArgs) -> Use {
    if args.recording.quiet {
        return Use::default();
    }
    if args.verbose {
        return Use::with_progress(|told| say(&line(&told)));
    }
    let bar = Mutex::new(None);
    Use::with_progress(move |told| {
        let mut bar = bar.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let whole = told.total.filter(|total| *total > 0.0);
        let (done, total) = match whole {
            Some(total) => (told.progress / total * WHOLE, Some(WHOLE as u64)),
            None => (told.progress, None),
        };
        let unit = if total.is_some() { Unit::Percent } else { Unit::Steps };
        let bar = bar.get_or_insert_with(|| Progress::begin("calling", unit, total));
        // Interrupted, the proxy ends the conversation, and that ends the call.
        let _ = bar.reach(done.max(0.0) as u64);
    })
}

fn line(told: &Told) -> String {
    let total = told.total.map(|total| format!("/{total}")).unwrap_or_default();
    let message = told.message.as_deref().map(|message| format!(": {message}")).unwrap_or_default();
    format!("mcp-proxy: progress {}{total}{message}", told.progress)
}
