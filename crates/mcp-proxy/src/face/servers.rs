//! `servers list|restart|disable|enable`: the servers of a gateway that runs.

use clap::Subcommand;
use mcp_control::ClientError;
use mcp_control::api::{Code, Server, ServerState};
use mcp_store::StateDir;
use mcp_wire::visible::visible;

use super::decide::each;
use super::which::{Acting, Instance};
use super::{Face, label};
use crate::failure::{Failure, exit};
use crate::report::{self, ColorChoice, Page, Style, duration};

#[derive(Subcommand)]
pub(crate) enum ServersCommand {
    /// List the servers: how they are, and how their calls went
    List {
        #[command(flatten)]
        which: Instance,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// End servers, and start them again for whoever uses them
    Restart {
        #[command(flatten)]
        named: Named,
    },
    /// End servers, and offer nothing of them until they are enabled
    Disable {
        #[command(flatten)]
        named: Named,
    },
    /// Have servers take part again
    Enable {
        #[command(flatten)]
        named: Named,
    },
}

#[derive(clap::Args)]
pub(crate) struct Named {
    /// Their names
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    #[command(flatten)]
    acting: Acting,
}

pub(super) fn servers(command: &ServersCommand, state: &StateDir, color: ColorChoice) -> Result<(), Failure> {
    match command {
        ServersCommand::List { which, json } => list(which, *json, state, color),
        ServersCommand::Restart { named } => change(named, state, Change::Restart),
        ServersCommand::Disable { named } => change(named, state, Change::Disable),
        ServersCommand::Enable { named } => change(named, state, Change::Enable),
    }
}

fn list(which: &Instance, json: bool, state: &StateDir, color: ColorChoice) -> Result<(), Failure> {
    let face = which.attach(state)?;
    let servers = match face.wait(face.client.servers()) {
        Err(error) if is_not_found(&error) => return Err(no_gateway(&face)),
        answered => face.ask(async { answered })?.servers,
    };
    let mut page = Page::new(color);
    match (json, servers.is_empty()) {
        (true, _) => {
            for server in &servers {
                let json = serde_json::to_string(server).expect("plain data always serialises");
                page.line(&mcp_wire::inert::inert(&json))?;
            }
        }
        (false, true) => page.line(&format!("{} has no servers", label(&face.running)))?,
        (false, false) => print(&mut page, &servers)?,
    }
    Ok(page.end()?)
}

fn print(page: &mut Page, servers: &[Server]) -> Result<(), Failure> {
    let headings = ["ID", "STATE", "ERA", "TRANSPORT", "TOOLS", "CALLS/MIN", "LATENCY", "ERRORS", "RESTARTS", "WHY"]
        .map(str::to_owned);
    let rows: Vec<[String; 10]> = servers.iter().map(cells).collect();
    let width = |column: usize| {
        let cells = rows.iter().chain([&headings]).map(|row| row[column].chars().count());
        cells.max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let used = widths[..widths.len() - 1].iter().map(|width| width + 2).sum();
    let screen = report::terminal_width();
    let line = |row: &[String; 10]| {
        let [rest @ .., why] = row;
        let padded: String = rest.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}  ")).collect();
        format!("{padded}{}", report::rest_of_line(why, used, screen)).trim_end().to_owned()
    };
    page.line(&page.styled(Style::Heading, &line(&headings)))?;
    for (row, server) in rows.iter().zip(servers) {
        let line = line(row);
        page.line(&match server.state {
            ServerState::Down | ServerState::NeedsLogin => page.styled(Style::Bad, &line),
            ServerState::Disabled | ServerState::Stopped => page.styled(Style::Faint, &line),
            _ => line,
        })?;
    }
    Ok(())
}

fn cells(server: &Server) -> [String; 10] {
    let unknown = || "-".to_owned();
    let (calls, state) = (&server.calls, server.state.as_str());
    [
        visible(&server.id).to_string(),
        server
            .retry_after_ms
            .map_or_else(|| state.to_owned(), |ms| format!("{state} ({})", duration(ms.saturating_mul(1_000_000)))),
        server.era.map_or_else(unknown, |era| era.as_str().to_owned()),
        server.transport.as_str().to_owned(),
        server.tools.map_or_else(unknown, |tools| tools.to_string()),
        calls.per_minute.to_string(),
        calls.latest_us().map_or_else(unknown, |us| duration(us.saturating_mul(1_000))),
        calls.errors.to_string(),
        server.restarts.to_string(),
        server.why.as_ref().map(|why| visible(why).to_string()).unwrap_or_default(),
    ]
}

#[derive(Clone, Copy)]
enum Change {
    Restart,
    Disable,
    Enable,
}

fn change(named: &Named, state: &StateDir, change: Change) -> Result<(), Failure> {
    let face = named.acting.attach(None, state)?;
    let mut page = Page::new(ColorChoice::Never);
    let changed = each(&named.names, |name| {
        let server = carry_out(&face, name, change)?;
        let (name, state) = (visible(name), server.state.as_str());
        Ok(page.line(&match change {
            Change::Restart => format!("server {name} was ended, and starts again for whoever uses it; it is {state}"),
            Change::Disable => format!("server {name} is disabled"),
            Change::Enable => format!("server {name} is enabled; it is {state}"),
        })?)
    });
    page.flush()?;
    changed
}

fn carry_out(face: &Face, name: &str, change: Change) -> Result<Server, Failure> {
    let client = &face.client;
    let answered = face.wait(async {
        match change {
            Change::Restart => client.restart_server(name).await,
            Change::Disable => client.disable_server(name).await,
            Change::Enable => client.enable_server(name).await,
        }
    });
    match answered {
        Err(error) if is_not_found(&error) => Err(match face.wait(client.servers()) {
            Err(error) if is_not_found(&error) => no_gateway(face),
            _ => Failure::new(exit::NEGATIVE, format!("there is no server `{}`", visible(name)))
                .hint(format!("`mcp-proxy servers list{}` shows those there are", face.which())),
        }),
        answered => face.ask(async { answered }),
    }
}

fn is_not_found(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused { fault, .. } if fault.code == Code::NotFound)
}

fn no_gateway(face: &Face) -> Failure {
    Failure::new(exit::NEGATIVE, format!("{} is no gateway: it has one server only", label(&face.running)))
        .hint("`mcp-proxy serve` puts many servers behind one endpoint")
}

#[cfg(test)]
mod tests {
    use mcp_control::api::{Era, ServerCalls, Transport};

    use super::*;

    #[test]
    fn a_row_says_how_a_server_is() {
        let mut server = Server {
            id: "redis".into(),
            state: ServerState::Restarting,
            era: None,
            transport: Transport::Stdio,
            tools: None,
            prompts: None,
            resources: None,
            instances: 0,
            clients: 1,
            in_flight: 0,
            restarts: 3,
            retry_after_ms: Some(8_000),
            why: Some("gone:\u{1b}[31m it ended".into()),
            last_words: None,
            calls: ServerCalls::default(),
        };
        assert_eq!(cells(&server).join("|"), "redis|restarting (8.0s)|-|stdio|-|0|-|0|3|gone:␛[31m it ended");
        (server.state, server.era, server.tools) = (ServerState::Ready, Some(Era::Modern), Some(8));
        (server.retry_after_ms, server.why) = (None, None);
        server.calls = ServerCalls {
            errors: 2,
            per_minute: 12,
            latency_us: vec![Some(5_000), Some(312_000), None],
            ..ServerCalls::default()
        };
        assert_eq!(cells(&server).join("|"), "redis|ready|modern|stdio|8|12|312ms|2|3|");
    }
}
