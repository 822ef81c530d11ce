//! `forward` and `drop`.

use clap::Args;
use mcp_control::api::{Drop, ErrorAnswer};
use mcp_store::StateDir;
use mcp_wire::reply::REFUSED_BY_HAND;

use super::label;
use super::which::Acting;
use crate::failure::{Failure, exit};
use crate::report::{ColorChoice, Page};

#[derive(Args)]
#[command(
    override_usage = "mcp-proxy forward [OPTIONS] [INSTANCE] MESSAGE...\n       mcp-proxy forward [OPTIONS] [INSTANCE] --all"
)]
pub(crate) struct ForwardArgs {
    /// The held messages by their numbers, after the instance if several run
    #[arg(value_name = "MESSAGE", num_args = 0.., required_unless_present = "all")]
    words: Vec<String>,
    /// Everything that is held
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    acting: Acting,
}

#[derive(Args)]
#[command(override_usage = "mcp-proxy drop [OPTIONS] [INSTANCE] MESSAGE...")]
pub(crate) struct DropArgs {
    /// The held messages by their numbers, after the instance if several run
    #[arg(value_name = "MESSAGE", num_args = 1.., required = true)]
    words: Vec<String>,
    /// Tell whoever sent it, if they wait for an answer, with this text and perhaps a code before it
    #[arg(long, value_name = "[CODE:]MESSAGE", value_parser = error_answer, allow_hyphen_values = true)]
    error: Option<ErrorAnswer>,
    #[command(flatten)]
    acting: Acting,
}

/// `-32001:no`, or `no`.
pub(super) fn error_answer(text: &str) -> Result<ErrorAnswer, String> {
    let (code, message) = match text.split_once(':').map(|(code, message)| (code.trim().parse(), message)) {
        Some((Ok(code), message)) => (code, message.trim_start()),
        _ => (REFUSED_BY_HAND, text),
    };
    if message.is_empty() {
        return Err("expected a text, perhaps after a code and a colon".into());
    }
    Ok(ErrorAnswer { code, message: message.to_owned() })
}

pub(super) fn forward(args: &ForwardArgs, state: &StateDir) -> Result<(), Failure> {
    if !args.all {
        let (face, sequences) = args.acting.attach_to_messages(&args.words, state)?;
        return each(&sequences, |sequence| {
            face.decide(*sequence, face.client.forward(*sequence))?;
            say_done(&format!("#{sequence:03} went on as it came"))
        });
    }
    let instance = match args.words.as_slice() {
        [] => None,
        [instance] => Some(instance.as_str()),
        _ => return Err(Failure::usage("--all takes no message").hint("leave out one of them")),
    };
    let face = args.acting.attach(instance, state)?;
    let label = label(&face.running);
    say_done(&match face.ask(face.client.forward_all())?.released {
        0 => format!("{label} holds nothing"),
        1 => "1 message went on as it came".to_owned(),
        count => format!("{count} messages went on as they came"),
    })
}

pub(super) fn drop_held(args: &DropArgs, state: &StateDir) -> Result<(), Failure> {
    let (face, sequences) = args.acting.attach_to_messages(&args.words, state)?;
    let drop = Drop { error: args.error.clone() };
    each(&sequences, |sequence| {
        face.decide(*sequence, face.client.drop_held(*sequence, &drop))?;
        say_done(&match &args.error {
            None => format!("#{sequence:03} was dropped"),
            Some(error) => format!("#{sequence:03} was dropped and answered with error {}", error.code),
        })
    })
}

/// Does it to each. A no to one is kept for the end, and does not spare the others.
pub(super) fn each<T>(them: &[T], mut act: impl FnMut(&T) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut first = Ok(());
    for one in them {
        match act(one) {
            Err(failure) if failure.code == exit::NEGATIVE => first = first.and(Err(failure)),
            done => done?,
        }
    }
    first
}

pub(super) fn say_done(text: &str) -> Result<(), Failure> {
    let mut page = Page::new(ColorChoice::Never);
    page.line(text)?;
    Ok(page.end()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_a_text_or_a_code_with_a_text() {
        let parsed = |text: &str| error_answer(text).map(|error| (error.code, error.message));
        assert_eq!(parsed("no: not now"), Ok((REFUSED_BY_HAND, "no: not now".into())));
        assert_eq!(parsed("-32001: no: not now"), Ok((-32001, "no: not now".into())));
        assert_eq!(parsed("7:x"), Ok((7, "x".into())));
        assert!(parsed("").is_err() && parsed("7:").is_err());
    }
}
