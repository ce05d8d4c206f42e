//! Changes of a cut: which device takes which units of a task's queue.

use crate::random::Random;

/// Gives everything to one device.
pub(super) fn gather(cut: &mut [u64], device: usize) {
    let all = cut.iter().fold(0, |all, part| all | part);
    cut.fill(0);
    cut[device] = all;
}

/// Changes a cut at random: everything to one device, some units from one device to another, or two units swapped.
pub(super) fn mutate(cut: &mut [u64], random: &mut Random) {
    let devices = cut.len();
    let (from, to) = (random.below(devices), random.below(devices));
    match random.below(8) {
        0 => gather(cut, to),
        1..=5 => shift(cut, from, to, random),
        _ => {
            let (here, there) = (any_unit(cut[from], random), any_unit(cut[to], random));
            if from != to && here != 0 && there != 0 {
                cut[from] ^= here | there;
                cut[to] ^= here | there;
            }
        }
    }
}

/// Some of one device's units go to another; so many that either all or a random number do.
fn shift(cut: &mut [u64], from: usize, to: usize, random: &mut Random) {
    let count = cut[from].count_ones();
    if from == to || count == 0 {
        return;
    }
    let moving = if random.below(2) == 0 { count } else { 1 + random.below(count as usize) as u32 };
    for _ in 0..moving {
        let unit = any_unit(cut[from], random);
        cut[from] ^= unit;
        cut[to] ^= unit;
    }
}

/// One of the units of a part; none of an empty one.
fn any_unit(part: u64, random: &mut Random) -> u64 {
    let count = part.count_ones();
    if count == 0 {
        return 0;
    }
    let mut left = part;
    for _ in 0..random.below(count as usize) {
        left &= left - 1;
    }
    left & left.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_keep_every_unit_once() {
        let mut random = Random::new(7);
        for units in [1, 4, 64] {
            let all = u64::MAX >> (64 - units);
            let mut cut = [all, 0, 0];
            for _ in 0..2000 {
                mutate(&mut cut, &mut random);
                assert_eq!(cut[0] | cut[1] | cut[2], all);
                assert_eq!(cut.iter().map(|part| part.count_ones()).sum::<u32>(), units);
            }
        }
    }
}
