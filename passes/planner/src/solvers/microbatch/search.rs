//! Annealing over patterns.

use super::model::Model;
use super::pattern::{Pattern, RULES, Simulator};
use crate::model::units::Micros;
use crate::random::Random;
use crate::solvers::chains::Allowance;

/// Initial temperature, as a share of the cost.
const HOT: f64 = 0.01;

/// Improves a pattern whose launches fit, for the first `inputs` of the queue.
pub(super) fn improve(
    model: &Model<'_>,
    inputs: u32,
    start: &Pattern,
    allowance: &Allowance,
) -> Option<(Micros, Pattern)> {
    allowance.best_of(|random| {
        let (value, pattern) = Chain::new(model, inputs, start.clone(), random).run(allowance);
        (value, (value, pattern))
    })
}

/// One chain of the search.
struct Chain<'a> {
    model: &'a Model<'a>,
    simulator: Simulator<'a>,
    pattern: Pattern,
    value: Micros,
    best: Pattern,
    best_value: Micros,
    random: Random,
    /// Co-location groups in topological order of their first tasks.
    order: Vec<usize>,
    trials: u64,
    /// True if all inputs are simulated.
    is_whole: bool,
}

impl<'a> Chain<'a> {
    fn new(model: &'a Model<'a>, inputs: u32, pattern: Pattern, random: Random) -> Self {
        let mut simulator = Simulator::new(model, inputs);
        let value = simulator.cost(&pattern);
        Self {
            model,
            simulator,
            value,
            best: pattern.clone(),
            best_value: value,
            pattern,
            random,
            order: groups_in_order(model),
            trials: 0,
            is_whole: inputs == model.inputs,
        }
    }

    fn run(mut self, allowance: &Allowance) -> (Micros, Pattern) {
        loop {
            let spent = allowance.spent(self.trials);
            if spent >= 1.0 {
                return (self.best_value, self.best);
            }
            self.trials += 1;
            let mut candidate = self.pattern.clone();
            if !self.mutate(&mut candidate) || !candidate.weights_fit(self.model) {
                continue;
            }
            let cost = self.simulator.cost(&candidate);
            if cost.is_infinite() {
                continue;
            }
            let temperature = HOT * (1.0 - spent) * self.best_value;
            let threshold = temperature * -(1.0 - self.random.unit()).ln();
            if cost > self.value + threshold {
                continue;
            }
            let fits =
                || !self.model.is_tight || self.model.instance.fits_launches(&self.simulator.launches(&candidate));
            if cost < self.best_value && fits() {
                self.best_value = cost;
                self.best.clone_from(&candidate);
                // The first inputs alone are no plan of the queue, and expected times are no makespans.
                if self.is_whole && !self.model.keeps_groups {
                    allowance.report(cost);
                }
            }
            (self.pattern, self.value) = (candidate, cost);
        }
    }

    /// Changes a pattern at random; false if nothing changes.
    fn mutate(&mut self, pattern: &mut Pattern) -> bool {
        let groups = self.order.len();
        let first = self.random.below(groups);
        // Mostly one group, sometimes a run of neighbors.
        let most = (groups / 4).max(1);
        let length = if self.random.chance(0.6) { 1 } else { 1 + self.random.below(most) };
        let run: Vec<usize> = self.order[first..(first + length).min(groups)].to_vec();
        let devices = self.model.instance.devices();
        match self.random.below(10) {
            0..=2 => self.relocate(pattern, &run),
            3..=5 => {
                // Swaps the devices of two runs.
                let other = self.random.below(groups);
                let others = &self.order[other..(other + run.len()).min(groups)];
                let pairs: Vec<(usize, usize)> = run.iter().copied().zip(others.iter().copied()).collect();
                for (one, other) in pairs {
                    let (here, there) = (pattern.holders[one].clone(), pattern.holders[other].clone());
                    if self.are_allowed(one, &there) && self.are_allowed(other, &here) {
                        (pattern.holders[one], pattern.holders[other]) = (there, here);
                    }
                }
                true
            }
            6 => {
                let device = self.random.below(devices) as u16;
                for &group in &run {
                    let holders = &mut pattern.holders[group];
                    if !holders.contains(&device) && self.model.allowed(group).contains(&usize::from(device)) {
                        holders.push(device);
                        holders.sort_unstable();
                    }
                }
                true
            }
            7 => {
                for &group in &run {
                    let holders = &mut pattern.holders[group];
                    if holders.len() > 1 {
                        holders.remove(self.random.below(holders.len()));
                    }
                }
                true
            }
            8 => {
                let size = self.model.sizes[self.random.below(self.model.sizes.len())];
                let all = self.model.keeps_groups || self.random.chance(0.3);
                let changed: &[usize] = if all { &self.order } else { &run };
                let divided = changed.iter().filter(|group| !self.model.is_undivided[**group]);
                divided.for_each(|group| pattern.size[*group] = size);
                true
            }
            _ => {
                pattern.rule = RULES[self.random.below(RULES.len())];
                true
            }
        }
    }

    /// Moves a run of groups to one device.
    fn relocate(&mut self, pattern: &mut Pattern, run: &[usize]) -> bool {
        let device = self.random.below(self.model.instance.devices());
        let mut is_changed = false;
        for &group in run {
            if self.model.allowed(group).contains(&device) && pattern.holders[group] != [device as u16] {
                pattern.holders[group] = vec![device as u16];
                is_changed = true;
            }
        }
        is_changed
    }

    fn are_allowed(&self, group: usize, devices: &[u16]) -> bool {
        let allowed = self.model.allowed(group);
        devices.iter().all(|device| allowed.contains(&usize::from(*device)))
    }
}

/// Returns the co-location groups by the first of their tasks in topological order.
pub(super) fn groups_in_order(model: &Model<'_>) -> Vec<usize> {
    let mut seen = vec![false; model.instance.groups().len()];
    let mut order = Vec::with_capacity(seen.len());
    for &task in model.instance.order() {
        let group = model.instance.group_of(task);
        if !std::mem::replace(&mut seen[group], true) {
            order.push(group);
        }
    }
    order
}
