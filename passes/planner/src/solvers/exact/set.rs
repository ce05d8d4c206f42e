//! Sets of tasks as bit sets: small, hashable, iterated in ascending order.

/// A set of numbers below `64 * WORDS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Set<const WORDS: usize>([u64; WORDS]);

impl<const WORDS: usize> Set<WORDS> {
    pub(crate) const EMPTY: Self = Self([0; WORDS]);

    #[inline]
    pub(crate) fn contains(&self, number: usize) -> bool {
        self.0[number / 64] >> (number % 64) & 1 == 1
    }

    #[inline]
    pub(crate) fn insert(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    #[inline]
    pub(crate) fn union(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
        self
    }

    #[inline]
    pub(crate) fn without(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= !b);
        self
    }

    #[inline]
    pub(crate) fn intersects(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    #[inline]
    pub(crate) fn is_subset(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a & !b == 0)
    }

    #[inline]
    pub(crate) fn iter(self) -> Members<WORDS> {
        Members { words: self.0, word: 0 }
    }

    /// Returns the largest element.
    pub(crate) fn last(&self) -> Option<usize> {
        let word = self.0.iter().rposition(|bits| *bits != 0)?;
        Some(word * 64 + 63 - self.0[word].leading_zeros() as usize)
    }
}

impl<const WORDS: usize> FromIterator<usize> for Set<WORDS> {
    fn from_iter<T: IntoIterator<Item = usize>>(numbers: T) -> Self {
        let mut set = Self::EMPTY;
        numbers.into_iter().for_each(|number| set.insert(number));
        set
    }
}

/// Iterator over the elements of a set, ascending.
pub(crate) struct Members<const WORDS: usize> {
    words: [u64; WORDS],
    word: usize,
}

impl<const WORDS: usize> Iterator for Members<WORDS> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.word < WORDS {
            let bits = &mut self.words[self.word];
            if *bits != 0 {
                let bit = bits.trailing_zeros() as usize;
                *bits &= *bits - 1;
                return Some(self.word * 64 + bit);
            }
            self.word += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_support_the_usual_operations() {
        let numbers = [0, 5, 63, 64, 100, 127];
        let set: Set<2> = numbers.into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), numbers);
        assert!(set.contains(64) && !set.contains(65));
        assert_eq!((set.last(), Set::<2>::EMPTY.last()), (Some(127), None));
        let other: Set<2> = [5, 65].into_iter().collect();
        assert!(set.intersects(&other) && !other.is_subset(&set));
        assert_eq!(set.without(&other).iter().collect::<Vec<_>>(), [0, 63, 64, 100, 127]);
        assert_eq!(set.union(&other).iter().count(), 7);
        assert_eq!(set.without(&set), Set::EMPTY);
        assert!(Set::EMPTY.is_subset(&other));
    }
}
