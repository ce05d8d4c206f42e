//! Proofs by integer programs: one for each sequence of devices, if these are few.

use std::thread;
use std::time::Instant;

use super::Fleet;
use super::program::Found;
use crate::mip::Limits;
use crate::model::error::Error;
use crate::model::observer::Observer;
use crate::model::units::Micros;
use crate::solvers::pipeline::milp::closes;

/// Limit on sequences that are tried one by one.
const MOST_SEQUENCES: usize = 12;
/// Number of programs solved concurrently, independent of the number of cores: results are cutoffs for later ones.
const WIDTH: usize = 2;

/// A sequence of devices, and lower bounds on its pipelines.
struct Sequence {
    /// `None` means any sequence.
    devices: Option<Vec<usize>>,
    /// Bound by the solver, not verified.
    claimed: Micros,
    verified: Micros,
}

/// Bounds of each sequence.
pub(super) struct Proof {
    sequences: Vec<Sequence>,
}

impl Proof {
    pub(super) fn new(fleet: &Fleet) -> Self {
        let few = if fleet.shared { None } else { fleet.all_sequences(MOST_SEQUENCES) };
        let sequences = few.map_or_else(|| vec![None], |few| few.into_iter().map(Some).collect());
        let open = |devices: Option<Vec<usize>>| Sequence { devices, claimed: Micros::ZERO, verified: Micros::ZERO };
        Self { sequences: sequences.into_iter().map(open).collect() }
    }

    /// Searches for pipelines better than a value in sequences that are not closed. Bounds are capped at the value.
    pub(super) fn go_on(
        &mut self,
        fleet: &Fleet,
        value: Micros,
        least: Micros,
        limits: &Limits,
        observer: &Observer,
    ) -> Result<Found, Error> {
        let since = Instant::now();
        let mut all = Found { better: None, claimed: Micros::INFINITY, verified: Micros::INFINITY, is_none: true };
        let mut open: Vec<&mut Sequence> =
            self.sequences.iter_mut().filter(|sequence| !closes(sequence.verified, value)).collect();
        let (count, rounds) = (open.len(), open.len().div_ceil(WIDTH));
        let observer = &if count > 1 { observer.without_bounds() } else { observer.clone() };
        for (done, some) in open.chunks_mut(WIDTH).enumerate() {
            let cutoff = all.value().min(value);
            if cutoff <= Micros::ZERO {
                break;
            }
            let left = |seconds: f64| (seconds - since.elapsed().as_secs_f64()).max(0.0) / (rounds - done) as f64;
            let iterations = limits.iterations / count as u64;
            let limits = &Limits { iterations, seconds: limits.seconds.map(left), ..*limits };
            let results: Vec<Result<Found, Error>> = thread::scope(|scope| {
                let solve = |sequence: Option<Vec<usize>>| {
                    scope.spawn(move || fleet.in_turn(sequence.as_deref(), cutoff, least, limits, observer))
                };
                let threads: Vec<_> = some.iter().map(|sequence| solve(sequence.devices.clone())).collect();
                let panicked = || Error::Bug("a program's thread panicked".to_owned());
                threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(panicked()))).collect()
            });
            for (sequence, found) in some.iter_mut().zip(results) {
                let found = found?;
                sequence.claimed = sequence.claimed.max(found.claimed);
                sequence.verified = sequence.verified.max(found.verified);
                all.is_none &= found.is_none;
                if found.value() < all.value() {
                    all.better = found.better;
                }
            }
        }
        for sequence in &self.sequences {
            all.claimed = all.claimed.min(sequence.claimed);
            all.verified = all.verified.min(sequence.verified);
        }
        Ok(all)
    }
}
