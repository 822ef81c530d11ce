use proptest::prelude::*;

use super::planted::{Planted, planted};
use super::*;

fn message(text: &str) -> String {
    let masked = Redactor::default().message(&Bytes::copy_from_slice(text.as_bytes()));
    String::from_utf8(masked.to_vec()).expect("masking keeps text text")
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(message(text), expected);
}

#[track_caller]
fn stays(text: &str) {
    assert_eq!(message(text), text);
}

#[test]
fn every_planted_secret_is_found_wherever_it_stands() {
    let planted = planted();
    assert!(planted.len() >= 200, "{}", planted.len());
    for Planted { secret, text, needs_text } in &planted {
        let in_json = |text: &str| serde_json::to_string(text).expect("text is JSON");
        let result = format!(r#"{{"result":{{"content":[{{"type":"text","text":{}}}]}}}}"#, in_json(text));
        let nested = format!(r#"{{"text":{}}}"#, in_json(&result));
        let mut places = vec![text.clone(), format!("> {text}"), result, nested, format!("[{}]", in_json(text))];
        if !needs_text {
            places.extend([format!(r#"{{"a":"{secret}"}}"#), format!(r#"{{"{secret}":1}}"#), secret.clone()]);
        }
        for place in places {
            let masked = message(&place);
            assert!(!masked.contains(secret.as_str()), "{secret} in {masked} of {place}");
            assert!(masked.contains(MASK));
        }
    }
}

#[test]
fn only_the_secret_is_replaced() {
    check(r#"{ "a":1e400,"password" : "x\"y", "b":[ ]}"#, r#"{ "a":1e400,"password" : "***", "b":[ ]}"#);
    check(r#"{"password":1234,"otp":12}"#, r#"{"password":"***","otp":"***"}"#);
    check(r#"{"text":"{\"password\":1234}"}"#, r#"{"text":"{\"password\":\"***\"}"}"#);
    check(r#"{"t":"caf\u00e9 password=h\u00fcnter2 \u00e9"}"#, r#"{"t":"caf\u00e9 password=*** \u00e9"}"#);
    check("GET https://u:p@h/?token=abc&x=1", "GET https://u:***@h/?token=***&x=1");
    check("POST /message?session=8487948c-8c8b&x=1", "POST /message?session=***&x=1");
    stays("session=8487948c, code=12 and ?page=2");
    check("Authorization: Bearer abc.def", "Authorization: Bearer ***");
    check(r#"{"headers":[{"name":"X-Api-Key","value":"v"}]}"#, r#"{"headers":[{"name":"X-Api-Key","value":"***"}]}"#);
    check(r#"{"value":"v","name":"X-Api-Key"}"#, r#"{"value":"***","name":"X-Api-Key"}"#);
}

#[test]
fn what_is_no_secret_stays() {
    stays(r#"{"params":{"_meta":{"progressToken":7}},"nextPageToken":"abc123XYZ"}"#);
    stays(r#"{"password":null,"secret":true,"token":"","maxTokens":4096,"tokens":["Hello","W0rld"]}"#);
    stays(r#"{"authorization":"Bearer ***"}"#);
    stays(r#"{"properties":{"password":{"type":"string","description":"Your password"}},"required":["password"]}"#);
    check(
        r#"{"properties":{"password":{"type":"string","default":"hunter2"}}}"#,
        r#"{"properties":{"password":{"type":"string","default":"***"}}}"#,
    );
    // Names of Java's kind stand under the same word.
    check(r#"{"properties":{"db.password":"hunter2"}}"#, r#"{"properties":{"db.password":"***"}}"#);
}

#[test]
fn ordinary_text_stays() {
    for text in [
        "The token is passed in the Authorization header. See the docs for the secret handshake.",
        "Set a password: it must have eight characters. Password required. Token: see below",
        "def login(password: str, token: Optional[str] = None, secret=os.environ) -> None:",
        "const token = await getToken(); const apiKey = process.env; let secret = input",
        "api_key=${API_KEY} password=$PASSWORD token=<your token> secret={{ vault.secret }} key=***",
        "PWD=/home/me OLDPWD=/tmp",
        "commit 3f2504e04f8941d39a0c0305e82c3301a1b2c3d4 in module sk-learn, disk-usage and task-list-of-mine",
        "sk-ecdsa-sha2-nistp256@openssh.com is a type of key; ssh-ed25519 is another",
        "uuid 7f3a9a52-0c3f-4d34-9b0e-1f2e3d4c5b6a, digest sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d",
        "visit https://example.com:8080/a@b and mail me@example.com, then http://localhost:3000/?page=2&sort=asc",
        "basic instructions and a bearer certificate; Basic authentication is described in RFC 7617",
        "tokenizer: gpt, token_count: 12, max_tokens=4096, progressToken=17, keyboard=us, author: me",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        "the cookie jar, a secretary, the passport, bypass=true, compass: north, passed=12",
    ] {
        stays(text);
        stays(&serde_json::to_string(text).expect("text is JSON"));
    }
}

#[test]
fn paths_hide_what_they_lead_to() {
    let check = |paths: &[&str], text: &str, expected: &str| {
        let paths = paths.iter().map(|path| path.parse().expect("a path")).collect();
        let mut redactor = Redactor::new(paths);
        assert_eq!(
            String::from_utf8_lossy(&redactor.message(&Bytes::copy_from_slice(text.as_bytes()))),
            expected,
            "{text}"
        );
    };
    let text = r#"{"params":{"arguments":{"pin": 1234, "rows":[{"ssn":"a b"},{"ssn":null}]}}}"#;
    check(
        &["$.params.arguments.pin"],
        text,
        r#"{"params":{"arguments":{"pin": "***", "rows":[{"ssn":"a b"},{"ssn":null}]}}}"#,
    );
    check(&["$..ssn"], text, r#"{"params":{"arguments":{"pin": 1234, "rows":[{"ssn":"***"},{"ssn":"***"}]}}}"#);
    check(
        &["$.params.arguments.rows[1].*", "$['params']['arguments'].rows[0]"],
        text,
        r#"{"params":{"arguments":{"pin": 1234, "rows":["***",{"ssn":"***"}]}}}"#,
    );
    check(&["$.params"], text, r#"{"params":"***"}"#);
    check(&["$.params.nothing", "$.other..x"], text, text);
    check(&["$[*].a"], r#"[{"a":1},{"a":{"b":2}}]"#, r#"[{"a":"***"},{"a":"***"}]"#);
}

#[test]
fn what_was_secret_once_stays_secret() {
    let mut redactor = Redactor::default();
    redactor.message(&Bytes::from_static(br#"{"password":"correct-horse-7"}"#));
    let said = redactor.message(&Bytes::from_static(br#"{"text":"you said correct-horse-7, right?"}"#));
    assert_eq!(String::from_utf8_lossy(&said), r#"{"text":"you said ***, right?"}"#);
    assert_eq!(redactor.masked(), 2);
    // Words are not remembered: they would be masked in any text.
    redactor.message(&Bytes::from_static(br#"{"password":"password","token":"internet"}"#));
    assert_eq!(redactor.text("the internet has a password"), "the internet has a password");
}

#[test]
fn headers_and_notes_go_by_their_names() {
    let mut redactor = Redactor::default();
    assert_eq!(redactor.named("authorization", "Bearer abc"), "Bearer ***");
    assert_eq!(redactor.named("X-Api-Key", "abc"), "***");
    assert_eq!(redactor.named("mcp-session-id", "abc"), "***");
    assert_eq!(redactor.named("cookie", "***"), "***");
    assert_eq!(redactor.named("accept", "application/json"), "application/json");
    assert_eq!(redactor.masked(), 3);
    assert_eq!(Redactor::off().named("x-api-key", "abc"), "abc");
}

#[test]
fn hostile_messages_cost_no_more_than_they_weigh() {
    let deep = "[".repeat(1_000_000);
    stays(&deep);
    let nested = format!("{}{}", r#"{"secret":["#.repeat(600), "]}".repeat(600));
    assert!(message(&nested).contains(MASK) || message(&nested) == nested);
    let deep_secret = format!(r#"{{"password":{}"hunter2"{}}}"#, "[".repeat(1000), "]".repeat(1000));
    assert!(!message(&deep_secret).contains("hunter2"));
    for word in ["password ", "token:", "password=", "://a:", "eyJ", "sk-", "cookie: ", "{\\\"a\\\":", "<token>"] {
        message(&format!(r#"{{"text":"{}"}}"#, word.repeat(200_000)));
        message(&word.repeat(200_000));
    }
    stays(&"password ".repeat(100_000));
    let escapes = format!(r#"{{"password":"{}"}}"#, r"\u0041".repeat(100_000));
    check(&escapes, r#"{"password":"***"}"#);
    let bytes = Bytes::from_static(b"\xff\xfe password=hunter2 \xff");
    assert_eq!(Redactor::default().message(&bytes), &b"\xff\xfe password=*** \xff"[..]);
}

proptest! {
    #[test]
    fn masked_json_is_json_and_masked_text_is_text(text in r#"[ -~é"\\{}\[\]:,\n]{0,200}"#, name in "(password|text|token|a)") {
        let value = serde_json::json!({ name: text, "list": [text, 1.5, null], "secret": { "x": text } });
        let spelled = value.to_string();
        let masked = message(&spelled);
        prop_assert!(serde_json::from_str::<serde_json::Value>(&masked).is_ok(), "{masked}");
        message(&text);
    }
}
