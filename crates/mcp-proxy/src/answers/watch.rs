//! Looks after the answers of a running proxy: whoever strikes one out of the file is asked again, and
//! what is answered in another proxy with the same rules counts in this one.

use mcp_engine::CommandSender;
use mcp_engine::policy::Answered;

use super::AnswersFile;
use crate::failure::Failure;
use crate::policy::{Stamp, stamp};
use crate::report::say;

pub(crate) struct AnswersWatch {
    file: AnswersFile,
    /// The file as it was when it was last read.
    known: Option<Stamp>,
    /// The file as it was at the last look, if it was another.
    moving: Option<Option<Stamp>>,
}

impl AnswersWatch {
    pub(crate) fn new(file: AnswersFile) -> Self {
        Self { file, known: None, moving: None }
    }

    pub(crate) fn read(&mut self) -> Result<Vec<Answered>, Failure> {
        // Before it is read, so that no change is missed.
        self.known = stamp(&self.file.path);
        self.file.read()
    }

    /// Has what the file says count, if that is new.
    pub(crate) fn look_after(&mut self, commands: &CommandSender, quiet: bool) {
        match self.look() {
            None => {}
            Some(Ok(written)) => {
                let count = written.len();
                if self.put_in_force(written, commands) && !quiet {
                    say(&format!("mcp-proxy: answers to rules reloaded: {count}"));
                }
            }
            Some(Err(failure)) => say(&format!(
                "mcp-proxy: warning: the file of answers changed and is wrong, so the answers of before still count: {}",
                failure.what()
            )),
        }
    }

    /// Whether these count now, and others did before.
    fn put_in_force(&self, written: Vec<Answered>, commands: &CommandSender) -> bool {
        let (path, known) = (self.file.path.clone(), self.known);
        let (done, is_done) = std::sync::mpsc::sync_channel(1);
        commands.leave(move |pipeline| {
            // What was answered meanwhile is in the file already, and is read at another look.
            let is_new = stamp(&path) == known && written != pipeline.governance.answers().written();
            if is_new {
                pipeline.governance.set_written_answers(written);
            }
            let _ = done.send(is_new);
        });
        is_done.recv().unwrap_or(false)
    }

    /// What the file says, if it is another than before and stands still.
    fn look(&mut self) -> Option<Result<Vec<Answered>, Failure>> {
        let now = stamp(&self.file.path);
        if now == self.known {
            self.moving = None;
            return None;
        }
        if self.moving.replace(now) != Some(now) {
            return None;
        }
        self.moving = None;
        Some(self.read())
    }
}

#[cfg(test)]
mod tests {
    use mcp_engine::policy::rules::Permission;

    use super::*;

    #[test]
    fn a_file_that_changed_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let file = AnswersFile::beside(&dir.path().join("rules.json"));
        let mut watch = AnswersWatch::new(file.clone());
        assert_eq!(watch.read().unwrap(), []);
        assert!(watch.look().is_none() && watch.look().is_none());
        let permission = Permission::Allow;
        let answered = Answered {
            rule: "r".into(),
            method: "m".into(),
            subject: None,
            server: None,
            permission,
            by: "ann".into(),
        };
        file.put(&answered).unwrap();
        assert!(watch.look().is_none());
        assert_eq!(watch.look().unwrap().unwrap(), [answered]);
        assert!(watch.look().is_none() && watch.look().is_none());
        std::fs::write(&file.path, "{").unwrap();
        assert!(watch.look().is_none());
        assert!(watch.look().unwrap().is_err());
        std::fs::remove_file(&file.path).unwrap();
        assert!(watch.look().is_none());
        assert_eq!(watch.look().unwrap().unwrap(), []);
    }
}
