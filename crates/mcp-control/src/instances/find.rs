//! Which instance is meant.

use super::{InstanceError, Running};

#[derive(Debug, thiserror::Error)]
pub enum FindError {
    #[error("nothing is running")]
    NoneRuns,
    #[error("no instance `{wanted}` is running")]
    Unknown { wanted: String, running: Vec<Running> },
    #[error("`{wanted}` fits several instances")]
    Ambiguous { wanted: String, candidates: Vec<Running> },
    #[error("several instances are running")]
    Several { running: Vec<Running> },
    #[error(transparent)]
    Instances(#[from] InstanceError),
}

impl FindError {
    /// Those that could have been meant.
    pub fn candidates(&self) -> &[Running] {
        match self {
            Self::NoneRuns | Self::Instances(_) => &[],
            Self::Unknown { running: them, .. }
            | Self::Ambiguous { candidates: them, .. }
            | Self::Several { running: them } => them,
        }
    }
}

/// The instance to watch: the newest of all for `last` and where none is named, the newest of those with
/// this name. The second value is how many fit.
pub(super) fn newest(running: Vec<Running>, wanted: Option<&str>) -> Result<(Running, usize), FindError> {
    let named = |instance: &&Running| match wanted {
        None | Some("last") => true,
        Some(name) => instance.description.name.as_deref() == Some(name),
    };
    let count = running.iter().filter(named).count();
    // They come oldest first.
    match running.iter().rfind(named).filter(|_| count > 1) {
        Some(newest) => Ok((newest.clone(), count)),
        None => find(running, wanted.filter(|wanted| *wanted != "last")).map(|found| (found, 1)),
    }
}

/// As with recorded sessions: a name that is also the beginning of another id fits both.
pub(super) fn find(mut running: Vec<Running>, wanted: Option<&str>) -> Result<Running, FindError> {
    let Some(wanted) = wanted else {
        return match running.len() {
            0 => Err(FindError::NoneRuns),
            1 => Ok(running.remove(0)),
            _ => Err(FindError::Several { running }),
        };
    };
    if running.is_empty() {
        return Err(FindError::NoneRuns);
    }
    let beginning = wanted.to_ascii_lowercase();
    let is_meant = |instance: &Running| {
        let begins = !wanted.is_empty() && instance.description.id.to_string().starts_with(&beginning);
        begins || instance.description.name.as_deref() == Some(wanted)
    };
    let (mut meant, others): (Vec<Running>, Vec<Running>) = running.into_iter().partition(is_meant);
    match meant.len() {
        0 => Err(FindError::Unknown { wanted: wanted.to_owned(), running: others }),
        1 => Ok(meant.remove(0)),
        _ => Err(FindError::Ambiguous { wanted: wanted.to_owned(), candidates: meant }),
    }
}
