//! The keys of one object: whether two of them are the same to some parser.

use super::Unfit;
use super::print::Print;
use crate::scan::Ambiguity;

/// Keys of an object that are compared pairwise without an allocation; nearly every object has fewer. Beyond it, a
/// key takes 8 bytes.
const FEW: usize = 16;

/// The keys that were seen so far: eight bytes for each, so never more than the message.
pub(super) struct Siblings {
    few: [Print; FEW],
    count: usize,
    /// All of them, once there are more; looked through at the end.
    many: Vec<Print>,
}

impl Default for Siblings {
    fn default() -> Self {
        Self { few: [Print::NONE; FEW], count: 0, many: Vec::new() }
    }
}

impl Siblings {
    #[inline(always)]
    pub(super) fn add(&mut self, key: Print) -> Result<(), Unfit> {
        if self.count == FEW {
            self.add_to_many(key);
            return Ok(());
        }
        if self.few[..self.count].contains(&key) {
            return Err(Ambiguity::RepeatedKey.into());
        }
        self.few[self.count] = key;
        self.count += 1;
        Ok(())
    }

    #[inline(never)]
    fn add_to_many(&mut self, key: Print) {
        if self.many.is_empty() {
            self.many.extend_from_slice(&self.few);
        }
        self.many.push(key);
    }

    #[inline(always)]
    pub(super) fn finish(&mut self) -> Result<(), Unfit> {
        if self.many.is_empty() { Ok(()) } else { self.finish_many() }
    }

    #[inline(never)]
    fn finish_many(&mut self) -> Result<(), Unfit> {
        self.many.sort_unstable();
        let repeats = self.many.windows(2).any(|pair| pair[0] == pair[1]);
        if repeats { Err(Ambiguity::RepeatedKey.into()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(keys: &[String]) -> Result<(), Unfit> {
        let mut siblings = Siblings::default();
        keys.iter().try_for_each(|key| siblings.add(Print::of(key.as_bytes())))?;
        siblings.finish()
    }

    #[test]
    fn a_repeat_is_found_among_few_and_many() {
        for count in [1, 2, FEW - 1, FEW, FEW + 1, FEW + 2, 1_000] {
            let keys: Vec<String> = (0..count).map(|at| format!("key{at}")).collect();
            assert_eq!(check(&keys), Ok(()), "{count}");
            for repeated in [0, count / 2, count - 1] {
                let keys = [&keys[..], &[format!("key{repeated}")]].concat();
                assert_eq!(check(&keys), Err(Ambiguity::RepeatedKey.into()), "{repeated} of {count}");
            }
        }
    }
}
