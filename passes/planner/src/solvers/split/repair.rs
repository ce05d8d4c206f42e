//! Improves a schedule by windows: adjacent tasks in time are solved exactly, with the rest fixed.

use std::ops::Range;

use super::surroundings::Surroundings;
use crate::model::instance::Instance;
use crate::model::units::Micros;
use crate::solvers::exact::search::{Goal, SAME};
use crate::solvers::exact::{self, Limits, Timetable};
use crate::solvers::incumbent::SharedIncumbent;

/// Tasks in the narrowest windows and in the widest, and limits of extensions per window.
const NARROW: usize = 16;
const WIDE: usize = 48;
const EXTENSIONS: (u64, u64) = (2000, 20_000);

/// Solves windows exactly, first around module boundaries, then everywhere, with growing width, while effort is left.
/// The schedule never gets worse.
pub(crate) fn improve(instance: &Instance, schedule: Timetable, boundaries: &[usize], limits: &Limits) -> Timetable {
    let mut line = Line::new(instance, schedule);
    let mut left = limits.extensions;
    let mut width = NARROW;
    while width < 2 * WIDE {
        let before = line.schedule.value;
        let firsts = firsts(instance.tasks(), boundaries, width);
        // Little effort is spread evenly.
        let share = (left / firsts.len() as u64).clamp(EXTENSIONS.0, EXTENSIONS.1);
        for first in firsts {
            if left == 0 || limits.are_passed() {
                return line.schedule;
            }
            let last = (first + width).min(instance.tasks());
            let limits = Limits { extensions: share.min(left), ..limits.quiet() };
            // A window counts as work, even if its bound shows that it cannot be improved.
            left = left.saturating_sub(line.solve(first..last, &limits).max(width as u64));
        }
        if line.schedule.value >= before * (1.0 - SAME) {
            width += width / 2;
        }
    }
    line.schedule
}

/// Returns the beginnings of windows.
fn firsts(tasks: usize, boundaries: &[usize], width: usize) -> Vec<usize> {
    let last = tasks.saturating_sub(width);
    let around_boundaries = boundaries.iter().map(|boundary| boundary.saturating_sub(width / 2).min(last));
    around_boundaries.chain((0..last).step_by(width / 2)).chain([last]).collect()
}

/// A schedule with its tasks in the order of starts.
struct Line<'a> {
    schedule: Timetable,
    order: Vec<usize>,
    surroundings: Surroundings<'a>,
}

impl<'a> Line<'a> {
    fn new(instance: &'a Instance, schedule: Timetable) -> Self {
        let order = exact::by_start(instance, &schedule);
        let mut line = Self { schedule, order, surroundings: Surroundings::new(instance) };
        line.update_times();
        line
    }

    /// Computes ends and tails of the schedule for windows.
    fn update_times(&mut self) {
        let Self { schedule, order, surroundings } = self;
        let instance = surroundings.instance;
        let mut behind = vec![Micros::ZERO; instance.devices()];
        for &task in order.iter().rev() {
            let device = schedule.device[task];
            let time = time(instance, task, device);
            let after = |arc: &crate::model::instance::Arc| {
                instance.transfer(arc.tensor, device, schedule.device[arc.task]) + surroundings.tail[arc.task]
            };
            let rest = instance.successors(task).iter().map(after).fold(behind[device], Micros::max);
            surroundings.tail[task] = time + rest;
            behind[device] = surroundings.tail[task];
            surroundings.device[task] = Some(device);
            surroundings.end[task] = schedule.start[task] + time;
        }
    }

    /// Solves a window; returns the extensions spent.
    fn solve(&mut self, window: Range<usize>, limits: &Limits) -> u64 {
        let instance = self.surroundings.instance;
        self.surroundings.free.fill(Micros::ZERO);
        for &task in &self.order[..window.start] {
            let free = &mut self.surroundings.free[self.schedule.device[task]];
            *free = free.max(self.surroundings.end[task]);
        }
        self.surroundings.device_tail.fill(Micros::ZERO);
        for &task in &self.order[window.end..] {
            let tail = &mut self.surroundings.device_tail[self.schedule.device[task]];
            *tail = tail.max(self.surroundings.tail[task]);
        }
        let tasks = &self.order[window.clone()];
        let graph = self.surroundings.graph(tasks);
        let found = exact::search(&graph, Goal::Beat(&SharedIncumbent::new(self.schedule.value)), limits);
        let Some(sequence) = found.sequence else { return found.extensions };
        let placed = |task: &usize| (*task, self.schedule.device[*task]);
        let mut whole: Vec<(usize, usize)> = self.order[..window.start].iter().map(placed).collect();
        whole.extend(sequence.iter().map(|(local, device)| (tasks[*local], *device)));
        whole.extend(self.order[window.end..].iter().map(placed));
        let schedule = exact::in_sequence(instance, &whole);
        // A path that bypasses the window may be as long as before.
        if schedule.value < self.schedule.value && exact::fits(instance, &schedule) {
            self.order = exact::by_start(instance, &schedule);
            self.schedule = schedule;
            self.update_times();
        }
        found.extensions
    }
}

fn time(instance: &Instance, task: usize, device: usize) -> Micros {
    instance.time(task, device).unwrap_or(Micros::INFINITY)
}
