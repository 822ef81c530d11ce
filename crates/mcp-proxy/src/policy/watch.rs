//! Looks after the rules file of a running proxy. A file that changed and is right counts from then on;
//! one that is wrong or gone is told, and the rules that were read before still count.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mcp_engine::CommandSender;
use mcp_engine::policy::rules::{Rule, Rules};

use super::check::summary;
use super::file::{self, Read};
use super::service::Naming;
use crate::answers::AnswersWatch;
use crate::failure::Failure;
use crate::report::say;

/// Interval between looks at the rules file. A change counts once the file stood still from one look to the next,
/// so that half a file never governs.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What tells that a file is another than before, without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    /// Of its text, and of what is known of it: some programs set the first one back.
    changed: [(i64, i64); 2],
}

pub(super) struct Watch {
    path: PathBuf,
    service: Option<String>,
    servers: Vec<Arc<str>>,
    name: Option<String>,
    /// The version that counts.
    version: Arc<str>,
    /// The file as it was when it was last read, or found to be gone.
    known: Option<Stamp>,
    /// The file as it was at the last look, if it was another.
    moving: Option<Option<Stamp>>,
    /// Somebody was told that the file is not what counts.
    is_amiss: bool,
}

/// What a look found.
#[derive(Debug)]
enum News {
    Changed(Box<Read>),
    /// What counts is in the file again.
    Restored,
    Wrong(Failure),
    Gone,
}

impl Watch {
    /// Before the file is read, so that no change is missed. `version` is told once it was.
    pub(super) fn new(path: PathBuf, naming: Naming<'_>) -> Self {
        let known = stamp(&path);
        Self {
            path,
            service: naming.service.map(str::to_owned),
            servers: naming.servers.to_vec(),
            name: naming.name.map(str::to_owned),
            version: "".into(),
            known,
            moving: None,
            is_amiss: false,
        }
    }

    pub(super) fn read(&mut self) -> Result<Read, Failure> {
        let naming = Naming { service: self.service.as_deref(), servers: &self.servers, name: self.name.as_deref() };
        let read = file::read(&self.path, naming)?;
        named(&read.rules, &self.servers)?;
        self.version = Arc::clone(&read.rules.version);
        Ok(read)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Looks from now on, on a thread of its own, until the pipeline is gone; at what people answered
    /// to the rules, and at an audit log that is not open, too. With `quiet` only trouble is told.
    pub(super) fn start(
        self,
        answers: AnswersWatch,
        commands: CommandSender,
        (quiet, is_unwritten): (bool, bool),
    ) -> std::io::Result<()> {
        let run = move || self.run(answers, &commands, quiet, is_unwritten);
        std::thread::Builder::new().name("rules".into()).spawn(run).map(drop)
    }

    fn run(mut self, mut answers: AnswersWatch, commands: &CommandSender, quiet: bool, mut is_unwritten: bool) {
        while !commands.is_closed() {
            std::thread::sleep(LOOK_EVERY);
            is_unwritten = is_unwritten && !opens_audit(commands);
            answers.look_after(commands, quiet);
            let before = Arc::clone(&self.version);
            match self.look() {
                None => {}
                Some(News::Changed(read)) => {
                    let told = summary(&read);
                    if put_in_force(read.rules, commands) && !quiet {
                        say(&format!("mcp-proxy: rules reloaded: {told}"));
                        read.remarks.iter().for_each(|remark| say(&format!("mcp-proxy: note: {remark}")));
                    }
                }
                Some(News::Restored) => say(&format!("mcp-proxy: the rules file is right again (version {before})")),
                Some(News::Wrong(failure)) => {
                    let advice = failure.advice().map(|advice| format!("\n\nhint: {advice}")).unwrap_or_default();
                    say(&format!(
                        "mcp-proxy: warning: the rules file changed and is wrong, so the rules of before still count \
                         (version {before}): {}{advice}",
                        failure.what()
                    ));
                }
                Some(News::Gone) => say(&format!(
                    "mcp-proxy: warning: the rules file {} is gone, and the rules in it still count (version {before})",
                    crate::failure::quoted(&self.path)
                )),
            }
        }
    }

    fn look(&mut self) -> Option<News> {
        let now = stamp(&self.path);
        if now == self.known {
            self.moving = None;
            return None;
        }
        if self.moving.replace(now) != Some(now) {
            return None;
        }
        (self.known, self.moving) = (now, None);
        let before = Arc::clone(&self.version);
        let news = match now {
            None => News::Gone,
            Some(_) => match self.read() {
                Ok(read) if read.rules.version != before => News::Changed(Box::new(read)),
                Ok(_) if self.is_amiss => News::Restored,
                Ok(_) => return None,
                Err(failure) => News::Wrong(failure),
            },
        };
        self.is_amiss = matches!(news, News::Wrong(_) | News::Gone);
        Some(news)
    }
}

/// Whether the rules count now. They do not where nobody is left who could be governed.
fn put_in_force(rules: Rules, commands: &CommandSender) -> bool {
    let (done, is_done) = std::sync::mpsc::sync_channel(1);
    commands.leave(move |pipeline| {
        pipeline.set_rules(Arc::new(rules));
        let _ = done.send(());
    });
    is_done.recv().is_ok()
}

/// Whether the audit log is open now.
fn opens_audit(commands: &CommandSender) -> bool {
    let (done, is_done) = std::sync::mpsc::sync_channel(1);
    commands.leave(move |pipeline| {
        let _ = done.send(pipeline.journal.retry_audit());
    });
    is_done.recv().unwrap_or(false)
}

pub(crate) fn stamp(path: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(path).ok()?;
    Some(Stamp {
        device: found.dev(),
        inode: found.ino(),
        size: found.size(),
        changed: [(found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec())],
    })
}

/// A rule about the server decides nothing where nobody says what the server is called.
fn named(rules: &Rules, servers: &[Arc<str>]) -> Result<(), Failure> {
    let asks = |rule: &&Rule| rule.filter.fields().iter().any(|(field, _)| *field == "server");
    match rules.rules.iter().find(asks) {
        Some(rule) if rules.server.is_none() && servers.is_empty() => {
            Err(Failure::usage(format!("rule \"{}\" goes by `server`, and nothing names the server", rule.name))
                .hint("give --name or --service, or `server` in the policy"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place(tempfile::TempDir);

    impl Place {
        fn path(&self) -> PathBuf {
            self.0.path().join("rules.json")
        }

        /// Another text, under another file, as editors do it.
        fn write(&self, text: &str) {
            let draft = self.0.path().join("draft");
            std::fs::write(&draft, text).unwrap();
            std::fs::rename(draft, self.path()).unwrap();
        }
    }

    fn watched(text: &str) -> (Place, Watch) {
        let place = Place(tempfile::tempdir().unwrap());
        place.write(text);
        let mut watch = Watch::new(place.path(), Naming::default());
        watch.read().unwrap();
        (place, watch)
    }

    /// A look at something new sees it for the first time.
    fn twice(watch: &mut Watch) -> Option<News> {
        assert!(watch.look().is_none());
        watch.look()
    }

    const ALLOW: &str = r#"{"default": "allow"}"#;
    const DENY: &str = r#"{"default": "deny"}"#;

    #[test]
    fn a_change_counts_once_it_stands_still() {
        let (place, mut watch) = watched(ALLOW);
        assert!(watch.look().is_none() && watch.look().is_none());
        place.write(DENY);
        assert!(watch.look().is_none());
        place.write(r#"{"github": {"delete": "deny"}, "default": "deny"}"#);
        assert!(watch.look().is_none(), "it changed since the last look");
        let Some(News::Changed(read)) = watch.look() else { panic!("it stands still") };
        assert_eq!(read.rules.rules.len(), 1);
        assert!(watch.look().is_none() && watch.look().is_none());
    }

    #[test]
    fn the_same_text_is_no_news() {
        let (place, mut watch) = watched(ALLOW);
        place.write(ALLOW);
        assert!(twice(&mut watch).is_none());
    }

    #[test]
    fn what_is_wrong_is_told_once() {
        let (place, mut watch) = watched(ALLOW);
        place.write("{");
        assert!(matches!(twice(&mut watch), Some(News::Wrong(_))));
        assert!(watch.look().is_none() && watch.look().is_none());
        place.write(ALLOW);
        assert!(matches!(twice(&mut watch), Some(News::Restored)));
        place.write(DENY);
        assert!(matches!(twice(&mut watch), Some(News::Changed(_))));
    }

    #[test]
    fn a_file_that_is_gone_is_told_once() {
        let (place, mut watch) = watched(ALLOW);
        std::fs::remove_file(place.path()).unwrap();
        assert!(watch.look().is_none());
        place.write(DENY);
        assert!(matches!(twice(&mut watch), Some(News::Changed(_))), "only an editor that writes");
        std::fs::remove_file(place.path()).unwrap();
        assert!(matches!(twice(&mut watch), Some(News::Gone)));
        assert!(watch.look().is_none());
        place.write(DENY);
        assert!(matches!(twice(&mut watch), Some(News::Restored)));
    }

    /// Links are followed to the file, whose change counts.
    #[test]
    fn a_link_is_followed() {
        let (place, _) = watched(ALLOW);
        let link = place.0.path().join("link.json");
        std::os::unix::fs::symlink(place.path(), &link).unwrap();
        let mut watch = Watch::new(link, Naming::default());
        watch.read().unwrap();
        place.write(DENY);
        assert!(matches!(twice(&mut watch), Some(News::Changed(_))));
    }
}
