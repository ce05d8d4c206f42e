//! `divi-partition`: plans a module with costs. Solves its planning problem, and writes devices and starts onto the
//! tasks and the certificate onto the module.

mod constraints;
mod copies;
mod gain;
mod moves;
mod options;
mod placement;
mod read;
mod replay;
mod write;

use crate::{
    cost::{CostSource, ModuleProblem},
    declared,
    ir::{Failure, error, warning},
    session::Session,
    tasks::task_kind,
};
use divi_dialect::{Operation, attr};
use divi_planner::{
    DEFAULT_ALGORITHM, Objective, Plan, Problem,
    plan::{LaunchRule, Limit, Schedule, Stages, Turns},
    problem::Contention,
};
use divi_stages::{TurnStages, in_stage_order, retime};

pub(crate) use constraints::exclude;
pub(crate) use moves::{Moved, write as write_moves};
pub use options::Options;
pub(crate) use read::read_plan;
pub(crate) use write::{Marks, PipelineShape, mark, remove_decisions, write_certificate, write_plan};

//===----------------------------------------------------------------------===//
// --divi-partition
//===----------------------------------------------------------------------===//

/// Records the contention between transfers on one bus.
fn set_contention(module: Operation<'_>, contention: Contention) {
    module.set(attr::CONTENTION, &contention.to_string());
}

/// Writes the options that are part of the problem onto the module: constraints, contention, a cold start.
fn pose(module: Operation<'_>, options: &Options, contention: Option<Contention>) -> Result<(), Failure> {
    constraints::apply(module, options)?;
    contention.into_iter().for_each(|contention| set_contention(module, contention));
    if options.cold {
        copies::start_cold(module)?;
    }
    Ok(())
}

/// Plans a module with costs. Every task gets its device and start (or its batches, or its stage), the module the
/// certificate. Decisions of an earlier plan are replaced; constraints (`divi.pin`, `divi.exclude`, `divi.colocate`,
/// and those of the options, which are written onto the tasks) are satisfied, or an error gives the reason.
///
/// Adds no transfers: values cross devices implicitly until `divi-outline`.
pub fn partition(module: Operation<'_>, options: &Options, session: Option<&mut Session>) -> Result<(), Failure> {
    let fail = |message: &dyn ToString| {
        error(module, &message.to_string());
        Failure
    };
    if module.has(attr::PLAN) {
        warning(module, "the existing plan is replaced; divi-verify-plan and divi-outline continue with it as it is");
    }
    let replayed = options.plan.as_deref().map(|file| replay::read(module, file)).transpose()?;
    let (objective, inputs) = match &replayed {
        Some(plan) => replay::asked(plan, options).map_err(|message| fail(&message))?,
        None => objective(options).map_err(|message| fail(&message))?,
    };
    if replayed.is_some() && options.resident.is_some() {
        return Err(fail(
            &"a plan with resident parameters cannot be replayed, because these follow from the previous \
                          plan: remove plan or resident",
        ));
    }
    if replayed.is_some() && options.min_gain.is_some_and(|share| share > 0.0) {
        return Err(fail(&"min-gain cannot change the devices of a replayed plan: remove plan or min-gain"));
    }
    // A plan that states its contention overrides the option.
    let is_said = replayed.as_ref().is_some_and(|plan| plan.contention.is_some());
    pose(module, options, options.contention.filter(|_| !is_said))?;
    let mut module_problem = ModuleProblem::build(module, inputs)?;
    let plan = match replayed {
        Some(mut plan) => {
            let other = replay::adopt_contention(&mut module_problem, &mut plan);
            let plan = replay::fit(module, &module_problem, plan)?;
            other.into_iter().for_each(|contention| set_contention(module, contention));
            plan
        }
        None => {
            // The problem already has its number of inputs.
            let planner = divi_planner::Options { inputs: None, ..options.planner.clone() };
            let solve = |module_problem: &ModuleProblem<'_>| {
                let mut planner = planner.clone();
                let mut line = None;
                if let Some(session) = &session {
                    (planner.observer, line) = session.begin();
                }
                let plan = divi_planner::solve(&module_problem.problem, objective, &options.algorithm, &planner);
                drop(line);
                plan.map_err(|error| fail(&error))
            };
            let mut plan = solve(&module_problem)?;
            if let Some(share) = options.resident {
                copies::keep(&module_problem, &module_problem.problem.still_warm(&plan, share));
                module_problem = ModuleProblem::build(module, inputs)?;
                plan = solve(&module_problem)?;
            }
            let least = options.min_gain.unwrap_or_else(|| CostSource::of(module).least_gain());
            if least > 0.0
                && let Some(one) = alone(&module_problem, &plan, &planner)
                && one.value < plan.value * (1.0 + least)
            {
                gain::explain(module, one.value / plan.value - 1.0, options.min_gain);
                plan = one;
            }
            // Every task starts as early as it can, so that stages cannot gain anything.
            let earliest = (objective != Objective::Pipeline).then(|| retime(&module_problem.problem, &plan));
            earliest.transpose().map_err(|error| fail(&error))?.unwrap_or(plan)
        }
    };
    let (plan, stages) = staged(&module_problem, plan).map_err(|error| fail(&error))?;
    plan.warnings().iter().for_each(|message| warning(module, message));
    warn_of_no_bus(module, &module_problem);
    warn_of_idle_devices(module, &module_problem, &plan);
    warn_of_fallbacks(&module_problem);
    write_plan(module, &module_problem, &plan, stages.as_ref())?;
    if let Some(session) = session {
        session.planned(module_problem, plan, options.planner.clone());
    }
    Ok(())
}

/// Returns a pipeline of batches with its stages in order; if each stage takes one input on one device, as a pipeline of
/// single inputs. The bound is valid for both. Other plans are returned as they are. Only pipelines of batches have stages.
fn staged(module_problem: &ModuleProblem<'_>, plan: Plan) -> Result<(Plan, Option<TurnStages>), divi_planner::Error> {
    let (problem, ports) = (&module_problem.problem, module_problem.ports());
    let (mut plan, stages) = in_stage_order(problem, plan, Some(&ports))?;
    let Some(stages) = stages else { return Ok((plan, None)) };
    stages.request_inputs()?;
    if stages.is_plain()
        && let Schedule::BatchedPipeline { block, k, bottleneck, turns: Turns::Devices { devices, .. }, order } =
            &plan.schedule
    {
        let block_device = Some(devices.iter().map(|devices| devices[0]).collect());
        let stages = Some(Stages { block_device, order: order.clone() });
        plan.schedule = Schedule::Pipeline { block: block.clone(), k: *k, bottleneck: *bottleneck, stages };
        (plan.max_batch, plan.max_replicas) = (None, None);
        return Ok((plan, None));
    }
    Ok((plan, Some(stages)))
}

/// Returns the best plan on one device, in place of one that uses several; `None` if no device can run everything. The
/// bound is valid for both.
fn alone(module_problem: &ModuleProblem<'_>, plan: &Plan, options: &divi_planner::Options) -> Option<Plan> {
    let is_alone = |plan: &Plan| used(module_problem, plan).into_iter().filter(|&used| used).count() == 1;
    if is_alone(plan) {
        return None;
    }
    let mut one = match plan.objective {
        Objective::Pipeline => {
            let options = divi_planner::Options { stages: Some(1), max_replicas: None, ..options.clone() };
            divi_planner::solve(&module_problem.problem, plan.objective, &plan.algorithm, &options).ok()
        }
        Objective::Latency | Objective::Batch => {
            // With several launches, the list scheduler of one launch may find no plan; a pattern needs no search here.
            let (algorithm, limit) = match plan.launches {
                LaunchRule::One => ("single", options.limit),
                LaunchRule::Many => (DEFAULT_ALGORITHM, Some(Limit::Iterations(1))),
            };
            let options = divi_planner::Options { limit, ..options.clone() };
            let plans = (0..module_problem.problem.devices.len()).filter_map(|device| {
                let problem = restricted(module_problem, device);
                divi_planner::solve(&problem, plan.objective, algorithm, &options).ok()
            });
            plans.min_by(|a, b| a.value.total_cmp(&b.value))
        }
    }
    .filter(is_alone)?;
    one.problem = plan.problem.clone();
    (one.algorithm, one.seed, one.limit) = (plan.algorithm.clone(), plan.seed, plan.limit);
    one.prove(plan.bound());
    Some(one)
}

/// Returns the problem with all tasks restricted to one device.
fn restricted(module_problem: &ModuleProblem<'_>, device: usize) -> Problem {
    let mut problem = module_problem.problem.clone();
    for node in problem.nodes.iter_mut().skip(module_problem.first_task).take(module_problem.tasks.len()) {
        for times in node.time.values_mut() {
            times.iter_mut().enumerate().filter(|(other, _)| *other != device).for_each(|(_, time)| *time = None);
        }
    }
    problem
}

/// Returns the objective and the number of inputs.
fn objective(options: &Options) -> Result<(Objective, u32), String> {
    let inputs = options.planner.inputs;
    let by_default = if inputs.is_some_and(|inputs| inputs > 1) { Objective::Batch } else { Objective::Latency };
    let objective = options.objective.unwrap_or(by_default);
    match (objective, inputs) {
        (Objective::Batch, None) => Err("objective batch needs the number of queued inputs: set inputs=L".into()),
        (Objective::Batch, Some(inputs)) => Ok((objective, inputs)),
        (_, None | Some(1)) => Ok((objective, 1)),
        (_, Some(inputs)) => {
            Err(format!("objective {objective} takes one input, not {inputs}: use objective batch for several"))
        }
    }
}

/// Warns if contention has no effect because there is no bus.
fn warn_of_no_bus(module: Operation<'_>, module_problem: &ModuleProblem<'_>) {
    let Problem { contention, bus, devices, .. } = &module_problem.problem;
    if *contention != Contention::Off && bus.is_none() && devices.len() > 1 {
        let message = format!(
            "contention {contention} has no effect, as no divi.link has a bus: set the same bus on links that share one"
        );
        warning(module, &message);
    }
}

/// Returns true for each device that tasks run on.
fn used(module_problem: &ModuleProblem<'_>, plan: &Plan) -> Vec<bool> {
    let mut used = vec![false; module_problem.problem.devices.len()];
    let places = plan.schedule.places(module_problem.problem.nodes.len());
    let of_tasks = places.iter().skip(module_problem.first_task).take(module_problem.tasks.len());
    of_tasks.flatten().for_each(|&device| used[device] = true);
    used
}

/// Warns about devices that no task runs on.
fn warn_of_idle_devices(module: Operation<'_>, module_problem: &ModuleProblem<'_>, plan: &Plan) {
    // A model that folds to constants leaves nothing to run.
    if module_problem.tasks.is_empty() {
        return;
    }
    let used = used(module_problem, plan);
    let idle: Vec<_> = module_problem.problem.devices.iter().zip(used).filter(|(_, used)| !used).collect();
    for (device, _) in idle {
        warning(module, &format!("@{} is left idle: no task runs there in this plan", device.name));
    }
}

/// Warns about tasks that run on the host because no accelerator supports them.
fn warn_of_fallbacks(module_problem: &ModuleProblem<'_>) {
    let runs_elsewhere = |task: usize| {
        let times = module_problem.problem.nodes[module_problem.first_task + task].time.values();
        times
            .flat_map(|times| times.iter().enumerate())
            .any(|(device, time)| device != module_problem.host && time.is_some())
    };
    if module_problem.problem.devices.len() < 2 {
        return;
    }
    let stuck: Vec<Operation<'_>> = (0..module_problem.tasks.len())
        .filter(|&task| !runs_elsewhere(task))
        .map(|task| module_problem.tasks[task])
        .collect();
    let Some(&first) = stuck.first() else { return };
    let mut kinds: Vec<&str> = vec![];
    for &task in &stuck {
        if !kinds.contains(&task_kind(task)) {
            kinds.push(task_kind(task));
        }
    }
    kinds.truncate(8);
    let count = match stuck.len() {
        1 => "1 task runs".to_owned(),
        count => format!("{count} tasks run"),
    };
    let host = &module_problem.problem.devices[module_problem.host].name;
    warning(first, &format!("{count} on @{host} because no other device supports them: {}", kinds.join(", ")));
}

/// Returns the number of inputs of the problem that the plan of a module is for: those of the queue, otherwise one.
pub(crate) fn planned_inputs(module: Operation<'_>) -> Option<u32> {
    let plan = module.get(attr::PLAN)?;
    let entry = |name| attr::entry(plan, name);
    let is_batch = entry("objective").and_then(attr::as_string) == Some("batch");
    match is_batch {
        true => entry("inputs").and_then(attr::as_integer).and_then(|inputs| u32::try_from(inputs).ok()),
        false => Some(1),
    }
}

impl declared::Partition {
    pub(crate) fn run(&self, module: Operation<'_>, session: Option<&mut Session>) -> Result<(), Failure> {
        let options = Options::of(self).map_err(|message| {
            error(module, &message);
            Failure
        })?;
        match self.pose_only {
            true => pose(module, &options, options.contention),
            false => partition(module, &options, session),
        }
    }
}
