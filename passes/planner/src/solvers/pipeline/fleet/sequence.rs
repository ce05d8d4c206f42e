//! Sequences of devices for the stages.

use super::Fleet;
use crate::random::Random;

impl Fleet {
    /// Returns for each device the first one that is interchangeable with it.
    pub(super) fn equals(&self) -> Vec<usize> {
        let first_like = |device: usize| (0..device).find(|other| self.are_equal(*other, device)).unwrap_or(device);
        (0..self.devices).map(first_like).collect()
    }

    fn are_equal(&self, one: usize, other: usize) -> bool {
        // Buses are not compared: with contention no two devices are considered equal.
        if self.buses > 0 {
            return false;
        }
        let link = |from: usize, to: usize| {
            let pair = from * self.devices + to;
            (self.slowness[pair], self.latency[pair])
        };
        let same_links = |third: usize| {
            third == one
                || third == other
                || (link(one, third) == link(other, third) && link(third, one) == link(third, other))
        };
        self.capacity[one] == self.capacity[other]
            && self.scaling.are_equal(one, other)
            && link(one, other) == link(other, one)
            && (0..self.devices).all(same_links)
            && (0..self.tasks()).all(|task| self.times(task)[one] == self.times(task)[other])
    }

    /// Returns all distinct sequences of devices without repetition, up to interchangeable devices; `None` if there are
    /// more than `most`.
    pub(super) fn all_sequences(&self, most: usize) -> Option<Vec<Vec<usize>>> {
        let equals = self.equals();
        let mut all: Vec<Vec<usize>> = vec![Vec::new()];
        for _ in 0..self.k.min(self.devices) {
            let longer = |row: &Vec<usize>| -> Vec<Vec<usize>> {
                // Of interchangeable devices the first that is free.
                let is_free = |device: &usize| !row.contains(device);
                let is_next = |device: &usize| {
                    is_free(device) && (0..*device).filter(is_free).all(|other| equals[other] != equals[*device])
                };
                (0..self.devices).filter(is_next).map(|device| row.iter().copied().chain([device]).collect()).collect()
            };
            all = all.iter().flat_map(longer).collect();
            if all.len() > most {
                return None;
            }
        }
        Some(all)
    }

    /// Returns all distinct sequences; if there are more than `most`, random ones.
    pub(super) fn sequences(&self, most: usize, random: &mut Random) -> Vec<Vec<usize>> {
        self.all_sequences(most).unwrap_or_else(|| {
            let mut devices: Vec<usize> = (0..self.devices).collect();
            let some = |_| {
                random.shuffle(&mut devices);
                devices[..self.k.min(self.devices)].to_vec()
            };
            (0..most).map(some).collect()
        })
    }
}
