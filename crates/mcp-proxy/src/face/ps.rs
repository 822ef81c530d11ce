//! `ps`: the running instances. Each is asked at the same time and for a moment only, so that one that
//! is stuck holds up nobody.

mod table;

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use mcp_control::api::{Instance, Mode};
use mcp_control::instances::Running;
use mcp_control::{Address, Client, Instances};
use mcp_store::StateDir;
use mcp_wire::visible::visible;
use serde_json::json;
use tokio::task::JoinSet;

use super::runtime;
use crate::failure::Failure;
use crate::report::{self, ColorChoice, Page, Style};
use table::{Cells, NONE};

/// An instance that has not answered by now is shown as one that does not.
const PATIENCE: Duration = Duration::from_secs(1);
/// Characters that are shown of a name, and of a command line; `--json` has all of them.
const NAME_SHOWN: usize = 24;
const SERVER_SHOWN: usize = 60;

#[derive(Args)]
pub(crate) struct PsArgs {
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

pub(crate) struct Row {
    pub running: Running,
    /// Absent if it did not answer.
    pub instance: Option<Instance>,
}

pub(crate) fn ps(args: &PsArgs, state: &StateDir, color: ColorChoice) -> Result<(), Failure> {
    let rows = rows(state)?;
    let mut page = Page::new(color);
    if args.json {
        rows.iter().try_for_each(|row| page.line(&mcp_wire::inert::inert(&row.json().to_string())))?;
    } else if rows.is_empty() {
        page.line("no instance is running; start one with `mcp-proxy run -- CMD`, or a client whose config says so")?;
    } else {
        print(&mut page, &rows)?;
    }
    Ok(page.end()?)
}

/// The running instances, each with what it says of itself.
pub(crate) fn rows(state: &StateDir) -> Result<Vec<Row>, Failure> {
    let running = Instances::below(state.root()).list()?;
    Ok(runtime()?.block_on(ask_all(running)))
}

async fn ask_all(running: Vec<Running>) -> Vec<Row> {
    let mut asked = JoinSet::new();
    for (at, running) in running.into_iter().enumerate() {
        asked.spawn(async move {
            let client = Client::new(Address::Socket(running.socket.clone()));
            let answer = tokio::time::timeout(PATIENCE, client.instance()).await;
            (at, Row { running, instance: answer.ok().and_then(Result::ok) })
        });
    }
    let mut rows = asked.join_all().await;
    rows.sort_by_key(|(at, _)| *at);
    rows.into_iter().map(|(_, row)| row).collect()
}

fn print(page: &mut Page, rows: &[Row]) -> Result<(), Failure> {
    let cells: Vec<Cells> = rows.iter().map(Row::cells).collect();
    let lines = table::lines(&cells, report::terminal_width());
    let (headings, lines) = lines.split_first().expect("headings are always there");
    page.line(&page.styled(Style::Heading, headings))?;
    lines.iter().try_for_each(|line| page.line(line))?;
    Ok(())
}

impl Row {
    fn cells(&self) -> Cells {
        let description = &self.running.description;
        let unknown = || NONE.to_owned();
        let shown = |text: Option<&str>| text.map_or_else(unknown, |text| cut(text, NAME_SHOWN));
        let told = |tell: &dyn Fn(&Instance) -> String| self.instance.as_ref().map_or_else(unknown, tell);
        [
            description.short_id(),
            shown(description.name.as_deref()),
            shown(self.client()),
            told(&|instance| instance.clients.to_string()),
            shown(self.revision()),
            format!("{}→{}", visible(&description.client_transport), visible(&description.server_transport)),
            self.instance.as_ref().and_then(port).unwrap_or_else(unknown),
            age(self.age_s()),
            told(&|instance| instance.messages.to_string()),
            told(&held),
            self.instance.as_ref().map_or_else(|| "does not answer".to_owned(), mode),
            shown(self.instance.as_ref().and_then(|instance| Some(instance.lease.as_ref()?.holder.as_str()))),
            told(&|instance| instance.servers.to_string()),
            cut(description.server(), SERVER_SHOWN),
        ]
    }

    /// The newest client.
    fn client(&self) -> Option<&str> {
        self.instance.as_ref()?.conversations.iter().rev().find_map(|speaker| speaker.client.as_deref())
    }

    fn revision(&self) -> Option<&str> {
        self.instance.as_ref()?.conversations.iter().rev().find_map(|speaker| speaker.revision.as_deref())
    }

    fn age_s(&self) -> u64 {
        let age = jiff::Timestamp::now().duration_since(self.running.description.started_at);
        u64::try_from(age.as_secs()).unwrap_or_default()
    }

    fn json(&self) -> serde_json::Value {
        let description = &self.running.description;
        let instance = self.instance.as_ref();
        json!({
            "id": description.id,
            "name": description.name,
            "answers": instance.is_some(),
            "pid": description.pid,
            "version": description.version,
            "started_at": description.started_at,
            "age_s": self.age_s(),
            "server_command": description.server_command,
            "server_url": description.server_url,
            "client_transport": description.client_transport,
            "server_transport": description.server_transport,
            "listen": instance.map(|instance| &instance.listen),
            "session": instance.and_then(|instance| instance.session.as_ref()),
            "clients": instance.map(|instance| instance.clients),
            "servers": instance.map(|instance| instance.servers),
            "conversations": instance.map(|instance| &instance.conversations),
            "messages": instance.map(|instance| instance.messages),
            "held": instance.map(|instance| instance.held),
            "questions": instance.map(|instance| instance.questions),
            "policy": instance.and_then(|instance| instance.policy.as_ref()),
            "mode": instance.map(|instance| instance.mode),
            "mode_owner": instance.map(|instance| instance.mode_owner),
            "holds_all": instance.map(Instance::holds_all),
            "breakpoints": instance.map(|instance| instance.breakpoints),
            "breakpoints_that_hold": instance.map(|instance| instance.breakpoints_that_hold),
            "controlled_by": instance.and_then(|instance| Some(&instance.lease.as_ref()?.holder)),
            "faces": instance.map(|instance| instance.faces),
            "socket": self.running.socket,
        })
    }
}

/// `8900`, or the address too where other machines reach it.
fn port(instance: &Instance) -> Option<String> {
    let address: SocketAddr = instance.listen.parse().ok()?;
    Some(if address.ip().is_loopback() { address.port().to_string() } else { address.to_string() })
}

/// `2`, or `2 (1 asked)` if a rule asks about one of them.
fn held(instance: &Instance) -> String {
    match instance.questions {
        0 => instance.held.to_string(),
        questions => format!("{} ({questions} asked)", instance.held),
    }
}

/// What happens to messages, by rules and as things stand.
fn mode(instance: &Instance) -> String {
    let judged = instance.policy.as_ref().map(|policy| {
        let unwritten = if policy.unwritten { ", decisions unwritten" } else { "" };
        match policy.rules {
            1 => format!("1 rule{unwritten}"),
            count => format!("{count} rules{unwritten}"),
        }
    });
    match (judged, holding(instance)) {
        (None, holding) => holding.unwrap_or_else(|| "passes all".into()),
        (Some(judged), None) => judged,
        (Some(judged), Some(holding)) => format!("{judged}, {holding}"),
    }
}

/// What a flag or a face asked for waits for a face.
fn holding(instance: &Instance) -> Option<String> {
    let breakpoints = |count: u64| if count == 1 { "1 breakpoint".into() } else { format!("{count} breakpoints") };
    let (all, holding) = (instance.breakpoints, instance.breakpoints_that_hold);
    let waiting = "once somebody attaches";
    Some(match (instance.mode, holding) {
        (Mode::Intercept, _) if instance.holds_all() => "holds all".into(),
        (Mode::Intercept, 0) => format!("holds all {waiting}"),
        (Mode::Intercept, _) => format!("{}, holds all {waiting}", breakpoints(holding)),
        (Mode::Passthrough, _) if all == 0 => return None,
        (Mode::Passthrough, _) if all == holding => breakpoints(all),
        (Mode::Passthrough, 0) => format!("{} {waiting}", breakpoints(all)),
        (Mode::Passthrough, _) => format!("{}, {all} {waiting}", breakpoints(holding)),
    })
}

fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

fn cut(text: &str, shown: usize) -> String {
    crate::inspect::lines::cut(text.as_bytes(), shown)
}

#[cfg(test)]
mod tests {
    use mcp_control::api::{Governed, Owner, Permission, Transport};

    use super::*;

    fn instance(wanted: (Mode, Owner), has_face: bool, breakpoints: u64, breakpoints_that_hold: u64) -> Instance {
        Instance {
            id: String::new(),
            version: String::new(),
            pid: 1,
            name: None,
            server_command: None,
            server_url: None,
            transport: Transport::Stdio,
            listen: "stdio".into(),
            started_at: String::new(),
            clients: 1,
            servers: 1,
            session: None,
            messages: 0,
            held: 0,
            questions: 0,
            policy: None,
            mode: wanted.0,
            mode_owner: wanted.1,
            has_face,
            lease: None,
            breakpoints,
            breakpoints_that_hold,
            faces: 0,
            conversations: Vec::new(),
        }
    }

    #[track_caller]
    fn check(wanted: (Mode, Owner), has_face: bool, breakpoints: u64, breakpoints_that_hold: u64, expected: &str) {
        assert_eq!(mode(&instance(wanted, has_face, breakpoints, breakpoints_that_hold)), expected);
    }

    #[test]
    fn rules_and_questions_are_shown() {
        let policy = |rules| {
            Some(Governed {
                version: "cafe".into(),
                rules,
                default: Permission::Allow,
                hide_denied: false,
                unwritten: rules == 7,
            })
        };
        let passes = || instance((Mode::Passthrough, Owner::Start), false, 1, 0);
        let shown = |breakpoints, rules| mode(&Instance { breakpoints, policy: policy(rules), ..passes() });
        assert_eq!(shown(0, 1), "1 rule");
        assert_eq!(shown(0, 7), "7 rules, decisions unwritten");
        assert_eq!(shown(1, 12), "12 rules, 1 breakpoint once somebody attaches");
        assert_eq!(held(&Instance { held: 3, questions: 2, ..passes() }), "3 (2 asked)");
        assert_eq!(held(&Instance { held: 3, ..passes() }), "3");
    }

    #[test]
    fn what_really_happens_is_shown() {
        let passes = (Mode::Passthrough, Owner::Start);
        let by_face = (Mode::Intercept, Owner::Face);
        check(passes, false, 0, 0, "passes all");
        check(passes, false, 1, 1, "1 breakpoint");
        check(passes, true, 2, 2, "2 breakpoints");
        check(passes, false, 2, 0, "2 breakpoints once somebody attaches");
        check(passes, false, 3, 1, "1 breakpoint, 3 once somebody attaches");
        check(by_face, true, 0, 0, "holds all");
        check((Mode::Intercept, Owner::Command), false, 1, 0, "holds all");
        check(by_face, false, 0, 0, "holds all once somebody attaches");
        check((Mode::Intercept, Owner::Start), false, 2, 2, "2 breakpoints, holds all once somebody attaches");
    }
}
