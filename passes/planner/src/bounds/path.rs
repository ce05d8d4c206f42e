//! Bound on load and on the mean time of an input together.
//!
//! Large batches take less of the devices' time, small ones less of each input's time on its path through the network. A
//! plan pays for both at once: its makespan is at least the priced time of all launches (see [`super::load`]), and at
//! least the mean over all inputs of the time on any path (see [`super::mean`]). So it is at least any weighted mean of
//! the two, where the path may be a weighted mean of paths, that is, a unit flow from first to last tasks. Each task
//! contributes the sum of both for its cheapest launches, which are chosen once for both.
//!
//! Weights, prices and flow are found by multiplicative updates: what the chosen launches exceed gets a higher price.

use std::collections::BTreeMap;

use super::ends::End;
use super::kinds::Kinds;
use super::load::{Launches, Price, Prices, launches_at};
use super::ways::longest_path;
use crate::model::instance::Instance;
use crate::model::units::Micros;

/// Initial weights of the path.
const PATH_WEIGHTS: [f64; 4] = [0.15, 0.3, 0.5, 0.75];
/// Number of rounds of updates from each of them; fewer where rounds are expensive.
const ROUNDS: usize = 150;
const MOST_STEPS: usize = 40_000_000;
/// Step of the first update, and of the flow.
const FIRST_STEP: f64 = 0.5;

/// Returns the bound, from the prices that maximize the load. `ends` are waits of devices at both ends of a plan.
pub(super) fn load(instance: &Instance, prices: &Prices, ends: &[End], known: Micros) -> Micros {
    let search = Search { instance, ends, known, kinds: Kinds::new(instance) };
    let steps = search.steps().max(1);
    let rounds = (MOST_STEPS / steps / PATH_WEIGHTS.len()).min(ROUNDS);
    if rounds == 0 {
        return Micros::ZERO;
    }
    let run = |weight: &f64| search.run(prices.best(), *weight, rounds);
    PATH_WEIGHTS.iter().map(run).fold(Micros::ZERO, Micros::max)
}

struct Search<'a> {
    instance: &'a Instance,
    ends: &'a [End],
    known: Micros,
    kinds: Kinds,
}

/// Result of one choice of prices.
struct Evaluated {
    bound: Micros,
    /// By device: time of the chosen launches with idle time, and share of the memory.
    busy: Vec<Micros>,
    memory: Vec<f64>,
    /// By task: mean time of an input.
    mean: Vec<Micros>,
}

impl Search<'_> {
    /// Returns the number of steps of one evaluation.
    fn steps(&self) -> usize {
        let sizes = |task: usize| {
            self.instance.allowed(task).iter().map(|device| self.instance.batch_sizes(*device).len()).sum::<usize>()
        };
        let all: usize = self.kinds.example.iter().map(|task| sizes(*task)).sum();
        // Tasks of a kind differ in their shares of the path; there are few of those at a time.
        self.instance.tasks() + 4 * all * self.instance.inputs() as usize
    }

    fn run(&self, start: &Price, weight: f64, rounds: usize) -> Micros {
        let mut price = Price {
            time: start.time.iter().map(|price| price * (1.0 - weight)).collect(),
            memory: start.memory.iter().map(|price| *price * (1.0 - weight)).collect(),
        };
        let share = |is_on_path: bool| f64::from(u8::from(is_on_path));
        let (_, path) = longest_path(self.instance, &vec![Micros(1.0); self.instance.tasks()]);
        let mut flow: Vec<f64> = path.into_iter().map(share).collect();
        let mut weight = weight;
        let mut best = Micros::ZERO;
        for round in 0..rounds {
            let found = self.evaluate(&price, weight, &flow);
            best = best.max(found.bound);
            let unit = best.max(self.known);
            let step = FIRST_STEP / (1.0 + round as f64 / 10.0);
            let (length, path) = longest_path(self.instance, &found.mean);
            for (price, busy) in price.time.iter_mut().zip(&found.busy) {
                *price *= (step * (*busy / unit - 1.0)).clamp(-1.0, 1.0).exp();
            }
            for (price, taken) in price.memory.iter_mut().zip(&found.memory) {
                *price = (*price + step * 0.1 * (taken - 1.0) * unit).max(Micros::ZERO);
            }
            weight *= (step * (length / unit - 1.0)).clamp(-1.0, 1.0).exp();
            let total = price.time.iter().sum::<f64>() + weight;
            price.time.iter_mut().for_each(|price| *price /= total);
            weight /= total;
            let part = 1.0 / (2.0 + round as f64 / 4.0);
            flow.iter_mut().zip(path).for_each(|(flow, path)| *flow += part * (share(path) - *flow));
        }
        best
    }

    fn evaluate(&self, price: &Price, weight: f64, flow: &[f64]) -> Evaluated {
        let instance = self.instance;
        let devices = instance.devices();
        let mut found = Evaluated {
            bound: -price.memory.iter().sum::<Micros>(),
            busy: vec![Micros::ZERO; devices],
            memory: vec![0.0; devices],
            mean: vec![Micros::ZERO; instance.tasks()],
        };
        let mut known: BTreeMap<(usize, u64), Launches> = BTreeMap::new();
        for (task, flow) in flow.iter().enumerate() {
            let waits: Option<Vec<Micros>> = self.ends.iter().filter(|end| end.task == task).fold(None, |sum, end| {
                let sum: Vec<Micros> = sum.unwrap_or_else(|| vec![Micros::ZERO; devices]);
                Some(sum.iter().zip(&end.wait).map(|(sum, wait)| *sum + *wait).collect())
            });
            // Equal tasks with an equal share of the path have the same launches.
            let fresh = || launches_at(instance, task, price, weight * flow, waits.as_deref());
            let Launches { cost, chosen, waiting } = match waits {
                Some(_) => &fresh(),
                None => known.entry((self.kinds.of[task], flow.to_bits())).or_insert_with(fresh),
            };
            let cost = *cost;
            if cost.is_infinite() {
                continue;
            }
            found.bound += cost;
            for launch in chosen {
                found.busy[launch.device] += launch.time * launch.count;
                found.memory[launch.device] += launch.memory;
                found.mean[task] += launch.time * launch.count * f64::from(launch.size) / f64::from(instance.inputs());
            }
            if let Some(waits) = &waits {
                for device in waiting {
                    found.busy[*device] += waits[*device];
                }
            }
        }
        found
    }
}
