//! Lower bounds for cold starts.
//!
//! Nothing is faster in a cold start than in a warm one: copies only delay launches, and direct reads of parameters in
//! the host's memory take no less time than resident parameters. So bounds of warm starts hold, except those from
//! memory, of which direct reads need less. The bounds here add the copies: each task's parameters cross one of the
//! host's buses, unless the task runs where they are.

use std::ops::ControlFlow;

use super::model::{Model, Route};
use crate::mip::{self, Column, Limits, Program};
use crate::model::error::Error;
use crate::model::plan::{Bound, Proof};
use crate::model::problem::Contention;
use crate::model::units::Micros;

/// Larger linear programs take too long.
const MOST_COLUMNS: usize = 200_000;
/// Limit of simplex iterations.
const ITERATIONS: u64 = 2_000_000;

/// Returns the better of the path bound and the load bound; `None` for a warm start.
pub(crate) fn cold_bound(model: &Model<'_>) -> Result<Option<Bound>, Error> {
    if model.cold.is_none() {
        return Ok(None);
    }
    let path = Bound::new(longest_path(model), "cold-path");
    let loads = loads(model)?.filter(|loads| loads.value > path.value);
    Ok(Some(loads.unwrap_or(path)))
}

/// Execution mode of a launch: a device and a route of its parameters.
struct Mode {
    device: usize,
    time: Micros,
    /// Earliest arrival of its parameters.
    landing: Micros,
    /// First bus that its parameters cross, and the time for which they occupy it.
    bus: Option<(usize, Micros)>,
}

fn modes(model: &Model<'_>, launch: usize) -> Vec<Mode> {
    let mut modes = Vec::new();
    let Some(cold) = &model.cold else { return modes };
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
            modes.push(Mode { device, time, landing: Micros::ZERO, bus: None });
            continue;
        }
        for route in model.routes(launch, device) {
            let arrives = |from: usize, to: usize| {
                let (flow, latency) = takes(from, to);
                flow + latency
            };
            modes.push(match route {
                Route::Copy => Mode { device, time, landing: arrives(host, device), bus: has_bus(host, device) },
                Route::Via(via) => {
                    let via = usize::from(via);
                    let is_there = cold.resident[model.launches[launch].task] == Some(via);
                    let first = if is_there { Micros::ZERO } else { arrives(host, via) };
                    let bus = if is_there { has_bus(via, device) } else { has_bus(host, via) };
                    Mode { device, time, landing: first + arrives(via, device), bus }
                }
                Route::Direct => {
                    let time = model.direct_time(launch, device);
                    let flow = match model.contention {
                        Contention::Shared => takes(host, device).0.min(time),
                        Contention::Exclusive | Contention::Off => time,
                    };
                    let bus = model.link(host, device).bus.map(|bus| (bus, flow));
                    Mode { device, time, landing: Micros::ZERO, bus }
                }
            });
        }
    }
    modes
}

/// Returns the length of the longest path, on which each task waits for its parameters, too.
fn longest_path(model: &Model<'_>) -> Micros {
    let mut end = vec![Micros::ZERO; model.instance.tasks()];
    for &task in model.instance.order() {
        let ready = model.instance.predecessors(task).iter().map(|arc| end[arc.task]).fold(Micros::ZERO, Micros::max);
        let launches = model.of_task[task].iter().flat_map(|launch| modes(model, *launch));
        let ends = launches.map(|mode| Micros::max(ready, mode.landing) + mode.time);
        end[task] = ends.fold(Micros::INFINITY, Micros::min);
    }
    end.into_iter().filter(|end| end.is_finite()).fold(Micros::ZERO, Micros::max)
}

/// Linear relaxation of mode selection: each task is a convex combination of its modes; devices and buses are busy for
/// the combined time, and a task ends later than its predecessors by its combined time. Every plan is a solution in
/// which each task has one mode.
fn loads(model: &Model<'_>) -> Result<Option<Bound>, Error> {
    let mut program = Program::default();
    let quickest_first = |launch: usize| {
        let mut modes = modes(model, launch);
        modes.sort_by(|a, b| a.landing.total_cmp(&b.landing));
        modes
    };
    let all: Vec<Vec<Mode>> = (0..model.launches.len()).map(quickest_first).collect();
    // Scaled so that coefficients are near one.
    let least = |modes: &Vec<Mode>| modes.iter().map(|mode| mode.time).fold(Micros::INFINITY, Micros::min);
    let scale = all.iter().map(least).sum::<Micros>().max(Micros(f64::MIN_POSITIVE));
    if all.iter().map(Vec::len).sum::<usize>() > MOST_COLUMNS || !scale.is_finite() || scale < Micros(1e-6) {
        return Ok(None);
    }
    // Solutions beyond this limit cost no less than it.
    let longest =
        all.iter().flatten().map(|mode| mode.landing + mode.time + mode.bus.map_or(Micros::ZERO, |(_, has)| has));
    let most = (longest.sum::<Micros>() / scale).clamp(1.0, f64::MAX);
    let busiest = program.column(0.0, most, 1.0);
    let mut load: Vec<Vec<(Column, f64)>> = vec![vec![(busiest, -1.0)]; model.devices + model.buses];
    let ends: Vec<Column> = all.iter().map(|_| program.column(0.0, f64::INFINITY, 0.0)).collect();
    for (launch, modes) in all.iter().enumerate() {
        let mut parts = Vec::new();
        let mut takes: Vec<(Column, f64)> = Vec::new();
        let mut from_start: Vec<(Column, f64)> = Vec::new();
        let mut seen: Vec<(usize, Option<usize>, Micros, Micros)> = Vec::new();
        for mode in modes {
            let bus = mode.bus.unzip();
            let same = (mode.device, bus.0, mode.time, bus.1.unwrap_or_default());
            // Of modes that differ only in the intermediate device, the one with the earliest arrival.
            if seen.contains(&same) {
                continue;
            }
            seen.push(same);
            let part = program.column(0.0, 1.0, 0.0);
            parts.push((part, 1.0));
            takes.push((part, -mode.time / scale));
            from_start.push((part, -(mode.landing + mode.time) / scale));
            load[mode.device].push((part, mode.time / scale));
            mode.bus.iter().for_each(|(bus, has)| load[model.devices + bus].push((part, *has / scale)));
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
    Ok((bound > Micros::ZERO).then(|| Bound::by(bound, "cold-load", Proof::SafeDual)))
}
