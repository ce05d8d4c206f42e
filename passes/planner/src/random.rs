//! Random numbers that are the same on every machine: only integers, additions and multiplications.

/// SplitMix64 generator (Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns the next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number uniformly distributed in `0..1`.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns an integer uniformly distributed in `0..limit`; zero if `limit` is zero.
    pub fn below(&mut self, limit: usize) -> usize {
        // High half of the product: biased by less than limit / 2^64.
        ((u128::from(self.next_u64()) * limit as u128) >> 64) as usize
    }

    /// Returns a number uniformly distributed in `low..high`.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Returns true with the given probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Returns an approximately normal number with mean zero and deviation one: the sum of twelve uniform numbers
    /// (Irwin-Hall).
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    /// Returns a factor around one whose reciprocal has the same distribution; `spread` is below one, and a larger one
    /// spreads further.
    pub fn factor(&mut self, spread: f64) -> f64 {
        let lean = self.between(-spread, spread);
        (1.0 + lean) / (1.0 - lean)
    }

    /// Shuffles the items (Fisher-Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for place in (1..items.len()).rev() {
            items.swap(place, self.below(place + 1));
        }
    }

    /// Returns `count` distinct numbers below `limit` in random order; all of them if there are fewer.
    pub fn sample(&mut self, limit: usize, count: usize) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..limit).collect();
        self.shuffle(&mut numbers);
        numbers.truncate(count);
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_published_ones() {
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(random.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn means_are_near() {
        let mut random = Random::new(1);
        let count = 10_000;
        let mean = (0..count).map(|_| random.unit()).sum::<f64>() / f64::from(count);
        assert!((mean - 0.5).abs() < 0.02);
        let normal: Vec<f64> = (0..count).map(|_| random.normal()).collect();
        assert!(normal.iter().sum::<f64>().abs() / f64::from(count) < 0.05);
        let variance = normal.iter().map(|x| x * x).sum::<f64>() / f64::from(count);
        assert!((variance - 1.0).abs() < 0.05);
        assert!((0..count).all(|_| random.below(7) < 7));
        assert_eq!(random.below(0), 0);
    }
}
