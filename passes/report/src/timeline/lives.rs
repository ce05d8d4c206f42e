//! Total size of live intervals over time.

use divi_planner::units::{Bytes, Micros};

/// A live range: `bytes` from `from` until `until`.
pub(super) struct Life {
    pub(super) bytes: Bytes,
    pub(super) from: Micros,
    pub(super) until: Micros,
}

/// Returns the live bytes as a step function of time. Intervals that only touch, up to rounding, do not overlap.
pub(super) fn profile(lives: &[Life], rounding: Micros) -> Vec<(Micros, Bytes)> {
    let mut changes: Vec<(Micros, Bytes)> = Vec::with_capacity(2 * lives.len());
    for life in lives.iter().filter(|life| life.until > life.from && life.bytes > Bytes::ZERO) {
        let end = life.until - rounding.min((life.until - life.from) / 2.0);
        changes.extend([(life.from, life.bytes), (end, -life.bytes)]);
    }
    // At equal times, ends precede starts.
    changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut steps = vec![(Micros::ZERO, Bytes::ZERO)];
    let mut alive = Bytes::ZERO;
    for same in changes.chunk_by(|a, b| a.0 == b.0) {
        alive += same.iter().map(|change| change.1).sum::<Bytes>();
        let step = (same[0].0, alive.max(Bytes::ZERO));
        match steps.last_mut() {
            Some(last) if last.0 == step.0 => *last = step,
            Some(last) if last.1 == step.1 => {}
            _ => steps.push(step),
        }
    }
    steps
}

/// Returns the maximum of a profile.
pub(super) fn most(profile: &[(Micros, Bytes)]) -> Bytes {
    profile.iter().map(|step| step.1).fold(Bytes::ZERO, Bytes::max)
}
