//! Bit sets of tasks.

/// Returns for each task the set of tasks that it reaches; `order` visits successors first.
pub(super) fn reached(next: &[Vec<u32>], order: impl Iterator<Item = usize>) -> Vec<Vec<u64>> {
    let words = next.len().div_ceil(64);
    let mut sets = vec![vec![0_u64; words]; next.len()];
    for task in order {
        let mut set = vec![0; words];
        for &other in &next[task] {
            set.iter_mut().zip(&sets[other as usize]).for_each(|(into, from)| *into |= from);
            set[other as usize / 64] |= 1 << (other % 64);
        }
        sets[task] = set;
    }
    sets
}

/// Calls `of` for every set bit of a word.
pub(super) fn each(mut bits: u64, word: usize, mut of: impl FnMut(usize)) {
    while bits != 0 {
        of(word * 64 + bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}
