//! What the terminal shows of recorded sessions and of the audit log.

use std::sync::Arc;

use mcp_store::StateDir;
use mcp_tui::library::{
    Comparison, Decision, Export, Exported, Hit, Library, Recording, SessionRef, SessionRow, Trouble, Work,
};

pub fn library(_: &StateDir) -> Arc<dyn Library> {
    Arc::new(Empty)
}

struct Empty;

fn nothing<T>() -> Result<T, Trouble> {
    Err("recordings cannot be shown here".into())
}

impl Library for Empty {
    fn sessions(&self) -> Result<Vec<SessionRow>, Trouble> {
        nothing()
    }

    fn search(&self, _: &str, _: usize) -> Result<Vec<Hit>, Trouble> {
        nothing()
    }

    fn open(&self, _: &SessionRef) -> Result<Arc<dyn Recording>, Trouble> {
        nothing()
    }

    fn export(&self, _: &Export, _: &Work) -> Result<Exported, Trouble> {
        nothing()
    }

    fn compare(&self, _: &SessionRef, _: &SessionRef, _: &Work) -> Result<Comparison, Trouble> {
        nothing()
    }

    fn audit(&self, _: Option<&str>, _: usize) -> Result<Vec<Decision>, Trouble> {
        nothing()
    }
}
