//! No process outlives its proxy, however either of them ends.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::kit::{Running, Sandbox, descriptors, fixture_program, marked_processes, until};

const RUNS: usize = 200;
const AT_ONCE: usize = 16;
const LOOKS: usize = 20;

/// A shell that starts a shell that starts a grandchild deaf to SIGTERM, one in a session of its
/// own, and the server. All hold the server's output open.
fn tree_script() -> String {
    let fixture = fixture_program();
    let deaf = r#"sh -c "trap '' TERM; while :; do sleep 600; done" &"#;
    let apart = r#"setsid sh -c "while :; do sleep 600; done" &"#;
    format!("sh -c '{} {apart} {} answer'; exit $?", deaf.replace('\'', r#"'\''"#), fixture.display())
}

fn start_tree(sandbox: &Sandbox, mark: &str) -> Running {
    let mut command = sandbox.command(["run", "--quiet", "--", "sh", "-c", &tree_script()]);
    command.env("MCP_TEST_MARK", mark);
    let mut proxy = Running::start(command);
    proxy.ask(1, "hello");
    proxy
}

#[test]
fn two_hundred_trees_leave_nothing_behind() {
    let mark = format!("MCP_TEST_MARK={}", uuid::Uuid::new_v4());
    let value = &mark["MCP_TEST_MARK=".len()..];
    let next = AtomicUsize::new(0);
    let counts = std::sync::Mutex::new(std::collections::BTreeSet::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                let sandbox = Sandbox::new();
                loop {
                    let run = next.fetch_add(1, Ordering::Relaxed);
                    if run >= RUNS {
                        return;
                    }
                    let mut proxy = start_tree(&sandbox, value);
                    // A face that looked in may not be gone yet, so the fewest of a few looks count.
                    let fewest = (0..LOOKS).map(|_| descriptors(proxy.pid())).min().unwrap();
                    counts.lock().unwrap().insert(fewest);
                    match run % 3 {
                        0 => proxy.kill(),
                        1 => proxy.close_stdin(),
                        _ => proxy.terminate(),
                    }
                    let (status, errors) = proxy.end();
                    match run % 3 {
                        0 => assert!(!status.success()),
                        1 => assert!(status.success(), "{status}: {errors}"),
                        // The server may end by itself before the signal reaches it.
                        _ => assert!(matches!(status.code(), Some(143 | 0)), "{status}: {errors}"),
                    }
                }
            });
        }
    });
    until("the last killed proxy's tree is gone", || marked_processes(&mark).is_empty());
    let counts = counts.into_inner().unwrap();
    assert_eq!(counts.len(), 1, "every run holds as many descriptors as the first: {counts:?}");
}

#[test]
fn an_orderly_end_is_not_over_before_the_tree_is_gone() {
    for end in [Running::close_stdin, |proxy: &mut Running| proxy.terminate()] {
        let sandbox = Sandbox::new();
        let mark = format!("MCP_TEST_MARK={}", uuid::Uuid::new_v4());
        let mut proxy = start_tree(&sandbox, &mark["MCP_TEST_MARK=".len()..]);
        assert!(marked_processes(&mark).len() >= 6, "the whole tree is there");
        end(&mut proxy);
        proxy.end();
        assert_eq!(marked_processes(&mark), Vec::<u32>::new());
    }
}

#[test]
fn orphans_of_a_living_server_do_not_stay_as_zombies() {
    let sandbox = Sandbox::new();
    let script =
        format!("for i in 1 2 3 4 5 6 7 8; do (sh -c 'exit 0' & ) ; done; exec {} answer", fixture_program().display());
    let mut proxy = sandbox.run_script(&["--quiet"], &script);
    proxy.ask(1, "hello");
    let guard = children_of(proxy.pid()).into_iter().next().expect("the proxy has a guard");
    until("only the server is left below the guard", || children_of(guard).len() == 1);
    proxy.ask(2, "still there");
    assert!(proxy.end().0.success());
}

fn children_of(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

#[test]
fn a_killed_guard_takes_the_server_with_it_and_the_client_is_told() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&["--quiet"], &["answer"]);
    proxy.ask(1, "hello");
    proxy.request(2, "ignore/this");
    let guard = children_of(proxy.pid()).into_iter().next().expect("the proxy has a guard");
    crate::kit::signal(guard, rustix::process::Signal::KILL);
    assert_eq!(proxy.json()["error"]["code"], 5030);
    assert_eq!(proxy.end().0.code(), Some(1));
}

#[test]
fn the_guard_survives_what_kills_the_proxys_group() {
    use std::os::unix::process::CommandExt;
    let sandbox = Sandbox::new();
    let mark = format!("MCP_TEST_MARK={}", uuid::Uuid::new_v4());
    let mut command = sandbox.command(["run", "--quiet", "--", "sh", "-c", &tree_script()]);
    command.env("MCP_TEST_MARK", &mark["MCP_TEST_MARK=".len()..]).process_group(0);
    let mut proxy = Running::start(command);
    proxy.ask(1, "hello");
    let group = rustix::process::Pid::from_raw(proxy.pid().cast_signed()).unwrap();
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
    drop(proxy);
    until("the tree is gone", || marked_processes(&mark).is_empty());
}
