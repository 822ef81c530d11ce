//! Where running instances are found: for each a socket and a description, in one private directory
//! that both sides find from the state directory alone. Some have a second socket, a door for clients. What lies there of an instance that is gone is
//! removed by whoever comes next; what a live one needs is never touched.

mod alive;
mod find;
mod place;
#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use find::FindError;
use place::Place;

/// The ends of the files of an instance. The door's is no longer than the socket's, so that both lie in the
/// same directory.
const DESCRIPTION: &str = "json";
const SOCKET: &str = "sock";
const DOOR: &str = "mcp";
/// A description is a command line and some names; the system allows a command line of 2 MiB.
const DESCRIPTION_BYTES_MAX: u64 = 4 << 20;

/// What is known of an instance without asking it. The rest changes as it runs, and it tells itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    pub id: Uuid,
    pub pid: u32,
    /// When the process began, as the system counts it: a process id is used again, both together are not.
    pub pid_started: Option<u64>,
    pub version: String,
    pub name: Option<String>,
    pub server_command: Option<String>,
    pub server_url: Option<String>,
    pub client_transport: String,
    pub server_transport: String,
    pub started_at: Timestamp,
}

impl Description {
    /// As much of the id as people are shown.
    pub fn short_id(&self) -> String {
        self.id.to_string()[..8].to_owned()
    }

    /// The server as its user gave it: a command or an address.
    pub fn server(&self) -> &str {
        self.server_command.as_deref().or(self.server_url.as_deref()).unwrap_or("unknown")
    }

    /// The process that calls this, for a description of itself.
    pub fn this_process() -> (u32, Option<u64>) {
        let pid = std::process::id();
        (pid, alive::started(pid))
    }
}

/// An instance that runs, as far as can be told without asking it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    pub description: Description,
    pub socket: PathBuf,
}

impl Running {
    /// Where MCP clients on stdio come in, if this instance lets them.
    pub fn door(&self) -> PathBuf {
        self.socket.with_extension(DOOR)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum InstanceError {
    #[error("cannot {what} `{path}`")]
    Io {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{path}` is not a directory of yours that is closed to others")]
    NotPrivate { path: PathBuf },
}

impl InstanceError {
    fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}

/// All instances that share a state directory.
#[derive(Clone, Debug)]
pub struct Instances {
    place: Place,
}

impl Instances {
    pub fn below(state: &Path) -> Self {
        Self { place: Place::below(state) }
    }

    /// Announces an instance, and opens the socket that others reach it by.
    pub fn register(&self, description: &Description) -> Result<(Registration, UnixListener), InstanceError> {
        let registration = self.announce(description)?;
        let listener = listen(&registration.socket)?;
        Ok((registration, listener))
    }

    /// The same, with a door for clients, which comes second. It is open before the socket is.
    pub fn register_with_door(
        &self,
        description: &Description,
    ) -> Result<(Registration, UnixListener, UnixListener), InstanceError> {
        let registration = self.announce(description)?;
        let door = listen(&registration.socket.with_extension(DOOR))?;
        let listener = listen(&registration.socket)?;
        Ok((registration, listener, door))
    }

    fn announce(&self, description: &Description) -> Result<Registration, InstanceError> {
        self.place.prepare()?;
        // Those that died are cleared away now and then; nothing depends on it.
        let _ = self.list();
        let path = self.place.description(&description.id);
        // First the description, then the socket, and at the end the other way round: a socket without a
        // description belongs to nobody.
        let socket = self.place.socket(&description.id)?;
        let file = write(description, self.place.run(), &path)?;
        Ok(Registration { socket, path, _lock: file })
    }

    /// Everything that runs, the oldest first.
    pub fn list(&self) -> Result<Vec<Running>, InstanceError> {
        if !self.place.check()? {
            return Ok(Vec::new());
        }
        let run = self.place.run();
        let mut instances = Vec::new();
        for entry in fs::read_dir(run).map_err(InstanceError::io("read", run))?.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|end| end == DESCRIPTION) {
                instances.extend(self.look_at(&path)?);
            }
        }
        self.clear_orphans()?;
        instances.sort_by_key(|instance: &Running| (instance.description.started_at, instance.description.id));
        Ok(instances)
    }

    /// The instance meant by an id, the beginning of one, or a name; by nothing, if there is only one.
    pub fn find(&self, wanted: Option<&str>) -> Result<Running, FindError> {
        find::find(self.list()?, wanted)
    }

    /// The instance to watch: the newest where none is named, a name fits several, or `last` is asked for.
    /// The second value is how many fit.
    pub fn newest(&self, wanted: Option<&str>) -> Result<(Running, usize), FindError> {
        find::newest(self.list()?, wanted)
    }

    /// The instance that a description is of. One that is gone is cleared away; what cannot be read is
    /// let alone, since a later version may have written it.
    fn look_at(&self, path: &Path) -> Result<Option<Running>, InstanceError> {
        let Some((file, description)) = read(path) else { return Ok(None) };
        if self.place.description(&description.id) != path {
            return Ok(None);
        }
        let instance = Running { socket: self.place.socket(&description.id)?, description };
        if is_live(&instance, &file) {
            return Ok(Some(instance));
        }
        remove(&instance.door());
        remove(&instance.socket);
        remove(path);
        Ok(None)
    }

    /// Removes sockets that no description belongs to and nobody listens on.
    fn clear_orphans(&self) -> Result<(), InstanceError> {
        let Some(sockets) = self.place.sockets()? else { return Ok(()) };
        for entry in fs::read_dir(&sockets).map_err(InstanceError::io("read", &sockets))?.flatten() {
            let path = entry.path();
            let id = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
            let is_socket = path.extension().is_some_and(|end| end == SOCKET || end == DOOR);
            let (true, Some(id)) = (is_socket, id) else { continue };
            // Nobody knocks at a door to see whether somebody is in: that would begin a conversation.
            if !self.place.description(&id).exists() && !alive::listens(&path.with_extension(SOCKET)) {
                remove(&path);
            }
        }
        Ok(())
    }
}

/// Any sign of life counts: the lock that dies with its process, the process itself, an open socket.
/// The process may run where its number means nothing to us, in a container that shares the directory.
fn is_live(instance: &Running, description: &File) -> bool {
    let locked = matches!(description.try_lock_shared(), Err(TryLockError::WouldBlock));
    locked
        || alive::is_running(instance.description.pid, instance.description.pid_started)
        || alive::listens(&instance.socket)
}

/// The description appears whole and already locked, so nobody takes it for that of a dead instance.
fn write(description: &Description, run: &Path, path: &Path) -> Result<File, InstanceError> {
    let cannot = |error| InstanceError::io("write", path)(error);
    let mut file = tempfile::Builder::new().prefix(".").tempfile_in(run).map_err(cannot)?;
    let json = serde_json::to_vec_pretty(description).expect("plain data always serialises");
    file.write_all(&json).map_err(cannot)?;
    // Where files cannot be locked, the process tells whether it lives.
    let _ = file.as_file().try_lock();
    file.persist_noclobber(path).map_err(|error| cannot(error.error))
}

/// The directory keeps others out already; the mode is for those who look at the file alone.
fn listen(path: &Path) -> Result<UnixListener, InstanceError> {
    let listen = || {
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    listen().map_err(InstanceError::io("listen on", path))
}

fn read(path: &Path) -> Option<(File, Description)> {
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32).open(path).ok()?;
    let mut json = Vec::new();
    (&file).take(DESCRIPTION_BYTES_MAX).read_to_end(&mut json).ok()?;
    Some((file, serde_json::from_slice(&json).ok()?))
}

/// Somebody else may have been quicker.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}

/// An instance that others can find, for as long as this is held.
#[derive(Debug)]
pub struct Registration {
    socket: PathBuf,
    path: PathBuf,
    _lock: File,
}

impl Registration {
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        remove(&self.socket.with_extension(DOOR));
        remove(&self.socket);
        remove(&self.path);
    }
}
