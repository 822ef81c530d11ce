use proptest::prelude::*;

use super::*;

/// Servers by id; those that end in `!` give out their names as they are.
fn names(servers: &[&str]) -> Names {
    let each = |id: &&str| Namespace::new(id.trim_end_matches('!').into(), !id.ends_with('!'));
    Names::new(servers.iter().map(each).collect())
}

fn learn(names: &mut Names, server: usize, originals: &[&str]) -> Vec<Vec<usize>> {
    let originals: Vec<_> = originals.iter().map(|name| (*name).to_owned()).collect();
    let collisions = names.learn(server, ListKind::Tools, &originals);
    collisions.into_iter().map(|it| it.claimants.into_iter().map(|claimant| claimant.server).collect()).collect()
}

fn is(server: usize, original: &str) -> Found {
    Found::Is { server, original: original.into() }
}

fn collide(servers: &[usize]) -> Found {
    Found::Collides { servers: servers.into() }
}

fn nowhere(candidates: &[usize]) -> Found {
    Found::Nowhere { candidates: candidates.into() }
}

#[test]
fn an_address_belongs_to_whoever_has_a_template_for_it() {
    let mut names = names(&["one!", "two!", "three"]);
    assert_eq!(names.uri("demo://text/3"), nowhere(&[0, 1]));
    names.learn(0, ListKind::Templates, &["demo://text/{id}".into()]);
    names.learn(1, ListKind::Templates, &["demo://{kind}/blob".into()]);
    assert_eq!(names.uri("demo://text/3"), is(0, "demo://text/3"));
    assert_eq!(names.uri("demo://x/blob"), is(1, "demo://x/blob"));
    assert_eq!(names.uri("demo://text/blob"), collide(&[0, 1]));
    assert_eq!(names.uri("other://text/3"), nowhere(&[0, 1]));
}

#[test]
fn a_prefixed_name_says_whose_it_is() {
    let names = names(&["git", "git-hub", "a_b"]);
    assert_eq!(names.tool("git__status"), is(0, "status"));
    assert_eq!(names.tool("git-hub__status"), is(1, "status"));
    assert_eq!(names.tool("a_b__c__d"), is(2, "c__d"));
    assert_eq!(names.prompt("git____x"), is(0, "__x"));
    for nobodys in ["git", "git__", "git_x", "x__y", "", "GIT__status", "a__b__c"] {
        assert_eq!(names.tool(nobodys), nowhere(&[]), "{nobodys}");
    }
}

#[test]
fn a_short_name_has_to_be_learnt() {
    let long = "x".repeat(100);
    for others in [&["git"][..], &["git", "other", "third!"]] {
        let mut names = names(others);
        let short = names.servers()[0].name(&long);
        assert_eq!(names.tool(&short), Found::Ask { server: 0 });
        assert_eq!(learn(&mut names, 0, &[&long, "y"]), [] as [Vec<usize>; 0]);
        assert_eq!(names.tool(&short), is(0, &long));
        assert_eq!(names.prompt(&short), Found::Ask { server: 0 }, "prompts are listed elsewhere");
        // What is listed no more is taken for a name that happens to look so.
        learn(&mut names, 0, &["y"]);
        assert_eq!(names.tool(&short), is(0, short.strip_prefix("git__").unwrap()));
        assert_eq!(names.tool(&format!("git__{long}")), is(0, &long), "the long form leads there, too");
    }
}

#[test]
fn a_tool_called_like_anothers_short_form_gets_neither() {
    let mut names = names(&["git"]);
    let long = "x".repeat(100);
    let short = names.servers()[0].name(&long);
    let like_it = short.strip_prefix("git__").unwrap();
    assert_eq!(learn(&mut names, 0, &[&long, like_it]), [[0, 0]]);
    assert_eq!(names.tool(&short), collide(&[0]));
}

#[test]
fn bare_names_are_learnt() {
    let mut names = names(&["git", "bare!", "other!"]);
    assert_eq!(names.tool("read"), nowhere(&[1, 2]));
    learn(&mut names, 1, &["read", "write"]);
    assert_eq!(names.tool("read"), is(1, "read"));
    assert_eq!(names.tool("bare__read"), nowhere(&[1, 2]));
    learn(&mut names, 1, &["write"]);
    assert_eq!(names.tool("read"), nowhere(&[1, 2]), "a list replaces the one before");
}

#[test]
fn two_claimants_get_nothing() {
    for alike in ["read", "Read", "re\u{430}d", "read\0", "ｒead"] {
        let mut names = names(&["a!", "b!", "c"]);
        assert_eq!(learn(&mut names, 0, &["read", "x"]), [] as [Vec<usize>; 0]);
        assert_eq!(learn(&mut names, 1, &[alike, "y"]), [[0, 1]], "{alike}");
        assert_eq!(names.tool("read"), collide(&[0, 1]));
        assert_eq!(names.tool(alike), collide(&[0, 1]));
        assert_eq!(names.tool("x"), is(0, "x"));
        // Which of them is told later makes no difference, and it ends when one gives in.
        assert_eq!(learn(&mut names, 0, &["read", "x"]), [[0, 1]]);
        learn(&mut names, 1, &["y"]);
        assert_eq!(names.tool("read"), is(0, "read"));
    }
}

#[test]
fn nobody_takes_a_prefixed_name() {
    let mut names = names(&["git", "bare!"]);
    assert_eq!(learn(&mut names, 1, &["git__status", "Git__log"]), [[0, 1]], "whether git lists it or not");
    assert_eq!(names.tool("git__status"), collide(&[0, 1]));
    assert_eq!(names.tool("Git__log"), is(1, "Git__log"));
    assert_eq!(learn(&mut names, 0, &["status", "log", "add"]), [[0, 1], [0, 1]]);
    assert_eq!(names.tool("git__status"), collide(&[0, 1]));
    assert_eq!(names.tool("git__log"), collide(&[0, 1]));
    assert_eq!(names.tool("git__add"), is(0, "add"));
    assert_eq!(names.tool("git__commit"), is(0, "commit"));
}

#[test]
fn one_server_may_tell_alike_names_apart() {
    for id in ["git", "bare!"] {
        let mut names = names(&[id]);
        assert_eq!(learn(&mut names, 0, &["get", "GET", "get"]), [] as [Vec<usize>; 0]);
        let given = names.servers()[0].name("GET");
        assert_eq!(names.tool(&given), is(0, "GET"));
    }
}

#[test]
fn ids_that_end_in_a_line_are_parted_by_lists() {
    let mut names = names(&["a", "a_"]);
    assert_eq!(names.tool("a__x"), is(0, "x"));
    assert_eq!(names.tool("a___x"), Found::Ask { server: 0 });
    learn(&mut names, 0, &["y"]);
    assert_eq!(names.tool("a___x"), Found::Ask { server: 1 });
    learn(&mut names, 1, &["x"]);
    assert_eq!(names.tool("a___x"), is(1, "x"));
    assert_eq!(names.tool("a___z"), collide(&[0, 1]), "nobody lists it");
    assert_eq!(learn(&mut names, 0, &["_x"]), [[0, 1]]);
    assert_eq!(names.tool("a___x"), collide(&[0, 1]));
}

#[test]
fn addresses_lead_to_their_server() {
    let mut names = names(&["git", "one!", "two!"]);
    let given = names.servers()[0].uri("memo:x");
    assert_eq!(names.uri(&given), is(0, "memo:x"));
    assert_eq!(names.uri(&names.servers()[0].uri("ui://app")), is(0, "ui://app"));
    assert_eq!(names.uri("proxy://template/git/repo://me/x"), is(0, "repo://me/x"));
    assert_eq!(names.uri("proxy://template/who/repo://me/x"), nowhere(&[1, 2]));
    assert_eq!(names.uri("file:///a"), nowhere(&[1, 2]));
    names.learn(1, ListKind::Resources, &["file:///a".into(), "file:///b".into()]);
    assert_eq!(names.uri("file:///a"), is(1, "file:///a"));
    let collisions = names.learn(2, ListKind::Resources, &["file:///a".into(), "FILE:///B".into()]);
    assert_eq!(collisions.len(), 1);
    assert_eq!(names.uri("file:///a"), collide(&[1, 2]));
    assert_eq!(names.uri("file:///b"), is(1, "file:///b"), "addresses have a case");
    // A gateway behind this one may give out what this one does.
    names.learn(2, ListKind::Resources, std::slice::from_ref(&given));
    assert_eq!(names.uri(&given), collide(&[0, 2]));
}

#[test]
fn templates_are_known_by_their_text() {
    let mut names = names(&["bare!"]);
    names.learn(0, ListKind::Templates, &["memo:{x}".into()]);
    assert_eq!(names.uri("memo:{x}"), is(0, "memo:{x}"));
}

#[test]
fn tasks_say_whose_they_are() {
    let names = names(&["git", "git_", "bare!"]);
    for (server, id) in ["git", "git_", "bare"].into_iter().enumerate() {
        assert_eq!(names.task(&format!("{id}:7")), is(server, "7"));
    }
    for other in ["7", "who:7", "", ":7"] {
        assert_eq!(names.task(other), nowhere(&[2]));
    }
}

#[test]
fn a_server_that_is_not_there_teaches_nothing() {
    assert_eq!(learn(&mut names(&["git"]), 7, &["x"]), [] as [Vec<usize>; 0]);
}

proptest! {
    /// Whatever servers list, a name leads to who was given it, or to nobody.
    #[test]
    fn no_name_leads_astray(
        lists in prop::collection::vec((any::<bool>(), prop::collection::vec("[abA_]{1,4}|[ab]{55,70}", 0..6)), 1..5),
    ) {
        let ids = ["a", "b", "a_", "a_b", "ab"];
        let servers = lists.iter().zip(ids).map(|((prefix, _), id)| Namespace::new(id.into(), *prefix)).collect();
        let mut names = Names::new(servers);
        for (server, (_, list)) in lists.iter().enumerate() {
            names.learn(server, ListKind::Tools, list);
        }
        for (server, (_, list)) in lists.iter().enumerate() {
            for original in list {
                match names.tool(&names.servers()[server].name(original)) {
                    Found::Is { server: found, original: name } => prop_assert_eq!((found, &*name), (server, &**original)),
                    Found::Collides { servers } => prop_assert!(servers.contains(&server)),
                    other => prop_assert!(false, "{:?}", other),
                }
            }
        }
    }

    #[test]
    fn any_text_can_be_asked_for(given in any::<String>()) {
        let names = names(&["git", "bare!"]);
        names.tool(&given);
        names.uri(&given);
        names.task(&given);
    }
}
