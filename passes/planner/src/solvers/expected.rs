//! Cost of plans of a queue: the expected time if they are executed.
//!
//! Start times of a schedule assume exact task times. A launch that is late delays its readers on other devices, which wait
//! although the plan has no gap; readers on its own device follow in sequence anyway. So of two plans with about the same
//! makespan, the one with fewer transfers takes less time.

use std::collections::BTreeSet;

use crate::model::instance::Instance;
use crate::model::options::Options;
use crate::model::plan::Batch;
use crate::model::units::Micros;
use crate::solvers::timing;

/// Expected waits, as a share of the makespan, of a plan with a transfer for each launch. Half of what was measured: 446
/// transfers for 557 launches of googlenet on two CPUs wait for 46 % of the busy time.
const WAITS: f64 = 0.25;

/// Relative difference of expected times below which an earlier plan, from a simpler algorithm, is kept.
const LEAST_GAIN: f64 = 0.01;

/// Returns the cost by which plans of a queue are compared: the makespan, or the expected time of plans that are executed.
pub(crate) fn cost(instance: &Instance, options: &Options, makespan: Micros, launches: &[Batch]) -> Micros {
    if options.is_executed { of_launches(instance, makespan, launches) } else { makespan }
}

/// Returns true if a plan replaces an incumbent, by their costs.
pub(crate) fn is_better(options: &Options, found: Micros, incumbent: Micros) -> bool {
    let least_gain = if options.is_executed { LEAST_GAIN } else { 0.0 };
    found < incumbent * (1.0 - least_gain)
}

/// Returns the expected time of a schedule with a makespan.
pub(crate) fn time(makespan: Micros, transfers: usize, launches: usize) -> Micros {
    makespan * (1.0 + WAITS * (transfers as f64 / launches.max(1) as f64).min(1.0))
}

/// Returns the expected time of some launches; infinite if an input of a task is missing.
fn of_launches(instance: &Instance, makespan: Micros, launches: &[Batch]) -> Micros {
    let Some(launch_of) = timing::launch_of(instance, launches) else { return Micros::INFINITY };
    let inputs = instance.inputs() as usize;
    let transfers = |launch: &Batch| -> usize {
        let of_arc = |producer: usize| {
            let producers: BTreeSet<usize> =
                launch.inputs.iter().map(|input| launch_of[producer * inputs + *input as usize]).collect();
            producers.into_iter().filter(|producer| launches[*producer].device != launch.device).count()
        };
        instance.predecessors(launch.node).iter().map(|arc| of_arc(arc.task)).sum()
    };
    time(makespan, launches.iter().map(transfers).sum(), launches.len())
}
