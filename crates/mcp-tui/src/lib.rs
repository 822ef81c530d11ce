//! The terminal face: a client of the control API that draws. It knows instances by what they tell and
//! recordings by the [`library`] it is given, and nothing of the data path.
//!
//! [`app`] is the state: keys, news and time in, effects out, no terminal. [`view`] draws it. [`run`]
//! holds both to a terminal, and [`link`] to the world.

mod app;
mod clipboard;
mod command;
mod diff;
mod json;
mod key;
pub mod keymap;
pub mod library;
mod link;
mod mouse;
mod news;
mod percentile;
mod run;
mod schema;
mod state;
mod term;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod testing_screens;
mod text;
mod theme;
mod view;

use std::path::PathBuf;
use std::sync::Arc;

use library::{Library, SessionRef};
use mcp_control::Address;
use state::coach::Coach;
pub use state::coach::Stage;
use state::common::Common;
pub use text::width;
use theme::Palette;

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// What the terminal says of its background, and dark if it says nothing.
    #[default]
    Auto,
    Light,
    Dark,
}

#[derive(Clone, Debug, Default)]
pub struct Options {
    pub color: Color,
    pub ascii: bool,
    pub theme: Theme,
    /// Watch only; never ask for the lease.
    pub read_only: bool,
    /// A file that gives commands other keys.
    pub keys: Option<PathBuf>,
    /// How clients get in, a line each; shown while none has.
    pub doors: Vec<String>,
    /// What others see of us: `tui (ann)`.
    pub who: String,
    /// This process carries the messages.
    pub own_instance: bool,
    /// Lead through what can be done; how far that has come is told here.
    pub coach: Option<Stage>,
}

/// What is shown.
#[derive(Clone, Debug)]
pub enum Source {
    Instance(Address),
    Recording(SessionRef),
}

/// How the user left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    Detached,
    /// The user, or a signal, wants the whole process to end.
    EndWanted,
    InstanceEnded(String),
}

#[derive(Debug, thiserror::Error)]
pub enum TuiError {
    #[error("cannot use the terminal")]
    Terminal(#[from] std::io::Error),
    #[error("cannot read the keys from `{}`", .path.display())]
    KeyFile {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("`{}`: {what}", .path.display())]
    Keys { path: PathBuf, what: String },
}

/// Draws until the user leaves. Blocks, on a runtime of its own.
pub fn run(source: Source, library: Arc<dyn Library>, options: Options) -> Result<Left, TuiError> {
    let keymap = keymap(options.keys.as_deref())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let left = runtime.block_on(async {
        let (address, session) = match source {
            Source::Instance(address) => (Some(address), None),
            Source::Recording(session) => (None, Some(session)),
        };
        let (mut link, news) = link::Link::new(address, library, options.who.clone());
        session.into_iter().for_each(|session| link.open(session));
        let mut common = Common::default();
        (common.read_only, common.own_instance) = (options.read_only, options.own_instance);
        (common.doors, common.ascii) = (options.doors.clone(), options.ascii);
        let mut app = app::App::new(common, keymap);
        app.coach = options.coach.clone().map(Coach::new);
        run::Runner { app, link, news, theme: theme(&options), was_in_editor: false }.run().await
    });
    // Whoever still reads a recording does so for nobody.
    runtime.shutdown_background();
    left
}

fn keymap(file: Option<&std::path::Path>) -> Result<keymap::Keymap, TuiError> {
    let Some(path) = file else { return Ok(keymap::Keymap::default()) };
    let named = || path.to_owned();
    let text = std::fs::read_to_string(path).map_err(|source| TuiError::KeyFile { path: named(), source })?;
    keymap::Keymap::with(&text).map_err(|what| TuiError::Keys { path: named(), what })
}

fn theme(options: &Options) -> theme::Theme {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_plain = match options.color {
        Color::Always => false,
        Color::Never => true,
        Color::Auto => is_set("NO_COLOR") || std::env::var("TERM").is_ok_and(|term| term == "dumb"),
    };
    let palette = match (is_plain, options.theme) {
        (true, _) => Palette::Plain,
        (false, Theme::Light) => Palette::Light,
        (false, Theme::Dark) => Palette::Dark,
        (false, Theme::Auto) => {
            if has_light_background() {
                Palette::Light
            } else {
                Palette::Dark
            }
        }
    };
    theme::Theme { palette, ascii: options.ascii }
}

/// Terminals that say so put the number of their background's colour last: `0;15`.
fn has_light_background() -> bool {
    let said = std::env::var("COLORFGBG").unwrap_or_default();
    said.rsplit(';').next().is_some_and(|last| matches!(last, "7" | "15"))
}
