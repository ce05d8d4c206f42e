//! The best that can be done with buses that are shared: what flows may be interrupted by what goes before it. Nothing of the
//! planner is used.

use std::collections::BTreeMap;

/// Where a step happens.
pub(crate) enum On {
    Device(usize),
    /// None where nothing else is on it.
    Bus(Option<String>),
}

/// A launch, or something that flows.
pub(crate) struct Step {
    pub(crate) on: On,
    /// What passes before anything flows.
    pub(crate) latency: f64,
    pub(crate) time: f64,
    /// Steps that have to be over.
    pub(crate) after: Vec<usize>,
}

/// The least time for all steps: every order of launches, and for the buses every order of who goes first.
pub(crate) fn least_shared(steps: &[Step]) -> f64 {
    let is_launch = |step: &usize| matches!(steps[*step].on, On::Device(_));
    let (launches, moves): (Vec<usize>, Vec<usize>) = (0..steps.len()).partition(is_launch);
    let named = |order: Vec<usize>, of: &[usize]| -> Vec<usize> { order.into_iter().map(|place| of[place]).collect() };
    let orders: Vec<Vec<usize>> =
        permutations(launches.len()).into_iter().map(|order| named(order, &launches)).collect();
    let priorities: Vec<Vec<usize>> = permutations(moves.len()).into_iter().map(|order| named(order, &moves)).collect();
    let mut best = f64::INFINITY;
    for order in &orders {
        for priority in &priorities {
            best = best.min(interrupted(steps, order, priority).unwrap_or(f64::INFINITY));
        }
    }
    best
}

pub(crate) fn permutations(count: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for item in 0..count {
        let insert = |row: &Vec<usize>| -> Vec<Vec<usize>> {
            let at = |place: usize| [&row[..place], &[item], &row[place..]].concat();
            (0..=row.len()).map(at).collect()
        };
        all = all.iter().flat_map(insert).collect();
    }
    all
}

/// From event to event: of what can flow on a bus, the first by priority has it. None where the order is none.
fn interrupted(steps: &[Step], order: &[usize], priority: &[usize]) -> Option<f64> {
    let mut ends: Vec<Option<f64>> = vec![None; steps.len()];
    let mut left: Vec<f64> = steps.iter().map(|step| step.time).collect();
    let mut flows_from: Vec<Option<f64>> = vec![None; steps.len()];
    let mut queue: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &launch in order.iter().rev() {
        if let On::Device(device) = steps[launch].on {
            queue.entry(device).or_default().push(launch);
        }
    }
    let mut free: BTreeMap<usize, f64> = BTreeMap::new();
    let mut now = 0.0;
    loop {
        // All that starts or is ready now.
        let mut changed = true;
        while changed {
            changed = false;
            let is_ready = |step: usize, ends: &[Option<f64>]| {
                steps[step].after.iter().all(|other| ends[*other].is_some_and(|end| end <= now))
            };
            for (device, waiting) in &mut queue {
                let is_free = free.get(device).is_none_or(|free| *free <= now);
                if let Some(launch) = waiting.pop_if(|launch| is_free && is_ready(*launch, &ends)) {
                    ends[launch] = Some(now + steps[launch].time);
                    free.insert(*device, now + steps[launch].time);
                    changed = true;
                }
            }
            for &step in priority {
                if flows_from[step].is_none() && is_ready(step, &ends) {
                    flows_from[step] = Some(now + steps[step].latency);
                    changed = true;
                }
                if ends[step].is_none() && left[step] <= 1e-12 && flows_from[step].is_some_and(|from| from <= now) {
                    ends[step] = Some(now);
                    changed = true;
                }
            }
        }
        if ends.iter().all(|end| end.is_some_and(|end| end <= now)) {
            return Some(now);
        }
        // Who has which bus now.
        let mut has: Vec<&String> = Vec::new();
        let mut flowing = Vec::new();
        for &step in priority {
            let On::Bus(bus) = &steps[step].on else { continue };
            let can_flow = left[step] > 1e-12 && flows_from[step].is_some_and(|from| from <= now);
            if can_flow && bus.as_ref().is_none_or(|bus| !has.contains(&bus)) {
                has.extend(bus);
                flowing.push(step);
            }
        }
        let later = ends.iter().chain(&flows_from).flatten().copied().filter(|time| *time > now);
        let done = flowing.iter().map(|step| now + left[*step]);
        let until = later.chain(done).fold(f64::INFINITY, f64::min);
        if until.is_infinite() {
            return None;
        }
        flowing.iter().for_each(|step| left[*step] -= until - now);
        now = until;
    }
}
