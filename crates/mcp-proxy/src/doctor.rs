//! Looks at everything the proxy needs and says what is wrong with it, with one step that helps.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::ExitCode;

use mcp_store::{Catalogue, StateDir};
use mcp_transport::child::{self, ChildEvent, ExitStatus, ServerCommand};
use mcp_transport::http::tls;
use mcp_wire::visible::visible;

use crate::cli::LISTEN_PORT;
use crate::face::ps;
use crate::failure::{Failure, exit, own_directory, quoted};
use crate::report::{self, ColorChoice, Page, Style};

/// Free space below which `doctor` warns: recording stops when the disk is full.
const DISK_LOW: u64 = 1 << 30;

enum Finding {
    Ok(String),
    Warn { what: String, fix: String },
    Fail { what: String, fix: String },
}

pub(crate) fn doctor(state: &StateDir, color: ColorChoice) -> Result<ExitCode, Failure> {
    let checks: [(&str, Finding); 9] = [
        ("store", store(state)),
        ("audit", audit(state)),
        ("running", running(state)),
        ("disk", disk(state)),
        ("sessions", sessions(state)),
        ("guard", guard()?),
        ("port", port(SocketAddr::from((Ipv4Addr::LOCALHOST, LISTEN_PORT)))),
        ("certificates", certificates()),
        ("program", program()),
    ];
    let mut page = Page::new(color);
    let mut failed = false;
    for (name, finding) in checks {
        let (mark, style, what, fix) = match finding {
            Finding::Ok(what) => ("ok", Style::Good, what, None),
            Finding::Warn { what, fix } => ("warn", Style::Bad, what, Some(fix)),
            Finding::Fail { what, fix } => {
                failed = true;
                ("FAIL", Style::Bad, what, Some(fix))
            }
        };
        page.line(&format!("{}  {name:<12} {what}", page.styled(style, &format!("{mark:<4}"))))?;
        if let Some(fix) = fix {
            page.line(&format!("{:19}fix: {fix}", ""))?;
        }
    }
    page.end()?;
    Ok(if failed { ExitCode::from(exit::NEGATIVE) } else { ExitCode::SUCCESS })
}

fn store(state: &StateDir) -> Finding {
    let root = state.root();
    let fix = own_directory(root);
    if let Err(error) = state.prepare() {
        return Finding::Fail { what: Failure::from(error).what().to_owned(), fix };
    }
    match tempfile::tempfile_in(state.sessions()) {
        Ok(_) => Finding::Ok(format!("{} is private and can be written", root.display())),
        Err(error) => Finding::Fail { what: format!("{} cannot be written: {error}", root.display()), fix },
    }
}

/// Where governed proxies write down what they decide. The first of them makes the directory.
fn audit(state: &StateDir) -> Finding {
    let dir = state.audit();
    let is_in_the_way = dir.symlink_metadata().is_ok() && !dir.is_dir();
    let dir = if dir.symlink_metadata().is_ok() { dir } else { state.root().to_owned() };
    match tempfile::tempfile_in(&dir) {
        Ok(_) => Finding::Ok("decisions can be written down".into()),
        Err(error) => Finding::Fail {
            what: format!(
                "audit logs cannot be opened in {}: {error}. Decisions go unwritten, and rules with `audit_required` \
                 do not start",
                state.audit().display()
            ),
            fix: match is_in_the_way {
                true => format!("mv {0} {0}.old", quoted(&state.audit())),
                false => format!("make {} a directory that you can write to", quoted(&state.audit())),
            },
        },
    }
}

/// What running proxies say of themselves.
fn running(state: &StateDir) -> Finding {
    let rows = match ps::rows(state) {
        Ok(rows) => rows,
        Err(error) => {
            let what = format!("running proxies cannot be listed: {}", error.what());
            return Finding::Fail { what, fix: "mcp-proxy ps".into() };
        }
    };
    let named = |is_it: &dyn Fn(&ps::Row) -> bool| {
        let found = rows.iter().filter(|row| is_it(row)).map(|row| &row.running.description);
        let name = |id: String, name: Option<&str>| name.map_or(id.clone(), |name| format!("{id} ({})", visible(name)));
        found.map(|found| name(found.short_id(), found.name.as_deref())).collect::<Vec<_>>().join(", ")
    };
    let is_unwritten =
        |row: &ps::Row| row.instance.as_ref().is_some_and(|it| it.policy.as_ref().is_some_and(|it| it.unwritten));
    let (unwritten, silent) = (named(&is_unwritten), named(&|row| row.instance.is_none()));
    if !unwritten.is_empty() {
        let fix = format!("make {} writable; the proxies retry", quoted(&state.audit()));
        return Finding::Fail { what: format!("decisions go unwritten in {unwritten}"), fix };
    }
    if !silent.is_empty() {
        return Finding::Warn { what: format!("no answer from {silent}"), fix: "mcp-proxy ps".into() };
    }
    Finding::Ok(format!("{} running, none has unwritten decisions", rows.len()))
}

fn disk(state: &StateDir) -> Finding {
    let Ok(disk) = rustix::fs::statvfs(nearest(state.root())) else {
        return Finding::Warn { what: "free space is unknown".into(), fix: format!("df {}", quoted(state.root())) };
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let used: u64 =
        state.segments().unwrap_or_default().iter().filter_map(|path| Some(path.metadata().ok()?.len())).sum();
    let what = format!("recordings take {}, {} is free", report::size(used), report::size(free));
    if free < DISK_LOW {
        return Finding::Warn { what, fix: "mcp-proxy sessions list, then mcp-proxy sessions rm ID".into() };
    }
    Finding::Ok(what)
}

/// The path itself or the first of its parents that exists.
fn nearest(path: &Path) -> &Path {
    path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"))
}

fn sessions(state: &StateDir) -> Finding {
    let fix = "mcp-proxy sessions list".to_owned();
    let catalogue = match Catalogue::open(state) {
        Ok(catalogue) => catalogue,
        Err(error) => {
            let what = format!("the catalogue cannot be opened: {error}");
            let fix = Failure::from(error).advice().map_or(fix, str::to_owned);
            return Finding::Fail { what, fix };
        }
    };
    let entries = catalogue.entries().unwrap_or_default();
    let what = format!("{} recorded, {} running", entries.len(), entries.iter().filter(|entry| entry.live).count());
    match catalogue.findings.as_slice() {
        [] => Finding::Ok(what),
        findings => Finding::Warn { what: format!("{what}; {}", findings.join("; ")), fix },
    }
}

/// Starts and ends a process the way servers are started and ended.
fn guard() -> Result<Finding, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let command = ServerCommand { program: "true".into(), ..ServerCommand::default() };
    let fix = "run mcp-proxy from a file system that allows execution, with /proc mounted".to_owned();
    Ok(runtime.block_on(async {
        let mut started = match child::start(&command) {
            Ok(started) => started,
            Err(error) => return Finding::Fail { what: format!("the process guard cannot be started: {error}"), fix },
        };
        loop {
            match started.child.event().await {
                ChildEvent::Started => {}
                ChildEvent::Ended(ExitStatus::Code(0)) => {
                    return Finding::Ok("servers can be started and are ended with the proxy".into());
                }
                event => {
                    return Finding::Fail {
                        what: format!("a process could not be run under the guard: {event:?}"),
                        fix,
                    };
                }
            }
        }
    }))
}

/// Takes the address where clients of HTTP find a listener by default, and lets it go again.
fn port(address: SocketAddr) -> Finding {
    let fix = || "give --listen-port PORT; 0 takes any free one".to_owned();
    match TcpListener::bind(address) {
        Ok(_) => Finding::Ok(format!("{address} can be listened on")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            Finding::Warn { what: format!("{address} is taken by another program"), fix: fix() }
        }
        Err(error) => Finding::Warn { what: format!("{address} cannot be listened on: {error}"), fix: fix() },
    }
}

/// What the certificates of https:// servers are checked with.
fn certificates() -> Finding {
    let (roots, unreadable) = tls::system_roots();
    if roots.is_empty() {
        return Finding::Warn {
            what: "this system has none, so servers at https:// cannot be trusted".into(),
            fix: "install the system's CA certificates, or give --ca-file FILE".into(),
        };
    }
    let left_out = if unreadable > 0 { format!(", {unreadable} cannot be read") } else { String::new() };
    Finding::Ok(format!("{} of the system are trusted{left_out}", roots.len()))
}

/// Client configs name a program; a different one earlier on the PATH would be started instead.
fn program() -> Finding {
    let own = std::env::current_exe().and_then(std::fs::canonicalize).ok();
    let version = env!("CARGO_PKG_VERSION");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let first = std::env::split_paths(&path).map(|dir| dir.join("mcp-proxy")).find(|candidate| candidate.is_file());
    let shown = own.as_deref().map(|own| own.display().to_string()).unwrap_or_else(|| "mcp-proxy".into());
    match first {
        Some(first) if std::fs::canonicalize(&first).ok() == own => Finding::Ok(format!("{version}, {shown}")),
        Some(first) => Finding::Warn {
            what: format!("{version}, but `mcp-proxy` on the PATH is {}", first.display()),
            fix: format!("name {shown} in client configs"),
        },
        None => Finding::Warn {
            what: format!("{version}, not on the PATH"),
            fix: format!("name {shown} in client configs"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_deserves_a_word() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        assert!(matches!(port(any), Finding::Ok(_)));
        let other = TcpListener::bind(any).expect("a free port");
        let taken = other.local_addr().expect("it has an address");
        let Finding::Warn { what, fix } = port(taken) else { panic!("the port is taken") };
        assert_eq!(what, format!("{taken} is taken by another program"));
        assert!(fix.contains("--listen-port"), "{fix}");
    }
}
