//! When a bus is taken.

use crate::model::units::Micros;

/// Spans of time that are taken, ascending; those that touch are one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Lane {
    taken: Vec<(Micros, Micros)>,
}

impl Lane {
    /// The first time from `ready` on at which so much time is free at a stretch.
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

    /// Takes a span that is free.
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

    /// Takes whatever is free from `ready` on until it is so much in all; says when that is so.
    pub(super) fn fill(&mut self, ready: Micros, mut amount: Micros) -> Micros {
        if amount <= 0.0 {
            return ready;
        }
        let first = self.taken.partition_point(|(_, until)| *until <= ready);
        let (mut at, mut last) = (ready, first);
        while let Some((from, until)) = self.taken.get(last) {
            if at + amount <= *from {
                break;
            }
            amount -= (from - at).max(0.0);
            at = at.max(*until);
            last += 1;
        }
        let end = at + amount;
        // All from the first free moment to the end is taken now.
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

    /// When nothing is taken any more.
    pub(super) fn end(&self) -> Micros {
        self.taken.last().map_or(0.0, |(_, until)| *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn gaps_are_found_and_joined() {
        let mut lane = Lane::default();
        lane.take(2.0, 4.0);
        lane.take(6.0, 7.0);
        assert_eq!((lane.gap(0.0, 2.0), lane.gap(0.0, 2.5), lane.gap(3.0, 2.0)), (0.0, 7.0, 4.0));
        lane.take(4.0, 6.0);
        assert_eq!(lane.taken, [(2.0, 7.0)]);
        assert_eq!(lane.fill(1.0, 3.0), 9.0);
        assert_eq!((lane.taken.as_slice(), lane.end()), ([(1.0, 9.0)].as_slice(), 9.0));
    }

    /// Against a row of moments, each free or taken.
    #[test]
    fn lanes_are_rows_of_moments() {
        let mut random = Random::new(1);
        for _ in 0..500 {
            let (mut lane, mut row) = (Lane::default(), [false; 200]);
            for _ in 0..12 {
                let (ready, long) = (random.below(30), 1 + random.below(5));
                if random.chance(0.5) {
                    let start = (ready..).find(|at| row[*at..at + long].iter().all(|taken| !taken)).unwrap();
                    assert_eq!(lane.gap(ready as f64, long as f64), start as f64);
                    lane.take(start as f64, (start + long) as f64);
                    row[start..start + long].fill(true);
                } else {
                    let free: Vec<usize> = (ready..200).filter(|at| !row[*at]).take(long).collect();
                    assert_eq!(lane.fill(ready as f64, long as f64), (free[long - 1] + 1) as f64);
                    free.iter().for_each(|at| row[*at] = true);
                }
                let mut covered = [false; 200];
                lane.taken.iter().for_each(|(from, until)| covered[*from as usize..*until as usize].fill(true));
                assert_eq!(covered, row);
                assert!(lane.taken.windows(2).all(|two| two[0].1 < two[1].0));
            }
        }
    }
}
