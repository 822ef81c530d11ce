//! A terminal, and programs that a shell runs on it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, OutputModes, Winsize, tcgetattr, tcsetattr, tcsetwinsize};
use serde_json::Value;

use crate::kit::{Sandbox, fixture_program, proxy_program, signal, until, wait};

/// A terminal with somebody who looks at it.
pub struct Terminal {
    keys: File,
    /// What the programs on it are given.
    theirs: File,
    shown: Arc<Mutex<Vec<u8>>>,
}

/// Where a program is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    InFront,
    Behind,
}

impl Terminal {
    /// Lines are given to programs whole; nothing is echoed, and nothing that is written is changed.
    pub fn open() -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
        let mut options = std::fs::OpenOptions::new();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, rustix::fs::OFlags::NOCTTY.bits().cast_signed());
        let theirs = options.read(true).write(true).open(name).unwrap();
        let mut modes = tcgetattr(&theirs).unwrap();
        modes.local_modes.remove(LocalModes::ECHO);
        modes.output_modes.remove(OutputModes::OPOST);
        tcsetattr(&theirs, OptionalActions::Now, &modes).unwrap();
        let keys = File::from(ours);
        let (mut screen, shown) = (keys.try_clone().unwrap(), Arc::new(Mutex::new(Vec::new())));
        std::thread::spawn({
            let shown = Arc::clone(&shown);
            move || {
                let mut piece = [0; 4096];
                while let Ok(count @ 1..) = screen.read(&mut piece) {
                    shown.lock().unwrap().extend_from_slice(&piece[..count]);
                }
            }
        });
        Self { keys, theirs, shown }
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.theirs, size).unwrap();
    }

    pub fn types(&self, bytes: &[u8]) {
        (&self.keys).write_all(bytes).unwrap();
    }

    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    /// How it treats what is typed and written.
    pub fn modes(&self) -> String {
        let modes = tcgetattr(&self.theirs).unwrap();
        format!("{:?}", (modes.input_modes, modes.output_modes, modes.control_modes, modes.local_modes))
    }

    pub fn end(&self) -> Stdio {
        Stdio::from(OwnedFd::from(self.theirs.try_clone().unwrap()))
    }

    /// `mcp-proxy ARGS` on this terminal, as a shell would start it.
    pub fn start<I: AsRef<OsStr>>(
        &self,
        sandbox: &Sandbox,
        ground: Ground,
        args: impl IntoIterator<Item = I>,
    ) -> OnTerminal {
        let mut command = shell(sandbox, ground, args);
        command.stdin(self.end()).stdout(self.end()).stderr(self.end());
        OnTerminal(Some(command.spawn().unwrap()))
    }
}

/// What a shell would run; its streams are to be given.
pub fn shell<I: AsRef<OsStr>>(sandbox: &Sandbox, ground: Ground, args: impl IntoIterator<Item = I>) -> Command {
    let mut command = Command::new(fixture_program());
    command.arg(if ground == Ground::InFront { "in-front" } else { "behind" }).arg(proxy_program()).args(args);
    command.current_dir(sandbox.path("")).env("HOME", sandbox.path("")).env("TERM", "xterm-256color");
    command.env_remove("MCP_PROXY_STATE_DIR").env("NO_COLOR", "1");
    command
}

/// A program on a terminal. It is gone when this is.
pub struct OnTerminal(Option<Child>);

impl OnTerminal {
    pub fn new(child: Child) -> Self {
        Self(Some(child))
    }

    pub fn pid(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    /// Its code, once it has ended by itself.
    #[track_caller]
    pub fn code(mut self) -> Option<i32> {
        wait(self.0.take().unwrap()).code()
    }

    /// The same, after it was told to end.
    #[track_caller]
    pub fn terminated(self) -> Option<i32> {
        signal(self.pid(), rustix::process::Signal::TERM);
        self.code()
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Sandbox {
    /// The only instance that runs, once it answers.
    #[track_caller]
    pub fn shown_instance(&self) -> Value {
        let mut instance = Value::Null;
        until("an instance answers", || {
            let lines = self.stdout(["ps", "--json"]);
            instance = lines.lines().next().map_or(Value::Null, |line| serde_json::from_str(line).unwrap());
            instance["answers"] == true
        });
        instance
    }
}
