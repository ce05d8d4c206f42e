//! Load bound: cost of the work when time and memory of each device have a price.
//!
//! Let the prices of devices' time be nonnegative and sum to one. A device that is busy for at most C earns at most its
//! price times C with its time, and at most the price of all of its memory. All devices together earn at most C plus the
//! price of all memory, and each task pays at least its cheapest alternative. So the sum of the tasks' least payments,
//! less the price of all memory, is a lower bound on C for any prices: linear programming duality, for the program that
//! assigns fractions of tasks to devices. Good prices are found by multiplicative updates that raise the prices of
//! overloaded resources.

use super::kinds::Kinds;
use crate::model::instance::Instance;
use crate::model::plan::LaunchRule;
use crate::model::problem::MemoryModel;
use crate::model::units::{Bytes, Micros};

/// Number of rounds of price updates: a number per task, within a minimum and a maximum.
const ROUNDS_A_TASK: usize = 8;
const ROUNDS: (usize, usize) = (50, 400);
/// Maximum number of evaluated alternatives in all rounds: large problems have fewer rounds.
const MOST_EVALUATIONS: usize = 2_000_000;
/// Relative gap between the bound and the fractional assignment at which the updates stop.
const NEAR: f64 = 1e-4;
/// Number of parts of the topological order that have prices of their own: prices differ along the order.
const PARTS: [usize; 3] = [1, 2, 8];
/// Minimum number of tasks of a part.
const LEAST_PART: usize = 3;
/// Number of guesses of the makespan, against which the load of memory is measured.
const GUESSES: u32 = 4;
/// Maximum number of steps per task of the dynamic program over batches; beyond it, the cheapest rate is used.
pub(super) const MOST_STEPS: usize = 20_000;

/// Several price vectors, with the payments of each task.
pub(super) struct Prices {
    pub(super) pool: Vec<Priced>,
}

/// Payments of each task under one price vector.
pub(super) struct Priced {
    /// Lower bound for one launch, of any batch size.
    pub(super) launch: Vec<Micros>,
    /// Lower bound for the whole queue.
    pub(super) queue: Vec<Micros>,
    /// Price of all memory of all devices.
    pub(super) memory_worth: Micros,
    price: Price,
}

/// Prices of each device's time, and of all of its memory.
pub(super) struct Price {
    pub(super) time: Vec<f64>,
    pub(super) memory: Vec<Micros>,
}

impl Prices {
    pub(super) fn new(instance: &Instance) -> Self {
        let devices = instance.devices();
        let everything: Vec<usize> = (0..instance.tasks()).collect();
        let kinds = Kinds::new(instance);
        let mut pool = vec![vec![1.0 / devices as f64; devices]];
        for parts in PARTS.into_iter().filter(|parts| *parts == 1 || parts * LEAST_PART <= instance.tasks()) {
            for tasks in instance.order().chunks(instance.tasks().div_ceil(parts)) {
                pool.push(best_prices(instance, tasks, None).time);
            }
        }
        // Only one device has a price: bound on the tasks that can run nowhere else.
        pool.extend((0..devices).map(|only| (0..devices).map(|device| f64::from(device == only)).collect()));
        let timed = |time: Vec<f64>| Priced::new(instance, &kinds, Price { time, memory: vec![Micros::ZERO; devices] });
        let mut prices = Self { pool: pool.into_iter().map(timed).collect() };
        if instance.memory_binds() {
            for _ in 0..GUESSES {
                // Load of devices is measured against a makespan: somewhat above the proven bound.
                let guess = prices.load() * 1.2;
                prices.pool.push(Priced::new(instance, &kinds, best_prices(instance, &everything, Some(guess))));
            }
        }
        prices
    }

    /// Returns the prices that attain the load bound.
    pub(super) fn best(&self) -> &Price {
        let load = |priced: &Priced| priced.queue.iter().sum::<Micros>() - priced.memory_worth;
        let best = self.pool.iter().reduce(|best, other| if load(other) > load(best) { other } else { best });
        &best.expect("equal prices are among them").price
    }

    /// Iterates over price vectors of devices' time in which every device has a price; each sums to one.
    pub(super) fn times(&self) -> impl Iterator<Item = &[f64]> {
        let all = self.pool.iter().map(|priced| priced.price.time.as_slice());
        all.filter(|time| time.iter().all(|price| *price > 0.0))
    }

    /// Returns the load bound.
    pub(super) fn load(&self) -> Micros {
        self.pool
            .iter()
            .map(|priced| priced.queue.iter().sum::<Micros>() - priced.memory_worth)
            .fold(Micros::ZERO, Micros::max)
    }

    /// Returns the load bound with the idle time of devices that do not run the given tasks.
    pub(super) fn load_with(&self, instance: &Instance, waits: &[(usize, &[Micros])]) -> Micros {
        let paid = |priced: &Priced| {
            let more = |(task, wait): &(usize, &[Micros])| {
                cheapest_queue(instance, *task, &priced.price, Some(wait)) - priced.queue[*task]
            };
            priced.queue.iter().sum::<Micros>() - priced.memory_worth + waits.iter().map(more).sum::<Micros>()
        };
        self.pool.iter().map(paid).fold(Micros::ZERO, Micros::max)
    }
}

/// Returns prices of each device's time and of all of its memory that nearly maximize the load bound.
pub(crate) fn worth(instance: &Instance) -> (Vec<f64>, Vec<Micros>) {
    let everything: Vec<usize> = (0..instance.tasks()).collect();
    let free = best_prices(instance, &everything, None);
    if !instance.memory_binds() {
        return (free.time, vec![Micros::ZERO; instance.devices()]);
    }
    let guess = everything.iter().map(|task| cheapest_queue(instance, *task, &free, None)).sum::<Micros>() * 1.2;
    let price = best_prices(instance, &everything, Some(guess));
    (price.time, price.memory)
}

impl Priced {
    fn new(instance: &Instance, kinds: &Kinds, price: Price) -> Self {
        Self {
            launch: kinds.map(|task| cheapest_launch(instance, task, &price)),
            queue: kinds.map(|task| cheapest_queue(instance, task, &price, None)),
            memory_worth: price.memory.iter().sum(),
            price,
        }
    }
}

/// Returns the memory that a launch is sure to occupy. With liveness that is only its weights.
fn launch_bytes(instance: &Instance, task: usize, size: u32) -> Bytes {
    match instance.memory_model() {
        MemoryModel::Static => instance.static_bytes(task, size),
        MemoryModel::Liveness => instance.weight_bytes(task),
    }
}

/// Returns the share of a device's memory that a launch occupies; zero without a limit.
pub(super) fn memory_share(instance: &Instance, task: usize, device: usize, size: u32) -> f64 {
    let bytes = launch_bytes(instance, task, size);
    // A device without memory only runs tasks that need none.
    if bytes == Bytes::ZERO { 0.0 } else { bytes / instance.capacity_bytes(device).max(Bytes(1.0)) }
}

/// Iterates over the batches of a task that a device supports: size and cost.
fn options<'a>(
    instance: &'a Instance,
    task: usize,
    device: usize,
    price: &'a Price,
) -> impl Iterator<Item = (usize, Micros)> + 'a {
    instance.batch_sizes(device).iter().filter_map(move |size| {
        let time = price.time[device] * instance.time_at(task, device, *size)?;
        Some((*size as usize, time + price.memory[device] * memory_share(instance, task, device, *size)))
    })
}

fn cheapest_launch(instance: &Instance, task: usize, price: &Price) -> Micros {
    let allowed = instance.allowed(task).iter();
    let costs = allowed.flat_map(|device| options(instance, task, *device, price)).map(|(_, cost)| cost);
    costs.fold(Micros::INFINITY, Micros::min)
}

/// Returns the cost of the cheapest batches that sum to the queue, as many on each device as the rule for launches
/// allows; devices without a batch pay for their wait.
fn cheapest_queue(instance: &Instance, task: usize, price: &Price, wait: Option<&[Micros]>) -> Micros {
    let inputs = instance.inputs() as usize;
    let allowed = instance.allowed(task);
    let steps = inputs * allowed.iter().map(|device| instance.batch_sizes(*device).len()).sum::<usize>();
    if instance.launches() == LaunchRule::Many {
        return launches_at(instance, task, price, 0.0, wait).cost;
    }
    if steps > MOST_STEPS {
        let all = allowed.iter().flat_map(|device| options(instance, task, *device, price));
        return all.map(|(size, cost)| cost / size as f64).fold(Micros::INFINITY, Micros::min) * inputs as f64;
    }
    let mut cost_of = vec![Micros::INFINITY; inputs + 1];
    cost_of[0] = Micros::ZERO;
    for device in 0..instance.devices() {
        let before = cost_of.clone();
        let waiting = wait.map_or(Micros::ZERO, |wait| price.time[device] * wait[device]);
        cost_of.iter_mut().for_each(|cost| *cost += waiting);
        if !allowed.contains(&device) {
            continue;
        }
        for (size, cost) in options(instance, task, device, price) {
            for sum in size..=inputs {
                cost_of[sum] = Micros::min(cost_of[sum], before[sum - size] + cost);
            }
        }
    }
    cost_of[inputs]
}

/// Cheapest launches of a task, any number on each device.
pub(super) struct Launches {
    pub(super) cost: Micros,
    pub(super) chosen: Vec<Chosen>,
    /// Devices that wait, since they have no launch.
    pub(super) waiting: Vec<usize>,
}

/// Launches of one size on a device.
pub(super) struct Chosen {
    pub(super) device: usize,
    pub(super) size: u32,
    /// Number of launches; not an integer if sums are not enumerated.
    pub(super) count: f64,
    /// Time of one launch.
    pub(super) time: Micros,
    /// Share of the device's memory, with weights at the first launch.
    pub(super) memory: f64,
}

/// Size, time, share of memory and cost of a launch.
type Candidate = (u32, Micros, f64, Micros);

/// Step of the dynamic program over devices.
struct Step {
    open: Vec<Candidate>,
    /// By sum of inputs: the last launch of the cheapest split, and whether it is the first on this device.
    last: Vec<(usize, bool)>,
    /// By sum of inputs: true if the cheapest split has a launch on this device.
    is_used: Vec<bool>,
}

/// Returns the cheapest launches, any number on each device, that sum to the queue. A device pays for the weights once,
/// or for its wait if it has no launch; `path` is the price of an input's mean time. Where there are too many sums to
/// enumerate, the cost is a lower bound: the rate of the best size on one device, since costs of several devices are
/// concave.
pub(super) fn launches_at(
    instance: &Instance,
    task: usize,
    price: &Price,
    path: f64,
    wait: Option<&[Micros]>,
) -> Launches {
    let inputs = instance.inputs() as usize;
    let allowed = instance.allowed(task);
    let weights = |device: usize| memory_share(instance, task, device, 0);
    let candidates = |device: usize| -> Vec<Candidate> {
        let of = |size: &u32| {
            let time = instance.time_at(task, device, *size)?;
            let memory = memory_share(instance, task, device, *size) - weights(device);
            let on_path = path * f64::from(*size) / inputs as f64;
            Some((*size, time, memory, (price.time[device] + on_path) * time + price.memory[device] * memory))
        };
        instance.batch_sizes(device).iter().filter_map(of).collect()
    };
    let steps = inputs * allowed.iter().map(|device| instance.batch_sizes(*device).len()).sum::<usize>();
    if steps > MOST_STEPS {
        let on = |device: &usize| {
            let rate = |candidate: &Candidate| candidate.3 / f64::from(candidate.0);
            let best = candidates(*device).into_iter().min_by(|a, b| rate(a).total_cmp(&rate(b)))?;
            Some((rate(&best) * inputs as f64 + price.memory[*device] * weights(*device), *device, best))
        };
        let best = allowed.iter().filter_map(on).min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((cost, device, (size, time, memory, _))) = best else {
            return Launches { cost: Micros::INFINITY, chosen: Vec::new(), waiting: Vec::new() };
        };
        let count = inputs as f64 / f64::from(size);
        let chosen = Chosen { device, size, count, time, memory: memory * count + weights(device) };
        return Launches { cost, chosen: vec![chosen], waiting: Vec::new() };
    }
    let mut cost_of = vec![Micros::INFINITY; inputs + 1];
    cost_of[0] = Micros::ZERO;
    let mut steps: Vec<Step> = Vec::with_capacity(instance.devices());
    for device in 0..instance.devices() {
        let mut used = vec![Micros::INFINITY; inputs + 1];
        let mut last = vec![(0, true); inputs + 1];
        let open = if allowed.contains(&device) { candidates(device) } else { Vec::new() };
        let fixed = if open.is_empty() { Micros::ZERO } else { price.memory[device] * weights(device) };
        for sum in 1..=inputs {
            for (index, &(size, _, _, cost)) in open.iter().enumerate() {
                let Some(rest) = sum.checked_sub(size as usize) else { break };
                let (first, more) = (cost_of[rest] + fixed, used[rest]);
                let total = Micros::min(first, more) + cost;
                if total < used[sum] {
                    (used[sum], last[sum]) = (total, (index, first <= more));
                }
            }
        }
        let waiting = wait.map_or(Micros::ZERO, |wait| price.time[device] * wait[device]);
        let is_used = used.iter().zip(&cost_of).map(|(used, cost)| *used < *cost + waiting).collect();
        for (cost, used) in cost_of.iter_mut().zip(used) {
            *cost = Micros::min(*cost + waiting, used);
        }
        steps.push(Step { open, last, is_used });
    }
    let mut launches = Launches { cost: cost_of[inputs], chosen: Vec::new(), waiting: Vec::new() };
    let mut left = inputs;
    for (device, Step { open, last, is_used }) in steps.iter().enumerate().rev() {
        if launches.cost.is_infinite() || !is_used[left] {
            launches.waiting.push(device);
            continue;
        }
        loop {
            let (index, is_first) = last[left];
            let (size, time, memory, _) = open[index];
            let memory = memory + if is_first { weights(device) } else { 0.0 };
            launches.chosen.push(Chosen { device, size, count: 1.0, time, memory });
            left -= size as usize;
            if is_first {
                break;
            }
        }
    }
    launches
}

/// Returns a lower bound on the price of the time of a task's launches, any number on each of some devices; infinite if
/// the task runs on none of them.
pub(super) fn cheapest_on(instance: &Instance, task: usize, time: &[f64], is_open: impl Fn(usize) -> bool) -> Micros {
    let open = instance.allowed(task).iter().filter(|device| is_open(**device));
    let rate = |device: &usize| {
        let device = *device;
        let of = |size: &u32| Some(time[device] * instance.time_at(task, device, *size)? / f64::from(*size));
        instance.batch_sizes(device).iter().filter_map(of).fold(Micros::INFINITY, Micros::min)
    };
    open.map(rate).fold(Micros::INFINITY, Micros::min) * f64::from(instance.inputs())
}

/// One alternative of a task: device, time, and share of the device's memory; scaled up from a batch to the queue.
struct Way {
    device: usize,
    time: Micros,
    memory: f64,
}

/// Returns prices that nearly maximize the payments of some tasks, by multiplicative weight updates. Memory has a price
/// only if a guess of the makespan is given, against which the load of devices is measured.
fn best_prices(instance: &Instance, tasks: &[usize], guess: Option<Micros>) -> Price {
    let devices = instance.devices();
    let inputs = f64::from(instance.inputs());
    let ways = |task: &usize| -> Vec<Way> {
        let on = |device: usize| {
            instance.batch_sizes(device).iter().filter_map(move |size| {
                let scale = inputs / f64::from(*size);
                let time = scale * instance.time_at(*task, device, *size)?;
                let all = memory_share(instance, *task, device, *size);
                // Weights are on a device once, however often a task is launched there.
                let once = match instance.launches() {
                    LaunchRule::One => 0.0,
                    LaunchRule::Many => memory_share(instance, *task, device, 0),
                };
                Some(Way { device, time, memory: scale * (all - once) + once })
            })
        };
        instance.allowed(*task).iter().flat_map(|device| on(*device)).collect()
    };
    let ways: Vec<Vec<Way>> = tasks.iter().map(ways).collect();
    // Weights of the time of each device, then of the memory of each device; they sum to one.
    let mut weight = vec![1.0; devices];
    weight.resize(2 * devices, if guess.is_some() { 1.0 } else { 0.0 });
    normalize(&mut weight);
    let time_unit = guess.unwrap_or(Micros(1.0)).max(Micros(f64::MIN_POSITIVE));
    let mut best = (f64::NEG_INFINITY, weight.clone());
    let mut total_demand = vec![0.0; 2 * devices];
    let evaluations = ways.iter().map(Vec::len).sum::<usize>().max(1);
    let rounds = (tasks.len() * ROUNDS_A_TASK).min(MOST_EVALUATIONS / evaluations).clamp(ROUNDS.0, ROUNDS.1);
    for round in 1..=rounds {
        let mut demand = vec![0.0; 2 * devices];
        let mut paid = 0.0;
        for ways in &ways {
            let cost =
                |way: &Way| weight[way.device] * way.time / time_unit + weight[devices + way.device] * way.memory;
            let cheapest = ways.iter().reduce(|best, way| if cost(way) < cost(best) { way } else { best });
            if let Some(way) = cheapest {
                demand[way.device] += way.time / time_unit;
                demand[devices + way.device] += way.memory;
                paid += cost(way);
            }
        }
        let (time, memory): (f64, f64) = (weight[..devices].iter().sum(), weight[devices..].iter().sum());
        let bound = (paid - memory) / time;
        if bound > best.0 {
            best = (bound, weight.clone());
        }
        // The mean of all rounds' choices is a fractional assignment: no bound can exceed its load.
        total_demand.iter_mut().zip(&demand).for_each(|(total, demand)| *total += demand);
        let spread = total_demand[..devices].iter().copied().fold(0.0, f64::max) / round as f64;
        if guess.is_none() && best.0 >= spread * (1.0 - NEAR) {
            break;
        }
        let most = demand.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let step = 0.5 / (round as f64).sqrt();
        for (weight, demand) in weight.iter_mut().zip(&demand) {
            *weight *= 1.0 + step * demand / most;
        }
        normalize(&mut weight);
    }
    let weight = best.1;
    let time: f64 = weight[..devices].iter().sum();
    Price {
        time: weight[..devices].iter().map(|weight| weight / time).collect(),
        memory: weight[devices..].iter().map(|weight| *weight * time_unit / time).collect(),
    }
}

fn normalize(weights: &mut [f64]) {
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= sum);
}
