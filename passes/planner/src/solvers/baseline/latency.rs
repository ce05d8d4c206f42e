//! List scheduling of one input.

use super::memory::fitting;
use super::{Rule, Timeline};
use crate::model::error::Error;
use crate::model::instance::{Arc, Instance};
use crate::model::plan::Schedule;
use crate::model::units::Micros;
use crate::solvers::placement::Placement;

/// Schedules tasks in the rule's order. If a task is left without a feasible device, any placement that fits is
/// scheduled instead.
pub(super) fn schedule(instance: &Instance, rule: &Rule) -> Result<Schedule, Error> {
    let attempt = |share: f64| match choose(instance, rule, share) {
        Some(state) => Ok(state),
        None => Placement::any(instance, share, rule.effort.share).map(|device| fixed(instance, rule, &device)),
    };
    let state = fitting(instance, attempt, |state| instance.peak_use(&state.device, &state.start))?;
    let makespan = state.end.iter().copied().fold(Micros::ZERO, Micros::max);
    Ok(Schedule::Latency { device: state.device, start: state.start, makespan })
}

/// Chooses a device for each task in turn; `None` if a task is left without one.
fn choose(instance: &Instance, rule: &Rule, share: f64) -> Option<State> {
    let mut placement = Placement::new(instance, share).ok()?;
    let mut state = State::new(instance, rule);
    for &task in &rule.order {
        let mut candidates: Vec<(usize, Micros, (Micros, Micros))> = placement
            .open(task)
            .iter()
            .filter_map(|&device| {
                let duration = instance.time(task, device)?;
                let start = state.start(instance, task, device);
                let key = rule.choice.key(device, duration, start + duration);
                start.is_finite().then_some((device, start, key))
            })
            .collect();
        // The sort is stable: ties keep the order of devices.
        candidates.sort_by(|(.., a), (.., b)| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let (device, start, _) = candidates.into_iter().find(|(device, ..)| placement.place(task, *device))?;
        state.put(instance, task, device, start);
    }
    Some(state)
}

/// Schedules a fixed placement in the rule's order.
fn fixed(instance: &Instance, rule: &Rule, device: &[usize]) -> State {
    let mut state = State::new(instance, rule);
    for &task in &rule.order {
        let start = state.start(instance, task, device[task]);
        state.put(instance, task, device[task], start);
    }
    state
}

/// Partial schedule.
struct State {
    device: Vec<usize>,
    start: Vec<Micros>,
    end: Vec<Micros>,
    timeline: Timeline,
}

impl State {
    fn new(instance: &Instance, rule: &Rule) -> Self {
        let tasks = instance.tasks();
        Self {
            device: vec![0; tasks],
            start: vec![Micros::ZERO; tasks],
            end: vec![Micros::ZERO; tasks],
            timeline: Timeline::new(instance.devices(), rule.insertion),
        }
    }

    /// Returns the earliest start of a task on a device: after its operands have arrived, in a free interval that is
    /// long enough.
    fn start(&self, instance: &Instance, task: usize, device: usize) -> Micros {
        let arrival = |arc: &Arc| self.end[arc.task] + instance.transfer(arc.tensor, self.device[arc.task], device);
        let ready = instance.predecessors(task).iter().map(arrival).fold(Micros::ZERO, Micros::max);
        self.timeline.earliest(device, ready, time(instance, task, device))
    }

    fn put(&mut self, instance: &Instance, task: usize, device: usize, start: Micros) {
        let end = start + time(instance, task, device);
        self.timeline.take(device, start, end);
        (self.device[task], self.start[task], self.end[task]) = (device, start, end);
    }
}

fn time(instance: &Instance, task: usize, device: usize) -> Micros {
    instance.time(task, device).unwrap_or(Micros::INFINITY)
}
