//! The file of answers, on a disk.

use std::os::unix::fs::PermissionsExt;

use super::*;

fn answered(rule: &str, subject: Option<&str>, permission: Permission) -> Answered {
    let (rule, subject) = (rule.into(), subject.map(Into::into));
    Answered { rule, method: "tools/call".into(), subject, permission, server: None, by: "ann".into() }
}

#[test]
fn answers_are_read_as_they_were_written() {
    let dir = tempfile::tempdir().unwrap();
    let file = AnswersFile::beside(&dir.path().join("rules.toml"));
    assert_eq!(file.path, dir.path().join("rules.toml.answers.json"));
    assert_eq!(file.read().unwrap(), []);
    let (yes, no) = (answered("r", Some("t"), Permission::Allow), answered("r", None, Permission::Deny));
    assert_eq!(file.put(&yes).unwrap(), None);
    assert_eq!(file.put(&no).unwrap(), None);
    assert_eq!(file.read().unwrap(), [yes.clone(), no.clone()]);
    let mode = std::fs::metadata(&file.path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // The newest counts, and can be taken back.
    let otherwise = Answered { permission: Permission::Deny, ..yes.clone() };
    let before = file.put(&otherwise).unwrap();
    assert_eq!(file.read().unwrap(), [no.clone(), otherwise.clone()]);
    file.put_back(&otherwise, before).unwrap();
    assert_eq!(file.read().unwrap(), [no, yes]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn people_can_read_them() {
    let entry = Entry::new(
        &answered("deletes", Some("delete_file"), Permission::Allow),
        "2026-11-16T12:00:00.9Z".parse().unwrap(),
    );
    insta::assert_snapshot!(serde_json::to_string_pretty(&entry).unwrap(), @r#"
    {
      "rule": "deletes",
      "method": "tools/call",
      "subject": "delete_file",
      "permission": "allow",
      "by": "ann",
      "at": "2026-11-16T12:00:01Z"
    }
    "#);
}

#[track_caller]
fn check_wrong(text: &str, expected: &str) {
    let dir = tempfile::tempdir().unwrap();
    let file = AnswersFile::beside(&dir.path().join("rules.json"));
    std::fs::write(&file.path, text).unwrap();
    let failure = file.read().unwrap_err().to_string();
    assert!(failure.contains(expected), "{failure}");
    // Nothing is written over what cannot be read.
    assert!(file.put(&answered("r", None, Permission::Allow)).is_err());
    assert_eq!(std::fs::read_to_string(&file.path).unwrap(), text);
}

#[test]
fn what_is_wrong_is_shown() {
    check_wrong("", "it is empty");
    check_wrong("{}", "there is no `answers` here");
    check_wrong("{\"answers\": 7}", "rules.json.answers.json:1:13: `answers` is a list, and this is a number");
    check_wrong(
        "{\n  \"answers\": [{\"rul\": \"x\"}]\n}\n",
        "rules.json.answers.json:2:16: unknown key `rul`\n  │   \"answers\": [{\"rul\": \"x\"}]\n  │                ^^^^^ did you mean `rule`?",
    );
    let entry = |rule: &str, permission: &str| {
        format!(
            r#"{{"answers":[{{"rule":"{rule}","method":"m","permission":"{permission}","by":"","at":"2026-11-16T12:00:00Z"}}]}}"#
        )
    };
    check_wrong(&entry("r", "ask"), "no such permission: `ask`");
    check_wrong(&entry("", "allow"), "`rule` is empty");
    check_wrong(
        &entry("r", "allow").replace("\"m\"", &format!("{:?}", "m".repeat(5_000))),
        "`method` is longer than 4096 bytes",
    );
    check_wrong(&entry("r", "allow").replace("2026-11-16T", "yesterday "), "this is no time");
    check_wrong(&entry("r", "allow").replace("\"by\":\"\",", ""), "there is no `by` here");
    check_wrong(&" ".repeat(5 << 20), "longer");
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = AnswersFile::beside(&dir.path().join("none/rules.json"));
    let error = file.put(&answered("r", None, Permission::Allow)).unwrap_err();
    assert!(error.to_string().contains("none/rules.json.answers.json cannot be written: "), "{error}");
}

/// Two proxies with the same rules, and both are answered.
#[test]
fn nobodys_answer_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let file = AnswersFile::beside(&dir.path().join("rules.json"));
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let file = file.clone();
            std::thread::spawn(move || {
                for at in 0..8 {
                    file.put(&answered(&format!("{writer}-{at}"), None, Permission::Allow)).unwrap();
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    assert_eq!(file.read().unwrap().len(), 32);
}
