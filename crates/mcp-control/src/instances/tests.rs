use std::os::unix::fs::{MetadataExt, symlink};
use std::process::{Command, Stdio};

use super::*;

fn state() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o700)).unwrap();
    dir
}

fn description(id: u128, name: Option<&str>) -> Description {
    let (pid, pid_started) = Description::this_process();
    Description {
        id: Uuid::from_u128(id),
        pid,
        pid_started,
        version: "0.0.0".into(),
        name: name.map(str::to_owned),
        server_command: Some("server --flag".into()),
        server_url: None,
        client_transport: "stdio".into(),
        server_transport: "stdio".into(),
        started_at: Timestamp::now(),
    }
}

/// The description of an instance whose process has ended.
fn dead(id: u128) -> Description {
    let mut child = Command::new("true").stdin(Stdio::null()).spawn().unwrap();
    let (pid, pid_started) = (child.id(), alive::started(child.id()));
    child.wait().unwrap();
    Description { pid, pid_started: pid_started.or(Some(1)), ..description(id, None) }
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn an_instance_is_found_while_it_is_registered() {
    let state = state();
    let instances = Instances::below(state.path());
    assert_eq!(instances.list().unwrap(), []);
    let described = description(7, Some("seven"));
    let (registration, listener) = instances.register(&described).unwrap();
    let found = instances.find(None).unwrap();
    assert_eq!(found, Running { description: described, socket: registration.socket().to_owned() });
    for (path, mode) in [(state.path().join("run"), 0o700), (found.socket.clone(), 0o600)] {
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, mode, "{path:?}");
    }
    let description = found.socket.with_extension("json");
    assert_eq!(fs::metadata(description).unwrap().mode() & 0o777, 0o600);
    std::os::unix::net::UnixStream::connect(&found.socket).unwrap();
    listener.accept().unwrap();
    drop(registration);
    assert!(matches!(instances.find(None), Err(FindError::NoneRuns)));
    assert_eq!(names(&state.path().join("run")), [""; 0]);
}

#[test]
fn a_door_lies_beside_the_socket_and_is_as_private() {
    let state = state();
    let instances = Instances::below(state.path());
    let (registration, _socket, door) = instances.register_with_door(&description(7, None)).unwrap();
    let found = instances.find(None).unwrap();
    assert_eq!(found.door().parent(), found.socket.parent());
    assert_eq!(fs::metadata(found.door()).unwrap().mode() & 0o777, 0o600);
    // Whoever looks for instances does not come in.
    assert_eq!(door.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    std::os::unix::net::UnixStream::connect(found.door()).unwrap();
    door.accept().unwrap();
    drop(registration);
    assert_eq!(names(&state.path().join("run")), [""; 0]);
}

#[test]
fn an_instance_is_meant_by_id_beginning_or_name() {
    let state = state();
    let instances = Instances::below(state.path());
    let one = description(0xabc0_0000_0000_0000_0000_0000_0000_0001, Some("same"));
    let two = description(0xabd0_0000_0000_0000_0000_0000_0000_0002, Some("same"));
    let three = description(0xdef0_0000_0000_0000_0000_0000_0000_0003, Some("other"));
    let _held: Vec<_> = [&one, &two, &three].map(|it| instances.register(it).unwrap()).into();
    let found = |wanted: &str| instances.find(Some(wanted)).map(|found| found.description.id);
    assert_eq!(found("abc").unwrap(), one.id);
    assert_eq!(found("ABD").unwrap(), two.id);
    assert_eq!(found(&three.id.to_string()).unwrap(), three.id);
    assert_eq!(found("other").unwrap(), three.id);
    let candidates = |wanted: Option<&str>| instances.find(wanted).unwrap_err().candidates().len();
    assert_eq!(candidates(Some("ab")), 2);
    assert_eq!(candidates(Some("same")), 2);
    assert_eq!(candidates(Some("missing")), 3);
    assert_eq!(candidates(Some("")), 3);
    assert_eq!(candidates(None), 3);
}

#[test]
fn what_the_dead_left_is_cleared_away() {
    let state = state();
    let instances = Instances::below(state.path());
    let (registration, listener) = instances.register(&dead(1)).unwrap();
    let (socket, path) = (registration.socket.clone(), registration.path.clone());
    // Locked and listened on, it counts as alive whatever its number says: it may run in a container.
    assert_eq!(instances.list().unwrap().len(), 1);
    // What `kill -9` leaves.
    let kept = fs::read(&path).unwrap();
    drop((registration, listener));
    fs::write(&path, kept).unwrap();
    drop(UnixListener::bind(&socket).unwrap());
    for end in ["sock", "mcp"] {
        drop(UnixListener::bind(socket.with_file_name(format!("{}.{end}", Uuid::from_u128(9)))).unwrap());
    }
    drop(UnixListener::bind(socket.with_extension("mcp")).unwrap());
    assert_eq!(instances.list().unwrap(), []);
    assert_eq!(names(&state.path().join("run")), [""; 0]);
}

#[test]
fn what_the_living_need_is_let_alone() {
    let state = state();
    let instances = Instances::below(state.path());
    instances.place.prepare().unwrap();
    let run = state.path().join("run");
    // It has begun and does not listen yet.
    let starting = description(1, None);
    fs::write(instances.place.description(&starting.id), serde_json::to_vec(&starting).unwrap()).unwrap();
    // Written by a version to come, and not by us at all.
    fs::write(instances.place.description(&Uuid::from_u128(2)), "{\"id\": 2}").unwrap();
    fs::write(run.join("notes.txt"), "").unwrap();
    // Somebody listens, and nobody says who.
    let _listener = UnixListener::bind(instances.place.socket(&Uuid::from_u128(3)).unwrap()).unwrap();
    // Its number is that of another process by now, but it answers.
    let other = Description { pid_started: Some(1), ..description(4, None) };
    let _answers = UnixListener::bind(instances.place.socket(&other.id).unwrap()).unwrap();
    fs::write(instances.place.description(&other.id), serde_json::to_vec(&other).unwrap()).unwrap();
    let before = names(&run);
    assert_eq!(instances.list().unwrap().len(), 2);
    assert_eq!(names(&run), before);
}

#[test]
fn a_directory_that_others_can_enter_is_refused() {
    let state = state();
    let instances = Instances::below(state.path());
    let refused = |expected: &Path| {
        let refused = |result: Result<(), InstanceError>| match result {
            Err(InstanceError::NotPrivate { path }) => assert_eq!(path, expected),
            other => panic!("{other:?}"),
        };
        refused(instances.register(&description(1, None)).map(drop));
        refused(instances.list().map(drop));
    };
    let run = state.path().join("run");
    fs::create_dir(&run).unwrap();
    fs::set_permissions(&run, Permissions::from_mode(0o750)).unwrap();
    refused(&run);
    fs::remove_dir(&run).unwrap();
    let elsewhere = self::state();
    symlink(elsewhere.path(), &run).unwrap();
    refused(&run);
    fs::remove_file(&run).unwrap();
    fs::set_permissions(state.path(), Permissions::from_mode(0o711)).unwrap();
    refused(state.path());
}

#[test]
fn long_paths_have_short_sockets() {
    let home = state();
    let deep = home.path().join("d".repeat(120));
    let instances = Instances::below(&deep);
    let (registration, _listener) = instances.register(&description(1, None)).unwrap();
    let socket = registration.socket().to_owned();
    assert!(socket.as_os_str().len() <= 100 && socket.starts_with("/tmp"), "{socket:?}");
    let dir = socket.parent().unwrap().to_owned();
    assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o777, 0o700);
    // By another way to the same directory, the other side comes to the same socket.
    let link = home.path().join("link");
    symlink(home.path(), &link).unwrap();
    assert_eq!(Instances::below(&link.join("d".repeat(120))).find(None).unwrap().socket, socket);
    drop(registration);
    assert_eq!(names(&dir), [""; 0]);
    fs::remove_dir(&dir).unwrap();
}

#[test]
fn many_begin_and_end_at_once() {
    let state = state();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let state = state.path();
            scope.spawn(move || {
                let instances = Instances::below(state);
                for round in 0..20 {
                    let id = thread * 1000 + round;
                    let _held = instances.register(&description(id, None)).unwrap();
                    let wanted = Uuid::from_u128(id).to_string();
                    assert_eq!(instances.find(Some(&wanted)).unwrap().description.id, Uuid::from_u128(id));
                }
            });
        }
    });
    assert_eq!(names(&state.path().join("run")), [""; 0]);
}
