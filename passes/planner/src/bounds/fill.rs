//! Load bound that includes the time in which a pipeline of launches fills and drains.
//!
//! A device is idle until operands of its first launch arrive, and after its last launch until what depends on it is
//! done. Both idle times are zero only if the device holds the weights of a first task, and of a last one. Where weights
//! fill the memory of all devices, few tasks are on several devices, so that most devices begin and end in the middle of
//! the network.
//!
//! Let the prices of devices' time sum to one, and let the weight memory of device d cost m(d) in all, so that the
//! weights of task t cost f(t, d) there. A plan with makespan C that holds task t on the devices H(t) satisfies
//!
//! C + Σ m(d) ≥ Σ price of all launches + Σ f(t, d) over t and d in H(t) + Σ price(d) · idle time of d.
//!
//! Each device claims the task of its first launch. All of H(t) except one device cost the sum of their f, and the
//! remaining one at least the cheapest choice of the task's launches with weights paid once. So one device may claim a
//! task for free, and each other one that claims it pays for its weights: the least cost of all claims is an assignment
//! problem. The same holds for last launches; each of the two pays half of the weights.
//!
//! A device without a launch is idle for the whole makespan, so idle times count in full only up to half of a known
//! bound at each end.

use super::kinds::Kinds;
use super::load::{Prices, cheapest_on};
use super::ways::Ways;
use crate::model::instance::Instance;
use crate::model::units::{Bytes, Micros};

/// Factors of the price of memory, in powers of two.
const SCALES: std::ops::RangeInclusive<i32> = -3..=9;
/// Maximum number of price vectors of devices' time.
const MOST_PRICES: usize = 12;
/// Maximum number of devices: the assignment problem is cubic.
const MOST_DEVICES: usize = 64;
/// Maximum number of sums of weights that are listed to round a capacity down.
const MOST_SUMS: usize = 4096;
/// Sums that exceed a capacity by rounding alone count.
const ROUNDED_UP: f64 = 1.0 + 1e-9;

/// Returns the bound; `None` if every device has memory for the weights of all tasks that it can run.
pub(super) fn load(instance: &Instance, prices: &Prices, known: Micros) -> Option<Micros> {
    let devices = instance.devices();
    let weights = |device: usize| -> Vec<Bytes> {
        let here = (0..instance.tasks()).filter(|task| instance.allowed(*task).contains(&device));
        here.map(|task| instance.weight_bytes(task)).filter(|weight| *weight > Bytes::ZERO).collect()
    };
    let is_scarce = |device: usize| weights(device).iter().sum::<Bytes>() > instance.capacity_bytes(device);
    if !(2..=MOST_DEVICES).contains(&devices) || !(0..devices).any(is_scarce) {
        return None;
    }
    let capacity = (0..devices).map(|device| largest_sum(weights(device), instance.capacity_bytes(device))).collect();
    let fill = Fill {
        instance,
        capacity,
        ends: [Ways::heads_of_first, Ways::tails_of_last].map(|ways| End::new(instance, ways, known)),
        known,
        kinds: Kinds::new(instance),
    };
    let mut best = Micros::ZERO;
    for time in prices.times().take(MOST_PRICES) {
        for scale in SCALES {
            // Memory of a device is worth as much as its time, times the scale.
            let memory: Vec<Micros> = time.iter().map(|price| known * *price * 2_f64.powi(scale)).collect();
            best = best.max(fill.priced(time, &memory));
        }
    }
    Some(best)
}

struct Fill<'a> {
    instance: &'a Instance,
    /// By device: the largest sum of weights that fits.
    capacity: Vec<Bytes>,
    /// First launches, and last ones.
    ends: [End; 2],
    known: Micros,
    kinds: Kinds,
}

/// First or last launches of devices.
struct End {
    /// By device and task: idle time before or behind the launch.
    idle: Vec<Vec<Micros>>,
    /// Tasks with the least idle times: a device needs no more of them than there are devices, as the others leave it one.
    nearest: Vec<usize>,
}

impl End {
    fn new(instance: &Instance, ways: fn(&Instance, usize) -> Ways, known: Micros) -> Self {
        let idle_on = |device: usize| -> Vec<Micros> {
            let ways = ways(instance, device);
            (0..instance.tasks()).map(|task| ways.on(task, device).min(known / 2.0)).collect()
        };
        let idle: Vec<Vec<Micros>> = (0..instance.devices()).map(idle_on).collect();
        let nearest_of = |idle: &Vec<Micros>| {
            let mut tasks: Vec<usize> = (0..instance.tasks()).collect();
            tasks.sort_by(|a, b| idle[*a].total_cmp(&idle[*b]));
            tasks.truncate(instance.devices());
            tasks
        };
        let mut nearest: Vec<usize> = idle.iter().flat_map(nearest_of).collect();
        nearest.sort_unstable();
        nearest.dedup();
        Self { idle, nearest }
    }
}

impl Fill<'_> {
    /// Returns the bound for prices of devices' time and of all of their weight memory.
    fn priced(&self, time: &[f64], memory: &[Micros]) -> Micros {
        let instance = self.instance;
        let fixed = |task: usize, device: usize| {
            let weight = instance.weight_bytes(task);
            // Memory without a limit has no price.
            let is_limited = weight > Bytes::ZERO && self.capacity[device].is_finite();
            if is_limited { memory[device] * (weight / self.capacity[device].max(weight)) } else { Micros::ZERO }
        };
        let limited = (0..instance.devices()).filter(|device| self.capacity[*device].is_finite());
        let given_back: Micros = limited.map(|device| memory[device]).sum();
        let work = |task: usize| {
            // The most expensive holder of the weights is paid for; others only if they claim the task.
            let with_most = |most: &usize| {
                let limit = fixed(task, *most);
                limit + cheapest_on(instance, task, time, |device| fixed(task, device) <= limit)
            };
            instance.allowed(task).iter().map(with_most).fold(Micros::INFINITY, Micros::min)
        };
        let paid: Micros = self.kinds.map(work).into_iter().sum();
        let idle: Micros = self.ends.iter().map(|end| self.least_claims(end, time, &fixed)).sum();
        paid + idle - given_back
    }

    /// Returns the least cost of claims: each device claims a task, for free if no other does.
    fn least_claims(&self, end: &End, time: &[f64], fixed: &impl Fn(usize, usize) -> Micros) -> Micros {
        let devices = self.instance.devices();
        let row = |device: usize| -> Vec<f64> {
            let idle = |task: usize| time[device] * end.idle[device][task];
            // Columns: tasks for free, then by device any task for the price of its weights, or no launch at all.
            let free = end.nearest.iter().map(|task| idle(*task));
            let every = 0..self.instance.tasks();
            let shared = every.map(|task| idle(task) + fixed(task, device) / 2.0).fold(Micros::INFINITY, Micros::min);
            let own = shared.min(time[device] * self.known / 2.0);
            let own = (0..devices).map(|other| if other == device { own } else { Micros::INFINITY });
            free.chain(own).map(|cost| cost.0).collect()
        };
        Micros(least_assignment(&(0..devices).map(row).collect::<Vec<_>>()))
    }
}

/// Returns the largest sum of some of the weights within a capacity, or the capacity if there are too many sums.
pub(super) fn largest_sum(weights: Vec<Bytes>, capacity: Bytes) -> Bytes {
    if capacity.is_infinite() {
        return capacity;
    }
    let mut sums = vec![Bytes::ZERO];
    for weight in weights {
        let more: Vec<Bytes> =
            sums.iter().map(|sum| *sum + weight).filter(|sum| *sum <= capacity * ROUNDED_UP).collect();
        sums.extend(more);
        sums.sort_by(Bytes::total_cmp);
        sums.dedup();
        if sums.len() > MOST_SUMS {
            return capacity;
        }
    }
    sums.last().map_or(Bytes::ZERO, |sum| sum.min(capacity))
}

/// Returns the least sum of one entry in each row, in columns that differ: the Hungarian method, by shortest augmenting
/// paths. There are at least as many columns as rows, and each row has a finite entry of its own.
fn least_assignment(costs: &[Vec<f64>]) -> f64 {
    let columns = costs.first().map_or(0, Vec::len);
    let (mut row_price, mut column_price) = (vec![0.0; costs.len()], vec![0.0; columns + 1]);
    // The last column stands for none.
    let mut row_of: Vec<Option<usize>> = vec![None; columns + 1];
    for row in 0..costs.len() {
        let mut column = columns;
        row_of[column] = Some(row);
        let (mut least, mut before) = (vec![f64::INFINITY; columns], vec![columns; columns]);
        let mut visited = vec![false; columns + 1];
        while let Some(current) = row_of[column] {
            visited[column] = true;
            let (mut step, mut next) = (f64::INFINITY, columns);
            for other in (0..columns).filter(|other| !visited[*other]) {
                let reduced = costs[current][other] - row_price[current] - column_price[other];
                if reduced < least[other] {
                    (least[other], before[other]) = (reduced, column);
                }
                if least[other] < step {
                    (step, next) = (least[other], other);
                }
            }
            for other in 0..=columns {
                if visited[other] {
                    if let Some(row) = row_of[other] {
                        row_price[row] += step;
                    }
                    column_price[other] -= step;
                } else {
                    least[other] -= step;
                }
            }
            column = next;
        }
        while column != columns {
            row_of[column] = row_of[before[column]];
            column = before[column];
        }
    }
    let chosen = row_of[..columns].iter().enumerate().filter_map(|(column, row)| Some(costs[(*row)?][column]));
    chosen.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Returns the least sum by trying all assignments.
    fn try_all(costs: &[Vec<f64>], used: &mut Vec<bool>) -> f64 {
        let Some((row, rest)) = costs.split_first() else { return 0.0 };
        let mut best = f64::INFINITY;
        for column in 0..row.len() {
            if !std::mem::replace(&mut used[column], true) {
                best = best.min(row[column] + try_all(rest, used));
                used[column] = false;
            }
        }
        best
    }

    #[test]
    fn assignments_are_optimal() {
        let mut random = Random::new(1);
        for _ in 0..500 {
            let (rows, more) = (1 + random.below(4), random.below(3));
            let entry =
                |random: &mut Random| if random.below(5) == 0 { f64::INFINITY } else { random.below(20) as f64 };
            let mut costs: Vec<Vec<f64>> =
                (0..rows).map(|_| (0..rows + more).map(|_| entry(&mut random)).collect()).collect();
            costs.iter_mut().enumerate().for_each(|(row, costs)| costs[row] = costs[row].min(50.0));
            let expected = try_all(&costs, &mut vec![false; rows + more]);
            assert_eq!(least_assignment(&costs), expected, "{costs:?}");
        }
    }

    #[test]
    fn capacities_are_sums_of_weights() {
        let sum = |weights: &[f64], capacity: f64| {
            largest_sum(weights.iter().map(|weight| Bytes(*weight)).collect(), Bytes(capacity))
        };
        assert_eq!(sum(&[1000.0; 16], 4251.0), Bytes(4000.0));
        assert_eq!(sum(&[3.0, 5.0, 9.0], 13.0), Bytes(12.0));
        assert_eq!(sum(&[3.0, 5.0], f64::INFINITY), Bytes::INFINITY);
        assert_eq!(sum(&[7.0], 5.0), Bytes::ZERO);
    }
}
