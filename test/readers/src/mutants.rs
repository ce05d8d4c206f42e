//! Seeded mutants by number: the same seed and number give the same mutant and reader.

use crate::{
    corpus,
    mutate::Original,
    random::Random,
    readers::{READERS, Reader},
};

/// Corpora of the selected readers.
pub struct Mutants {
    seed: u64,
    readers: Vec<(&'static Reader, Vec<Original>)>,
    weights: u64,
}

impl Mutants {
    /// Loads the corpora of all readers, or of one.
    pub fn new(seed: u64, only: Option<&str>) -> Self {
        let wanted = READERS.iter().filter(|reader| only.is_none_or(|only| only == reader.name));
        let originals = |reader: &Reader| {
            corpus::files(reader.name).into_iter().map(|(_, bytes)| Original::new(reader.kind, bytes)).collect()
        };
        let readers: Vec<_> = wanted.map(|reader| (reader, originals(reader))).collect();
        let weights = readers.iter().map(|(reader, _)| reader.weight).sum();
        Self { seed, readers, weights }
    }

    /// Returns the selected readers.
    pub fn readers(&self) -> impl Iterator<Item = &'static Reader> {
        self.readers.iter().map(|(reader, _)| *reader)
    }

    /// Returns the mutant with a number, and the index of its reader in [`Self::readers`].
    pub fn get(&self, number: u64) -> (usize, Vec<u8>) {
        let mut random = Random((self.seed << 40) ^ number);
        random.next_u64();
        let mut point = random.next_u64() % self.weights;
        let mut index = 0;
        while point >= self.readers[index].0.weight {
            point -= self.readers[index].0.weight;
            index += 1;
        }
        let originals = &self.readers[index].1;
        let other = random.choose(originals);
        (index, random.choose(originals).mutant(other, &mut random))
    }
}
