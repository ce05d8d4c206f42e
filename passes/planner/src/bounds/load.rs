//! What work costs when time on each device has a price.
//!
//! Let prices be non-negative and add up to one. A device that is busy for at most C earns at most its price times C, so
//! all together earn at most C; and each task pays at least its cheapest way to run. So the sum of cheapest ways is a
//! lower bound on C, for any prices: linear programming duality, for the program that spreads fractions of tasks over
//! devices. Which prices are good is found by raising those of busy devices.

use crate::instance::Instance;
use crate::units::Micros;

/// Rounds in which prices are adjusted. More rounds change bounds by less than a thousandth.
const ROUNDS: u32 = 400;
/// Beyond so many steps a task, the cheapest cut of a queue is replaced by its cheapest rate.
const MOST_STEPS: usize = 20_000;

/// Several ways of pricing devices, with what each task pays under them.
pub(super) struct Prices {
    pub(super) pool: Vec<Priced>,
}

/// One way of pricing devices.
pub(super) struct Priced {
    /// What each task pays at least for one launch, of whatever size.
    pub(super) launch: Vec<Micros>,
    /// What each task pays at least for the whole queue.
    pub(super) queue: Vec<Micros>,
}

impl Prices {
    pub(super) fn new(instance: &Instance) -> Self {
        let devices = instance.devices();
        let everything: Vec<usize> = (0..instance.tasks()).collect();
        let (early, late) = instance.order().split_at(instance.tasks() / 2);
        let mut pool = vec![
            best_prices(instance, &everything),
            best_prices(instance, early),
            best_prices(instance, late),
            vec![1.0 / devices as f64; devices],
        ];
        // One device's time alone: what can run nowhere else.
        pool.extend((0..devices).map(|only| (0..devices).map(|device| f64::from(device == only)).collect()));
        Self { pool: pool.iter().map(|price| Priced::new(instance, price)).collect() }
    }

    /// All work, whenever it is done.
    pub(super) fn load(&self) -> Micros {
        self.pool.iter().map(|priced| priced.queue.iter().sum()).fold(0.0, f64::max)
    }
}

impl Priced {
    fn new(instance: &Instance, price: &[f64]) -> Self {
        let launch = |task: usize| cheapest_launch(instance, task, price);
        let queue = |task: usize| cheapest_queue(instance, task, price);
        let tasks = 0..instance.tasks();
        Self { launch: tasks.clone().map(launch).collect(), queue: tasks.map(queue).collect() }
    }
}

fn cheapest_launch(instance: &Instance, task: usize, price: &[f64]) -> Micros {
    let on = |device: &usize| {
        let sizes = instance.batch_sizes(*device).iter();
        let times = sizes.filter_map(|size| instance.time_at(task, *device, *size));
        price[*device] * times.fold(f64::INFINITY, f64::min)
    };
    instance.allowed(task).iter().map(on).fold(f64::INFINITY, f64::min)
}

/// The cheapest batches, at most one a device, that add up to the queue.
fn cheapest_queue(instance: &Instance, task: usize, price: &[f64]) -> Micros {
    let inputs = instance.inputs() as usize;
    let allowed = instance.allowed(task);
    let options = |device: usize| {
        let sizes = instance.batch_sizes(device).iter();
        sizes.filter_map(move |size| Some((*size as usize, price[device] * instance.time_at(task, device, *size)?)))
    };
    let steps = inputs * allowed.iter().map(|device| instance.batch_sizes(*device).len()).sum::<usize>();
    if steps > MOST_STEPS {
        let rates = allowed.iter().flat_map(|device| options(*device)).map(|(size, cost)| cost / size as f64);
        return rates.fold(f64::INFINITY, f64::min) * inputs as f64;
    }
    let mut cost_of = vec![f64::INFINITY; inputs + 1];
    cost_of[0] = 0.0;
    for &device in allowed {
        let before = cost_of.clone();
        for (size, cost) in options(device) {
            for sum in size..=inputs {
                cost_of[sum] = f64::min(cost_of[sum], before[sum - size] + cost);
            }
        }
    }
    cost_of[inputs]
}

/// Prices for which some tasks pay much: devices that the tasks crowd onto become dearer, round by round.
fn best_prices(instance: &Instance, tasks: &[usize]) -> Vec<f64> {
    let devices = instance.devices();
    // The rate of one input in its best batch size stands for the queue here: any prices are valid.
    let rate = |task: usize, device: usize| {
        let sizes = instance.batch_sizes(device).iter();
        let rates = sizes.filter_map(|size| Some(instance.time_at(task, device, *size)? / f64::from(*size)));
        rates.fold(f64::INFINITY, f64::min)
    };
    let rates: Vec<Vec<(usize, f64)>> = tasks
        .iter()
        .map(|task| instance.allowed(*task).iter().map(|device| (*device, rate(*task, *device))).collect())
        .collect();
    let mut price = vec![1.0 / devices as f64; devices];
    let mut best = (0.0, price.clone());
    for round in 1..=ROUNDS {
        let mut load = vec![0.0; devices];
        let mut paid = 0.0;
        for options in &rates {
            let cost = |option: &(usize, f64)| price[option.0] * option.1;
            let cheapest = options.iter().copied().reduce(|a, b| if cost(&b) < cost(&a) { b } else { a });
            if let Some((device, rate)) = cheapest {
                load[device] += rate;
                paid += price[device] * rate;
            }
        }
        if paid > best.0 {
            best = (paid, price.clone());
        }
        let most = load.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let step = 0.5 / f64::from(round).sqrt();
        for (price, load) in price.iter_mut().zip(&load) {
            *price *= 1.0 + step * load / most;
        }
        let sum: f64 = price.iter().sum();
        price.iter_mut().for_each(|price| *price /= sum);
    }
    best.1
}
