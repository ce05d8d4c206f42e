//! Optimum with shared buses: flows are preemptible by priority. No code of the planner is used.

use std::collections::BTreeMap;

use divi_planner::units::Micros;

/// Resource of a step.
pub(crate) enum On {
    Device(usize),
    /// `None` if nothing else uses it.
    Bus(Option<String>),
}

/// Launch, or flow.
pub(crate) struct Step {
    pub(crate) on: On,
    /// Time before anything flows.
    pub(crate) latency: Micros,
    pub(crate) time: Micros,
    /// Steps that have to end before.
    pub(crate) after: Vec<usize>,
}

/// Returns the least makespan of all steps: all orders of launches, and all priorities of flows on the buses.
pub(crate) fn least_shared(steps: &[Step]) -> Micros {
    let is_launch = |step: &usize| matches!(steps[*step].on, On::Device(_));
    let (launches, moves): (Vec<usize>, Vec<usize>) = (0..steps.len()).partition(is_launch);
    let named = |order: Vec<usize>, of: &[usize]| -> Vec<usize> { order.into_iter().map(|place| of[place]).collect() };
    let orders: Vec<Vec<usize>> =
        permutations(launches.len()).into_iter().map(|order| named(order, &launches)).collect();
    let priorities: Vec<Vec<usize>> = permutations(moves.len()).into_iter().map(|order| named(order, &moves)).collect();
    let mut best = Micros::INFINITY;
    for order in &orders {
        for priority in &priorities {
            best = best.min(interrupted(steps, order, priority).unwrap_or(Micros::INFINITY));
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

/// Simulates from event to event: the ready flow of highest priority has the bus. Returns `None` for an infeasible order.
fn interrupted(steps: &[Step], order: &[usize], priority: &[usize]) -> Option<Micros> {
    let mut ends: Vec<Option<Micros>> = vec![None; steps.len()];
    let mut left: Vec<Micros> = steps.iter().map(|step| step.time).collect();
    let mut flows_from: Vec<Option<Micros>> = vec![None; steps.len()];
    let mut queue: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &launch in order.iter().rev() {
        if let On::Device(device) = steps[launch].on {
            queue.entry(device).or_default().push(launch);
        }
    }
    let mut free: BTreeMap<usize, Micros> = BTreeMap::new();
    let mut now = Micros::ZERO;
    loop {
        // All steps that start or are ready now.
        let mut changed = true;
        while changed {
            changed = false;
            let is_ready = |step: usize, ends: &[Option<Micros>]| {
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
                if ends[step].is_none()
                    && left[step] <= Micros(1e-12)
                    && flows_from[step].is_some_and(|from| from <= now)
                {
                    ends[step] = Some(now);
                    changed = true;
                }
            }
        }
        if ends.iter().all(|end| end.is_some_and(|end| end <= now)) {
            return Some(now);
        }
        // Flow that has each bus now.
        let mut has: Vec<&String> = Vec::new();
        let mut flowing = Vec::new();
        for &step in priority {
            let On::Bus(bus) = &steps[step].on else { continue };
            let can_flow = left[step] > Micros(1e-12) && flows_from[step].is_some_and(|from| from <= now);
            if can_flow && bus.as_ref().is_none_or(|bus| !has.contains(&bus)) {
                has.extend(bus);
                flowing.push(step);
            }
        }
        let later = ends.iter().chain(&flows_from).flatten().copied().filter(|time| *time > now);
        let done = flowing.iter().map(|step| now + left[*step]);
        let until = later.chain(done).fold(Micros::INFINITY, Micros::min);
        if until.is_infinite() {
            return None;
        }
        flowing.iter().for_each(|step| left[*step] -= until - now);
        now = until;
    }
}
