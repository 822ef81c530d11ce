//! Files whose new bytes reach the disk soon, by a thread that nobody waits for.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A crash of the machine, not only of the process, loses at most this much.
const SYNC_AFTER: Duration = Duration::from_millis(100);

/// Told how long a file is whenever it has reached the disk; on a thread that nothing waits for.
pub type OnSynced = Arc<dyn Fn(u64) + Send + std::marker::Sync>;

/// Sees to it that what was written reaches the disk soon, off the path.
#[derive(Debug)]
pub(crate) struct Sync {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    dirty: AtomicBool,
    stopped: AtomicBool,
    /// Why the last sync failed, until somebody has asked; 0 if it did not.
    errno: AtomicI32,
}

impl Sync {
    pub(crate) fn start(thread_name: &str, file: File, on_synced: Option<OnSynced>) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name(thread_name.into())
            .stack_size(64 * 1024)
            .spawn(move || sync_when_dirty(&file, &theirs, on_synced.as_ref()))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    pub(crate) fn take_error(&self) -> Option<io::Error> {
        match self.shared.errno.load(Ordering::Acquire) {
            0 => None,
            errno => {
                self.shared.errno.store(0, Ordering::Release);
                Some(io::Error::from_raw_os_error(errno))
            }
        }
    }

    pub(crate) fn soon(&self) {
        // Only the first write after a sync pays for a wake-up.
        if !self.shared.dirty.swap(true, Ordering::AcqRel)
            && let Some(thread) = &self.thread
        {
            thread.thread().unpark();
        }
    }
}

impl Drop for Sync {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn sync_when_dirty(file: &File, shared: &Shared, on_synced: Option<&OnSynced>) {
    loop {
        let stopped = shared.stopped.load(Ordering::Acquire);
        if shared.dirty.swap(false, Ordering::AcqRel) {
            if let Err(error) = file.sync_data() {
                shared.errno.store(error.raw_os_error().unwrap_or(0), Ordering::Release);
            }
            // What is recorded is written once and seldom read: its pages go back at once, instead of
            // pushing out what others have in memory. New records then land in warm pages, too.
            let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
            if let (Some(on_synced), Ok(meta)) = (on_synced, file.metadata()) {
                on_synced(meta.len());
            }
        }
        if stopped {
            return;
        }
        while !shared.dirty.load(Ordering::Acquire) && !shared.stopped.load(Ordering::Acquire) {
            std::thread::park();
        }
        let began = Instant::now();
        // A wake-up that came while the disk was busy ends the first of these at once, so the clock decides.
        while let Some(rest) = SYNC_AFTER.checked_sub(began.elapsed())
            && !shared.stopped.load(Ordering::Acquire)
        {
            std::thread::park_timeout(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::sync_channel;

    use super::*;

    /// What is written while the disk is busy waits as long as anything else.
    #[test]
    fn a_file_that_never_rests_is_not_synced_without_a_pause() {
        let (synced, has_synced) = sync_channel(0);
        let (go_on, may_go_on) = sync_channel(1);
        let may_go_on = Mutex::new(may_go_on);
        let on_synced: OnSynced = Arc::new(move |_| {
            let _ = synced.send(Instant::now());
            let _ = may_go_on.lock().expect("one thread").recv();
        });
        let file = tempfile::tempfile().expect("a file");
        let sync = Sync::start("test-sync", file, Some(on_synced)).expect("a thread");
        sync.soon();
        let mut before = has_synced.recv().expect("synced");
        for _ in 0..2 {
            sync.soon();
            go_on.send(()).expect("it waits");
            let after = has_synced.recv().expect("synced");
            assert!(after - before >= SYNC_AFTER, "after {:?}", after - before);
            before = after;
        }
        drop((go_on, has_synced));
    }
}
