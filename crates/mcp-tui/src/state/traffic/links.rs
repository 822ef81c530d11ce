//! How the messages of a gateway lead to each other: what came from a client, and what a server was sent for it.

use super::Traffic;

/// Messages behind one that are looked at for those that it led to, which come soon.
const NEAR: usize = 1_000;

impl Traffic {
    /// The message of a client that this one, or what it answers, was made of.
    pub(crate) fn maker(&self, sequence: u64) -> Option<u64> {
        self.rows.get(self.request_of(sequence)?)?.message.parent
    }

    /// The messages that were made of this one, or of what it answers; as far as they are listed.
    pub(crate) fn made(&self, sequence: u64) -> impl Iterator<Item = u64> {
        let request = self.request_of(sequence);
        let from = request.map_or(self.rows.len(), |request| self.rows.lower_bound(request));
        let near = self.rows.range(from..self.rows.len().min(from.saturating_add(NEAR)));
        near.filter(move |row| row.message.parent.is_some() && row.message.parent == request)
            .map(|row| row.message.sequence)
    }

    /// From what a server was sent to what it was made of, and back to the first that was.
    pub(crate) fn across(&self) -> Option<u64> {
        let selected = self.selected?;
        self.maker(selected).or_else(|| self.made(selected).next())
    }

    fn request_of(&self, sequence: u64) -> Option<u64> {
        Some(self.rows.get(sequence)?.message.answers.unwrap_or(sequence))
    }
}
