//! The store when the disk, the directory or a file is not as it should be.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::kit::{Running, Sandbox, fixture_program, recorded};

/// A proxy whose files may grow to `bytes` and no further: a disk that is full.
fn run_on_a_full_disk(sandbox: &Sandbox, flags: &str, bytes: u64) -> Running {
    let program = crate::kit::proxy_program();
    let script = format!(
        "trap '' XFSZ; ulimit -S -f {}; exec {} run --quiet {flags} -- {} answer",
        bytes / 1024,
        program.display(),
        fixture_program().display()
    );
    let mut command = std::process::Command::new("bash");
    command.args(["-c", &script]).env("HOME", sandbox.path("")).current_dir(sandbox.path(""));
    Running::start(command)
}

#[test]
fn a_full_disk_is_said_once_and_traffic_goes_on_and_recording_resumes() {
    let sandbox = Sandbox::new();
    let mut proxy = run_on_a_full_disk(&sandbox, "", 4096);
    for id in 0..200 {
        proxy.ask(id, "on/a/full/disk");
    }
    let room = Rlimit { current: None, maximum: None };
    prlimit(Pid::from_raw(proxy.pid().cast_signed()), Resource::Fsize, room).unwrap();
    for id in 200..210 {
        proxy.ask(id, "there/is/room");
    }
    let (status, errors) = proxy.end();
    assert!(status.success(), "{errors}");
    assert_eq!(errors.matches("cannot be written").count(), 1, "{errors}");
    assert_eq!(errors.matches("can be written again").count(), 1, "{errors}");
    let messages = recorded(&sandbox.segments()[0]);
    assert!(
        messages.len() < 420
            && messages.iter().any(|message| message.raw.windows(13).any(|text| text == b"there/is/room"))
    );
    let shown = sandbox.stdout(["inspect", &session_id(&sandbox)]);
    assert!(shown.contains("messages passed while the disk could not be written"), "{shown}");
}

fn session_id(sandbox: &Sandbox) -> String {
    sandbox.segments()[0].file_stem().unwrap().to_string_lossy()[..8].to_owned()
}

#[test]
fn a_full_disk_stops_the_proxy_if_nothing_may_pass_unrecorded() {
    for flags in ["--evidence strict", "--on-store-failure stop"] {
        let sandbox = Sandbox::new();
        let mut proxy = run_on_a_full_disk(&sandbox, flags, 4096);
        let requests: Vec<u8> =
            (0..200).flat_map(|id| format!("{{\"id\":{id},\"method\":\"on/a/full/disk\"}}\n").into_bytes()).collect();
        // The proxy stops reading as soon as the store fails.
        let writer = proxy.send_from_behind(requests);
        let answers: Vec<serde_json::Value> =
            proxy.rest().iter().map(|line| serde_json::from_slice(line).unwrap()).collect();
        drop(writer.join().unwrap());
        let refused = answers.iter().filter(|answer| answer["error"]["code"] == 5070).count();
        assert!(refused > 0, "{flags}: {} answers", answers.len());
        let ids: std::collections::HashSet<_> = answers.iter().map(|answer| answer["id"].as_u64()).collect();
        assert_eq!(ids.len(), answers.len(), "no call is answered twice");
        if flags == "--evidence strict" {
            let kept = recorded(&sandbox.segments()[0])
                .iter()
                .filter(|message| message.direction == mcp_store::Direction::ServerToClient)
                .count();
            assert!(answers.len() - refused <= kept, "nothing passed unrecorded");
        }
        let (status, errors) = proxy.end();
        assert_eq!(status.code(), Some(3), "{errors}");
        assert!(
            errors.contains("the recording cannot be written") && errors.contains("hint: free some space"),
            "{errors}"
        );
    }
}

#[test]
fn a_store_that_cannot_be_made_is_said_and_traffic_goes_on() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path(".local"), "in the way").unwrap();
    let mut proxy = sandbox.run(&["--quiet"], &["answer"]);
    proxy.ask(1, "hello");
    let (status, errors) = proxy.end();
    assert!(status.success() && errors.contains("warning: nothing is recorded"), "{errors}");
    let refused = sandbox.output(["run", "--on-store-failure", "stop", "--", "true"]);
    assert_eq!(refused.status.code(), Some(3));
}

#[test]
fn recordings_are_private_whatever_the_umask() {
    let sandbox = Sandbox::new();
    let script = format!(
        "umask 000; exec {} run --quiet --session-file s.json -- {} answer",
        crate::kit::proxy_program().display(),
        fixture_program().display()
    );
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).env("HOME", sandbox.path("")).current_dir(sandbox.path(""));
    let mut proxy = Running::start(command);
    proxy.ask(1, "hello");
    assert!(proxy.end().0.success());
    sandbox.stdout(["sessions", "list"]);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let state = sandbox.state();
    assert_eq!(mode(state.root()), 0o700);
    assert_eq!(mode(&state.sessions()), 0o700);
    for file in [sandbox.segments()[0].clone(), sandbox.path("s.json"), state.catalogue()] {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn a_state_directory_that_others_may_use_is_refused_and_left_as_it_is() {
    let sandbox = Sandbox::new();
    let shared = sandbox.path("shared");
    std::fs::create_dir(&shared).unwrap();
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o755)).unwrap();
    let output =
        sandbox.output(["run", "--on-store-failure", "stop", "--state-dir", shared.to_str().unwrap(), "--", "true"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("closed to others"), "{output:?}");
    assert_eq!(std::fs::metadata(&shared).unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn a_disk_that_stays_full_does_not_change_the_servers_code() {
    let sandbox = Sandbox::new();
    let mut proxy = run_on_a_full_disk(&sandbox, "", 4096);
    for id in 0..50 {
        proxy.ask(id, "on/a/full/disk");
    }
    let (status, errors) = proxy.end();
    assert!(status.success() && errors.contains("the end of the recording cannot be written"), "{status}: {errors}");
}

#[test]
fn a_session_file_is_put_over_nothing_but_a_session_file() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("precious"), "precious").unwrap();
    std::os::unix::fs::symlink(sandbox.path("precious"), sandbox.path("link")).unwrap();
    for (file, reason) in [
        ("precious", "not a session file"),
        ("link", "not a plain file"),
        ("/dev/null", "not a plain file"),
        ("precious/s.json", "its directory cannot be made"),
    ] {
        let output = sandbox.output(["run", "--session-file", file, "--", "true"]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{file}: {errors}");
        assert!(errors.contains(reason), "{file}: {errors}");
    }
    assert_eq!(std::fs::read_to_string(sandbox.path("precious")).unwrap(), "precious");
    assert!(std::fs::symlink_metadata(sandbox.path("link")).unwrap().is_symlink());
}

#[test]
fn a_session_file_that_exists_is_replaced_only_by_force() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.run(&["--quiet", "--no-record", "--session-file", "s.json"], &["answer"]);
    proxy.ask(1, "precious");
    assert!(proxy.end().0.success());
    for more in [&[] as &[&str], &["--no-record"]] {
        let server = ["--", "touch", "started"];
        let output = sandbox.output([&["run", "--session-file", "s.json"], more, &server].concat());
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{more:?}: {errors}");
        assert!(errors.contains("s.json exists already\n\nhint: --force replaces it"), "{more:?}: {errors}");
        assert!(!sandbox.path("started").exists(), "{more:?}: the server started");
    }
    assert!(sandbox.stdout(["inspect", "s.json"]).contains("#002 ← precious id=1"));
    assert!(sandbox.output(["run", "--session-file", "s.json", "--force", "--", "true"]).status.success());
    assert!(!std::fs::read_to_string(sandbox.path("s.json")).unwrap().contains("precious"));
    // That run had no messages, and neither has one whose server cannot be started.
    assert!(!sandbox.output(["run", "--session-file", "s.json", "--", "./nonesuch"]).status.success());
    assert!(sandbox.output(["run", "--session-file", "s.json", "--", "true"]).status.success());
}

#[test]
fn the_directories_of_a_session_file_are_made() {
    let sandbox = Sandbox::new();
    let output = sandbox.output(["run", "--session-file", "not/yet/there/s.json", "--", "true"]);
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(sandbox.path("not/yet/there/s.json")).unwrap();
    assert!(text.contains("\"ended_at\": \""), "{text}");
    for dir in ["not", "not/yet", "not/yet/there"] {
        assert_eq!(std::fs::metadata(sandbox.path(dir)).unwrap().permissions().mode() & 0o777, 0o700, "{dir}");
    }
}

/// Metadata of another program goes through the store and comes out as it was.
#[test]
fn metadata_that_is_no_text_survives_import_and_export() {
    let sandbox = Sandbox::new();
    let metadata = r#"{"list":[1,"a b",null],"nothing":null,"number":12345678901234567890.50,"object":{"a":{"b":true}},"text":"7","yes":true}"#;
    let file = |metadata: &str| {
        format!(
            r#"{{"id":"7f3a9a52-0c3f-4d34-9b0e-1f2e3d4c5b6a","started_at":"2026-11-15T10:00:00Z",
                "ended_at":"2026-11-15T10:00:01Z","messages":[],"metadata":{metadata}}}"#
        )
    };
    let spaced = metadata.replace(':', " :\n  ");
    std::fs::write(sandbox.path("s.json"), file(&spaced)).unwrap();
    sandbox.stdout(["sessions", "import", "s.json"]);
    let kept = |text: &str| {
        let (_, rest) = text.split_once("\"metadata\":").expect("it has metadata");
        rest.trim_end().strip_suffix('}').expect("it is the last member").replace("\n    ", "").replace("\n  }", "}")
    };
    sandbox.stdout(["export", "7f3a9a52", "-o", "out.json"]);
    let out = std::fs::read_to_string(sandbox.path("out.json")).unwrap();
    assert_eq!(kept(&out).trim().replace("\": ", "\":"), metadata);
    let lines = sandbox.stdout(["export", "7f3a9a52", "--output-format", "ndjson", "--no-redact"]);
    assert_eq!(kept(lines.lines().next().unwrap()), metadata);
    sandbox.stdout(["sessions", "note", "7f3a9a52", "yes=no"]);
    assert!(sandbox.stdout(["sessions", "show", "7f3a9a52"]).contains("object = {\"a\":{\"b\":true}}"));
    let noted = sandbox.stdout(["export", "7f3a9a52", "--output-format", "ndjson", "--no-redact"]);
    assert!(noted.contains(r#""yes":"no""#) && noted.contains(r#""text":"7""#), "{noted}");
}

#[test]
fn a_server_that_does_not_start_leaves_a_session_that_says_so() {
    let sandbox = Sandbox::new();
    let output = sandbox.output(["run", "--session-file", "s.json", "--", "no-such-program-anywhere"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(sandbox.stdout(["sessions", "list"]).contains("ended"));
    assert!(sandbox.stdout(["inspect", &session_id(&sandbox)]).contains("server: could not be started"));
    assert!(std::fs::read_to_string(sandbox.path("s.json")).unwrap().contains("\"ended_at\": \""));
}

fn record_something(sandbox: &Sandbox) -> std::path::PathBuf {
    let mut proxy = sandbox.run(&["--quiet"], &["answer"]);
    for id in 0..20 {
        proxy.ask(id, "hello");
    }
    assert!(proxy.end().0.success());
    sandbox.segments().pop().unwrap()
}

#[test]
fn a_torn_tail_is_cut_and_said() {
    let sandbox = Sandbox::new();
    let segment = record_something(&sandbox);
    // Cut into the last message, as a kill in the middle of a write does.
    let messages = recorded(&segment);
    let last = &messages.last().unwrap().raw;
    let bytes = std::fs::read(&segment).unwrap();
    let at = bytes.windows(last.len()).rposition(|window| window == &last[..]).unwrap();
    std::fs::write(&segment, &bytes[..at + 5]).unwrap();
    let shown = sandbox.output(["inspect", &session_id(&sandbox)]);
    let said = String::from_utf8_lossy(&shown.stderr).into_owned();
    assert!(
        shown.status.success() && said.contains("was interrupted; its 39 messages are whole, a torn tail was cut"),
        "{said}"
    );
    assert_eq!(recorded(&segment).len(), 39);
    let again = sandbox.output(["inspect", &session_id(&sandbox)]);
    assert!(again.stderr.is_empty(), "it is said once");
}

#[test]
fn a_damaged_record_is_passed_over_and_said() {
    let sandbox = Sandbox::new();
    let segment = record_something(&sandbox);
    let mut bytes = std::fs::read(&segment).unwrap();
    let at = bytes.windows(8).position(|window| window == b"\"method\"").unwrap();
    bytes[at + 2] ^= 0xff;
    std::fs::write(&segment, &bytes).unwrap();
    let shown = sandbox.stdout(["inspect", segment.to_str().unwrap()]);
    assert!(shown.contains("1 damaged records were passed over") && shown.contains("#040"), "{shown}");
}

#[test]
fn what_is_no_session_is_refused_clearly() {
    let sandbox = Sandbox::new();
    for (content, reason) in [
        ("", "EOF"),
        ("{}", "missing field"),
        ("MCPSEG01xxxx", "too short"),
        ("hello", "expected value"),
        ("{\"id\":\"x\",\"started_at\":\"2026-01-01T00:00:00Z\",\"messages\":[]}", "not a UUID"),
    ] {
        std::fs::write(sandbox.path("file"), content).unwrap();
        let output = sandbox.output(["inspect", "file"]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{content}: {errors}");
        assert!(errors.contains("is not a session") && errors.contains(reason), "{content}: {errors}");
    }
}

#[test]
fn a_damaged_catalogue_is_filled_anew() {
    let sandbox = Sandbox::new();
    record_something(&sandbox);
    sandbox.stdout(["sessions", "list"]);
    let mut file = std::fs::OpenOptions::new().write(true).open(sandbox.state().catalogue()).unwrap();
    file.write_all(&[0x55; 4096]).unwrap();
    let output = sandbox.output(["sessions", "list"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("filled anew"), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("ended"));
}

#[test]
fn several_instances_record_at_once() {
    let sandbox = Sandbox::new();
    let mut proxies: Vec<Running> = (0..8).map(|_| sandbox.run(&["--quiet"], &["answer"])).collect();
    for proxy in &mut proxies {
        proxy.ask(1, "hello");
    }
    let listed = sandbox.stdout(["sessions", "list"]);
    assert_eq!(listed.matches("running").count(), 8, "{listed}");
    let refused = sandbox.output(["sessions", "rm", &session_id(&sandbox)]);
    assert_eq!(refused.status.code(), Some(1), "a session that is being recorded is not removed");
    for proxy in proxies {
        assert!(proxy.end().0.success());
    }
    assert_eq!(sandbox.stdout(["sessions", "list"]).matches("ended").count(), 8);
}
