//! `hold on|off`: every message waits for somebody, or only what a breakpoint matches.

use clap::{Args, ValueEnum};
use mcp_control::api::Mode;
use mcp_store::StateDir;

use super::which::Acting;
use crate::failure::Failure;
use crate::report::{ColorChoice, Page, duration};

#[derive(Args)]
#[command(override_usage = "mcp-proxy hold [OPTIONS] <on|off> [INSTANCE]")]
pub(crate) struct HoldArgs {
    #[arg(value_enum, help = "`off` also lets go of everything that is held", hide_possible_values = true)]
    switch: Switch,
    /// The instance; not needed while only one runs
    instance: Option<String>,
    #[command(flatten)]
    acting: Acting,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

pub(super) fn hold(args: &HoldArgs, state: &StateDir) -> Result<(), Failure> {
    let face = args.acting.attach(args.instance.as_deref(), state)?;
    let label = super::label(&face.running);
    let said = match args.switch {
        Switch::On => {
            face.ask(face.client.set_mode(Mode::Intercept))?;
            let limit = face.ask(face.client.snapshot())?.hold_limit_ms;
            let limit =
                limit.map_or("until somebody decides".into(), |ms| format!("up to {}", duration(ms * 1_000_000)));
            format!("{label} holds every message {limit}; `mcp-proxy held` shows them, `mcp-proxy hold off` ends it")
        }
        Switch::Off => {
            let went_on = match face.ask(face.client.set_mode(Mode::Passthrough))?.released {
                0 => "none was held".to_owned(),
                1 => "1 that was held went on".to_owned(),
                count => format!("{count} that were held went on"),
            };
            let still = match face.ask(face.client.instance())?.breakpoints_that_hold {
                0 => String::new(),
                1 => "; 1 breakpoint still holds, see `mcp-proxy break list`".to_owned(),
                count => format!("; {count} breakpoints still hold, see `mcp-proxy break list`"),
            };
            format!("{label} passes messages on; {went_on}{still}")
        }
    };
    let mut page = Page::new(ColorChoice::Never);
    page.line(&said)?;
    Ok(page.end()?)
}
