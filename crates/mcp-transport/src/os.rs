//! What processes and pipes need from the operating system: the one place for code that differs
//! between systems, and but for the program's allocator the only unsafe code there is.
#![expect(
    unsafe_code,
    reason = "between fork and exec, where a descriptor's ownership must be promised, and what only libc offers"
)]

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::FdFlags;
use tokio::io::unix::AsyncFd;

/// The program that is running, even if its file was replaced since.
pub fn own_program() -> io::Result<OsString> {
    if cfg!(target_os = "linux") {
        return Ok("/proc/self/exe".into());
    }
    Ok(std::env::current_exe()?.into())
}

/// Lets the process that `command` starts inherit `socket`, and passes its number as an argument.
pub(crate) fn inherit(command: &mut Command, socket: UnixStream) {
    command.arg(socket.as_raw_fd().to_string());
    // SAFETY: a single fcntl, which may be called between fork and exec.
    unsafe {
        command.pre_exec(move || Ok(rustix::io::fcntl_setfd(&socket, FdFlags::empty())?));
    }
}

/// Takes over a socket that was inherited under this number; nobody the guard starts gets it.
pub(crate) fn inherited(number: RawFd) -> io::Result<UnixStream> {
    if number <= 2 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the guard's parent put exactly one descriptor there, for the guard to own; that it is
    // open is checked by the call that follows.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    Ok(UnixStream::from(socket))
}

/// Closes whatever this process inherited beyond the three standard streams as soon as the server is
/// executed: what a careless client left open is none of the server's business.
pub(crate) fn close_the_rest_on_exec() {
    let Ok(entries) = std::fs::read_dir("/dev/fd") else { return };
    let numbers: Vec<RawFd> = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        // SAFETY: only a flag is set, and that a number is open no longer is reported, not assumed.
        let fd = unsafe { BorrowedFd::borrow_raw(number) };
        let _ = rustix::io::fcntl_setfd(fd, FdFlags::CLOEXEC);
    }
}

/// Puts the server into a session of its own, so that it cannot touch the client's terminal and no
/// signal meant for the client's group reaches it, and has it die with its guard.
pub(crate) fn detach(command: &mut Command) {
    // SAFETY: two system calls that may be made between fork and exec.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            #[cfg(target_os = "linux")]
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
            Ok(())
        });
    }
}

/// Makes orphans of the tree children of this process.
pub(crate) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// A name for process lists.
pub(crate) fn set_name(name: &str) {
    #[cfg(target_os = "linux")]
    if let Ok(name) = std::ffi::CString::new(name) {
        let _ = rustix::thread::set_name(&name);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = name;
}

/// Whether a terminal controls this process, so that closing its window sends SIGHUP.
pub(crate) fn has_controlling_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

/// More room in a pipe, where the system allows it; without it things are slower, not wrong.
pub(crate) fn enlarge_pipe(pipe: BorrowedFd<'_>, bytes: usize) {
    #[cfg(target_os = "linux")]
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, bytes);
    #[cfg(not(target_os = "linux"))]
    let _ = (pipe, bytes);
}

/// Has the system's allocator give memory back as soon as a large buffer is freed. By itself it
/// learns to keep what was once large, and one message of ten megabytes would be held for good.
pub fn give_back_large_buffers() {
    /// A freed buffer above this returns to the system at once, and so does free memory above this at the end of
    /// the heap. Smaller buffers are kept for the next message.
    #[cfg(target_env = "gnu")]
    const THRESHOLD: libc::c_int = 4 << 20;
    #[cfg(target_env = "gnu")]
    // SAFETY: sets two numbers, before any other thread exists.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, THRESHOLD);
        // Setting the first would otherwise fix this one at a size that every burst crosses to and fro.
        libc::mallopt(libc::M_TRIM_THRESHOLD, THRESHOLD);
    }
}

/// Lets go of the code that only starting took, and of the constants beside it: the kernel keeps both for others, and
/// brings back the little that is used again.
pub fn let_go_of_code() {
    #[cfg(target_os = "linux")]
    for (start, end) in untouched_code(&std::fs::read_to_string("/proc/self/smaps").unwrap_or_default()) {
        // SAFETY: the kernel has just said that these pages are as they are in the file, and nothing of ours
        // writes to memory that cannot be written to. Whoever does so from outside finds them as they were made.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_DONTNEED) };
    }
}

/// Where code and constants of the program and its libraries are that nobody has written to, as the kernel tells it.
/// What was written to is in memory or was moved out of it, so both have to be said to be nothing.
#[cfg(target_os = "linux")]
fn untouched_code(smaps: &str) -> Vec<(usize, usize)> {
    let (mut found, mut code, mut clean) = (Vec::new(), None, None);
    for line in smaps.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(first), second) = (words.next(), words.next()) else { continue };
        match first.strip_suffix(':') {
            // What follows is about the mapping before it.
            Some("Anonymous") => clean = code.take().filter(|_| second == Some("0")),
            Some("Swap") => found.extend(clean.take().filter(|_| second == Some("0"))),
            Some(_) => {}
            None => {
                // Offset, device, inode, path.
                let path = words.nth(3).filter(|path| path.starts_with('/'));
                clean = None;
                code = path.filter(|_| matches!(second, Some("r-xp" | "r--p"))).and_then(|_| {
                    let (start, end) = first.split_once('-')?;
                    Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
                });
            }
        }
    }
    found
}

/// Has this process run only when nothing else wants to, where the system knows such a thing.
pub fn stand_back() {
    let _ = rustix::process::nice(19);
    #[cfg(target_os = "linux")]
    // SAFETY: sets how this process is scheduled, by a structure that lives as long as the call.
    unsafe {
        let parameters = libc::sched_param { sched_priority: 0 };
        libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters);
    }
}

/// Has the runtime watch `fd`. Fails for what cannot be waited for, such as a plain file.
pub(crate) fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is the same open descriptor until it is dropped, and the watch owns it.
    Ok(unsafe { AsyncFd::register(fd) }?)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_code_as_it_is_in_its_file_is_let_go_of() {
        let smaps = "\
1000-1800 r--p 00000000 00:1a 77 /opt/x r-xp y/mcp-proxy
Size:                  4 kB
Anonymous:             0 kB
Swap:                  0 kB
SwapPss:               0 kB
1800-2000 r--p 00000800 00:1a 77 /opt/x r-xp y/mcp-proxy
Anonymous:             4 kB
Swap:                  0 kB
2000-5000 r-xp 00001000 00:1a 77 /opt/x r-xp y/mcp-proxy
Rss:                   8 kB
Anonymous:             0 kB
AnonHugePages:         0 kB
Swap:                  0 kB
5000-6000 rw-p 00004000 00:1a 77 /opt/x r-xp y/mcp-proxy
Anonymous:             0 kB
Swap:                  0 kB
6000-9000 r-xp 00000000 00:1a 78 /lib/hooked.so
Anonymous:             4 kB
Swap:                  0 kB
9000-a000 r-xp 00000000 00:00 0
Anonymous:             0 kB
Swap:                  0 kB
b000-c000 r-xp 00000000 00:00 0 [vdso]
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd ex
c000-d000 r--p 00000000 00:1a 78 /lib/moved_out.so
Anonymous:             0 kB
Swap:                  4 kB
SwapPss:               0 kB
d000-e000 r-xp 00000000 00:1a 78 /lib/not_told.so
Anonymous:             0 kB
e000-f000 r-xp 00000000 00:1a 78 /lib/half_told.so
Swap:                  0 kB
";
        assert_eq!(untouched_code(smaps), [(0x1000, 0x1800), (0x2000, 0x5000)]);
        assert!(!untouched_code(&std::fs::read_to_string("/proc/self/smaps").expect("it is there")).is_empty());
        let_go_of_code();
    }
}
