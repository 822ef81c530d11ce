//! Makes a proxy an instance: messages can be held on their way, and faces can attach to it.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use clap::{Args, ValueEnum};
use mcp_engine::intercept::{self, HOLD_FOR, Mode, Owner};
use mcp_engine::pipeline::wall_ns;
use mcp_engine::{Bus, HoldOptions, Intercept, Pipeline, Recorder, commands};
use mcp_filter::Filter;
use mcp_store::StateDir;
use uuid::Uuid;

use crate::cli::{Listen, RecordingArgs};
use crate::control::{self, Card, Control, Setup};
use crate::failure::{Failure, exit};
use crate::plan::ServerSide;
use crate::policy::{Governing, Site};
use crate::report::say;

/// What both forms of the proxy take.
#[derive(Args, Clone, Default)]
pub struct HoldArgs {
    /// Hold every message while a face is in control; from a shell, `mcp-proxy hold on` does it
    #[arg(long)]
    pub intercept: bool,
    /// Hold messages that match while a face is in control; from a shell, `mcp-proxy break add` does it;
    /// see `mcp-proxy help filter`
    #[arg(long = "break", value_name = "FILTER")]
    pub breakpoints: Vec<String>,
    /// How long a message is held at most; then it goes on, or is denied if a rule asks about it; 0 for
    /// ever [default: 45]
    #[arg(long, value_name = "SECONDS", value_parser = hold_for)]
    pub hold_timeout: Option<Duration>,
    /// What becomes of held messages when the face that held them leaves; with `error`, whoever waits is
    /// told [default: forward]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub on_detach: Option<OnDetach>,
    /// Hold what the client sends until a face attaches
    #[arg(long)]
    pub wait_for_face: bool,
    /// Serve the control API on this port of 127.0.0.1 too, with a token; 0 takes any free one
    #[arg(long, value_name = "PORT")]
    pub control_port: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnDetach {
    Forward,
    Error,
    Drop,
}

/// What is found out before anything is recorded.
pub struct Holding {
    options: HoldOptions,
    mode: Mode,
    breakpoints: Vec<Filter>,
    tcp: Option<TcpListener>,
    governing: Option<Governing>,
    /// A face begins with the proxy.
    is_drawn: bool,
}

impl HoldArgs {
    /// Filters that cannot be read and busy ports are found here.
    pub fn check(&self, governing: Option<Governing>) -> Result<Holding, Failure> {
        let breakpoints = self.breakpoints.iter().map(|filter| Filter::parse(filter)).collect::<Result<_, _>>()?;
        let limit = self.hold_timeout.unwrap_or(HOLD_FOR);
        let options = HoldOptions {
            limit: (!limit.is_zero()).then_some(limit),
            on_detach: match self.on_detach {
                Some(OnDetach::Forward) | None => intercept::OnDetach::Forward,
                Some(OnDetach::Error) => intercept::OnDetach::Error,
                Some(OnDetach::Drop) => intercept::OnDetach::Drop,
            },
            wait_for_face: self.wait_for_face,
            server: None,
        };
        let mode = if self.intercept { Mode::Intercept } else { Mode::Passthrough };
        Ok(Holding {
            options,
            mode,
            breakpoints,
            tcp: self.control_port.map(bind).transpose()?,
            governing,
            is_drawn: false,
        })
    }
}

fn bind(port: u16) -> Result<TcpListener, Failure> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let bound = TcpListener::bind(address).and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    bound.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => Failure::new(exit::CANNOT_RUN, format!("port {port} is taken ({address})"))
            .hint("end the program that uses it, or give another --control-port; port 0 takes any free one"),
        _ => Failure::new(exit::CANNOT_RUN, format!("cannot listen on {address}: {error}")),
    })
}

impl Holding {
    pub fn drawn(self, is_drawn: bool) -> Self {
        Self { is_drawn, ..self }
    }

    /// A pipeline whose messages can be held, and the endpoint that faces attach to.
    pub fn begin(
        self,
        recorder: Recorder,
        server: &ServerSide,
        client: Listen,
        state: Option<StateDir>,
        args: &RecordingArgs,
    ) -> Result<(Pipeline, Option<Control>), Failure> {
        let card = Card {
            id: recorder.current().map_or_else(Uuid::new_v4, |(header, _)| header.id),
            started_ns: recorder.current().map_or_else(wall_ns, |(header, _)| header.started_ns),
            name: args.name.clone(),
            server_command: server.command(),
            server_url: server.url(),
            transport: server.transport(),
            listen: match client {
                Listen::Stdio => "stdio".into(),
                Listen::At(address) => address.to_string(),
            },
        };
        let short_id = card.id.to_string()[..8].to_owned();
        let shown = card.name.as_ref().or(card.server_command.as_ref()).or(card.server_url.as_ref());
        let mut intercept =
            Intercept::new(HoldOptions { server: shown.map(|shown| shown.as_str().into()), ..self.options });
        let needs_face = face_needed(self.mode, &self.breakpoints).filter(|_| !args.quiet && !self.is_drawn);
        intercept.set_mode(self.mode, Owner::Start);
        for filter in self.breakpoints {
            intercept.add(None, filter, Owner::Start).map_err(|error| Failure::usage(error.to_string()))?;
        }
        let (bus, (sender, commands)) = (Bus::default(), commands());
        let instance = card.id;
        let name = card.name.clone();
        let mut setup = Setup {
            card,
            state: state.as_ref().map(|state| state.root().to_owned()),
            tcp: self.tcp,
            commands: sender.clone(),
            bus: bus.clone(),
            is_recorded: recorder.is_on(),
            message_bytes_max: args.message_limit,
            rules_file: self.governing.as_ref().map(|governing| governing.file().to_owned()),
            board: server.board(),
            questions: None,
        };
        let mut pipeline = Pipeline::new(recorder, bus, args.message_limit).governed_from(commands, intercept);
        if let Some(governing) = self.governing {
            let state = state.ok_or_else(|| Failure::new(exit::CANNOT_RUN, "there is no place to keep an audit"))?;
            let server = name.as_deref();
            let site = Site { instance, server, state: &state, commands: sender, quiet: args.quiet };
            pipeline = governing.begin(pipeline, site)?;
            if !args.quiet {
                let (tell, questions) = control::voice(&short_id);
                pipeline.questions.tell(tell);
                setup.questions = Some(questions);
            }
        }
        match Control::start(setup) {
            Ok(control) => {
                needs_face.iter().for_each(|needs| say(&format!("mcp-proxy {short_id}: {needs}")));
                Ok((pipeline, Some(control)))
            }
            Err(error) => {
                say(&format!("mcp-proxy: warning: nobody can attach to this instance: {error}"));
                Ok((pipeline, None))
            }
        }
    }
}

/// What those learn who expect that these flags alone hold something.
fn face_needed(mode: Mode, breakpoints: &[Filter]) -> Option<&'static str> {
    match (mode, breakpoints) {
        (Mode::Intercept, _) => {
            Some("--intercept holds only while a face is in control; from a shell use `mcp-proxy hold on`")
        }
        (Mode::Passthrough, [_, ..]) => {
            Some("--break holds only while a face is in control; from a shell use `mcp-proxy break add`")
        }
        (Mode::Passthrough, []) => None,
    }
}

fn hold_for(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) if (0.0..=86_400.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("expected a number of seconds, up to a day, or 0".into()),
    }
}
