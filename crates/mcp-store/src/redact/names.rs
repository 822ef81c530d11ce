//! Names that say that a value is secret. Names are compared by how they end, in lower case and without
//! what separates their words: `GITHUB_TOKEN`, `githubToken` and `github-token` are one.

/// Endings of names under which secrets stand.
const SECRET: &[&str] = &[
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "secrets",
    "clientsecretvalue",
    "token",
    "tokensecret",
    "apikey",
    "apikeys",
    "appkey",
    "applicationkey",
    "accesskey",
    "accesskeys",
    "secretkey",
    "privatekey",
    "privatekeys",
    "privatekeyid",
    "signingkey",
    "encryptionkey",
    "decryptionkey",
    "accountkey",
    "sharedkey",
    "sharedaccesskey",
    "masterkey",
    "sessionkey",
    "subscriptionkey",
    "deploykey",
    "servicekey",
    "servicerolekey",
    "hmackey",
    "sshkey",
    "keymaterial",
    "credential",
    "credentials",
    "authorization",
    "authheader",
    "cookie",
    "cookies",
    "jwt",
    "bearer",
    "otp",
    "totp",
    "onetimecode",
    "mfacode",
    "verificationcode",
    "recoverycode",
    "recoverycodes",
    "backupcodes",
    "seedphrase",
    "mnemonic",
    "cvv",
    "cvc",
    "cardnumber",
    "codeverifier",
    "clientassertion",
    "amzsignature",
    "amzcredential",
];

/// Names that end so and are secret only when nothing stands before the ending: `pass` is one, `bypass`
/// is not.
const SECRET_ALONE: &[&str] = &["pass", "dbpass", "userpass", "smtppass", "mysqlpass", "pgpass", "sig"];

/// Endings that only sound like it. The protocol's own progress token is a number a client chose, and a
/// page token is a place in a list.
const PLAIN: &[&str] = &[
    "progresstoken",
    "pagetoken",
    "nexttoken",
    "nextpagetoken",
    "previoustoken",
    "continuationtoken",
    "cursortoken",
    "synctoken",
    "marktoken",
    "pertoken",
    "maxtoken",
    "cancellationtoken",
    "canceltoken",
    "eostoken",
    "bostoken",
    "padtoken",
    "nosecret",
];

/// Headers that are as good as a key while they last, though nothing in their name says so.
const SECRET_HEADERS: &[&str] = &["mcpsessionid", "xforwardedauthorization", "proxyauthorization", "setcookie"];

/// The same for parameters of an address.
const SECRET_PARAMETERS: &[&str] = &["session", "sessionid", "sid", "code", "signature"];

/// The longest name that is looked up as a whole; of a longer one, the end is.
const NAME_MAX: usize = 96;

pub(super) fn is_secret(name: &str) -> bool {
    let plain = squeezed(name);
    let ends_so = |endings: &[&str]| endings.iter().any(|ending| plain.ends_with(ending));
    (ends_so(SECRET) && !ends_so(PLAIN)) || SECRET_ALONE.contains(&plain.as_str())
}

pub(super) fn is_secret_header(name: &str) -> bool {
    SECRET_HEADERS.contains(&squeezed(name).as_str())
}

pub(super) fn is_secret_parameter(name: &str) -> bool {
    SECRET_PARAMETERS.contains(&squeezed(name).as_str())
}

/// Whether a number under this name is a count. Of a password it is a secret.
pub(super) fn counts(name: &str) -> bool {
    let plain = squeezed(name);
    ["cookies", "secrets", "credentials", "pass", "passwords", "apikeys", "token"]
        .iter()
        .any(|ending| plain.ends_with(ending))
}

/// The current directory of a shell goes by the same name as somebody's password.
pub(super) fn is_directory(name: &str, value: &[u8]) -> bool {
    squeezed(name).ends_with("pwd") && value.starts_with(b"/")
}

fn squeezed(name: &str) -> String {
    let from = name.char_indices().rev().nth(NAME_MAX).map_or(0, |(at, _)| at);
    name[from..].chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_say_it() {
        for name in [
            "password",
            "PGPASSWORD",
            "db_password",
            "GITHUB_TOKEN",
            "githubToken",
            "x-api-key",
            "apiKey",
            "api_keys",
            "AWS_SECRET_ACCESS_KEY",
            "client_secret",
            "clientSecret",
            "private_key",
            "Authorization",
            "Set-Cookie",
            "refresh_token",
            "accesstoken",
            "AccountKey",
            "otp",
            "pass",
            "_authToken",
            "//registry/:_authToken",
            "X-Amz-Security-Token",
            "X-Amz-Signature",
            "ssh_key",
            "credentials",
            "cardNumber",
            "PWD",
        ] {
            assert!(is_secret(name), "{name}");
        }
    }

    #[test]
    fn names_that_only_sound_like_it() {
        for name in [
            "progressToken",
            "nextPageToken",
            "page_token",
            "max_tokens",
            "maxTokens",
            "inputTokens",
            "token_count",
            "tokenizer",
            "tokenType",
            "token_endpoint",
            "authorization_endpoint",
            "authorizationUrl",
            "passed",
            "bypass",
            "secretary",
            "tokens",
            "auth",
            "key",
            "keys",
            "keyId",
            "public_key",
            "author",
            "oauth",
            "cookieConsent",
            "passwordRequired",
            "passwordPolicy",
            "secretName",
            "monkey",
            "sigmoid",
            "id",
            "name",
            "",
            "cancellationToken",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn a_shells_directory_is_no_password() {
        assert!(is_directory("OLDPWD", b"/home/me"));
        assert!(!is_directory("db_pwd", b"hunter2") && !is_directory("password", b"/etc"));
    }

    #[test]
    fn endless_names_are_looked_at_from_the_end() {
        assert!(is_secret(&format!("{}_password", "x".repeat(1_000_000))));
        assert!(!is_secret(&format!("password_{}", "é".repeat(1_000_000))));
    }
}
