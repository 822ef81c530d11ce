//! Secrets that are known by their shape, whatever they stand under. The table is data: a new kind of
//! key is a line in it.

use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};

use super::Hidden;
use super::known::is_unlike_words;

/// A shorter text has the shape of no secret.
pub(super) const SHORTEST: usize = 6;

/// Whose it is, and what it looks like. Each begins with something that no word begins with, which is
/// also what lets a text without any be passed over at memory speed.
const SHAPES: &[(&str, &str)] = &[
    (
        "private key",
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|\z)",
    ),
    ("JSON Web Token", r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){1,3}"),
    ("AWS access key", r"\b(?:AKIA|ASIA|AIDA|AROA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    ("GitHub", r"gh[pousr]_[A-Za-z0-9]{30,}"),
    ("GitHub", r"github_pat_[A-Za-z0-9_]{20,}"),
    ("GitLab", r"\bgl(?:pat|ptt|dt|rt|cbt|ft|imt|agent|soat|ffct)-[A-Za-z0-9_-]{16,}"),
    ("Slack", r"\bxox[abceoprs]-[A-Za-z0-9-]{10,}"),
    ("Slack", r"\bxapp-[0-9]-[A-Za-z0-9-]{10,}"),
    ("Slack webhook", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{20,}"),
    ("Discord webhook", r"discord(?:app)?\.com/api/webhooks/[0-9]+/[A-Za-z0-9_-]{20,}"),
    ("OpenAI, Anthropic and others", r"\bsk-(?:[A-Za-z0-9]+-)*[A-Za-z0-9_-]{20,}"),
    ("Stripe", r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{10,}"),
    ("Stripe webhook", r"\bwhsec_[A-Za-z0-9+/=]{16,}"),
    ("Google API", r"\bAIza[A-Za-z0-9_-]{35}"),
    ("Google OAuth", r"\bya29\.[A-Za-z0-9_-]{20,}"),
    ("Google OAuth client", r"\bGOCSPX-[A-Za-z0-9_-]{20,}"),
    ("Google refresh token", r"\b1//0[A-Za-z0-9_-]{30,}"),
    ("npm", r"\bnpm_[A-Za-z0-9]{30,}"),
    ("PyPI", r"\bpypi-[A-Za-z0-9_-]{40,}"),
    ("crates.io", r"\bcio[A-Za-z0-9]{32}\b"),
    ("RubyGems", r"\brubygems_[a-f0-9]{40,}"),
    ("Docker Hub", r"\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    ("Hugging Face", r"\bhf_[A-Za-z0-9]{30,}"),
    ("Replicate", r"\br8_[A-Za-z0-9]{30,}"),
    ("Groq", r"\bgsk_[A-Za-z0-9]{30,}"),
    ("Perplexity", r"\bpplx-[A-Za-z0-9]{30,}"),
    ("xAI", r"\bxai-[A-Za-z0-9]{40,}"),
    ("Tavily", r"\btvly-[A-Za-z0-9-]{20,}"),
    ("Firecrawl", r"\bfc-[a-f0-9]{32}\b"),
    ("E2B", r"\be2b_[a-f0-9]{40}\b"),
    ("LangSmith", r"\blsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    ("Context7", r"\bctx7sk-[A-Za-z0-9-]{20,}"),
    ("SendGrid", r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("Mailgun", r"\bkey-[a-f0-9]{32}\b"),
    ("Twilio", r"\bSK[a-f0-9]{32}\b"),
    ("DigitalOcean", r"\bdo[opr]_v1_[a-f0-9]{64}"),
    ("Heroku", r"\bHRKU-[A-Za-z0-9_-]{30,}"),
    ("Databricks", r"\bdapi[a-f0-9]{32}\b"),
    ("Linear", r"\blin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    ("Notion", r"\bntn_[A-Za-z0-9]{40,}"),
    ("Notion", r"\bsecret_[A-Za-z0-9]{40,}"),
    ("Atlassian", r"\bAT(?:ATT3|CTT3|BB)[A-Za-z0-9_=-]{20,}"),
    ("Shopify", r"\bshp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}"),
    ("Square", r"\bsq0(?:atp|csp)-[A-Za-z0-9_-]{20,}"),
    ("New Relic", r"\bNRAK-[A-Z0-9]{27}"),
    ("Grafana", r"\bgl(?:sa|c)_[A-Za-z0-9+/=_]{32,}"),
    ("Vault", r"\bhv[sbr]\.[A-Za-z0-9_-]{20,}"),
    ("Doppler", r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{40,}"),
    ("Pulumi", r"\bpul-[a-f0-9]{40}"),
    ("PlanetScale", r"\bpscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{30,}"),
    ("Supabase", r"\bsbp_[a-f0-9]{40}"),
    ("Supabase", r"\bsb_secret_[A-Za-z0-9_-]{20,}"),
    ("Fly.io", r"\bfm[12][ar]?_[A-Za-z0-9+/=,_-]{40,}"),
    ("Netlify", r"\bnfp_[A-Za-z0-9]{30,}"),
    ("age", r"\bAGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    ("1Password", r"\bops_eyJ[A-Za-z0-9+/=_-]{40,}"),
    ("Tailscale", r"\btskey-[a-z]+-[A-Za-z0-9-]{16,}"),
    ("Postman", r"\bPMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    ("Figma", r"\bfig[dou]_[A-Za-z0-9_-]{40,}"),
    ("Airtable", r"\bpat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    ("Sentry", r"\bsntry[su]_[A-Za-z0-9+/=_]{40,}"),
    ("Buildkite", r"\bbkua_[a-f0-9]{40}"),
    ("CircleCI", r"\bCCIPAT_[A-Za-z0-9]{22}_[a-f0-9]{40}"),
    ("PostHog", r"\bph[xs]_[A-Za-z0-9]{40,}"),
    ("Dropbox", r"\bsl\.[A-Za-z0-9_-]{100,}"),
    ("Resend", r"\bre_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}"),
    ("Prefect", r"\bpn[ub]_[A-Za-z0-9]{36}"),
];

/// The same for those that nothing special begins.
const SHAPES_INSIDE: &[(&str, &str)] = &[
    ("Telegram bot", r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{32,33}"),
    ("Azure client secret", r"[A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{31,34}"),
    ("HCP Terraform", r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}"),
    ("Discord bot", r"\b[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"),
];

static BY_BEGINNING: LazyLock<Regex> = LazyLock::new(|| any_of(SHAPES));
static BY_INSIDE: LazyLock<Regex> = LazyLock::new(|| any_of(SHAPES_INSIDE));
/// `scheme://user:password@host`
static PASSWORD_IN_URL: LazyLock<Regex> = LazyLock::new(|| regex(r#"://[^\s/?#@:"'<>\\]*:([^\s/?#"'<>\\]+)@"#));
/// `scheme://token@host`
static TOKEN_IN_URL: LazyLock<Regex> = LazyLock::new(|| regex(r#"://([^\s/?#@:"'<>\\]{16,})@"#));
/// How HTTP clients prove themselves.
static SCHEME: LazyLock<Regex> = LazyLock::new(|| regex(r"\b(?i:bearer|basic)[ \t]+([A-Za-z0-9._~+/-]{8,}=*)"));

fn any_of(shapes: &[(&str, &str)]) -> Regex {
    regex(&shapes.iter().map(|(_, shape)| *shape).collect::<Vec<_>>().join("|"))
}

fn regex(pattern: &str) -> Regex {
    RegexBuilder::new(pattern).unicode(false).size_limit(64 << 20).build().expect("the table holds regular expressions")
}

pub(super) fn find(text: &[u8], hidden: &mut Vec<Hidden>) {
    for shapes in [&BY_BEGINNING, &BY_INSIDE] {
        hidden.extend(shapes.find_iter(text).map(|found| Hidden::inside(found.range())));
    }
    let mut parts = |pattern: &Regex, is_one: fn(&[u8]) -> bool| {
        let found = pattern.captures_iter(text).filter_map(|found| found.get(1));
        hidden.extend(found.filter(|part| is_one(part.as_bytes())).map(|part| Hidden::inside(part.range())));
    };
    parts(&PASSWORD_IN_URL, |_| true);
    parts(&TOKEN_IN_URL, is_unlike_words);
    parts(&SCHEME, is_unlike_words);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_well_formed() {
        for (_, shape) in SHAPES.iter().chain(SHAPES_INSIDE) {
            regex(shape);
        }
        assert!(SHAPES.len() > 60);
    }
}
