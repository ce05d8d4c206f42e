//! A schedule made better piece by piece: a window of neighbours in time is solved anew, with the rest held still.

use std::ops::Range;

use super::around::Around;
use crate::model::instance::Instance;
use crate::model::units::Micros;
use crate::solvers::exact::search::{Goal, SAME};
use crate::solvers::exact::{self, Limits, Timetable};
use crate::solvers::incumbent::SharedIncumbent;

/// Tasks in the narrowest windows and in the widest, and how often at least and at most a window's search may put a task
/// at the end of a partial schedule.
const NARROW: usize = 16;
const WIDE: usize = 48;
const EXTENSIONS: (u64, u64) = (2000, 20_000);

/// Solves windows anew, first those around borders, then everywhere, wider and wider, as long as there is effort. Nothing
/// gets worse.
pub(crate) fn improve(instance: &Instance, schedule: Timetable, borders: &[usize], limits: &Limits) -> Timetable {
    let mut line = Line::new(instance, schedule);
    let mut left = limits.extensions;
    let mut width = NARROW;
    while width < 2 * WIDE {
        let before = line.schedule.value;
        let firsts = firsts(instance.tasks(), borders, width);
        // Little effort goes a little way everywhere.
        let share = (left / firsts.len() as u64).clamp(EXTENSIONS.0, EXTENSIONS.1);
        for first in firsts {
            if left == 0 || limits.are_passed() {
                return line.schedule;
            }
            let last = (first + width).min(instance.tasks());
            let limits = Limits { extensions: share.min(left), ..limits.quiet() };
            // Looking at a window is work, even if its bound says that there is nothing to find.
            left = left.saturating_sub(line.solve(first..last, &limits).max(width as u64));
        }
        if line.schedule.value >= before * (1.0 - SAME) {
            width += width / 2;
        }
    }
    line.schedule
}

/// Where windows begin.
fn firsts(tasks: usize, borders: &[usize], width: usize) -> Vec<usize> {
    let last = tasks.saturating_sub(width);
    let around_borders = borders.iter().map(|border| border.saturating_sub(width / 2).min(last));
    around_borders.chain((0..last).step_by(width / 2)).chain([last]).collect()
}

/// A schedule with its tasks in the order of starts.
struct Line<'a> {
    schedule: Timetable,
    order: Vec<usize>,
    around: Around<'a>,
}

impl<'a> Line<'a> {
    fn new(instance: &'a Instance, schedule: Timetable) -> Self {
        let order = exact::by_start(instance, &schedule);
        let mut line = Self { schedule, order, around: Around::new(instance) };
        line.look_back();
        line
    }

    /// From what the schedule says to what windows need.
    fn look_back(&mut self) {
        let Self { schedule, order, around } = self;
        let instance = around.instance;
        let mut behind = vec![0.0; instance.devices()];
        for &task in order.iter().rev() {
            let device = schedule.device[task];
            let time = time(instance, task, device);
            let after = |arc: &crate::model::instance::Arc| {
                instance.transfer(arc.tensor, device, schedule.device[arc.task]) + around.tail[arc.task]
            };
            let rest = instance.successors(task).iter().map(after).fold(behind[device], f64::max);
            around.tail[task] = time + rest;
            behind[device] = around.tail[task];
            around.device[task] = Some(device);
            around.end[task] = schedule.start[task] + time;
        }
    }

    /// Solves a window anew; says what that took.
    fn solve(&mut self, window: Range<usize>, limits: &Limits) -> u64 {
        let instance = self.around.instance;
        self.around.free.fill(0.0);
        for &task in &self.order[..window.start] {
            let free = &mut self.around.free[self.schedule.device[task]];
            *free = free.max(self.around.end[task]);
        }
        self.around.device_tail.fill(0.0);
        for &task in &self.order[window.end..] {
            let tail = &mut self.around.device_tail[self.schedule.device[task]];
            *tail = tail.max(self.around.tail[task]);
        }
        let tasks = &self.order[window.clone()];
        let graph = self.around.graph(tasks);
        let found = exact::search(&graph, Goal::Beat(&SharedIncumbent::new(self.schedule.value)), limits);
        let Some(sequence) = found.sequence else { return found.extensions };
        let placed = |task: &usize| (*task, self.schedule.device[*task]);
        let mut whole: Vec<(usize, usize)> = self.order[..window.start].iter().map(placed).collect();
        whole.extend(sequence.iter().map(|(local, device)| (tasks[*local], *device)));
        whole.extend(self.order[window.end..].iter().map(placed));
        let schedule = exact::in_sequence(instance, &whole);
        // A path that passes the window by may be as long as before.
        if schedule.value < self.schedule.value && exact::fits(instance, &schedule) {
            self.order = exact::by_start(instance, &schedule);
            self.schedule = schedule;
            self.look_back();
        }
        found.extensions
    }
}

fn time(instance: &Instance, task: usize, device: usize) -> Micros {
    instance.time(task, device).unwrap_or(f64::INFINITY)
}
