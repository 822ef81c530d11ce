//! Secrets for the tests: one of every shape, and one under every kind of name. They are put together
//! here, so that none of them stands in the source as it would in the wild.

/// A secret, and a text that gives it away.
pub(crate) struct Planted {
    pub secret: String,
    pub text: String,
    /// It is a secret only inside its text, and would be none elsewhere.
    pub needs_text: bool,
}

const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const HEX: &str = "0123456789abcdef";

/// Looks random and is the same every time.
fn filler(seed: u64, length: usize, alphabet: &str) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        alphabet.as_bytes()[(state >> 33) as usize % alphabet.len()] as char
    };
    (0..length).map(|_| next()).collect()
}

/// What begins the secrets of somebody, how many characters follow, of which kind.
const SHAPED: &[(&str, usize, &str)] = &[
    ("AKIA", 16, UPPER),
    ("ASIA", 16, UPPER),
    ("ghp_", 36, ALNUM),
    ("gho_", 36, ALNUM),
    ("ghu_", 36, ALNUM),
    ("ghs_", 36, ALNUM),
    ("ghr_", 36, ALNUM),
    ("github_pat_11", 70, ALNUM),
    ("glpat-", 20, ALNUM),
    ("gldt-", 20, ALNUM),
    ("glrt-", 20, ALNUM),
    ("xoxb-123456789012-", 24, ALNUM),
    ("xoxp-123456789012-", 24, ALNUM),
    ("xoxa-2-", 24, ALNUM),
    ("xoxe-1-", 40, ALNUM),
    ("xapp-1-A0-12-", 32, HEX),
    ("sk-", 48, ALNUM),
    ("sk-proj-", 48, ALNUM),
    ("sk-svcacct-", 48, ALNUM),
    ("sk-ant-api03-", 80, ALNUM),
    ("sk-or-v1-", 64, HEX),
    ("sk_live_", 24, ALNUM),
    ("sk_test_", 24, ALNUM),
    ("rk_live_", 24, ALNUM),
    ("whsec_", 32, ALNUM),
    ("AIza", 35, ALNUM),
    ("ya29.", 60, ALNUM),
    ("GOCSPX-", 28, ALNUM),
    ("1//0", 40, ALNUM),
    ("npm_", 36, ALNUM),
    ("pypi-AgEI", 60, ALNUM),
    ("cio", 32, ALNUM),
    ("rubygems_", 48, HEX),
    ("dckr_pat_", 27, ALNUM),
    ("hf_", 34, ALNUM),
    ("r8_", 37, ALNUM),
    ("gsk_", 52, ALNUM),
    ("pplx-", 48, ALNUM),
    ("xai-", 80, ALNUM),
    ("tvly-", 32, ALNUM),
    ("fc-", 32, HEX),
    ("e2b_", 40, HEX),
    ("key-", 32, HEX),
    ("SK", 32, HEX),
    ("dop_v1_", 64, HEX),
    ("doo_v1_", 64, HEX),
    ("HRKU-", 40, ALNUM),
    ("dapi", 32, HEX),
    ("lin_api_", 40, ALNUM),
    ("ntn_", 46, ALNUM),
    ("secret_", 43, ALNUM),
    ("ATATT3", 60, ALNUM),
    ("ATBB", 32, ALNUM),
    ("shpat_", 32, HEX),
    ("shpss_", 32, HEX),
    ("sq0atp-", 22, ALNUM),
    ("sq0csp-", 43, ALNUM),
    ("NRAK-", 27, UPPER),
    ("glsa_", 41, ALNUM),
    ("hvs.", 90, ALNUM),
    ("hvb.", 90, ALNUM),
    ("dp.pt.", 43, ALNUM),
    ("pul-", 40, HEX),
    ("pscale_tkn_", 43, ALNUM),
    ("sbp_", 40, HEX),
    ("sb_secret_", 31, ALNUM),
    ("fm2_", 90, ALNUM),
    ("nfp_", 36, ALNUM),
    ("AGE-SECRET-KEY-1", 58, UPPER),
    ("ops_eyJ", 90, ALNUM),
    ("tskey-auth-", 30, ALNUM),
    ("figd_", 43, ALNUM),
    ("sntryu_", 64, HEX),
    ("bkua_", 40, HEX),
    ("phx_", 43, ALNUM),
    ("sl.", 130, ALNUM),
    ("123456789:AA", 33, ALNUM),
    ("abc8Q~", 34, ALNUM),
    ("hooks.slack.com/services/T00/B00/", 24, ALNUM),
    ("discord.com/api/webhooks/12/", 68, ALNUM),
];

/// Names that somebody's secret stands under.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "db_password",
    "PGPASSWORD",
    "passphrase",
    "secret",
    "client_secret",
    "clientSecret",
    "token",
    "access_token",
    "refreshToken",
    "id_token",
    "GITHUB_TOKEN",
    "authToken",
    "sessionToken",
    "x-auth-token",
    "api_key",
    "apiKey",
    "APIKEY",
    "x-api-key",
    "aws_secret_access_key",
    "secretKey",
    "private_key",
    "signing-key",
    "AccountKey",
    "credentials",
    "authorization",
    "cookie",
    "jwt",
    "recovery_code",
];

/// How a name and its secret are put.
const TEXTS: &[&str] = &[
    r#"{"NAME":"SECRET"}"#,
    r#"{"deep":[{"NAME" : "SECRET"}]}"#,
    r#"{"name":"NAME","value":"SECRET"}"#,
    r#"{"NAME":{"current":"SECRET","kind":7}}"#,
    "NAME=SECRET",
    "run --NAME=SECRET now",
    "config: NAME: 'SECRET', more",
    "https://h.example/p?x=1&NAME=SECRET&y=2#z",
];

pub(crate) fn planted() -> Vec<Planted> {
    let mut planted = Vec::new();
    for (seed, (beginning, length, alphabet)) in (1..).zip(SHAPED) {
        let secret = format!("{beginning}{}", filler(seed, *length, alphabet));
        planted.push(Planted { text: format!("before {secret} after"), secret, needs_text: false });
    }
    for (seed, name) in (1000..).zip(NAMES) {
        for (variant, text) in (0..).zip(TEXTS) {
            let secret = format!("Zq{}", filler(seed * 10 + variant, 12, ALNUM));
            let text = text.replace("NAME", name).replace("SECRET", &secret);
            planted.push(Planted { secret, text, needs_text: true });
        }
    }
    planted.extend(composed());
    planted
}

/// Those with more than one part.
fn composed() -> Vec<Planted> {
    let part = |seed, length| filler(seed, length, ALNUM);
    let mut planted = Vec::new();
    let mut plant = |secret: String, text: String| planted.push(Planted { secret, text, needs_text: true });
    let jwt = format!("eyJ{}.eyJ{}.{}", part(1, 33), part(2, 60), part(3, 43));
    plant(jwt.clone(), format!("token was {jwt}"));
    let (kind, body) = ("PRIVATE KEY", part(4, 200));
    for begin in ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "] {
        let pem = format!("-----BEGIN {begin}{kind}-----\n{body}\n-----END {begin}{kind}-----");
        plant(body.clone(), format!("the key is\n{pem}\nkeep it"));
    }
    plant(body.clone(), format!("cut short: -----BEGIN {kind}-----\n{body}"));
    for (seed, scheme) in (10..).zip(["https", "postgres", "mongodb+srv", "redis", "amqp"]) {
        let secret = format!("p{}", part(seed, 12));
        plant(secret.clone(), format!("at {scheme}://user:{secret}@db.example:1/x"));
    }
    let secret = part(20, 30);
    plant(secret.clone(), format!("git clone https://{secret}9aB@git.example/x.git"));
    for (seed, text) in (30..).zip([
        "Authorization: Bearer SECRET",
        "authorization: SECRET\r\nhost: x",
        "curl -H 'Authorization: Basic SECRET=='",
        "Set-Cookie: sid=SECRET; Path=/",
        "Cookie: a=b; sid=SECRET",
        "the header is bearer SECRET today",
        "<password>SECRET</password>",
        "$env:API_KEY = \"SECRET\"",
        "password: SECRET",
        "server --api-key SECRET --verbose",
        r#"log: {\"password\": \"SECRET\"} done"#,
        "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=SECRET==;Suffix=core",
        "Server=db;User Id=sa;Password=SECRET;Encrypt=yes",
        "//registry.example/:_authToken=SECRET",
    ]) {
        let secret = format!("k3Y{}", part(seed, 20));
        plant(secret.clone(), text.replace("SECRET", &secret));
    }
    planted
}
