//! What work costs when time and memory of each device have a price.
//!
//! Let the prices of devices' time add up to one, and none be negative. A device that is busy for at most C earns at most
//! its price times C with its time, and no more with its memory than all of it is worth. All together earn at most C plus
//! what all memory is worth, and each task pays at least its cheapest way to run. So what the tasks pay at least, less
//! what all memory is worth, is a lower bound on C, whatever the prices: linear programming duality, for the program that
//! spreads fractions of tasks over devices. Good prices are found by raising those of what is crowded.

use crate::model::instance::Instance;
use crate::model::problem::MemoryModel;
use crate::model::units::{Bytes, Micros};

/// Rounds in which prices are adjusted: a few a task, and at least and at most so many.
const ROUNDS_A_TASK: usize = 8;
const ROUNDS: (usize, usize) = (50, 400);
/// Large problems have fewer rounds: no more than so many looks at a way to run a task.
const MOST_LOOKS: usize = 2_000_000;
/// Prices are good enough when the bound is so near to what spreading the tasks as they chose costs.
const NEAR: f64 = 1e-4;
/// Prices are made for everything, for each half and for each eighth of the order: what is dear differs along it.
const PARTS: [usize; 3] = [1, 2, 8];
/// Parts with fewer tasks have no prices of their own.
const LEAST_PART: usize = 3;
/// With memory, how often the time that there is to share is guessed anew.
const GUESSES: u32 = 4;
/// Beyond so many steps a task, the cheapest cut of a queue is replaced by its cheapest rate.
const MOST_STEPS: usize = 20_000;

/// Several ways of pricing devices, with what each task pays under them.
pub(super) struct Prices {
    pub(super) pool: Vec<Priced>,
}

/// What each task pays under one way of pricing.
pub(super) struct Priced {
    /// At least for one launch, of whatever size.
    pub(super) launch: Vec<Micros>,
    /// At least for the whole queue.
    pub(super) queue: Vec<Micros>,
    /// What all memory is worth.
    pub(super) memory_worth: Micros,
    price: Price,
}

/// Prices of a device's time, and of all its memory.
struct Price {
    time: Vec<f64>,
    memory: Vec<Micros>,
}

impl Prices {
    pub(super) fn new(instance: &Instance) -> Self {
        let devices = instance.devices();
        let everything: Vec<usize> = (0..instance.tasks()).collect();
        let mut pool = vec![vec![1.0 / devices as f64; devices]];
        for parts in PARTS.into_iter().filter(|parts| *parts == 1 || parts * LEAST_PART <= instance.tasks()) {
            for tasks in instance.order().chunks(instance.tasks().div_ceil(parts)) {
                pool.push(best_prices(instance, tasks, None).time);
            }
        }
        // One device's time alone: what can run nowhere else.
        pool.extend((0..devices).map(|only| (0..devices).map(|device| f64::from(device == only)).collect()));
        let timed = |time: Vec<f64>| Priced::new(instance, Price { time, memory: vec![0.0; devices] });
        let mut prices = Self { pool: pool.into_iter().map(timed).collect() };
        if instance.memory_binds() {
            for _ in 0..GUESSES {
                // Crowding is measured against a time: somewhat more than what is proven.
                let guess = prices.load() * 1.2;
                prices.pool.push(Priced::new(instance, best_prices(instance, &everything, Some(guess))));
            }
        }
        prices
    }

    /// All work, whenever it is done.
    pub(super) fn load(&self) -> Micros {
        self.pool.iter().map(|priced| priced.queue.iter().sum::<Micros>() - priced.memory_worth).fold(0.0, f64::max)
    }

    /// The same, where devices wait that take no part in some tasks.
    pub(super) fn load_with(&self, instance: &Instance, waits: &[(usize, &[Micros])]) -> Micros {
        let paid = |priced: &Priced| {
            let more = |(task, wait): &(usize, &[Micros])| {
                cheapest_queue(instance, *task, &priced.price, Some(wait)) - priced.queue[*task]
            };
            priced.queue.iter().sum::<Micros>() - priced.memory_worth + waits.iter().map(more).sum::<Micros>()
        };
        self.pool.iter().map(paid).fold(0.0, f64::max)
    }
}

/// What a device's time is worth, and all its memory, where all work is to be done in the least time.
pub(crate) fn worth(instance: &Instance) -> (Vec<f64>, Vec<Micros>) {
    let everything: Vec<usize> = (0..instance.tasks()).collect();
    let free = best_prices(instance, &everything, None);
    if !instance.memory_binds() {
        return (free.time, vec![0.0; instance.devices()]);
    }
    let guess = everything.iter().map(|task| cheapest_queue(instance, *task, &free, None)).sum::<Micros>() * 1.2;
    let price = best_prices(instance, &everything, Some(guess));
    (price.time, price.memory)
}

impl Priced {
    fn new(instance: &Instance, price: Price) -> Self {
        let launch = |task: usize| cheapest_launch(instance, task, &price);
        let queue = |task: usize| cheapest_queue(instance, task, &price, None);
        let tasks = 0..instance.tasks();
        Self {
            launch: tasks.clone().map(launch).collect(),
            queue: tasks.map(queue).collect(),
            memory_worth: price.memory.iter().sum(),
            price,
        }
    }
}

/// What a launch is sure to take of its device's memory. With liveness that is its weights: the rest comes and goes.
fn launch_bytes(instance: &Instance, task: usize, size: u32) -> Bytes {
    match instance.memory_model() {
        MemoryModel::Static => instance.static_bytes(task, size),
        MemoryModel::Liveness => instance.weight_bytes(task),
    }
}

/// The share of a device's memory that a launch takes; nothing where there is no limit.
fn memory_share(instance: &Instance, task: usize, device: usize, size: u32) -> f64 {
    let bytes = launch_bytes(instance, task, size);
    // A device without memory runs only what needs none.
    if bytes == 0.0 { 0.0 } else { bytes / instance.capacity_bytes(device).max(1.0) }
}

/// The batches that a device could take of a task: size and cost.
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
    costs.fold(f64::INFINITY, f64::min)
}

/// The cheapest batches, at most one a device, that add up to the queue; with what waiting costs where there is none.
fn cheapest_queue(instance: &Instance, task: usize, price: &Price, wait: Option<&[Micros]>) -> Micros {
    let inputs = instance.inputs() as usize;
    let allowed = instance.allowed(task);
    let steps = inputs * allowed.iter().map(|device| instance.batch_sizes(*device).len()).sum::<usize>();
    if steps > MOST_STEPS {
        let all = allowed.iter().flat_map(|device| options(instance, task, *device, price));
        return all.map(|(size, cost)| cost / size as f64).fold(f64::INFINITY, f64::min) * inputs as f64;
    }
    let mut cost_of = vec![f64::INFINITY; inputs + 1];
    cost_of[0] = 0.0;
    for device in 0..instance.devices() {
        let before = cost_of.clone();
        let waiting = wait.map_or(0.0, |wait| price.time[device] * wait[device]);
        cost_of.iter_mut().for_each(|cost| *cost += waiting);
        if !allowed.contains(&device) {
            continue;
        }
        for (size, cost) in options(instance, task, device, price) {
            for sum in size..=inputs {
                cost_of[sum] = f64::min(cost_of[sum], before[sum - size] + cost);
            }
        }
    }
    cost_of[inputs]
}

/// One way to run one task: where, its time, its share of the device's memory; scaled up from a batch to the queue.
struct Way {
    device: usize,
    time: Micros,
    memory: f64,
}

/// Prices at which some tasks pay much: what the tasks crowd onto becomes dearer, round by round. Memory has a price
/// only where a time is given that crowding of devices can be compared with.
fn best_prices(instance: &Instance, tasks: &[usize], guess: Option<Micros>) -> Price {
    let devices = instance.devices();
    let inputs = f64::from(instance.inputs());
    let ways = |task: &usize| -> Vec<Way> {
        let on = |device: usize| {
            instance.batch_sizes(device).iter().filter_map(move |size| {
                let scale = inputs / f64::from(*size);
                let time = scale * instance.time_at(*task, device, *size)?;
                Some(Way { device, time, memory: scale * memory_share(instance, *task, device, *size) })
            })
        };
        instance.allowed(*task).iter().flat_map(|device| on(*device)).collect()
    };
    let ways: Vec<Vec<Way>> = tasks.iter().map(ways).collect();
    // Weights of times, then of memories; they add up to one.
    let mut weight = vec![1.0; devices];
    weight.resize(2 * devices, if guess.is_some() { 1.0 } else { 0.0 });
    normalize(&mut weight);
    let time_unit = guess.unwrap_or(1.0).max(f64::MIN_POSITIVE);
    let mut best = (f64::NEG_INFINITY, weight.clone());
    let mut total_crowd = vec![0.0; 2 * devices];
    let looks = ways.iter().map(Vec::len).sum::<usize>().max(1);
    let rounds = (tasks.len() * ROUNDS_A_TASK).min(MOST_LOOKS / looks).clamp(ROUNDS.0, ROUNDS.1);
    for round in 1..=rounds {
        let mut crowd = vec![0.0; 2 * devices];
        let mut paid = 0.0;
        for ways in &ways {
            let cost =
                |way: &Way| weight[way.device] * way.time / time_unit + weight[devices + way.device] * way.memory;
            let cheapest = ways.iter().reduce(|best, way| if cost(way) < cost(best) { way } else { best });
            if let Some(way) = cheapest {
                crowd[way.device] += way.time / time_unit;
                crowd[devices + way.device] += way.memory;
                paid += cost(way);
            }
        }
        let (time, memory): (f64, f64) = (weight[..devices].iter().sum(), weight[devices..].iter().sum());
        let bound = (paid - memory) / time;
        if bound > best.0 {
            best = (bound, weight.clone());
        }
        // All rounds' choices, a share each, are one way to spread the tasks: no bound can be above it.
        total_crowd.iter_mut().zip(&crowd).for_each(|(total, crowd)| *total += crowd);
        let spread = total_crowd[..devices].iter().copied().fold(0.0, f64::max) / round as f64;
        if guess.is_none() && best.0 >= spread * (1.0 - NEAR) {
            break;
        }
        let most = crowd.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let step = 0.5 / (round as f64).sqrt();
        for (weight, crowd) in weight.iter_mut().zip(&crowd) {
            *weight *= 1.0 + step * crowd / most;
        }
        normalize(&mut weight);
    }
    let weight = best.1;
    let time: f64 = weight[..devices].iter().sum();
    Price {
        time: weight[..devices].iter().map(|weight| weight / time).collect(),
        memory: weight[devices..].iter().map(|weight| weight * time_unit / time).collect(),
    }
}

fn normalize(weights: &mut [f64]) {
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= sum);
}
