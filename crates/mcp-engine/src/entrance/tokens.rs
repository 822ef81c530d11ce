//! Clients known by a token each. Tokens are compared by their hashes, every one of them, whatever was
//! shown: the time that takes tells neither which token came close, nor how long any is.

use std::rc::Rc;
use std::sync::Arc;

use subtle::{ConditionallySelectable, ConstantTimeEq};

use super::{ANONYMOUS, Authority, EntranceSettings, Principal, Unauthorized};

/// What whoever shows the token for everybody is called.
pub const SHARED: &str = "token";
/// The longest token that is compared; a longer one is unknown. Rate limits need no bound: settings create them,
/// clients cannot.
pub const TOKEN_BYTES_MAX: usize = 4096;

pub struct Tokens {
    known: Vec<Known>,
    /// Everybody, where there are no tokens.
    anonymous: Rc<Principal>,
}

struct Known {
    hash: [u8; 32],
    who: Rc<Principal>,
}

/// Tokens that would not tell clients apart, or keep anybody out.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTokens {
    #[error("the token `{name}` is empty")]
    Empty { name: String },
    #[error("the token `{name}` is longer than {TOKEN_BYTES_MAX} bytes")]
    TooLong { name: String },
    #[error("two tokens are called `{name}`")]
    SameName { name: String },
    #[error("`{name}` and `{other}` are the same token")]
    SameToken { name: String, other: String },
    #[error("no token can be called `{ANONYMOUS}`")]
    Anonymous,
}

impl Tokens {
    pub fn new(settings: &EntranceSettings) -> Result<Self, BadTokens> {
        let mut tokens = Self { known: Vec::new(), anonymous: Rc::new(Principal::unrestricted(ANONYMOUS)) };
        for named in &settings.tokens {
            tokens.add(&named.token, Principal::of_token(named))?;
        }
        if let Some(token) = &settings.auth_token {
            tokens.add(token, Principal::unrestricted(SHARED))?;
        }
        Ok(tokens)
    }

    fn add(&mut self, token: &str, who: Principal) -> Result<(), BadTokens> {
        let (hash, name) = (hash(token.as_bytes()), who.name.to_string());
        let other = self.known.iter().find(|known| known.hash == hash || known.who.is(&who));
        match other {
            _ if token.is_empty() => Err(BadTokens::Empty { name }),
            _ if token.len() > TOKEN_BYTES_MAX => Err(BadTokens::TooLong { name }),
            _ if name == ANONYMOUS => Err(BadTokens::Anonymous),
            Some(other) if other.who.is(&who) => Err(BadTokens::SameName { name }),
            Some(other) => Err(BadTokens::SameToken { name, other: other.who.name.to_string() }),
            None => {
                self.known.push(Known { hash, who: Rc::new(who) });
                Ok(())
            }
        }
    }

    /// What those can be called who are let in.
    pub fn names(&self) -> impl Iterator<Item = Arc<str>> {
        let anonymous = self.known.is_empty().then_some(&self.anonymous);
        self.known.iter().map(|known| &known.who).chain(anonymous).map(|who| Arc::clone(&who.name))
    }
}

impl Authority for Tokens {
    fn asks_for_token(&self) -> bool {
        !self.known.is_empty()
    }

    fn admit(&self, shown: Option<&[u8]>) -> Result<Rc<Principal>, Unauthorized> {
        if !self.asks_for_token() {
            return Ok(Rc::clone(&self.anonymous));
        }
        // No token is empty, so nothing is a wrong one like any other.
        let shown = shown.filter(|shown| shown.len() <= TOKEN_BYTES_MAX).unwrap_or_default();
        let shown = hash(shown);
        let mut found = self.known.len() as u64;
        for (at, known) in (0..).zip(&self.known) {
            found.conditional_assign(&at, known.hash.ct_eq(&shown));
        }
        self.known.get(found as usize).map(|known| Rc::clone(&known.who)).ok_or(Unauthorized)
    }
}

fn hash(token: &[u8]) -> [u8; 32] {
    *blake3::hash(token).as_bytes()
}
