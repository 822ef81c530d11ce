use proptest::prelude::*;

use super::*;

fn git() -> Namespace {
    Namespace::new("git".into(), true)
}

fn bare() -> Namespace {
    Namespace::new("bare".into(), false)
}

#[test]
fn names_are_prefixed_and_cut() {
    assert_eq!(git().name("status"), "git__status");
    assert_eq!(git().name("a__b"), "git__a__b");
    assert_eq!(git().name(&"x".repeat(59)).len(), 64);
    assert_eq!(git().name(&"x".repeat(59)), format!("git__{}", "x".repeat(59)));
    // Stable for ever: clients and prompts remember it.
    assert_eq!(
        git().name(&"list_repository_".repeat(5)),
        "git__list_repository_list_repository_list_repository__1677050922"
    );
    let wide = git().name(&"漢".repeat(70));
    assert_eq!(wide.chars().count(), 64);
    assert_eq!(bare().name(&"x".repeat(100)), "x".repeat(100));
}

#[test]
fn names_of_servers_with_long_ids_fit_as_well() {
    for chars in [40, 50, 51, 52, 53, 60, 64] {
        let ids = ["i".repeat(chars), format!("{}j", "i".repeat(chars - 1))];
        let [long, other] = ids.map(|id| Namespace::new(id.into(), true));
        for name in ["tool", "a_longer_name_of_a_tool", &"x".repeat(100)] {
            let given = long.name(name);
            assert!(given.chars().count() <= 64, "{chars}: {given}");
            assert!(long.unprefixed(&given).is_some() && other.unprefixed(&given).is_none(), "{given}");
            assert_ne!(given, other.name(name));
            assert_ne!(given, long.name("loot"));
        }
        let short = long.name(&"x".repeat(100));
        assert!(long.looks_shortened(long.unprefixed(&short).unwrap()), "{short}");
        assert!(!long.looks_shortened("tool"));
    }
    // Ids that fit stay whole, and names of them what they were.
    assert_eq!(Namespace::new("i".repeat(51).into(), true).name("tool"), format!("{}__tool", "i".repeat(51)));
    // Stable for ever, as well.
    assert_eq!(Namespace::new("i".repeat(52).into(), true).name("tool"), "iiiiiiiiiiiiiiiiiiiiiiii-1f13d9ffe1__tool");
}

#[test]
fn short_forms_are_known_by_their_shape() {
    let short = git().name(&"x".repeat(60));
    assert!(git().looks_shortened(git().unprefixed(&short).unwrap()));
    for other in
        ["status", "", "_0123456789", &"x".repeat(59), &"漢".repeat(59), &format!("{}_zzzzzzzzzz", "x".repeat(48))]
    {
        assert!(!git().looks_shortened(other), "{other}");
    }
}

#[test]
fn addresses_route_back() {
    for uri in
        ["file:///a b", "memo:x", "git+ssh://h/p?q#f", "", "ui://app/view", "UI://App", "proxy://resource/!", "漢"]
    {
        let given = git().uri(uri);
        assert_eq!(Ours::read(&given), Some(Ours { server: "git".into(), original: uri.into() }), "{given}");
        assert_eq!(git().uri(&given), given, "wrapped once");
        assert_eq!(bare().uri(uri), uri);
    }
    assert_eq!(git().uri("memo:x"), "proxy://resource/eyJzZXJ2ZXIiOiJnaXQiLCJ1cmkiOiJtZW1vOngifQ");
}

#[test]
fn clients_know_interfaces_by_their_scheme() {
    assert_eq!(git().uri("ui://app"), "ui://proxy/resource/eyJzZXJ2ZXIiOiJnaXQiLCJ1cmkiOiJ1aTovL2FwcCJ9");
    assert_eq!(git().template("ui://app/{x}"), "ui://proxy/template/git/ui://app/{x}");
    assert!(git().uri("ui:app").starts_with("proxy://"));
}

#[test]
fn nobody_links_into_a_neighbour() {
    let other = Namespace::new("other".into(), true);
    let given = git().uri("file:///a");
    assert_eq!(Ours::read(&other.uri(&given)), Some(Ours { server: "other".into(), original: given }));
}

#[test]
fn templates_route_back_expanded() {
    assert_eq!(git().template("repo://{owner}/{+path}"), "proxy://template/git/repo://{owner}/{+path}");
    let read = Ours::read("proxy://template/git/repo://me/a/b?c=d").unwrap();
    assert_eq!((read.server.as_str(), read.original.as_str()), ("git", "repo://me/a/b?c=d"));
    assert_eq!(git().template("proxy://template/git/x{y}"), "proxy://template/git/x{y}");
    assert_eq!(bare().template("memo:{x}"), "memo:{x}");
}

#[test]
fn what_is_not_ours_is_not_read() {
    for other in [
        "proxy://resource/",
        "proxy://resource/%%",
        "proxy://resource/e30",
        "proxy://resource/eyJzZXJ2ZXIiOiJnaXQiLCJ1cmkiOiJtZW1vOngifQ==",
        "proxy://template/git",
        "proxy://template/git/",
        "proxy://other/x",
        "proxy:",
        "",
        "漢漢漢漢漢漢漢漢漢漢",
    ] {
        assert_eq!(Ours::read(other), None, "{other}");
    }
    assert!(
        Ours::read("PROXY://Resource/eyJzZXJ2ZXIiOiJnaXQiLCJ1cmkiOiJtZW1vOngifQ").is_some(),
        "schemes have no case"
    );
}

#[test]
fn tasks_route_back_with_and_without_a_prefix() {
    for names in [git(), bare()] {
        for task in ["1", "", "git:1", "a__b", ":"] {
            assert_eq!(names.original_task(&names.task(task)), Some(task));
        }
    }
    assert_eq!(git().original_task("github:1"), None);
}

proptest! {
    #[test]
    fn given_names_have_a_bound_and_one_form(name in any::<String>()) {
        let given = git().name(&name);
        prop_assert!(given.chars().count() <= NAME_CHARS_MAX);
        prop_assert_eq!(&given, &git().name(&name));
        prop_assert!(given.starts_with("git__"));
        git().looks_shortened(&name);
    }

    #[test]
    fn any_address_routes_back_and_is_wrapped_once(uri in any::<String>()) {
        let given = git().uri(&uri);
        let read = Ours::read(&given).unwrap();
        prop_assert_eq!(read.original, uri);
        prop_assert_eq!(git().uri(&given), given);
    }
}
