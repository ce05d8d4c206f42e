//! Rows that a solution violates: work in windows of time, and orders of launches on the devices of a class.

use super::{Columns, Model, Part};
use crate::mip::Column;

/// Minimum violation of a row that is added.
const BROKEN: f64 = 1e-4;
/// Maximum number of heads and of tails that are tried.
const WINDOW_ENDS: usize = 32;
/// Maximum number of orders of a class that are added in a round, and minimum share of launches in one.
const ORDERS: usize = 3;
const SHARE: f64 = 1e-6;

/// Row that a solution violates: see the description of [`super`].
#[derive(Clone, Debug)]
pub(super) enum Cut {
    /// Tasks whose work on a class is between two times, which sum to `ends`.
    Window { class: usize, tasks: Vec<usize>, ends: f64 },
    /// Launches on a class, by task and size, that start at `head` at the earliest, and the work at which the square is
    /// linearized. Backwards, they end at `head` before the end of the plan at the latest.
    Order { class: usize, is_backward: bool, launches: Vec<(usize, u32)>, head: f64, work: f64 },
}

impl Model<'_> {
    /// Returns the row of a cut: its terms are at least a number.
    pub(super) fn row(&self, columns: &Columns, cut: &Cut) -> (f64, Vec<(Column, f64)>) {
        match cut {
            Cut::Window { class, tasks, ends } => {
                let count = self.classes[*class].len() as f64;
                let of_task = |task: &usize| columns.parts[*task].iter().filter(|part| part.class == *class);
                let work = tasks.iter().flat_map(of_task).map(|part| (part.column, -self.work(part) / count));
                (*ends, work.chain([(columns.makespan, 1.0)]).collect())
            }
            Cut::Order { class, is_backward, launches, head, work } => {
                let count = self.classes[*class].len() as f64;
                let of_launch = |(task, size): &(usize, u32)| {
                    columns.parts[*task].iter().find(|part| part.class == *class && part.size == *size)
                };
                let terms = |part: &Part| {
                    let own = self.work(part);
                    let middle = part.middle.map(|middle| (middle[usize::from(*is_backward)], own));
                    [Some((part.column, -own * (head + work / count))), middle]
                };
                let terms = launches.iter().filter_map(of_launch).flat_map(terms).flatten().collect();
                (-work * work / (2.0 * count), terms)
            }
        }
    }

    /// Returns the most violated window of each class.
    pub(super) fn windows(&self, columns: &Columns, values: &[f64]) -> Vec<Cut> {
        let makespan = columns.makespan.of(values);
        let mut found = Vec::new();
        for (class, devices) in self.classes.iter().enumerate() {
            let work = |task: usize| -> f64 {
                let own = columns.parts[task].iter().filter(|part| part.class == class);
                own.map(|part| part.column.of(values) * self.work(part)).sum()
            };
            let here: Vec<(f64, f64, f64, usize)> = (0..self.instance.tasks())
                .map(|task| (self.head[self.cell(task, class)], self.tail[self.cell(task, class)], work(task), task))
                .filter(|(head, tail, ..)| head.is_finite() && tail.is_finite())
                .collect();
            let mut worst = (BROKEN, None);
            for head in some_of(here.iter().map(|task| task.0).collect()) {
                for tail in some_of(here.iter().map(|task| task.1).collect()) {
                    if head + tail > 1.0 {
                        continue;
                    }
                    let inside = here.iter().filter(|task| task.0 >= head && task.1 >= tail);
                    let excess = inside.map(|task| task.2).sum::<f64>() / devices.len() as f64 + head + tail - makespan;
                    if excess > worst.0 {
                        worst = (excess, Some((head, tail)));
                    }
                }
            }
            if let Some((head, tail)) = worst.1 {
                let inside = here.iter().filter(|task| task.0 >= head && task.1 >= tail);
                found.push(Cut::Window { class, tasks: inside.map(|task| task.3).collect(), ends: head + tail });
            }
        }
        found
    }

    /// Returns the most violated orders of launches of each class: those with the earliest middles, or the latest ones.
    pub(super) fn orders(&self, columns: &Columns, values: &[f64], is_backward: bool) -> Vec<Cut> {
        let mut found = Vec::new();
        for (class, devices) in self.classes.iter().enumerate() {
            let count = devices.len() as f64;
            let mut here: Vec<(f64, f64, f64, (usize, u32))> = Vec::new();
            for (task, parts) in columns.parts.iter().enumerate() {
                for part in parts.iter().filter(|part| part.class == class && part.column.of(values) > SHARE) {
                    let Some(middle) = part.middle.map(|middle| middle[usize::from(is_backward)]) else { continue };
                    let share = part.column.of(values);
                    let ends = if is_backward { &self.tail } else { &self.head };
                    let work = share * self.work(part);
                    here.push((middle.of(values) / share, work, ends[self.cell(task, class)], (task, part.size)));
                }
            }
            here.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.3.cmp(&b.3)));
            // By head: launches that start later, up to the one that makes the row most violated.
            let mut heads: Vec<f64> = here.iter().map(|launch| launch.2).collect();
            heads = some_of(std::mem::take(&mut heads));
            let mut worst: Vec<(f64, f64, f64, usize)> = Vec::new();
            for head in heads {
                let (mut work, mut weighted, mut most) = (0.0, 0.0, (BROKEN, 0.0, 0));
                let later = here.iter().enumerate().filter(|(_, launch)| launch.2 >= head);
                for (place, (middle, own, ..)) in later {
                    work += own;
                    weighted += own * (middle - head);
                    let excess = work * work / (2.0 * count) - weighted;
                    if excess > most.0 {
                        most = (excess, work, place);
                    }
                }
                if most.0 > BROKEN {
                    worst.push((most.0, head, most.1, most.2));
                }
            }
            worst.sort_by(|a, b| b.0.total_cmp(&a.0));
            for (_, head, work, last) in worst.into_iter().take(ORDERS) {
                let inside = here[..=last].iter().filter(|launch| launch.2 >= head);
                let launches = inside.map(|launch| launch.3).collect();
                found.push(Cut::Order { class, is_backward, launches, head, work });
            }
        }
        found
    }
}

/// Returns at most [`WINDOW_ENDS`] of the values, evenly spaced in their order, without the largest ones.
fn some_of(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values.dedup();
    let step = values.len().div_ceil(WINDOW_ENDS).max(1);
    values.into_iter().step_by(step).collect()
}
