//! Splits of a queue into batches, at most one per device, whose sizes add up to the number of inputs.

use crate::model::units::Micros;
use crate::solvers::baseline::Choice;

/// Candidate batch on a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) device: usize,
    pub(super) size: u32,
    pub(super) end: Micros,
    /// Cost by the scheduler's rule.
    pub(super) key: (Micros, Micros),
}

/// Returns the best split of `inputs` inputs; `None` if no sizes add up. `pieces` has one list per device.
///
/// For the criterion [`Choice::End`] the end of a split is that of its last batch; among the splits with the earliest
/// end, the one with the least total time is returned. Otherwise the costs of batches add up.
pub(super) fn choose(pieces: &[Vec<Piece>], inputs: u32, choice: Choice) -> Option<Vec<Piece>> {
    if !matches!(choice, Choice::End) {
        let cost = |piece: &Piece| match choice {
            // Weighted by inputs, so that as few inputs as possible go to other devices.
            Choice::Device(_) => (piece.key.0 * f64::from(piece.size), piece.key.1),
            Choice::Time | Choice::End => piece.key,
        };
        return cheapest(pieces, inputs, |_| true, cost);
    }
    let mut ends: Vec<Micros> = pieces.iter().flatten().map(|piece| piece.end).collect();
    ends.sort_by(Micros::total_cmp);
    ends.dedup();
    let by = |end: Micros| cheapest(pieces, inputs, |piece| piece.end <= end, |piece| (piece.key.1, Micros::ZERO));
    // Feasibility is monotone in the end time: binary search for the first feasible one.
    let first = ends.partition_point(|end| by(*end).is_none());
    ends.get(first).and_then(|end| by(*end))
}

/// Returns the batches of least total cost whose sizes add up to `inputs`, at most one per device: a knapsack by
/// dynamic programming.
pub(super) fn cheapest(
    pieces: &[Vec<Piece>],
    inputs: u32,
    usable: impl Fn(&Piece) -> bool,
    cost: impl Fn(&Piece) -> (Micros, Micros),
) -> Option<Vec<Piece>> {
    let inputs = inputs as usize;
    let unreached = (Micros::INFINITY, Micros::INFINITY);
    let mut best = vec![unreached; inputs + 1];
    best[0] = (Micros::ZERO, Micros::ZERO);
    // By device and sum: the last batch of the best split with that sum.
    let mut last: Vec<Vec<Option<Piece>>> = Vec::with_capacity(pieces.len());
    for of_device in pieces {
        let mut next = best.clone();
        let mut chosen = vec![None; inputs + 1];
        for piece in of_device.iter().filter(|piece| usable(piece)) {
            let size = piece.size as usize;
            let (first, second) = cost(piece);
            for sum in size..=inputs {
                let before = best[sum - size];
                let candidate = (before.0 + first, before.1 + second);
                if candidate < next[sum] {
                    next[sum] = candidate;
                    chosen[sum] = Some(*piece);
                }
            }
        }
        best = next;
        last.push(chosen);
    }
    if best[inputs] == unreached {
        return None;
    }
    let mut left = inputs;
    let mut cut = Vec::new();
    for chosen in last.iter().rev() {
        if let Some(piece) = chosen[left] {
            left -= piece.size as usize;
            cut.push(piece);
        }
    }
    cut.reverse();
    Some(cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(device: usize, size: u32, time: f64, end: f64) -> Piece {
        Piece { device, size, end: Micros(end), key: (Micros(end), Micros(time)) }
    }

    #[test]
    fn the_cut_ends_as_early_as_sizes_allow() {
        let pieces = vec![
            vec![piece(0, 1, 10.0, 10.0), piece(0, 2, 30.0, 30.0)],
            vec![piece(1, 1, 8.0, 8.0), piece(1, 2, 12.0, 12.0), piece(1, 3, 20.0, 20.0)],
        ];
        let sizes = |inputs: u32| -> Option<Vec<(usize, u32)>> {
            let cut = choose(&pieces, inputs, Choice::End)?;
            Some(cut.iter().map(|piece| (piece.device, piece.size)).collect())
        };
        assert_eq!(sizes(1), Some(vec![(1, 1)]));
        assert_eq!(sizes(2), Some(vec![(0, 1), (1, 1)]));
        assert_eq!(sizes(3), Some(vec![(0, 1), (1, 2)]));
        assert_eq!(sizes(5), Some(vec![(0, 2), (1, 3)]));
        assert_eq!(sizes(6), None);
    }

    #[test]
    fn the_cut_takes_least_time() {
        let pieces = vec![vec![piece(0, 1, 1.0, 1.0)], vec![piece(1, 1, 5.0, 5.0), piece(1, 2, 5.5, 5.5)]];
        let cut = choose(&pieces, 2, Choice::Time).unwrap();
        assert_eq!(cut.len(), 1);
        assert_eq!((cut[0].device, cut[0].size), (1, 2));
    }
}
