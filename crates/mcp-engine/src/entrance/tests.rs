use std::time::Duration;

use governor::clock::FakeRelativeClock;
use mcp_wire::Message;
use mcp_wire::reply::Refusal;

use super::*;

fn per_minute(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).expect("a limit is above zero")
}

fn named(name: &str, token: &str) -> NamedToken {
    NamedToken { name: name.into(), token: token.into(), servers: None, tools: None, rate_limit_per_minute: None }
}

fn two_tokens() -> EntranceSettings {
    let tokens = vec![named("ann", "sesame"), named("bob", "open-up")];
    EntranceSettings { tokens, ..EntranceSettings::default() }
}

/// Buckets whose clock only moves when it is told to.
fn buckets(settings: &EntranceSettings) -> (Buckets<FakeRelativeClock>, FakeRelativeClock) {
    let clock = FakeRelativeClock::default();
    let tokens = Tokens::new(settings).expect("the tokens are good");
    (Buckets::with_clock(settings, tokens.names(), &clock), clock)
}

/// How many of `count` requests are let through.
fn passed(limiter: &impl Limiter, who: &str, count: usize, server: Option<&str>, tool: Option<&str>) -> usize {
    let who = Principal::unrestricted(who);
    (0..count).filter(|_| limiter.take(&who, server, tool).is_ok()).count()
}

#[test]
fn clients_are_known_by_their_tokens() {
    let settings = EntranceSettings { auth_token: Some("for-all".into()), ..two_tokens() };
    let tokens = Tokens::new(&settings).expect("the tokens are good");
    assert!(tokens.asks_for_token());
    let name = |shown: Option<&str>| tokens.admit(shown.map(str::as_bytes)).map(|who| who.name.to_string());
    for (shown, expected) in [("sesame", "ann"), ("open-up", "bob"), ("for-all", SHARED)] {
        assert_eq!(name(Some(shown)).as_deref(), Ok(expected));
    }
    let long = "x".repeat(TOKEN_BYTES_MAX + 1);
    for wrong in ["", "sesam", "sesame ", "Sesame", "sesameopen-up", "ann", &long] {
        assert_eq!(name(Some(wrong)), Err(Unauthorized), "{wrong}");
    }
    assert_eq!(name(None), Err(Unauthorized));
}

#[test]
fn without_tokens_everybody_is_the_same() {
    let tokens = Tokens::new(&EntranceSettings::default()).expect("there are none");
    assert!(!tokens.asks_for_token());
    for shown in [None, Some(&b"anything"[..])] {
        let who = tokens.admit(shown).expect("all are let in");
        assert_eq!(&*who.name, ANONYMOUS);
        assert!(who.may_use_server("files") && who.may_use_tool("files", "delete"));
    }
}

#[test]
fn tokens_that_keep_nobody_out_are_not_taken() {
    #[track_caller]
    fn check(added: NamedToken, expected: &str) {
        let mut settings = two_tokens();
        settings.tokens.push(added);
        assert_eq!(Tokens::new(&settings).err().map(|error| error.to_string()).as_deref(), Some(expected));
    }
    check(named("eve", ""), "the token `eve` is empty");
    check(named("eve", "sesame"), "`eve` and `ann` are the same token");
    check(named("ann", "another"), "two tokens are called `ann`");
    check(named(ANONYMOUS, "another"), "no token can be called `anonymous`");
    check(named("eve", &"x".repeat(TOKEN_BYTES_MAX + 1)), "the token `eve` is longer than 4096 bytes");
    let settings = EntranceSettings { auth_token: Some("open-up".into()), ..two_tokens() };
    let same = BadTokens::SameToken { name: SHARED.into(), other: "bob".into() };
    assert_eq!(Tokens::new(&settings).err(), Some(same));
}

#[test]
fn settings_do_not_show_their_tokens() {
    let settings = EntranceSettings { auth_token: Some("for-all".into()), ..two_tokens() };
    let shown = format!("{settings:?}");
    assert!(shown.contains("ann") && !["sesame", "open-up", "for-all"].iter().any(|token| shown.contains(token)));
}

#[test]
fn a_client_may_use_what_its_patterns_say() {
    let who = |servers: Option<&[&str]>, tools: Option<&[&str]>| {
        let owned = |patterns: &[&str]| patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        Principal::of_token(&NamedToken { servers: servers.map(owned), tools: tools.map(owned), ..named("ann", "t") })
    };
    let all = who(None, None);
    assert!(all.may_use_server("any") && all.may_use_tool("any", "thing"));
    let none = who(Some(&[]), None);
    assert!(!none.may_use_server("any") && !none.may_use_tool("any", "thing"));
    let some = who(Some(&["files", "git*"]), Some(&["read_*", "github__*", "*__my__tool"]));
    for (server, tool, expected) in [
        ("files", "read_file", true),
        ("files", "write_file", false),
        ("github", "write_file", true),
        ("gitlab", "write_file", false),
        ("gitlab", "my__tool", true),
        ("memory", "read_graph", false),
        ("FILES", "read_file", false),
        // A server cannot borrow another one's name.
        ("files", "github__write_file", false),
    ] {
        assert_eq!(some.may_use_tool(server, tool), expected, "{server} {tool}");
    }
    assert!(some.may_use_server("gitlab") && !some.may_use_server("memory"));
}

#[test]
fn limits_are_exact_over_time() {
    for limit in [1, 7, 60, 60_000] {
        let settings = EntranceSettings { rate_limit_per_minute: Some(per_minute(limit)), ..two_tokens() };
        let (buckets, clock) = buckets(&settings);
        let asked = limit as usize + 10;
        assert_eq!(passed(&buckets, "ann", asked, None, None), limit as usize, "what may come at once");
        // Two minutes, in which far more is asked for than may be.
        let mut count = 0;
        for _ in 0..1_200 {
            clock.advance(Duration::from_millis(100));
            count += passed(&buckets, "ann", limit as usize / 100 + 1, None, None);
        }
        let expected = 2 * limit as usize;
        assert!((expected - 1..=expected).contains(&count), "{count} of {expected}");
        // Nobody else had anything taken from them, and a long silence gives no more than a minute's worth.
        assert_eq!(passed(&buckets, "bob", asked, None, None), limit as usize);
        clock.advance(Duration::from_secs(86_400));
        assert_eq!(passed(&buckets, "ann", asked, None, None), limit as usize);
    }
}

#[test]
fn who_waits_as_long_as_they_are_told_is_let_through() {
    let mut settings = EntranceSettings { rate_limit_per_minute: Some(per_minute(60)), ..two_tokens() };
    settings.servers = vec![ServerLimit { server: "files".into(), per_minute: per_minute(6) }];
    let (buckets, clock) = buckets(&settings);
    let ann = Principal::unrestricted("ann");
    assert_eq!(passed(&buckets, "ann", 10, Some("files"), None), 6);
    assert_eq!(passed(&buckets, "ann", 100, None, None), 54);
    let limited = buckets.take(&ann, Some("files"), None).expect_err("both are empty");
    assert_eq!(limited.retry_after, Duration::from_secs(10), "the longer wait");
    assert_eq!(limited.what, "6 a minute for server \"files\"");
    clock.advance(limited.retry_after - Duration::from_nanos(1));
    assert!(buckets.take(&ann, Some("files"), None).is_err());
    clock.advance(Duration::from_nanos(1));
    assert!(buckets.take(&ann, Some("files"), None).is_ok());
    let refusal = Refusal::from(Limited { retry_after: Duration::from_micros(1_500), what: "x".into() });
    assert_eq!(refusal, Refusal::RateLimited { retry_after_ms: 2, what: "x".into() });
}

#[test]
fn what_is_refused_counts_nowhere() {
    let mut settings = EntranceSettings { rate_limit_per_minute: Some(per_minute(100)), ..two_tokens() };
    settings.servers = vec![ServerLimit { server: "files".into(), per_minute: per_minute(50) }];
    settings.tools = vec![
        ToolLimit { server: "files".into(), tool: "write_*".into(), per_minute: per_minute(5) },
        ToolLimit { server: "files".into(), tool: "write_all".into(), per_minute: per_minute(1) },
    ];
    let (buckets, _clock) = buckets(&settings);
    // Tools that match the same pattern share its limit; the narrower one holds besides.
    assert_eq!(passed(&buckets, "ann", 1_000, Some("files"), Some("write_all")), 1);
    assert_eq!(passed(&buckets, "ann", 1_000, Some("files"), Some("write_one")), 4);
    assert_eq!(passed(&buckets, "ann", 1_000, Some("files"), Some("read")), 45);
    // The same names elsewhere are something else.
    assert_eq!(passed(&buckets, "ann", 10, Some("memory"), Some("write_all")), 10);
    assert_eq!(passed(&buckets, "ann", 1_000, None, None), 40);
    assert_eq!(passed(&buckets, "bob", 1_000, Some("files"), Some("write_all")), 1);
}

#[test]
fn names_that_clients_make_up_share_one_bucket() {
    let settings = EntranceSettings { rate_limit_per_minute: Some(per_minute(60)), ..two_tokens() };
    let entrance = Entrance::new(&settings).expect("the tokens are good");
    let (buckets, _clock) = buckets(&settings);
    let through: usize = (0..100_000).map(|n| passed(&buckets, &format!("made up {n}"), 1, None, None)).sum();
    assert_eq!(through, 60);
    // None of them comes so far.
    assert!((0..100_000).all(|n| entrance.admit(Some(format!("made up {n}").as_bytes())).is_err()));
    assert_eq!(passed(&buckets, "ann", 100, None, None), 60);
}

#[test]
fn what_a_conversation_was_let_in_with_holds() {
    let entrance = Entrance::new(&two_tokens()).expect("the tokens are good");
    let mut admission = Admission::default();
    let mut admit = |shown: Option<&str>| {
        let admitted = admission.admit(&entrance, shown.map(str::as_bytes));
        (admitted.map(|who| who.name.to_string()).ok(), admission.who().map(|who| who.name.to_string()))
    };
    let ann = || Some("ann".to_owned());
    assert_eq!(admit(None), (None, None));
    assert_eq!(admit(Some("wrong")), (None, None));
    assert_eq!(admit(Some("sesame")), (ann(), ann()));
    assert_eq!(admit(None), (ann(), ann()));
    assert_eq!(admit(Some("open-up")), (None, ann()), "somebody else's");
    assert_eq!(admit(Some("wrong")), (None, ann()));
    assert_eq!(admit(Some("sesame")), (ann(), ann()));

    let open = Entrance::new(&EntranceSettings::default()).expect("there are none");
    let mut admission = Admission::default();
    for shown in [None, Some(&b"anything"[..]), None] {
        assert_eq!(&*admission.admit(&open, shown).expect("all are let in").name, ANONYMOUS);
    }
}

fn message(text: &str) -> Message {
    Message::new(text.to_owned().into())
}

#[test]
fn a_token_is_taken_out_and_nothing_else() {
    #[track_caller]
    fn check(text: &str, token: &str, expected: &str) {
        let message = message(text);
        let shown = shown_in(&message).expect("it is clear").expect("it shows one");
        assert_eq!(shown.as_bytes(), token.as_bytes());
        assert_eq!(without_token(&message), expected.as_bytes());
    }
    check(
        r#"{ "id" : 1e0,"method":"x" , "params" : { "a":1 , "proxy" : {"authToken":"s"} , "b" : 2 } }"#,
        "s",
        r#"{ "id" : 1e0,"method":"x" , "params" : { "a":1 , "b" : 2 } }"#,
    );
    check(
        r#"{"id":1,"params":{"proxy":{"authToken" : "s\u0022\n"},"authToken":"other"},"method":"x"}"#,
        "s\"\n",
        r#"{"id":1,"params":{"authToken":"other"},"method":"x"}"#,
    );
    check(r#"{"id":1,"method":"x","params":{"proxy":{"authToken":"s"}}}"#, "s", r#"{"id":1,"method":"x","params":{}}"#);
    check(
        r#"{"id":1,"method":"x","params":{"proxy":{"authToken":"s","trace":true},"name":"é\u00e9"}}"#,
        "s",
        r#"{"id":1,"method":"x","params":{"proxy":{"trace":true},"name":"é\u00e9"}}"#,
    );
    check(
        r#"[{"id":1,"params":{"proxy":{"authToken":"s"}}}, {"id":2} ,{"id":3,"params":{"proxy":{"authToken":"\u0073"},"a":1}}]"#,
        "s",
        r#"[{"id":1,"params":{}}, {"id":2} ,{"id":3,"params":{"a":1}}]"#,
    );
}

#[test]
fn what_shows_no_token_stays_as_it_is() {
    for text in [
        r#"{"id":1,"method":"tools/list"}"#,
        r#"{"id":1,"method":"x","params":{"arguments":{"proxy":{"authToken":"s"}}}}"#,
        r#"{"id":1,"method":"x","params":{"proxy":"authToken","name":"\u0041"}}"#,
        r#"{"id":1,"method":"x","params":["proxy",{"authToken":"s"}]}"#,
        r#"{"id":1,"result":{"proxy":{"authToken":"s"}}}"#,
        r#"{"proxy":{"authToken":"s"}}"#,
        "\"authToken\"",
        "",
        "not json",
    ] {
        let message = message(text);
        assert_eq!(shown_in(&message), Ok(None), "{text}");
        assert_eq!(without_token(&message), text.as_bytes());
    }
}

#[test]
fn a_token_that_can_be_read_in_two_ways_is_not_guessed() {
    for (text, expected) in [
        (r#"{"params":{"proxy":{"authToken":"hunter22","authToken":"hunter23"}}}"#, Unclear::TwoWays),
        (r#"{"params":{"proxy":{"authToken":"hunter22"},"proxy":{}}}"#, Unclear::TwoWays),
        (r#"{"params":{"proxy":{"authToken":"hunter22"}},"params":{}}"#, Unclear::TwoWays),
        (r#"{"params":{"proxy":{"\u0061uthToken":"hunter22"}}}"#, Unclear::TwoWays),
        (r#"{"params":{"pro\u0078y":{"authToken":"hunter22"}}}"#, Unclear::TwoWays),
        (r#"{"par\u0061ms":{"proxy":{"authToken":"hunter22"}}}"#, Unclear::TwoWays),
        (r#"{"params":{"proxy":{"authToken":22222222}}}"#, Unclear::NotText),
        (r#"{"params":{"proxy":{"authToken":["hunter22"]}}}"#, Unclear::NotText),
        (
            r#"[{"params":{"proxy":{"authToken":"hunter22"}}},{"params":{"proxy":{"authToken":"hunter23"}}}]"#,
            Unclear::TwoWays,
        ),
    ] {
        let message = message(text);
        assert_eq!(shown_in(&message), Err(expected), "{text}");
        let kept = without_token(&message);
        let kept = String::from_utf8_lossy(&kept);
        assert!(!kept.contains("hunter2") && !kept.contains("22222222"), "{kept}");
    }
    // What is cut off is no message; all the same nothing of it is kept.
    let broken = message(r#"{"method":"x","params":{"proxy":{"authToken":"hunter22"}"#);
    assert_eq!(shown_in(&broken), Ok(None));
    assert!(!String::from_utf8_lossy(&without_token(&broken)).contains("hunter22"));
}
