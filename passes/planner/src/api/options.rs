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
    check_batches(problem, objective, Some(algorithm), options)?;
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
        ("a maximum batch size of stages", options.max_batch.is_some()),
        ("a number of replicas", options.max_replicas.is_some()),
    ];
    match asked.into_iter().find(|(_, asked)| *asked && objective != Objective::Pipeline) {
        Some((what, _)) => Err(Error::Unsupported(format!("{what} is for objective pipeline, not {objective}"))),
        None => Ok(()),
    }
}

/// Rejects batch sizes and replicas of stages that the view or the algorithm, if any is given, does not plan.
pub(super) fn check_batches(
    problem: &Problem,
    objective: Objective,
    algorithm: Option<&Algorithm>,
    options: &Options,
) -> Result<(), Error> {
    if objective != Objective::Pipeline {
        return Ok(());
    }
    for (what, most) in [("maximum batch size", options.max_batch), ("number of replicas", options.max_replicas)] {
        if most == Some(0) {
            return unsupported(&format!("the {what} of a pipeline's stages is at least 1, not 0"));
        }
    }
    let (has_batches, has_replicas) = (options.max_batch.is_some_and(|most| most > 1), options.replicas() > 1);
    let view = algorithm.map_or_else(|| problem.view(), |algorithm| algorithm.view(problem));
    match view {
        View::Network(_) if has_batches || has_replicas => unsupported(
            "machines of an edge network take one input at a time and no turns; leave out the maximum batch size and the \
             replicas",
        ),
        View::Homogeneous(_) if has_batches => unsupported(
            "the problem's pipeline view (mtpp) has times of one input only, so that its stages take no batches; leave out \
             the maximum batch size",
        ),
        View::Network(_) => Ok(()),
        View::Homogeneous(_) => check_batch_algorithm(algorithm, has_replicas),
        View::Devices if options.shared_devices && has_replicas => {
            unsupported("devices that take turns (replicas) are not shared by stages; leave out one of the two")
        }
        View::Devices => {
            let least = problem.default_batch();
            match options.max_batch {
                Some(most) if most < least => unsupported(&format!(
                    "some task has no time for batches of at most {most}; the maximum batch size (--max-batch) must be at \
                     least {least}"
                )),
                _ => check_batch_algorithm(algorithm, has_replicas || problem.largest_batch(options.max_batch) > 1),
            }
        }
    }
}

/// Rejects an algorithm that plans one input and one device of each stage for a request of more.
fn check_batch_algorithm(algorithm: Option<&Algorithm>, is_asked: bool) -> Result<(), Error> {
    match algorithm.filter(|algorithm| is_asked && !algorithm.batched_pipelines) {
        Some(algorithm) => unsupported(&format!(
            "algorithm '{}' plans stages of one input on one device each; auto plans batches and replicas",
            algorithm.name
        )),
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
