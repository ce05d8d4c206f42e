//! Timeline of a bus.

use crate::model::units::Micros;

/// Busy intervals, ascending and disjoint; adjacent ones are merged.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Lane {
    taken: Vec<(Micros, Micros)>,
}

impl Lane {
    /// Returns the earliest start at or after `ready` of a free interval of length `duration`.
    pub(super) fn gap(&self, ready: Micros, duration: Micros) -> Micros {
        let mut start = ready;
        for (from, until) in &self.taken[self.taken.partition_point(|(_, until)| *until <= ready)..] {
            if start + duration <= *from {
                break;
            }
            start = start.max(*until);
        }
        start
    }

    /// Marks a free interval as busy.
    pub(super) fn take(&mut self, start: Micros, end: Micros) {
        if end <= start {
            return;
        }
        let place = self.taken.partition_point(|(from, _)| *from < start);
        let joins_before = place > 0 && self.taken[place - 1].1 >= start;
        let joins_after = place < self.taken.len() && self.taken[place].0 <= end;
        match (joins_before, joins_after) {
            (true, true) => {
                self.taken[place - 1].1 = self.taken[place].1;
                self.taken.remove(place);
            }
            (true, false) => self.taken[place - 1].1 = end,
            (false, true) => self.taken[place].0 = start,
            (false, false) => self.taken.insert(place, (start, end)),
        }
    }

    /// Occupies all free time from `ready` on until the total reaches `amount`; returns the end.
    pub(super) fn fill(&mut self, ready: Micros, mut amount: Micros) -> Micros {
        if amount <= Micros::ZERO {
            return ready;
        }
        let first = self.taken.partition_point(|(_, until)| *until <= ready);
        let (mut at, mut last) = (ready, first);
        while let Some((from, until)) = self.taken.get(last) {
            if at + amount <= *from {
                break;
            }
            amount -= (*from - at).max(Micros::ZERO);
            at = at.max(*until);
            last += 1;
        }
        let end = at + amount;
        // Everything from the first free time to the end is busy now.
        let start = self.taken.get(first).map_or(ready, |(from, _)| from.min(ready));
        self.taken.drain(first..last);
        self.taken.insert(first, (start, end));
        if first > 0 && self.taken[first - 1].1 >= start {
            self.taken[first - 1].1 = end;
            self.taken.remove(first);
        }
        let place = self.taken.partition_point(|(from, _)| *from < end);
        if place < self.taken.len() && place > 0 && self.taken[place].0 <= end {
            self.taken[place - 1].1 = self.taken[place].1;
            self.taken.remove(place);
        }
        end
    }

    /// Returns the end of the last busy interval.
    pub(super) fn end(&self) -> Micros {
        self.taken.last().map_or(Micros::ZERO, |(_, until)| *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn gaps_are_found_and_merged() {
        let mut lane = Lane::default();
        lane.take(Micros(2.0), Micros(4.0));
        lane.take(Micros(6.0), Micros(7.0));
        for (ready, long, start) in [(0.0, 2.0, 0.0), (0.0, 2.5, 7.0), (3.0, 2.0, 4.0)] {
            assert_eq!(lane.gap(Micros(ready), Micros(long)), Micros(start));
        }
        lane.take(Micros(4.0), Micros(6.0));
        assert_eq!(lane.taken, [(Micros(2.0), Micros(7.0))]);
        assert_eq!(lane.fill(Micros(1.0), Micros(3.0)), Micros(9.0));
        assert_eq!(lane.taken, [(Micros(1.0), Micros(9.0))]);
        assert_eq!(lane.end(), Micros(9.0));
    }

    /// Compares with a bitmap of unit slots.
    #[test]
    fn lanes_match_a_bitmap_of_slots() {
        let micros = |moment: usize| Micros(moment as f64);
        let mut random = Random::new(1);
        for _ in 0..500 {
            let (mut lane, mut row) = (Lane::default(), [false; 200]);
            for _ in 0..12 {
                let (ready, long) = (random.below(30), 1 + random.below(5));
                let (from, duration) = (micros(ready), micros(long));
                if random.chance(0.5) {
                    let start = (ready..).find(|at| row[*at..at + long].iter().all(|taken| !taken)).unwrap();
                    assert_eq!(lane.gap(from, duration), micros(start));
                    lane.take(micros(start), micros(start + long));
                    row[start..start + long].fill(true);
                } else {
                    let free: Vec<usize> = (ready..200).filter(|at| !row[*at]).take(long).collect();
                    assert_eq!(lane.fill(from, duration), micros(free[long - 1] + 1));
                    free.iter().for_each(|at| row[*at] = true);
                }
                let mut covered = [false; 200];
                lane.taken.iter().for_each(|(from, until)| covered[from.0 as usize..until.0 as usize].fill(true));
                assert_eq!(covered, row);
                assert!(lane.taken.windows(2).all(|two| two[0].1 < two[1].0));
            }
        }
    }
}
