//! Inputs that pass between the devices of two blocks: launch n of a block is for inputs `n * size` to
//! `(n + 1) * size - 1`, and its devices take turns.

use std::collections::BTreeMap;

/// Maximum number of launches until the pattern of two blocks repeats.
const MOST_LAUNCHES: u64 = 20_000_000;

/// Launches of a block: inputs of each, and number of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rotation {
    pub(super) size: u64,
    pub(super) devices: u64,
}

impl Rotation {
    /// Returns the position of the device that takes an input.
    fn device_of(self, input: u64) -> usize {
        (input / self.size % self.devices) as usize
    }
}

/// Returns the share of the inputs that each device of the first block computes and each of the second reads, by their
/// positions. Walks over the launches of one repetition. `None` if there are too many.
pub(super) fn shares(first: Rotation, second: Rotation) -> Option<BTreeMap<(usize, usize), f64>> {
    let (a, b) = (first.size * first.devices, second.size * second.devices);
    let period = (a / gcd(a, b)).checked_mul(b)?;
    if period / first.size + period / second.size > MOST_LAUNCHES {
        return None;
    }
    let mut inputs: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    let mut input = 0;
    while input < period {
        let end = |size: u64| (input / size + 1) * size;
        let next = end(first.size).min(end(second.size));
        *inputs.entry((first.device_of(input), second.device_of(input))).or_default() += next - input;
        input = next;
    }
    Some(inputs.into_iter().map(|(pair, count)| (pair, count as f64 / period as f64)).collect())
}

/// Returns the greatest common divisor of two positive numbers.
pub(super) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(first: (u64, u64), second: (u64, u64)) -> Vec<((usize, usize), f64)> {
        let rotation = |(size, devices)| Rotation { size, devices };
        shares(rotation(first), rotation(second)).unwrap().into_iter().collect()
    }

    #[test]
    fn equal_rotations_pair_their_devices() {
        assert_eq!(of((4, 2), (4, 2)), [((0, 0), 0.5), ((1, 1), 0.5)]);
        assert_eq!(of((4, 2), (4, 1)), [((0, 0), 0.5), ((1, 0), 0.5)]);
        // Inputs 0 to 3 and 4 to 7 on the first block, 0 and 1, 2 and 3 on the second.
        assert_eq!(of((4, 2), (2, 2)), [((0, 0), 0.25), ((0, 1), 0.25), ((1, 0), 0.25), ((1, 1), 0.25)]);
        let sixths = of((1, 2), (1, 3));
        assert!(sixths.len() == 6 && sixths.iter().all(|(_, share)| (share - 1.0 / 6.0).abs() < 1e-12));
    }

    #[test]
    fn long_patterns_are_refused() {
        let rotation = |size, devices| Rotation { size, devices };
        assert_eq!(shares(rotation(1_048_573, 500), rotation(1_048_571, 499)), None);
    }
}
