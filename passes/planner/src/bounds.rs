//! Lower bounds that hold for every plan, whichever algorithm computes it: each with its name and its proof.
//!
//! For a queue, only one launch of each predecessor, of any batch size, is sure to precede a task's first launch; the
//! whole queue is sure to run in all. Stronger assumptions are wrong if there are several tensors between two modules.

mod ends;
mod fill;
mod kinds;
mod load;
mod mean;
mod path;
mod relaxation;
mod ways;

use crate::mip::Limits;
use crate::model::error::Error;
use crate::model::instance::Instance;
use crate::model::plan::{Bound, LaunchRule, Proof};
use crate::model::units::Micros;

pub(crate) use load::worth;
pub(crate) use mean::{byte_prices, device_classes};

use load::Prices;
use mean::Mean;
use ways::{Ways, quickest};

/// Maximum number of heads and of tails that are tried as ends of a window.
const WINDOW_ENDS: usize = 24;

/// Returns all bounds, in a fixed order.
pub fn all(instance: &Instance) -> Vec<Bound> {
    let prices = Prices::new(instance);
    let (heads, tails) = (Ways::heads(instance, None), Ways::tails(instance, None));
    let critical_path = longest(instance, &heads, &tails);
    let load = prices.load();
    let ends = ends::ends(instance, &heads, &tails, load.max(critical_path));
    let with_ends = ends::load(instance, &prices, &ends);
    let (heads, tails) = (Ways::heads(instance, Some(&prices)), Ways::tails(instance, Some(&prices)));
    let windows = longest(instance, &heads, &tails).max(busiest_window(instance, &prices, &heads, &tails));
    let known = load.max(with_ends).max(windows);
    let of_many = match instance.launches() {
        LaunchRule::One => Vec::new(),
        LaunchRule::Many => {
            let on_path = Bound::new(path::load(instance, &prices, &ends, known), "load-and-path");
            let filled = fill::load(instance, &prices, known).map(|load| Bound::new(load, "fill-and-drain"));
            let found: Vec<Bound> = [on_path].into_iter().chain(filled).collect();
            let known = found.iter().fold(known, |known, bound| known.max(bound.value));
            // A failure of the solver leaves the other bounds.
            let relaxed = relaxation::bound(instance, known).unwrap_or(Micros::ZERO);
            let relaxed = Bound::by(relaxed, "linear-relaxation", Proof::SafeDual);
            found.into_iter().chain([relaxed]).collect()
        }
    };
    let bounds = [
        Bound::new(critical_path, "critical-path"),
        Bound::new(load, "load"),
        Bound::new(with_ends, "load-with-ends"),
        Bound::new(windows, "load-in-windows"),
        Bound::new(Mean::new(instance).bound, "mean-way"),
    ];
    bounds.into_iter().chain(of_many).collect()
}

/// Returns true if [`integer`] makes progress within seconds.
pub(crate) fn has_integer(instance: &Instance, known: Micros) -> bool {
    instance.launches() == LaunchRule::Many && relaxation::is_small(instance, known)
}

/// Returns the bound of a search tree over sets of launches for plans that take no longer than `horizon`.
pub(crate) fn integer(instance: &Instance, known: Micros, horizon: Micros, limits: &Limits) -> Result<Bound, Error> {
    let value = relaxation::integer_bound(instance, known, horizon, limits)?;
    Ok(Bound::by(value, "integer-launches", Proof::SafeDual))
}

/// Returns the longest path, as a bound that is computed quickly.
pub(crate) fn quick(instance: &Instance) -> Micros {
    longest(instance, &Ways::heads(instance, None), &Ways::tails(instance, None))
}

/// Returns the best bound; of equals the first.
pub fn best(instance: &Instance) -> Bound {
    all(instance).into_iter().fold(Bound::none(), Bound::or)
}

/// Returns the length of the longest path, where each task is on the device that makes the path through it shortest.
fn longest(instance: &Instance, heads: &Ways, tails: &Ways) -> Micros {
    let through = |task: usize| {
        let on = |device: &usize| heads.on(task, *device) + quickest(instance, task, *device) + tails.on(task, *device);
        instance.allowed(task).iter().map(on).fold(Micros::INFINITY, Micros::min)
    };
    (0..instance.tasks()).map(through).fold(Micros::ZERO, Micros::max)
}

/// Returns the largest bound of several windows: head + work of all tasks that neither start before nor end after the
/// window + tail.
fn busiest_window(instance: &Instance, prices: &Prices, heads: &Ways, tails: &Ways) -> Micros {
    let heads: Vec<Micros> = (0..instance.tasks()).map(|task| heads.least(task)).collect();
    let tails: Vec<Micros> = (0..instance.tasks()).map(|task| tails.least(task)).collect();
    let mut busiest = Micros::ZERO;
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

/// Returns at most [`WINDOW_ENDS`] of the values, evenly spaced in their order.
fn some_of(values: &[Micros]) -> Vec<Micros> {
    let mut values = values.to_vec();
    values.sort_by(Micros::total_cmp);
    values.dedup();
    let step = values.len().div_ceil(WINDOW_ENDS).max(1);
    values.into_iter().step_by(step).collect()
}
