use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;

use super::compound::VERB_BYTES_MIN;
use super::lexicon::{Meaning, meaning};
use super::verbs::{ENGINES, GROUPS, HOLDERS, JOINTS, PREPOSITIONS, RIGHTS, RUN, SHOWN, UNCUT};
use super::*;

fn of(name: &str) -> Operation {
    Classifier::default().classify(name, Annotations::default()).operation
}

#[track_caller]
fn check(expected: Operation, names: &[&str]) {
    for name in names {
        let classified = Classifier::default().classify(name, Annotations::default());
        assert_eq!(classified.operation, expected, "{name} is {classified}");
    }
}

#[test]
fn whole_words_decide() {
    check(
        Operation::Read,
        &["list_commits", "get_settings", "getHTTPStatus", "listPRs", "get_deleted_items", "fetch", "list_deployments"],
    );
    check(
        Operation::Read,
        &["mcp__github__list_commits", "delete-bot__get_item", "getS3Object", "list.runs", "whoami"],
    );
    check(
        Operation::Write,
        &["create_issue", "undelete_file", "restore_deleted_file", "frobnicate", "", "___", "getsettings"],
    );
    check(
        Operation::Delete,
        &[
            "delete_repo",
            "mcp__github__delete_repo",
            "deleteRepo",
            "DELETE-REPO",
            "repo.delete",
            "s3DeleteBucket",
            "rm",
        ],
    );
    check(Operation::Delete, &["file_deletion", "deleting_files", "deleted_items", "settings_reset", "delete__item"]);
    check(
        Operation::Execute,
        &["run_query", "executeSQL", "pods_exec", "bash", "start_container", "read-only/run_job"],
    );
    check(
        Operation::Admin,
        &["grant_access", "create_user", "attachRolePolicy", "reset_user_password", "create_api_key"],
    );
}

#[test]
fn of_several_verbs_the_most_dangerous_decides() {
    check(Operation::Write, &["get_or_create_label", "find_and_replace", "mark_as_read", "search_or_update"]);
    check(
        Operation::Delete,
        &[
            "read_and_delete",
            "list_and_purge",
            "cancel_delete",
            "dry_run_delete",
            "run_deletion_job",
            "schedule_key_deletion",
            "saveOrRemoveAlbum",
            "search-index-delete",
        ],
    );
    check(Operation::Execute, &["get_and_run", "run_and_read", "build_and_list"]);
    check(
        Operation::Read,
        &["pull_request_read", "get_test_run", "list_workflow_runs", "check_deleted", "get_deletion_status"],
    );
}

#[test]
fn what_is_deleted_stays_deleted_and_rights_are_admin_only_where_they_are_meant() {
    check(Operation::Delete, &["delete_user", "remove_role", "delete_access_key", "remove_user_from_group"]);
    check(Operation::Write, &["update_user_story", "send_user_message", "message_user", "follow_user", "press_key"]);
    check(
        Operation::Admin,
        &["update_user", "users_update", "add_user_to_group", "manage_permissions", "set_config_value"],
    );
    check(Operation::Read, &["list_roles", "get_user_policy", "read-secret"]);
}

#[test]
fn a_dangerous_verb_counts_where_a_word_begins_or_ends() {
    check(
        Operation::Delete,
        &[
            "deleterepo",
            "DELETEREPO",
            "DELETErepo",
            "de1eterepo",
            "bulkdelete_repos",
            "softdelete",
            "get_or_deleterepo",
            "s3deletebucket",
            "cacheflush",
            "managerepo",
            "truncatealltablesofthewholedatabase",
        ],
    );
    check(Operation::Delete, &["repo_deleter", "tag_remover", "disk_erasers", "update_deleter"]);
    check(Operation::Execute, &["executequery", "task_executor", "startcontainer", "codeexecute"]);
    check(Operation::Admin, &["revokekeys", "resetpassword", "manageusers", "user_impersonator"]);
    check(Operation::Read, &["get_deleters", "list_preset", "get_autostart", "decompile_function"]);
}

#[test]
fn no_verb_is_cut_out_of_a_word_of_the_dictionary() {
    check(
        Operation::Write,
        &[
            "remote",
            "dropbox",
            "banner",
            "cleaner",
            "preset",
            "vagrant_up",
            "nuclear",
            "deploymentstatus",
            "undeleterepo",
        ],
    );
    check(Operation::Write, &["interactivechart", "launchdarkly_flags", "tropicalstorm", "task_manager", "presets"]);
    check(Operation::Read, &["get_cleaner", "list_interactive", "get_management_zone", "remote_read", "dropbox_list"]);
    for word in UNCUT {
        assert!(meaning(word).is_none(), "{word} is a form of a verb");
    }
}

#[test]
fn statements_and_commands_are_run() {
    check(
        Operation::Execute,
        &[
            "d1_query",
            "d1_database_query",
            "query_postgres",
            "mysql_query",
            "sql",
            "execute_sql",
            "write_query",
            "code_execution",
            "kubectl_generic",
            "nodejs_inspect",
            "query_stop",
            "play_pipeline_job",
            "bash_20250124",
            "run_test_report",
        ],
    );
    check(Operation::Write, &["generate_and_send_code", "generate_image"]);
    check(
        Operation::Read,
        &[
            "get_sql_query",
            "read_query",
            "sql_schema",
            "query_collection",
            "list_executions",
            "get_execution",
            "test_database_connection",
            "is_connected",
            "resolve-library-id",
        ],
    );
}

#[test]
fn groups_have_rights_where_the_verb_is_done_to_them() {
    check(Operation::Admin, &["create_group", "team_group_update", "update_org_group", "add_user_group"]);
    check(Operation::Write, &["create_log_group", "update_group_milestone", "create_replication_group"]);
}

/// As other proxies classify, for rules that were written for those.
#[test]
fn substrings_decide_where_the_mode_says_so() {
    #[track_caller]
    fn says(name: &str, expected: &str) {
        let classifier = Classifier::default().with_mode(Mode::Substring);
        assert_eq!(classifier.classify(name, Annotations::default()).to_string(), expected);
    }
    let part =
        |operation: &str, part: &str| format!("{operation}: `{part}` in the name, by `classify = \"substring\"`");
    says("github_delete_repo", &part("delete", "delete"));
    says("github_list_repos", &part("read", "list"));
    says("GITHUB_DELETE_REPO", &part("delete", "delete"));
    says("deleterepo", &part("delete", "delete"));
    says("delete_user_role", &part("admin", "role"));
    says("run_and_remove", &part("delete", "remove"));
    says("create_post", &part("execute", "post"));
    says("get_settings", &part("admin", "setting"));
    says("list_issues", &part("write", "issue"));
    says("hover", "write: no known word in the name, by `classify = \"substring\"`");
    says("", "write: no known word in the name, by `classify = \"substring\"`");
    says("gеt_x", "write: the name has letters other than plain ones, and is not trusted to read");
    says("dеlete_repo", &part("delete", "delete"));
    says("list_х", "write: the name has letters other than plain ones, and is not trusted to read");
    // U+212A is a letter of its own, and a k in lower case.
    says("\u{212a}ill", &part("delete", "kill"));
}

#[test]
fn overrides_and_hints_count_in_both_modes() {
    let overrides = [("tidy".to_owned(), Operation::Delete)];
    let classifier = Classifier::new(overrides).with_mode(Mode::Substring);
    let destructive = Annotations { destructive: Some(true), ..Annotations::default() };
    assert_eq!(classifier.classify("tidy", Annotations::default()).operation, Operation::Delete);
    assert_eq!(classifier.classify("get_x", destructive).operation, Operation::Write);
}

/// A word that an earlier one is a part of would never decide.
#[test]
fn every_word_of_the_substrings_can_decide() {
    let words: Vec<&str> = substring::TABLES.iter().flat_map(|(_, words)| words.iter().copied()).collect();
    for (operation, own) in substring::TABLES {
        assert!(own.is_sorted(), "{operation}");
        for word in own {
            assert_eq!(substring::judge(word), (operation, Reason::Contains { part: word }), "{word}");
            assert!(words.iter().filter(|other| *other == word).count() == 1, "{word}");
        }
    }
}

#[test]
fn disguised_names_lose_nothing() {
    check(
        Operation::Delete,
        &["dеlete_repo", "ｄｅｌｅｔｅ_repo", "de\u{200b}lete_repo", "dele\0te", "délete_repo", "𝐝𝐞𝐥𝐞𝐭𝐞"],
    );
    check(Operation::Delete, &["de1ete_repo", "deIete_repo", "d3l3te", "DeLeTe_repo", "list_and_de1ete"]);
    check(Operation::Write, &["gеt_repo", "get_repo\0", "查询用户", "get_Ωmega", "ｇｅｔ"]);
}

#[test]
fn a_hint_raises_a_read_to_a_write_and_does_nothing_more() {
    let classifier = Classifier::default();
    for name in ["get_x", "frobnicate", "delete_x", "run_x", "grant_x"] {
        for read_only in [None, Some(false), Some(true)] {
            for destructive in [None, Some(false), Some(true)] {
                let annotated = classifier
                    .classify(name, Annotations { read_only, destructive, ..Annotations::default() })
                    .operation;
                let floor = match (read_only, destructive) {
                    (_, Some(true)) | (Some(false), _) => Operation::Write,
                    _ => Operation::Read,
                };
                assert_eq!(annotated, of(name).max(floor), "{name} {read_only:?} {destructive:?}");
            }
        }
    }
}

#[test]
fn overrides_come_first() {
    let overrides = [("get_*", Operation::Admin), ("delete_draft", Operation::Write), ("delete_*", Operation::Read)];
    let classifier = Classifier::new(overrides.map(|(pattern, operation)| (pattern.to_owned(), operation)));
    let destructive = Annotations { destructive: Some(true), ..Annotations::default() };
    let of = |name| classifier.classify(name, destructive).operation;
    assert_eq!(of("get_x"), Operation::Admin);
    assert_eq!(of("delete_draft"), Operation::Write);
    assert_eq!(of("delete_x"), Operation::Read);
    assert_eq!(of("list_x"), Operation::Write);
}

#[test]
fn an_override_counts_in_any_spelling_unless_it_makes_less_of_a_tool() {
    let overrides = [("purge_x", Operation::Delete), ("Wipe*", Operation::Admin), ("delete_draft", Operation::Read)];
    let classifier = Classifier::new(overrides.map(|(pattern, operation)| (pattern.to_owned(), operation)));
    let of = |name| classifier.classify(name, Annotations::default()).operation;
    for name in ["purge_x", "Purge_X", "purge_\u{445}", "purge_x\u{200b}"] {
        assert_eq!(of(name), Operation::Delete, "{name}");
    }
    assert_eq!(of("wipe_list"), Operation::Admin);
    assert_eq!(of("Delete_Draft"), Operation::Delete);
}

#[test]
fn every_operation_says_why() {
    #[track_caller]
    fn says(name: &str, annotations: Annotations, expected: &str) {
        let overrides = [("mine\u{1b}*".to_owned(), Operation::Read)];
        assert_eq!(Classifier::new(overrides).classify(name, annotations).to_string(), expected);
    }
    let none = Annotations::default();
    says("delete_repo", none, "delete: verb `delete`");
    says("file_deletion", none, "delete: `deletion`, a form of `delete`");
    says("update_user", none, "admin: `update` done to `user`");
    says("git_status", none, "read: no verb, and `status` is something to look at");
    says("bash", none, "execute: no verb, and `bash` runs what it is given");
    says("gеt", none, "write: the name has letters other than plain ones, and is not trusted to read");
    says("frobnicate", none, "write: no known verb in the name");
    says("mine\u{1b}x", none, "read: set for `mine␛*`");
    let destructive = Annotations { destructive: Some(true), ..none };
    says("read_file", destructive, "write: the server says `destructiveHint: true`; the name alone would be read");
    says("write_file", destructive, "write: verb `write`");
}

#[test]
fn operations_are_spelled_as_rules_spell_them() {
    for operation in Operation::ALL {
        assert_eq!(operation.to_string().parse(), Ok(operation));
    }
    assert_eq!("Delete".parse::<Operation>(), Err(UnknownOperation));
    assert!(Operation::ALL.is_sorted());
}

/// A tool of a public server, and what it does by that server's documentation.
struct Known {
    server: &'static str,
    tool: &'static str,
    operation: Operation,
}

fn known() -> Vec<Known> {
    let lines = include_str!("names.txt").lines().filter(|line| !line.starts_with('#'));
    let tool = |line: &'static str| {
        let [server, tool, operation] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("three columns: {line}")
        };
        Known { server, tool, operation: operation.parse().unwrap() }
    };
    lines.map(tool).collect()
}

#[test]
fn real_names_are_known() {
    let known = known();
    let servers: HashSet<&str> = known.iter().map(|known| known.server).collect();
    let wrong: Vec<_> = known.iter().filter(|known| of(known.tool) != known.operation).collect();
    let share = 100.0 * (known.len() - wrong.len()) as f64 / known.len() as f64;
    // To each pair of what a tool does and what its name is taken for, the names that are taken so.
    let mut directions: BTreeMap<(Operation, Operation), usize> = BTreeMap::new();
    for known in &wrong {
        *directions.entry((known.operation, of(known.tool))).or_default() += 1;
    }
    assert!(known.len() >= 3_600 && servers.len() >= 120, "{} names of {} servers", known.len(), servers.len());
    assert!(share >= 97.5, "{share:.2} % right: {directions:?}");
    let milder: usize = directions.iter().filter(|((real, taken), _)| taken < real).map(|(_, count)| count).sum();
    assert!(milder <= 30, "{milder} names are taken for less than their tools do: {directions:?}");
}

/// Their tools that write are destructive by their hints, and rules against deletes must let them pass.
#[test]
fn hints_make_no_delete_of_what_popular_servers_write_with() {
    let destructive = Annotations { read_only: Some(false), destructive: Some(true), ..Annotations::default() };
    let known = known().into_iter().filter(|known| ["filesystem", "playwright"].contains(&known.server));
    let judged: Vec<_> = known.map(|known| Classifier::default().classify(known.tool, destructive).operation).collect();
    assert!(judged.len() > 30 && judged.iter().all(|operation| *operation != Operation::Delete), "{judged:?}");
}

#[test]
fn no_real_name_that_does_more_than_write_is_taken_for_reading() {
    for known in known() {
        assert!(known.operation <= Operation::Write || of(known.tool) != Operation::Read, "{}", known.tool);
    }
}

#[test]
fn every_word_is_in_the_table_once() {
    let verbs = GROUPS.iter().flat_map(|group| group.verbs.iter().map(|verb| verb.word));
    let lists = [RIGHTS, HOLDERS, SHOWN, RUN, ENGINES, JOINTS, PREPOSITIONS, UNCUT];
    let mut words: Vec<&str> = verbs.chain(lists.into_iter().flatten().copied()).collect();
    words.sort_unstable();
    let twice: Vec<_> = words.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

/// A form that two verbs share must not read for one of them.
#[test]
fn verbs_keep_their_operation_in_every_form() {
    for (lemma, forms) in [
        ("delete", &["deletes", "deleted", "deleting", "deletion"][..]),
        ("destroy", &["destroys", "destroyed", "destroying", "destruction"]),
        ("drop", &["drops", "dropped", "dropping"]),
        ("run", &["runs", "ran", "running"]),
        ("modify", &["modifies", "modified", "modifying"]),
        ("get", &["gets", "got", "getting"]),
        ("push", &["pushes", "pushed", "pushing"]),
    ] {
        for form in forms {
            assert!(matches!(meaning(form), Some(Meaning::Verb { verb, .. }) if verb.word == lemma), "{form}");
            assert_eq!(of(form), of(lemma), "{form}");
        }
    }
}

/// `OPERATIONS_REFERENCE=write cargo test -p mcp-engine` writes the page anew.
#[test]
fn the_reference_is_what_the_table_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
    let page = reference::markdown();
    if std::env::var_os("OPERATIONS_REFERENCE").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    assert!(std::fs::read_to_string(path).unwrap() == page, "docs/operations.md is not what the table of words says");
}

/// Words of the table and some that are not in it, two letters or more: one alone cannot be told from
/// a part of an acronym in camel case.
fn word() -> impl Strategy<Value = &'static str> {
    let verbs = GROUPS.iter().flat_map(|group| group.verbs.iter().map(|verb| verb.word));
    let others =
        ["repo", "issue", "deleted", "deletion", "runs", "user", "role", "status", "and", "to", "http", "item"];
    prop::sample::select(verbs.chain(others).collect::<Vec<_>>())
}

/// Verbs that do more than write.
fn grave() -> impl Strategy<Value = &'static str> {
    let groups = GROUPS.iter().filter(|group| group.operation > Operation::Write);
    prop::sample::select(groups.flat_map(|group| group.verbs.iter().map(|verb| verb.word)).collect::<Vec<_>>())
}

/// Those that count in a longer word.
fn long() -> impl Strategy<Value = &'static str> {
    let groups = GROUPS.iter().filter(|group| group.operation > Operation::Write);
    let verbs = groups.flat_map(|group| group.verbs.iter().map(|verb| verb.word));
    prop::sample::select(verbs.filter(|verb| verb.len() >= VERB_BYTES_MIN).collect::<Vec<_>>())
}

fn capitalized(word: &str) -> String {
    word[..1].to_ascii_uppercase() + &word[1..]
}

proptest! {
    #[test]
    fn any_bytes_have_an_operation(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let name = String::from_utf8_lossy(&bytes);
        let classified = Classifier::default().classify(&name, Annotations::default());
        prop_assert!(!classified.to_string().contains(|c: char| c.is_control()));
    }

    #[test]
    fn any_text_has_an_operation(name in "\\PC{0,60}") {
        prop_assert!(name.is_ascii() || of(&name) > Operation::Read);
    }

    #[test]
    fn style_does_not_matter(words in prop::collection::vec(word(), 1..5)) {
        // `stopPing` may be a way to write `stopping`.
        prop_assume!(words.len() == 1 || meaning(&words.concat()).is_none());
        let snake = words.join("_");
        let pascal: String = words.iter().map(|word| capitalized(word)).collect();
        let camel = words[0].to_owned() + &pascal[words[0].len()..];
        for other in [snake.to_uppercase(), words.join("-"), words.join(" "), camel, pascal] {
            prop_assert_eq!(of(&other), of(&snake), "{} {}", other, snake);
        }
    }

    /// A long dangerous verb counts as well where it is written together with a noun.
    #[test]
    fn a_dangerous_verb_counts_without_a_separator(verb in long(), noun in "(repo|bucket|item|page)", at_end in any::<bool>()) {
        let (first, second) = if at_end { (&*noun, verb) } else { (verb, &*noun) };
        for before in ["", "get_x_or_", "update_"] {
            let (together, apart) = (format!("{before}{first}{second}"), format!("{before}{first}_{second}"));
            prop_assert_eq!(of(&together), of(&apart), "{}", together);
            prop_assert_eq!(of(&together.to_uppercase()), of(&apart), "{}", together);
        }
    }

    /// A verb that is joined to a name, anywhere, raises it at least to what it does, or makes it delete. At
    /// its end it takes nothing away, either, unless the name was about rights.
    #[test]
    fn a_more_dangerous_word_never_lowers(words in prop::collection::vec(word(), 1..4), at in 0usize..4, verb in grave()) {
        let Some(Meaning::Verb { group, .. }) = meaning(verb) else { panic!("{verb} is a verb") };
        let (before, at) = (of(&words.join("_")), at.min(words.len()));
        let mut more = words.clone();
        more.splice(at..at, ["and", verb]);
        let after = of(&more.join("_"));
        prop_assert!(after >= group.operation || after == Operation::Delete, "{:?}", more);
        let keeps = after >= before || after == Operation::Delete || before == Operation::Admin;
        prop_assert!(at < words.len() || keeps, "{:?}", more);
    }
}
