//! Rejects options that the objective, the view or the algorithm does not support; they are not ignored.

use crate::model::error::Error;
use crate::model::options::{Options, PipelineCost};
use crate::model::plan::Objective;
use crate::model::problem::{Contention, Problem, View};
use crate::solvers::{Algorithm, DevicePipelines, edge};

pub(super) fn check(
    problem: &Problem,
    objective: Objective,
    algorithm: &Algorithm,
    options: &Options,
) -> Result<(), Error> {
    check_objective(objective, options)?;
    if objective != Objective::Pipeline {
        return Ok(());
    }
    match algorithm.view(problem) {
        View::Network(_) => edge::check_options(options),
        View::Devices if algorithm.device_pipelines == DevicePipelines::SharedOverlap => {
            check_shared_overlap(problem, algorithm, options)
        }
        View::Devices | View::Homogeneous(_) if options.splits.is_some() => {
            unsupported("a number of split points is for problems with an edge view, by branch-and-bound")
        }
        View::Devices | View::Homogeneous(_) => Ok(()),
    }
}

/// Rejects options of pipelines for other objectives.
fn check_objective(objective: Objective, options: &Options) -> Result<(), Error> {
    let asked = [
        ("a number of stages", options.stages.is_some()),
        ("a cost of stages", options.pipeline_cost.is_some()),
        ("shared devices", options.shared_devices),
        ("a number of split points", options.splits.is_some()),
        ("a search for orders", options.order.is_some()),
    ];
    match asked.into_iter().find(|(_, asked)| *asked && objective != Objective::Pipeline) {
        Some((what, _)) => Err(Error::Unsupported(format!("{what} is for objective pipeline, not {objective}"))),
        None => Ok(()),
    }
}

/// Checks the options of an algorithm that plans pipelines on devices only with [`DevicePipelines::SharedOverlap`].
fn check_shared_overlap(problem: &Problem, algorithm: &Algorithm, options: &Options) -> Result<(), Error> {
    let name = algorithm.name;
    if options.splits.is_some() || options.stages.is_some() {
        return unsupported(&format!("without an edge view, {name} has no limit on stages or split points"));
    }
    if options.pipeline_cost != Some(PipelineCost::Overlap) || !options.shared_devices {
        return unsupported(&format!(
            "the problem has no edge view; for its devices, {name} needs the pipeline cost overlap and shared devices"
        ));
    }
    if problem.contention != Contention::Off {
        return unsupported(&format!("{name} does not plan contention {}; auto does", problem.contention));
    }
    Ok(())
}

fn unsupported(message: &str) -> Result<(), Error> {
    Err(Error::Unsupported(message.to_owned()))
}
