//! `save`: what an instance has recorded so far, as a session file.

use std::path::Path;

use clap::Args;
use mcp_control::Instances;
use mcp_control::api::Save;
use mcp_store::StateDir;
use mcp_wire::visible::visible;

use super::decide::say_done;
use super::which::Acting;
use crate::export::exists;
use crate::failure::{Failure, quoted};

#[derive(Args)]
#[command(override_usage = "mcp-proxy save [OPTIONS] [INSTANCE] FILE")]
pub(crate) struct SaveArgs {
    /// Where to write it, after the instance if several run
    #[arg(value_name = "FILE", num_args = 1..=2, required = true)]
    words: Vec<String>,
    /// Write over a session file that is there already
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    acting: Acting,
}

pub(super) fn save(args: &SaveArgs, state: &StateDir) -> Result<(), Failure> {
    let (file, instance) = match args.words.as_slice() {
        [instance, file] => (file, Some(instance.as_str())),
        [file, ..] => {
            is_no_instance(file, state)?;
            (file, None)
        }
        [] => return Err(Failure::usage("expected a file")),
    };
    let face = args.acting.attach(instance, state)?;
    // The instance may have begun in another directory.
    let file = std::path::absolute(file)?;
    if !args.force && file.symlink_metadata().is_ok() {
        return Err(exists(&file));
    }
    let file = file.to_str().ok_or_else(|| Failure::usage(format!("{} is no text", quoted(&file))))?;
    let saved = face.ask(face.client.save(&Save { file: file.to_owned() }))?;
    let files: Vec<String> = saved.files.iter().map(|file| quoted(Path::new(file))).collect();
    let messages = if saved.messages == 1 { "1 message".to_owned() } else { format!("{} messages", saved.messages) };
    say_done(&format!("{messages} saved to {}", files.join(", ")))
}

/// Whoever names an instance and no file would get a file of that name.
fn is_no_instance(word: &str, state: &StateDir) -> Result<(), Failure> {
    if word.contains(['/', '.']) || Instances::below(state.root()).find(Some(word)).is_err() {
        return Ok(());
    }
    let shown = quoted(Path::new(word));
    Err(Failure::usage(format!("`{}` is an instance, and no file is named", visible(word)))
        .hint(format!("`mcp-proxy save {shown} FILE` saves it; a file of that name is ./{shown}")))
}
