//! `approve` and `deny`: what a rule asks is answered, once or for longer.

use clap::{Args, ValueEnum};
use mcp_control::api::{Approve, Deny, Lasting, Question};
use mcp_store::StateDir;
use mcp_wire::visible::visible;

use super::change::{Change, Changed};
use super::decide::{each, say_done};
use super::which::{Acting, is_message};
use super::{Face, label};
use crate::failure::Failure;
use crate::inspect::lines::about;

#[derive(Args)]
#[command(
    override_usage = "mcp-proxy approve [OPTIONS] [INSTANCE] MESSAGE...\n       mcp-proxy approve [OPTIONS] [INSTANCE] MESSAGE --set PATH=VALUE...\n       mcp-proxy approve [OPTIONS] [INSTANCE] MESSAGE --edit\n       mcp-proxy approve [OPTIONS] [INSTANCE] MESSAGE -"
)]
pub(crate) struct ApproveArgs {
    /// The messages that rules ask about by their numbers, after the instance if several run; `-` after
    /// one takes the whole message from standard input
    #[arg(value_name = "MESSAGE", num_args = 1.., required = true)]
    words: Vec<String>,
    #[command(flatten)]
    lasting: For,
    #[command(flatten)]
    change: Change,
    #[command(flatten)]
    acting: Acting,
}

#[derive(Args)]
#[command(override_usage = "mcp-proxy deny [OPTIONS] [INSTANCE] MESSAGE...")]
pub(crate) struct DenyArgs {
    /// The messages that rules ask about by their numbers, after the instance if several run
    #[arg(value_name = "MESSAGE", num_args = 1.., required = true)]
    words: Vec<String>,
    #[command(flatten)]
    lasting: For,
    /// Tell whoever sent it this
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    message: Option<String>,
    #[command(flatten)]
    acting: Acting,
}

#[derive(Args)]
struct For {
    #[arg(
        long = "for",
        value_enum,
        value_name = "once|session|rule",
        default_value = "once",
        hide_possible_values = true,
        hide_default_value = true,
        help = "Answer the same way whenever the rule asks about the same tool: while this proxy runs (`session`), or for as long as the rule is there (`rule`), which is written beside the rules [default: once]"
    )]
    lasting: HowLong,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HowLong {
    Once,
    Session,
    Rule,
}

impl From<HowLong> for Lasting {
    fn from(how_long: HowLong) -> Self {
        match how_long {
            HowLong::Once => Self::Once,
            HowLong::Session => Self::Session,
            HowLong::Rule => Self::Rule,
        }
    }
}

pub(super) fn approve(args: &ApproveArgs, state: &StateDir) -> Result<(), Failure> {
    let mut words = args.words.clone();
    let from_input = words.pop_if(|word| word == "-").is_some();
    if from_input && !args.change.is_none() {
        return Err(Failure::usage("what changes is said with --set PATH=VALUE, --edit, or `-` and standard input")
            .hint("give one of them"));
    }
    if from_input || !args.change.is_none() {
        return approve_changed(args, &words, from_input, state);
    }
    let (face, sequences) = args.acting.attach_to_messages(&words, state)?;
    let approve = Approve { lasting: args.lasting.lasting.into(), raw: None };
    each(&sequences, |sequence| {
        let asked = Asked::about(&face, *sequence, approve.lasting)?;
        face.decide(*sequence, face.client.approve(*sequence, &approve))?;
        say_done(&format!("#{sequence:03} was approved{}", asked.lasts("asks no more about")))
    })
}

fn approve_changed(args: &ApproveArgs, words: &[String], from_input: bool, state: &StateDir) -> Result<(), Failure> {
    if args.lasting.lasting != HowLong::Once {
        return Err(Failure::usage("what is edited is approved once")
            .hint("leave --for out, or approve the message as it came: what comes next is not edited"));
    }
    if words.len() > 1 && is_message(&words[0]) {
        return Err(Failure::usage("one message is edited at a time"));
    }
    let (face, sequence) = args.acting.attach_to_message(words, state)?;
    let changed = Changed { face: &face, sequence, command: "approve" };
    args.change.carry_out(from_input, &changed, |raw| {
        let approve = Approve { lasting: Lasting::Once, raw: Some(raw) };
        face.wait(face.client.approve(sequence, &approve)).map(drop)
    })?;
    say_done(&format!("#{sequence:03} was approved, edited"))
}

pub(super) fn deny(args: &DenyArgs, state: &StateDir) -> Result<(), Failure> {
    let (face, sequences) = args.acting.attach_to_messages(&args.words, state)?;
    let deny = Deny { lasting: args.lasting.lasting.into(), message: args.message.clone() };
    each(&sequences, |sequence| {
        let asked = Asked::about(&face, *sequence, deny.lasting)?;
        face.decide(*sequence, face.client.deny(*sequence, &deny))?;
        say_done(&format!("#{sequence:03} was denied{}", asked.lasts("denies")))
    })
}

/// What an answer that counts for longer is about.
struct Asked<'a> {
    face: &'a Face,
    lasting: Lasting,
    question: Option<Question>,
}

impl<'a> Asked<'a> {
    fn about(face: &'a Face, sequence: u64, lasting: Lasting) -> Result<Self, Failure> {
        let question = match lasting {
            Lasting::Once => None,
            _ => face.decide(sequence, face.client.held_message(sequence))?.asks,
        };
        Ok(Self { face, lasting, question })
    }

    /// `; rule "writes" asks no more about tools/call [write_file] while 7f3a9a52 (files) runs`
    fn lasts(&self, what: &str) -> String {
        let Some(question) = &self.question else { return String::new() };
        let about = about(question.method.as_deref().unwrap_or_default(), question.tool.as_deref());
        let until = match self.lasting {
            Lasting::Once => return String::new(),
            Lasting::Session => format!(" while {} runs", label(&self.face.running)),
            Lasting::Rule => ", which is written beside the rules".to_owned(),
        };
        format!("; rule \"{}\" {what} {about}{until}", visible(&question.rule))
    }
}
