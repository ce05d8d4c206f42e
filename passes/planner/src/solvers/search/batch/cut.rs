//! Changes of a cut: the assignment of a task's units to devices.

use super::model::Model;
use super::window::Window;
use crate::random::Random;
use crate::solvers::search::schedule::Schedule;

/// Up to this number, all cuts are evaluated.
const ALL: usize = 256;
/// Number of random changes that are evaluated otherwise.
const SOME: usize = 12;

/// Candidate cuts, composed of parts that several of them share.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidates {
    /// A device and the units that it runs, possibly none.
    pub(super) parts: Vec<(usize, u64)>,
    /// By cut and device: index of the part.
    pub(super) cuts: Vec<u32>,
}

impl Candidates {
    /// Returns all cuts; `None` if there are too many.
    pub(super) fn full(devices: usize, units: u32) -> Option<Self> {
        let count =
            (0..units).try_fold(1_usize, |count, _| count.checked_mul(devices).filter(|count| *count <= ALL))?;
        // One device has a single cut, but a part for each subset of the units.
        let masks = 1_u64.checked_shl(units).filter(|masks| *masks <= ALL as u64)?;
        let parts = (0..devices).flat_map(|device| (0..masks).map(move |mask| (device, mask))).collect();
        let mut cuts = Vec::with_capacity(count * devices);
        for number in 0..count {
            let mut masks_of = vec![0_u64; devices];
            let mut left = number;
            for unit in 0..units {
                masks_of[left % devices] |= 1 << unit;
                left /= devices;
            }
            cuts.extend(masks_of.iter().enumerate().map(|(device, mask)| (device as u64 * masks + mask) as u32));
        }
        Some(Self { parts, cuts })
    }

    pub(super) fn clear(&mut self) {
        self.parts.clear();
        self.cuts.clear();
    }

    pub(super) fn add(&mut self, cut: &[u64]) {
        for (device, part) in cut.iter().enumerate() {
            self.cuts.push(self.parts.len() as u32);
            self.parts.push((device, *part));
        }
    }
}

/// Adds candidates for a task: everything on one device, the cuts of its neighbors, and random changes of those and of
/// its own.
pub(super) fn suggest(
    candidates: &mut Candidates,
    window: &Window,
    schedule: &Schedule<Model>,
    local: usize,
    random: &mut Random,
) {
    let devices = window.devices;
    let own = window.cut(local);
    let mut cuts: Vec<u64> = own.to_vec();
    let links = &window.links[local];
    for arc in links.from.iter().chain(&links.to) {
        cuts.extend_from_slice(window.cut(arc.task as usize));
    }
    for arc in links.before.iter().chain(&links.behind) {
        cuts.extend_from_slice(&schedule.choice.places[arc.task as usize * devices..][..devices]);
    }
    for device in 0..devices {
        let mut fresh = own.to_vec();
        gather(&mut fresh, device);
        candidates.add(&fresh);
    }
    for cut in cuts.chunks(devices).skip(1) {
        candidates.add(cut);
    }
    for _ in 0..SOME {
        let from = random.below(cuts.len() / devices);
        let mut fresh = cuts[from * devices..][..devices].to_vec();
        mutate(&mut fresh, random);
        candidates.add(&fresh);
    }
}

/// Assigns everything to one device.
pub(super) fn gather(cut: &mut [u64], device: usize) {
    let all = cut.iter().fold(0, |all, part| all | part);
    cut.fill(0);
    cut[device] = all;
}

/// Changes a cut at random: everything to one device, some units from one device to another, or two units swapped.
pub fn mutate(cut: &mut [u64], random: &mut Random) {
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

/// Moves units from one device to another: all, or a random number.
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

/// Returns a random unit of a part; zero if it is empty.
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

    /// The number of parts is limited, too: one device with 64 units has one cut, but 2^64 parts.
    #[test]
    fn few_cuts_may_have_too_many_parts() {
        for (devices, units, count) in [(1, 8, Some(1)), (1, 9, None), (1, 64, None), (2, 8, Some(256)), (2, 9, None)] {
            let full = Candidates::full(devices, units);
            assert_eq!(full.map(|full| full.cuts.len() / devices), count, "{units} units on {devices} devices");
        }
    }

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
