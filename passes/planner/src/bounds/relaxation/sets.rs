//! Sets of launches of a task, which together run all inputs.

use super::{Model, Part};
use crate::mip::{Column, Program};

/// Maximum number of sets of launches of a task.
const MOST_SETS: usize = 200;

/// Set of launches of a task, with its mean end and the mean time from an end to the end of the plan.
pub(super) struct Set {
    pub(super) weight: Column,
    pub(super) end: f64,
    pub(super) tail: f64,
}

impl Model<'_> {
    /// Adds the sets of launches of a task, or single launches if there are too many; `None` if there is none.
    pub(super) fn combine(&self, program: &mut Program, task: usize, parts: &[Part]) -> Option<Vec<Set>> {
        let inputs = self.instance.inputs();
        let mut lists = Vec::new();
        if !sets_of(parts, inputs, &mut Vec::new(), &mut lists) {
            program.exactly(1.0, parts.iter().map(|part| (part.column, 1.0)));
            let alone = |part: &Part| {
                let cell = self.cell(task, part.class);
                Set { weight: part.column, end: self.head[cell] + part.time, tail: self.tail[cell] }
            };
            return Some(parts.iter().map(alone).collect());
        }
        let weights: Vec<Column> = lists.iter().map(|_| program.binary()).collect();
        for (index, part) in parts.iter().enumerate() {
            let share = |launches: &Vec<usize>| {
                let count = launches.iter().filter(|launch| **launch == index).count();
                count as f64 * f64::from(part.size) / f64::from(inputs)
            };
            let shares = weights.iter().zip(&lists).map(|(weight, launches)| (*weight, -share(launches)));
            program.exactly(0.0, shares.chain([(part.column, 1.0)]));
        }
        program.exactly(1.0, weights.iter().map(|weight| (*weight, 1.0)));
        let set = |(weight, launches): (&Column, &Vec<usize>)| {
            let [end, tail] = self.mean_ends(task, parts, launches);
            Set { weight: *weight, end, tail }
        };
        let sets: Vec<Set> = weights.iter().zip(&lists).map(set).collect();
        if sets.is_empty() { None } else { Some(sets) }
    }

    /// Returns lower bounds on the mean end of a set of launches of a task, and on the mean time from the end of a launch to
    /// the end of the plan. On a single device they run in sequence: by Smith's rule, the least mean has the launches in the
    /// order of their time per input.
    fn mean_ends(&self, task: usize, parts: &[Part], launches: &[usize]) -> [f64; 2] {
        let inputs = f64::from(self.instance.inputs());
        let (mut end, mut tail) = (0.0, 0.0);
        for (class, devices) in self.classes.iter().enumerate() {
            let mut here: Vec<(f64, f64)> = launches
                .iter()
                .filter(|launch| parts[**launch].class == class)
                .map(|launch| (f64::from(parts[*launch].size) / inputs, parts[*launch].time))
                .collect();
            here.sort_by(|a, b| (a.1 * b.0).total_cmp(&(b.1 * a.0)));
            let cell = self.cell(task, class);
            let mut before = 0.0;
            for (share, time) in here {
                end += share * (self.head[cell] + before + time);
                tail += share * (self.tail[cell] + before);
                if devices.len() == 1 {
                    before += time;
                }
            }
        }
        [end, tail]
    }
}

/// Lists the sets of launches with some inputs in all, by index of their parts in descending order, each with the launches
/// `chosen`; false if there are too many.
fn sets_of(parts: &[Part], left: u32, chosen: &mut Vec<usize>, sets: &mut Vec<Vec<usize>>) -> bool {
    if left == 0 {
        sets.push(chosen.clone());
        return sets.len() <= MOST_SETS;
    }
    let most = chosen.last().map_or(parts.len(), |last| last + 1);
    for index in 0..most {
        if parts[index].size <= left {
            chosen.push(index);
            let is_listed = sets_of(parts, left - parts[index].size, chosen, sets);
            chosen.pop();
            if !is_listed {
                return false;
            }
        }
    }
    true
}
