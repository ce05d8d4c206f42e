//! Proofs by integer programs: one for each sequence of devices, as long as these are few.

use std::thread;
use std::time::Instant;

use super::Fleet;
use super::program::Found;
use crate::mip::Limits;
use crate::model::error::Error;
use crate::model::observer::Observer;
use crate::model::units::Micros;
use crate::solvers::pipeline::milp::closes;

/// More sequences of devices than this are not tried one by one.
const MOST_SEQUENCES: usize = 12;
/// So many are tried at the same time, on any number of cores: what one finds helps the next ones.
const WIDTH: usize = 2;

/// A sequence of devices, and what no pipeline in it is better than.
struct Sequence {
    /// None stands for all.
    devices: Option<Vec<usize>>,
    /// By the solver's word.
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
        let open = |devices: Option<Vec<usize>>| Sequence { devices, claimed: 0.0, verified: 0.0 };
        Self { sequences: sequences.into_iter().map(open).collect() }
    }

    /// Looks for what is better than a value, in sequences where there may be something. What is proven is no more than that.
    pub(super) fn go_on(
        &mut self,
        fleet: &Fleet,
        value: Micros,
        least: Micros,
        limits: &Limits,
        observer: &Observer,
    ) -> Result<Found, Error> {
        let since = Instant::now();
        let mut all = Found { better: None, claimed: f64::INFINITY, verified: f64::INFINITY, is_none: true };
        let mut open: Vec<&mut Sequence> =
            self.sequences.iter_mut().filter(|sequence| !closes(sequence.verified, value)).collect();
        let (count, rounds) = (open.len(), open.len().div_ceil(WIDTH));
        let observer = &if count > 1 { observer.without_bounds() } else { observer.clone() };
        for (done, some) in open.chunks_mut(WIDTH).enumerate() {
            let known = all.value().min(value);
            if known <= 0.0 {
                break;
            }
            let left = |seconds: f64| (seconds - since.elapsed().as_secs_f64()).max(0.0) / (rounds - done) as f64;
            let iterations = limits.iterations / count as u64;
            let limits = &Limits { iterations, seconds: limits.seconds.map(left), ..*limits };
            let looks: Vec<Result<Found, Error>> = thread::scope(|scope| {
                let look = |sequence: Option<Vec<usize>>| {
                    scope.spawn(move || fleet.in_turn(sequence.as_deref(), known, least, limits, observer))
                };
                let threads: Vec<_> = some.iter().map(|sequence| look(sequence.devices.clone())).collect();
                let panicked = || Error::Bug("a program's thread panicked".to_owned());
                threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(panicked()))).collect()
            });
            for (sequence, found) in some.iter_mut().zip(looks) {
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
