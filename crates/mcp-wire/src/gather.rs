//! Bytes waiting to leave together. Small pieces are copied side by side, so that a batch of short
//! messages is one run; large ones are shared, so that a big message is never copied.

use std::io::IoSlice;

use bytes::Bytes;

/// Below this a copy is cheaper than one more entry in a vectored write.
pub const COPY_BELOW: usize = 4 * 1024;
/// Capacity that an emptied gather keeps for the next batch.
const KEEP_CAPACITY: usize = 256 * 1024;
/// Entries of one vectored write; a longer batch takes further writes.
pub const SLICES: usize = 64;

#[derive(Debug, Default)]
pub struct Gather {
    pieces: Vec<Piece>,
    copied: Vec<u8>,
    /// The first piece not yet taken, and how much of it is.
    front: usize,
    taken: usize,
    len: usize,
}

#[derive(Debug)]
enum Piece {
    Copied { start: usize, end: usize },
    Shared(Bytes),
}

impl Gather {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds `bytes` without a copy if they are many.
    pub fn share(&mut self, bytes: &Bytes) {
        if bytes.len() < COPY_BELOW {
            self.copy(bytes);
        } else {
            self.pieces.push(Piece::Shared(bytes.clone()));
            self.len += bytes.len();
        }
    }

    pub fn copy(&mut self, bytes: &[u8]) {
        self.compose(|copied| copied.extend_from_slice(bytes));
    }

    /// Adds what `compose` appends to the bytes it is given, and leaves it where it was composed.
    pub fn compose(&mut self, compose: impl FnOnce(&mut Vec<u8>)) {
        let start = self.copied.len();
        compose(&mut self.copied);
        let added = self.copied.len() - start;
        if added == 0 {
            return;
        }
        self.len += added;
        match self.pieces.last_mut() {
            Some(Piece::Copied { end, .. }) => *end = self.copied.len(),
            _ => self.pieces.push(Piece::Copied { start, end: self.copied.len() }),
        }
    }

    /// Everything that waits, in one piece.
    pub fn to_bytes(&self) -> Bytes {
        let mut all = Vec::with_capacity(self.len);
        let mut skip = self.taken;
        for piece in &self.pieces[self.front..] {
            all.extend_from_slice(&self.bytes_of(piece)[skip..]);
            skip = 0;
        }
        all.into()
    }

    /// Fills `slices` with what comes first; the filled part is returned.
    pub fn slices<'a, 's>(&'a self, slices: &'s mut [IoSlice<'a>; SLICES]) -> &'s [IoSlice<'a>] {
        let mut count = 0;
        let mut skip = self.taken;
        for piece in self.pieces[self.front..].iter().take(SLICES) {
            slices[count] = IoSlice::new(&self.bytes_of(piece)[skip..]);
            skip = 0;
            count += 1;
        }
        &slices[..count]
    }

    /// Takes away `count` bytes that have left.
    pub fn advance(&mut self, mut count: usize) {
        self.len -= count;
        while count > 0 {
            let left = self.bytes_of(&self.pieces[self.front]).len() - self.taken;
            if count < left {
                self.taken += count;
                return;
            }
            count -= left;
            self.taken = 0;
            // A shared piece that has left is let go at once: it may be megabytes.
            self.pieces[self.front] = Piece::Copied { start: 0, end: 0 };
            self.front += 1;
        }
        if self.len == 0 {
            self.clear();
        }
    }

    pub fn clear(&mut self) {
        self.pieces.clear();
        self.copied.clear();
        if self.copied.capacity() > KEEP_CAPACITY {
            self.copied = Vec::new();
        }
        (self.front, self.taken, self.len) = (0, 0, 0);
    }

    fn bytes_of<'a>(&'a self, piece: &'a Piece) -> &'a [u8] {
        match piece {
            Piece::Copied { start, end } => &self.copied[*start..*end],
            Piece::Shared(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever goes in comes out, in order, however it is taken.
        #[test]
        fn nothing_is_lost(pieces in prop::collection::vec(0usize..9000, 0..20), takes in prop::collection::vec(1usize..7000, 1..200)) {
            let mut gather = Gather::default();
            let mut expected = Vec::new();
            for (n, size) in pieces.into_iter().enumerate() {
                let piece: Vec<u8> = (0..size).map(|at| (at * 7 + n) as u8).collect();
                expected.extend_from_slice(&piece);
                gather.share(&piece.into());
            }
            let mut left = Vec::new();
            for take in takes.into_iter().cycle() {
                prop_assert_eq!(gather.len(), expected.len() - left.len());
                let mut slices = [IoSlice::new(&[]); SLICES];
                let all: Vec<u8> = gather.slices(&mut slices).iter().flat_map(|slice| slice.to_vec()).collect();
                let take = take.min(all.len());
                left.extend_from_slice(&all[..take]);
                gather.advance(take);
                if gather.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(left, expected);
        }
    }
}
