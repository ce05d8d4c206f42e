//! Bound on the mean time of an input on a path, where replicas of tasks cost memory.
//!
//! Consider one path through the graph. An input is in one launch of each task on it, and these launches are in sequence,
//! so the makespan is at least the sum of their times, and at least the mean of that sum over all inputs. A task adds to
//! the mean the times of its launches, each weighted by its share of the inputs. More and smaller launches take less
//! time, but each device that runs the task holds its parameters. With a price on every byte, the cost is at least that
//! of the cheapest split of each task's queue, less the price of all memory: by Lagrangian duality a bound for any
//! prices.
//!
//! Equal tasks have the same cheapest split, so it is computed once for each kind; devices that are equal to all tasks
//! have the same price.

use super::kinds::Kinds;
use super::load::{Launches, Price, launches_at, memory_share};
use super::ways::longest_path;
use crate::model::instance::Instance;
use crate::model::plan::LaunchRule;
use crate::model::units::{Bytes, Micros, MicrosPerByte};

/// Maximum number of subgradient steps, and of steps of the dynamic program in all of them.
const ROUNDS: usize = 300;
const MOST_STEPS: usize = 30_000_000;
/// Maximum number of steps per task; beyond it, the cheapest rate replaces the cheapest split.
const MOST_STEPS_A_TASK: usize = 20_000;
/// Number of rounds without a better bound after which the step is halved.
const STALLED_ROUNDS: usize = 5;
/// Share of the first step below which the updates stop.
const SHORT: f64 = 1e-5;

/// The bound, and the prices of memory that attain it.
pub(super) struct Mean {
    pub(super) bound: Micros,
    /// Price of all memory of each device.
    worth: Vec<Micros>,
}

/// Returns a price of a byte of each device's memory, from the best bound on the mean time of inputs.
pub(crate) fn byte_prices(instance: &Instance) -> Vec<MicrosPerByte> {
    let mean = Mean::new(instance);
    let price = |device: usize| mean.worth[device] / instance.capacity_bytes(device).max(Bytes(1.0));
    (0..instance.devices()).map(price).collect()
}

/// Returns the class of each device: devices of a class are equal to all tasks.
pub(crate) fn device_classes(instance: &Instance) -> Vec<usize> {
    Classes::new(instance).class_of
}

impl Mean {
    pub(super) fn new(instance: &Instance) -> Self {
        let classes = Classes::new(instance);
        let free = vec![Micros::ZERO; classes.classes.len()];
        let mut best = Self { bound: classes.priced(&free).bound, worth: vec![Micros::ZERO; instance.devices()] };
        if !instance.memory_binds() {
            return best;
        }
        let rounds = (MOST_STEPS / classes.steps().max(1)).clamp(1, ROUNDS);
        let mut worth = free;
        let (first, mut rounds_left) = (best.bound / classes.classes.len() as f64, STALLED_ROUNDS);
        let mut step = first;
        // The excess demand of the last splits is the subgradient: prices of scarce memory rise.
        let mut priced = classes.priced(&worth);
        for _ in 0..rounds {
            // Prices are nonnegative: the price of unused memory stays zero.
            let slope =
                |(worth, excess): (&Micros, &f64)| if *worth > Micros::ZERO { *excess } else { excess.max(0.0) };
            let slopes: Vec<f64> = worth.iter().zip(&priced.excess).map(slope).collect();
            let length = slopes.iter().map(|slope| slope * slope).sum::<f64>().sqrt();
            if length == 0.0 || step < first * SHORT {
                break;
            }
            for (worth, slope) in worth.iter_mut().zip(&slopes) {
                *worth = (*worth + step * *slope / length).max(Micros::ZERO);
            }
            priced = classes.priced(&worth);
            if priced.bound > best.bound {
                best.bound = priced.bound;
                best.worth = (0..instance.devices()).map(|device| worth[classes.class_of[device]]).collect();
                rounds_left = STALLED_ROUNDS;
            } else if rounds_left == 0 {
                (step, rounds_left) = (step / 2.0, STALLED_ROUNDS);
            } else {
                rounds_left -= 1;
            }
        }
        best
    }
}

/// Bound under some prices, and the excess demand of each class as a share of its memory.
struct Priced {
    bound: Micros,
    excess: Vec<f64>,
}

/// Cheapest split of a task's queue into launches.
#[derive(Clone, Default)]
struct Cut {
    cost: Micros,
    /// Memory by class of devices, in shares of one device's memory.
    taken: Vec<f64>,
}

/// Classes of equal devices and kinds of equal tasks.
struct Classes<'a> {
    instance: &'a Instance,
    /// Devices of each class.
    classes: Vec<Vec<usize>>,
    class_of: Vec<usize>,
    kinds: Kinds,
}

impl<'a> Classes<'a> {
    fn new(instance: &'a Instance) -> Self {
        let mut classes: Vec<Vec<usize>> = Vec::new();
        let mut class_of = Vec::with_capacity(instance.devices());
        for device in 0..instance.devices() {
            let alike = |class: &Vec<usize>| {
                let (other, sizes) = (class[0], instance.batch_sizes(device));
                let same = |task: usize, size: u32| {
                    instance.time_at(task, device, size) == instance.time_at(task, other, size)
                };
                instance.capacity_bytes(device) == instance.capacity_bytes(other)
                    && sizes == instance.batch_sizes(other)
                    && (0..instance.tasks()).all(|task| sizes.iter().all(|size| same(task, *size)))
            };
            let class = classes.iter().position(alike).unwrap_or(classes.len());
            if class == classes.len() {
                classes.push(Vec::new());
            }
            classes[class].push(device);
            class_of.push(class);
        }
        let first: Vec<usize> = classes.iter().map(|class| class[0]).collect();
        let kinds = Kinds::on(instance, &first);
        Self { instance, classes, class_of, kinds }
    }

    /// Returns the number of steps of one evaluation of the bound.
    fn steps(&self) -> usize {
        self.kinds.example.len() * 2 * self.steps_a_task().min(MOST_STEPS_A_TASK)
    }

    fn steps_a_task(&self) -> usize {
        let instance = self.instance;
        let sizes = (0..instance.devices()).map(|device| instance.batch_sizes(device).len()).sum::<usize>();
        (instance.inputs() as usize).saturating_mul(sizes)
    }

    /// Returns the bound for prices of each class's memory per device: the most expensive path through the graph, and the
    /// memory of all tasks beside it.
    fn priced(&self, worth: &[Micros]) -> Priced {
        let on_way: Vec<Cut> = self.kinds.example.iter().map(|task| self.cheapest(*task, worth, 1.0)).collect();
        let beside: Vec<Cut> = self.kinds.example.iter().map(|task| self.cheapest(*task, worth, 0.0)).collect();
        let instance = self.instance;
        let more = |task: usize| on_way[self.kinds.of[task]].cost - beside[self.kinds.of[task]].cost;
        let times: Vec<Micros> = (0..instance.tasks()).map(more).collect();
        let (_, is_on_way) = longest_path(instance, &times);
        let mut excess: Vec<f64> = self.classes.iter().map(|class| -(class.len() as f64)).collect();
        let given_back: Micros =
            worth.iter().zip(&self.classes).map(|(worth, class)| *worth * class.len() as f64).sum();
        let mut bound = -given_back;
        for (task, on) in is_on_way.into_iter().enumerate() {
            let cut = &(if on { &on_way } else { &beside })[self.kinds.of[task]];
            bound += cut.cost;
            excess.iter_mut().zip(&cut.taken).for_each(|(excess, taken)| *excess += taken);
        }
        excess.iter_mut().zip(&self.classes).for_each(|(excess, class)| *excess /= class.len() as f64);
        Priced { bound, excess }
    }

    /// Returns the cheapest launches that sum to the queue, as many on each device as the rule for launches allows;
    /// `time_counts` is the weight of times.
    fn cheapest(&self, task: usize, worth: &[Micros], time_counts: f64) -> Cut {
        let instance = self.instance;
        let inputs = instance.inputs() as usize;
        let launches = |device: usize| {
            instance.batch_sizes(device).iter().filter_map(move |size| {
                let time = instance.time_at(task, device, *size)?;
                let share = memory_share(instance, task, device, *size);
                let mean = time_counts * time * f64::from(*size) / inputs as f64;
                Some((*size as usize, mean + worth[self.class_of[device]] * share, share))
            })
        };
        if instance.launches() == LaunchRule::Many {
            let memory = self.class_of.iter().map(|class| worth[*class]).collect();
            let price = Price { time: vec![0.0; instance.devices()], memory };
            let Launches { cost, chosen, .. } = launches_at(instance, task, &price, time_counts, None);
            // Sizes that do not sum to the queue are rejected elsewhere.
            let cost = if cost.is_finite() { cost } else { Micros::ZERO };
            let mut cut = Cut { cost, taken: vec![0.0; self.classes.len()] };
            chosen.iter().for_each(|launch| cut.taken[self.class_of[launch.device]] += launch.memory);
            return cut;
        }
        let mut cut = Cut { cost: Micros::ZERO, taken: vec![0.0; self.classes.len()] };
        if self.steps_a_task() > MOST_STEPS_A_TASK {
            let all = instance.allowed(task).iter().flat_map(|device| launches(*device).map(move |way| (*device, way)));
            let rate = |(_, (size, cost, _)): &(usize, (usize, Micros, f64))| *cost / *size as f64;
            if let Some(way) = all.min_by(|a, b| rate(a).total_cmp(&rate(b))) {
                let (device, (size, _, share)) = way;
                cut.cost = rate(&way) * inputs as f64;
                cut.taken[self.class_of[device]] = share * inputs as f64 / size as f64;
            }
            return cut;
        }
        let mut cost_of = vec![Micros::INFINITY; inputs + 1];
        cost_of[0] = Micros::ZERO;
        // For each device and sum, the last launch of the cheapest split.
        let mut chosen = Vec::new();
        for &device in instance.allowed(task) {
            let before = cost_of.clone();
            let mut last: Vec<Option<(usize, f64)>> = vec![None; inputs + 1];
            for (size, cost, share) in launches(device) {
                for sum in size..=inputs {
                    if before[sum - size] + cost < cost_of[sum] {
                        cost_of[sum] = before[sum - size] + cost;
                        last[sum] = Some((size, share));
                    }
                }
            }
            chosen.push((device, last));
        }
        // Sizes that do not sum to the queue are rejected elsewhere.
        cut.cost = if cost_of[inputs].is_finite() { cost_of[inputs] } else { Micros::ZERO };
        let mut left = inputs;
        for (device, last) in chosen.iter().rev() {
            if let Some((size, share)) = last[left] {
                left -= size;
                cut.taken[self.class_of[*device]] += share;
            }
        }
        cut
    }
}
