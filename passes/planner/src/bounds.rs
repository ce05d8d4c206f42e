//! Lower bounds that hold for every plan, whichever algorithm made it: each with its name and why it is true.
//!
//! For a queue, what must have happened before a task's first launch is one launch of each task before it, of whatever
//! size; what must happen in all is the whole queue. Bounds that take more than that for granted are wrong as soon as
//! modules have several channels.

mod ends;
mod load;
mod mean;
mod ways;

use crate::model::instance::Instance;
use crate::model::plan::Bound;
use crate::model::units::Micros;

pub(crate) use load::worth;
pub(crate) use mean::{byte_prices, device_classes};

use load::Prices;
use mean::Mean;
use ways::{Ways, quickest};

/// So many heads and tails are tried as ends of a window.
const WINDOW_ENDS: usize = 24;

/// Every bound there is, in a fixed order.
pub fn all(instance: &Instance) -> Vec<Bound> {
    let prices = Prices::new(instance);
    let (heads, tails) = (Ways::heads(instance, None), Ways::tails(instance, None));
    let critical_path = longest(instance, &heads, &tails);
    let load = prices.load();
    let with_ends = ends::load(instance, &prices, &heads, &tails, load.max(critical_path));
    let (heads, tails) = (Ways::heads(instance, Some(&prices)), Ways::tails(instance, Some(&prices)));
    let windows = longest(instance, &heads, &tails).max(busiest_window(instance, &prices, &heads, &tails));
    vec![
        Bound::new(critical_path, "critical-path"),
        Bound::new(load, "load"),
        Bound::new(with_ends, "load-with-ends"),
        Bound::new(windows, "load-in-windows"),
        Bound::new(Mean::new(instance).bound, "mean-way"),
    ]
}

/// The best of them; of equals the first.
pub fn best(instance: &Instance) -> Bound {
    all(instance).into_iter().fold(Bound::none(), Bound::or)
}

/// The longest of the ways through each task, on the device that is best for it.
fn longest(instance: &Instance, heads: &Ways, tails: &Ways) -> Micros {
    let through = |task: usize| {
        let on = |device: &usize| heads.on(task, *device) + quickest(instance, task, *device) + tails.on(task, *device);
        instance.allowed(task).iter().map(on).fold(f64::INFINITY, f64::min)
    };
    (0..instance.tasks()).map(through).fold(0.0, f64::max)
}

/// The whole queue of those tasks that neither start before a window nor end after it, for several windows.
fn busiest_window(instance: &Instance, prices: &Prices, heads: &Ways, tails: &Ways) -> Micros {
    let heads: Vec<Micros> = (0..instance.tasks()).map(|task| heads.least(task)).collect();
    let tails: Vec<Micros> = (0..instance.tasks()).map(|task| tails.least(task)).collect();
    let mut busiest: Micros = 0.0;
    for head in some_of(&heads) {
        for tail in some_of(&tails) {
            let inside: Vec<usize> =
                (0..heads.len()).filter(|task| heads[*task] >= head && tails[*task] >= tail).collect();
            // An empty window may begin after it ends.
            if inside.is_empty() {
                continue;
            }
            for priced in &prices.pool {
                let paid = inside.iter().map(|task| priced.queue[*task]).sum::<Micros>() - priced.memory_worth;
                busiest = busiest.max(head + paid + tail);
            }
        }
    }
    busiest
}

/// Some of the values, spread evenly over them.
fn some_of(values: &[Micros]) -> Vec<Micros> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let step = values.len().div_ceil(WINDOW_ENDS).max(1);
    values.into_iter().step_by(step).collect()
}
