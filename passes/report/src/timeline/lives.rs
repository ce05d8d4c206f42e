//! How much is alive at once: things of some size, each with a beginning and an end.

use divi_planner::units::Bytes;

pub(super) struct Life {
    pub(super) bytes: Bytes,
    pub(super) from: f64,
    pub(super) until: f64,
}

/// How much is alive from when on, each step another amount; lives that only touch, but for rounding, do not meet.
pub(super) fn profile(lives: &[Life], rounding: f64) -> Vec<(f64, Bytes)> {
    let mut changes: Vec<(f64, Bytes)> = Vec::with_capacity(2 * lives.len());
    for life in lives.iter().filter(|life| life.until > life.from && life.bytes > 0.0) {
        let end = life.until - rounding.min((life.until - life.from) / 2.0);
        changes.extend([(life.from, life.bytes), (end, -life.bytes)]);
    }
    // What ends makes room for what begins at the same time.
    changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut steps: Vec<(f64, Bytes)> = vec![(0.0, 0.0)];
    let mut alive: Bytes = 0.0;
    for same in changes.chunk_by(|a, b| a.0 == b.0) {
        alive += same.iter().map(|change| change.1).sum::<Bytes>();
        let step = (same[0].0, alive.max(0.0));
        match steps.last_mut() {
            Some(last) if last.0 == step.0 => *last = step,
            Some(last) if last.1 == step.1 => {}
            _ => steps.push(step),
        }
    }
    steps
}

/// The most of a profile.
pub(super) fn most(profile: &[(f64, Bytes)]) -> Bytes {
    profile.iter().map(|step| step.1).fold(0.0, f64::max)
}
