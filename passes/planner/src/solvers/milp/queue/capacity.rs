//! Valid inequalities for a queue: a device runs one batch at a time.

use super::Queue;
use crate::mip::{Column, Program};
use crate::model::units::Micros;

/// Limit on matrix entries: beyond it, the rows cost more time than they save.
const MOST_ENTRIES: usize = 300_000;
/// Number of heads and tails tried as ends of a window.
const WINDOW_ENDS: usize = 12;

impl Queue<'_> {
    pub(super) fn add_capacity_cuts(&self, program: &mut Program) {
        self.cut_windows(program);
        let tasks = self.instance.tasks();
        let before = |task: usize| -> Vec<usize> { (0..tasks).filter(|i| self.times.before(*i, task)).collect() };
        let after = |task: usize| -> Vec<usize> { (0..tasks).filter(|i| self.times.before(task, *i)).collect() };
        let modes: usize = self.on.iter().flatten().map(|on| on.sizes.len()).sum();
        let entries =
            self.inputs * modes * (0..tasks).map(|task| before(task).len() + after(task).len()).sum::<usize>();
        if entries / self.on.len().max(1) > MOST_ENTRIES {
            return;
        }
        for task in 0..tasks {
            self.cut_paths(program, task, &before(task), &after(task));
        }
    }

    /// For each input: batches of ancestors end before the input's start of the task, and those of descendants run
    /// after it.
    fn cut_paths(&self, program: &mut Program, task: usize, before: &[usize], after: &[usize]) {
        for input in 0..self.inputs {
            let start = self.input_start[task * self.inputs + input];
            for device in 0..self.instance.devices() {
                let work = |set: &[usize]| -> Vec<(Column, f64)> {
                    let here = |task: &usize| Some((*task, self.on(self.instance.group_of(*task), device)?));
                    set.iter().filter_map(here).flat_map(|(task, on)| self.time_on(task, input, on)).collect()
                };
                if before.len() > 1 {
                    program.at_least(0.0, work(before).into_iter().chain([(start, 1.0)]));
                }
                if after.len() > 1 {
                    let rest = [(self.makespan, 1.0), (start, -1.0)].into_iter().chain(self.time_of(task, input));
                    program.at_least(0.0, rest.chain(work(after)));
                }
            }
        }
    }

    /// Total work of tasks within a window between a head and a tail.
    fn cut_windows(&self, program: &mut Program) {
        let tasks: Vec<usize> = (0..self.instance.tasks()).collect();
        let (head, tail) = (|task: &usize| self.times.least_head(*task), |task: &usize| self.times.least_tail(*task));
        let (heads, tails) = (some_of(tasks.iter().map(head).collect()), some_of(tasks.iter().map(tail).collect()));
        for (from, until) in heads.iter().flat_map(|from| tails.iter().map(move |until| (*from, *until))) {
            let inside: Vec<usize> =
                tasks.iter().copied().filter(|task| head(task) >= from && tail(task) >= until).collect();
            // An empty window may begin after it ends.
            if inside.is_empty() {
                continue;
            }
            for device in 0..self.instance.devices() {
                let here = |task: &usize| Some((*task, self.on(self.instance.group_of(*task), device)?));
                let work = inside.iter().filter_map(here).flat_map(|(task, on)| self.duration(task, on, -1.0));
                program.at_least((from + until) / self.horizon, work.chain([(self.makespan, 1.0)]));
            }
        }
    }
}

/// Returns evenly spaced elements of the sorted values.
fn some_of(mut values: Vec<Micros>) -> Vec<Micros> {
    values.sort_by(Micros::total_cmp);
    values.dedup();
    let step = values.len().div_ceil(WINDOW_ENDS).max(1);
    values.into_iter().step_by(step).collect()
}
