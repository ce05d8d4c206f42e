//! What no cold start can be better than.
//!
//! Nothing is faster in a cold start than in a warm one: copies only delay launches, and reading parameters in the host's memory
//! takes no less time than having them. So bounds of warm starts hold, but for memory, of which direct reading needs less.
//! Here is what copies add: each task's parameters cross one of the host's buses, unless the task runs where they are.

use std::ops::ControlFlow;

use super::model::{Model, Way};
use crate::mip::{self, Column, Limits, Program};
use crate::model::error::Error;
use crate::model::plan::{Bound, Proof};
use crate::model::problem::Contention;
use crate::model::units::Micros;

/// Programs of more columns than this take too long.
const MOST_COLUMNS: usize = 200_000;
/// Of the simplex method.
const ITERATIONS: u64 = 2_000_000;

/// The better of a path and of loads; none where all parameters are at hand.
pub(crate) fn cold_bound(model: &Model<'_>) -> Result<Option<Bound>, Error> {
    if model.cold.is_none() {
        return Ok(None);
    }
    let path = Bound::new(longest_path(model), "cold-path");
    let loads = loads(model)?.filter(|loads| loads.value > path.value);
    Ok(Some(loads.unwrap_or(path)))
}

/// One way in which a launch is done.
struct Done {
    device: usize,
    time: Micros,
    /// When its parameters can be there at the earliest.
    landing: Micros,
    /// The first bus that its parameters cross, and for how long they have it.
    bus: Option<(usize, Micros)>,
}

fn options(model: &Model<'_>, launch: usize) -> Vec<Done> {
    let mut options = Vec::new();
    let Some(cold) = &model.cold else { return options };
    let (host, weight) = (cold.host, model.weight(launch));
    let takes = |from: usize, to: usize| {
        let link = model.link(from, to);
        (weight * link.slowness, link.latency)
    };
    let has_bus = |from: usize, to: usize| {
        let (flow, latency) = takes(from, to);
        let has = if model.contention == Contention::Shared { flow } else { flow + latency };
        model.link(from, to).bus.map(|bus| (bus, has))
    };
    for device in model.allowed(launch) {
        let time = model.time(launch, device);
        if !model.needs_parameters(launch, device) {
            options.push(Done { device, time, landing: 0.0, bus: None });
            continue;
        }
        for way in model.ways(launch, device) {
            let arrives = |from: usize, to: usize| {
                let (flow, latency) = takes(from, to);
                flow + latency
            };
            options.push(match way {
                Way::Copy => Done { device, time, landing: arrives(host, device), bus: has_bus(host, device) },
                Way::Via(via) => {
                    let via = usize::from(via);
                    let is_there = cold.resident[model.launches[launch].task] == Some(via);
                    let first = if is_there { 0.0 } else { arrives(host, via) };
                    let bus = if is_there { has_bus(via, device) } else { has_bus(host, via) };
                    Done { device, time, landing: first + arrives(via, device), bus }
                }
                Way::Direct => {
                    let time = model.direct_time(launch, device);
                    let flow = match model.contention {
                        Contention::Shared => takes(host, device).0.min(time),
                        Contention::Exclusive | Contention::Off => time,
                    };
                    let bus = model.link(host, device).bus.map(|bus| (bus, flow));
                    Done { device, time, landing: 0.0, bus }
                }
            });
        }
    }
    options
}

/// The longest path, on which each task waits for its parameters, too.
fn longest_path(model: &Model<'_>) -> Micros {
    let mut end = vec![0.0; model.instance.tasks()];
    for &task in model.instance.order() {
        let ready = model.instance.predecessors(task).iter().map(|arc| end[arc.task]).fold(0.0, f64::max);
        let launches = model.of_task[task].iter().flat_map(|launch| options(model, *launch));
        let ends = launches.map(|option| f64::max(ready, option.landing) + option.time);
        end[task] = ends.fold(f64::INFINITY, f64::min);
    }
    end.into_iter().filter(|end| end.is_finite()).fold(0.0, f64::max)
}

/// Each task is done in parts, in any of its ways; devices and buses are busy as long as that takes, and a task ends as much
/// later than those before it as its parts take. What has to be done at least is a linear program: every plan is a solution
/// of it, in which each task has one part.
fn loads(model: &Model<'_>) -> Result<Option<Bound>, Error> {
    let mut program = Program::default();
    let quickest_first = |launch: usize| {
        let mut options = options(model, launch);
        options.sort_by(|a, b| a.landing.total_cmp(&b.landing));
        options
    };
    let all: Vec<Vec<Done>> = (0..model.launches.len()).map(quickest_first).collect();
    // Solvers want numbers about one.
    let least = |options: &Vec<Done>| options.iter().map(|option| option.time).fold(f64::INFINITY, f64::min);
    let scale = all.iter().map(least).sum::<Micros>().max(f64::MIN_POSITIVE);
    if all.iter().map(Vec::len).sum::<usize>() > MOST_COLUMNS || !scale.is_finite() || scale < 1e-6 {
        return Ok(None);
    }
    // Solutions beyond this limit cost no less than it.
    let longest = all.iter().flatten().map(|done| done.landing + done.time + done.bus.map_or(0.0, |(_, has)| has));
    let most = (longest.sum::<Micros>() / scale).clamp(1.0, f64::MAX);
    let busiest = program.column(0.0, most, 1.0);
    let mut load: Vec<Vec<(Column, f64)>> = vec![vec![(busiest, -1.0)]; model.devices + model.buses];
    let ends: Vec<Column> = all.iter().map(|_| program.column(0.0, f64::INFINITY, 0.0)).collect();
    for (launch, options) in all.iter().enumerate() {
        let mut parts = Vec::new();
        let mut takes: Vec<(Column, f64)> = Vec::new();
        let mut from_start: Vec<(Column, f64)> = Vec::new();
        let mut seen: Vec<(usize, Option<usize>, Micros, Micros)> = Vec::new();
        for option in options {
            let bus = option.bus.unzip();
            let same = (option.device, bus.0, option.time, bus.1.unwrap_or(0.0));
            // Of ways that only differ by who hands parameters on, the quickest.
            if seen.contains(&same) {
                continue;
            }
            seen.push(same);
            let part = program.column(0.0, 1.0, 0.0);
            parts.push((part, 1.0));
            takes.push((part, -option.time / scale));
            from_start.push((part, -(option.landing + option.time) / scale));
            load[option.device].push((part, option.time / scale));
            option.bus.iter().for_each(|(bus, has)| load[model.devices + bus].push((part, has / scale)));
        }
        program.exactly(1.0, parts);
        program.at_least(0.0, [(busiest, 1.0), (ends[launch], -1.0)]);
        program.at_least(0.0, from_start.into_iter().chain([(ends[launch], 1.0)]));
        for before in model.predecessors(launch).iter().flat_map(|arc| &model.of_task[arc.task]) {
            let later = [(ends[launch], 1.0), (ends[*before], -1.0)];
            program.at_least(0.0, takes.iter().copied().chain(later));
        }
    }
    load.into_iter().for_each(|load| program.at_most(0.0, load));
    let limits = Limits { seed: 1, iterations: ITERATIONS, seconds: None };
    let outcome = program.solve(&limits, None, &mut |_| ControlFlow::Continue(()))?;
    let bound = mip::rounded(program.safe_bound(&outcome).min(most)) * scale;
    Ok((bound > 0.0).then(|| Bound::by(bound, "cold-load", Proof::SafeDual)))
}
