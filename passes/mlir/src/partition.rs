//! `divi-partition`: from costs to a plan. The problem that the module poses is solved, and who runs what and when is
//! written onto the tasks, with the certificate on the module.

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
    cost::Posed,
    declared,
    ir::{Failure, error, warning},
    session::Session,
    tasks::task_kind,
};
use divi_dialect::{Operation, attr};
use divi_planner::{Objective, Plan, Problem, problem::Contention};
use divi_stages::retime;

pub(crate) use constraints::exclude;
pub(crate) use moves::{Moved, write as write_moves};
pub use options::Options;
pub(crate) use read::read_plan;
pub(crate) use write::{Marks, mark, remove_decisions, write_certificate, write_plan};

//===----------------------------------------------------------------------===//
// --divi-partition
//===----------------------------------------------------------------------===//

/// Records what transfers on one bus do to each other.
fn set_contention(module: Operation<'_>, contention: Contention) {
    module.set(attr::CONTENTION, &contention.to_string());
}

/// Makes what options say about the problem part of the module that poses it: constraints, contention, a cold start.
fn pose(module: Operation<'_>, options: &Options, contention: Option<Contention>) -> Result<(), Failure> {
    constraints::apply(module, options)?;
    contention.into_iter().for_each(|contention| set_contention(module, contention));
    if options.cold {
        copies::start_cold(module)?;
    }
    Ok(())
}

/// Plans a module whose costs are annotated. Every task gets its device and start (or its batches, or its stage), the
/// module the certificate. Decisions of an earlier plan are replaced; constraints (`divi.pin`, `divi.exclude`,
/// `divi.colocate`, and those of the options, which are written onto the tasks) are honoured or refused with the reason.
///
/// Moves nothing: values cross devices implicitly until `divi-outline`.
pub fn partition(module: Operation<'_>, options: &Options, session: Option<&mut Session>) -> Result<(), Failure> {
    let fail = |message: &dyn ToString| {
        error(module, &message.to_string());
        Failure
    };
    if module.has(attr::PLAN) {
        warning(module, "the plan that is there is replaced; divi-verify-plan and divi-outline go on from it as it is");
    }
    let replayed = options.plan.as_deref().map(|file| replay::read(module, file)).transpose()?;
    let (objective, inputs) = match &replayed {
        Some(plan) => replay::asked(plan, options).map_err(|message| fail(&message))?,
        None => objective(options).map_err(|message| fail(&message))?,
    };
    if replayed.is_some() && options.resident.is_some() {
        return Err(fail(
            &"a plan for parameters that are still there is not replayed, as which these are follows from the plan \
                          before: leave the plan or resident out",
        ));
    }
    if replayed.is_some() && options.min_gain.is_some_and(|share| share > 0.0) {
        return Err(fail(&"a plan that is replayed uses the devices that it uses: leave the plan or min-gain out"));
    }
    // A plan that says its contention brings it along.
    let is_said = replayed.as_ref().is_some_and(|plan| plan.contention.is_some());
    pose(module, options, options.contention.filter(|_| !is_said))?;
    let mut posed = Posed::by(module, inputs)?;
    let plan = match replayed {
        Some(mut plan) => {
            let other = replay::adopt_contention(&mut posed, &mut plan);
            let plan = replay::fit(module, &posed, plan)?;
            other.into_iter().for_each(|contention| set_contention(module, contention));
            plan
        }
        None => {
            // The problem has its inputs.
            let planner = divi_planner::Options { inputs: None, ..options.planner.clone() };
            let solve = |posed: &Posed<'_>| {
                let mut planner = planner.clone();
                let mut line = None;
                if let Some(session) = &session {
                    (planner.observer, line) = session.begin();
                }
                let plan = divi_planner::solve(&posed.problem, objective, &options.algorithm, &planner);
                drop(line);
                plan.map_err(|error| fail(&error))
            };
            let mut plan = solve(&posed)?;
            if let Some(share) = options.resident {
                copies::keep(&posed, &posed.problem.still_warm(&plan, share));
                posed = Posed::by(module, inputs)?;
                plan = solve(&posed)?;
            }
            let least = options.min_gain.unwrap_or_else(|| gain::least(module).share());
            if least > 0.0
                && let Some(one) = alone(&posed, &plan, &planner)
                && one.value < plan.value * (1.0 + least)
            {
                gain::explain(module, one.value / plan.value - 1.0, options.min_gain);
                plan = one;
            }
            // Nothing starts later than it could, so that stages find nothing to gain.
            let earliest = (objective != Objective::Pipeline).then(|| retime(&posed.problem, &plan));
            earliest.transpose().map_err(|error| fail(&error))?.unwrap_or(plan)
        }
    };
    plan.warnings().iter().for_each(|message| warning(module, message));
    warn_of_no_bus(module, &posed);
    warn_of_idle_devices(module, &posed, &plan);
    warn_of_fallbacks(&posed);
    write_plan(module, &posed, &plan)?;
    if let Some(session) = session {
        session.planned(posed, plan, options.planner.clone());
    }
    Ok(())
}

/// The best plan with one device, instead of one that uses several; `None` if no device can run everything. What was proven holds
/// for both.
fn alone(posed: &Posed<'_>, plan: &Plan, options: &divi_planner::Options) -> Option<Plan> {
    let is_alone = |plan: &Plan| used(posed, plan).into_iter().filter(|&used| used).count() == 1;
    if is_alone(plan) {
        return None;
    }
    let mut one = match plan.objective {
        Objective::Pipeline => {
            let options = divi_planner::Options { stages: Some(1), ..options.clone() };
            divi_planner::solve(&posed.problem, plan.objective, &plan.algorithm, &options).ok()
        }
        Objective::Latency | Objective::Batch => {
            let plans = (0..posed.problem.devices.len()).filter_map(|device| {
                let problem = restricted(posed, device);
                divi_planner::solve(&problem, plan.objective, "single", options).ok()
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

/// The problem where tasks run on one device only.
fn restricted(posed: &Posed<'_>, device: usize) -> Problem {
    let mut problem = posed.problem.clone();
    for node in problem.nodes.iter_mut().skip(posed.first_task).take(posed.tasks.len()) {
        for times in node.time.values_mut() {
            times.iter_mut().enumerate().filter(|(other, _)| *other != device).for_each(|(_, time)| *time = None);
        }
    }
    problem
}

/// What to minimise, for how many inputs.
fn objective(options: &Options) -> Result<(Objective, u32), String> {
    let inputs = options.planner.inputs;
    let by_default = if inputs.is_some_and(|inputs| inputs > 1) { Objective::Batch } else { Objective::Latency };
    let objective = options.objective.unwrap_or(by_default);
    match (objective, inputs) {
        (Objective::Batch, None) => Err("objective batch queues inputs: say how many with inputs=L".into()),
        (Objective::Batch, Some(inputs)) => Ok((objective, inputs)),
        (_, None | Some(1)) => Ok((objective, 1)),
        (_, Some(inputs)) => {
            Err(format!("objective {objective} takes one input, not {inputs}: objective batch queues them"))
        }
    }
}

/// A contention for which there is no bus is said.
fn warn_of_no_bus(module: Operation<'_>, posed: &Posed<'_>) {
    let Problem { contention, bus, devices, .. } = &posed.problem;
    if *contention != Contention::Off && bus.is_none() && devices.len() > 1 {
        let message = format!(
            "contention {contention} changes nothing, as no divi.link has a bus: give one name to links that share something"
        );
        warning(module, &message);
    }
}

/// Which devices tasks run on.
fn used(posed: &Posed<'_>, plan: &Plan) -> Vec<bool> {
    let mut used = vec![false; posed.problem.devices.len()];
    let places = plan.schedule.places(posed.problem.nodes.len());
    let of_tasks = places.iter().skip(posed.first_task).take(posed.tasks.len());
    of_tasks.flatten().for_each(|&device| used[device] = true);
    used
}

/// A device that nothing runs on is said.
fn warn_of_idle_devices(module: Operation<'_>, posed: &Posed<'_>, plan: &Plan) {
    // A model that folds to constants leaves nothing to run.
    if posed.tasks.is_empty() {
        return;
    }
    let used = used(posed, plan);
    let idle: Vec<_> = posed.problem.devices.iter().zip(used).filter(|(_, used)| !used).collect();
    for (device, _) in idle {
        warning(module, &format!("@{} is left idle: no task runs there in this plan", device.name));
    }
}

/// What no accelerator supports runs on the host, and is said.
fn warn_of_fallbacks(posed: &Posed<'_>) {
    let runs_elsewhere = |task: usize| {
        let times = posed.problem.nodes[posed.first_task + task].time.values();
        times.flat_map(|times| times.iter().enumerate()).any(|(device, time)| device != posed.host && time.is_some())
    };
    if posed.problem.devices.len() < 2 {
        return;
    }
    let stuck: Vec<Operation<'_>> =
        (0..posed.tasks.len()).filter(|&task| !runs_elsewhere(task)).map(|task| posed.tasks[task]).collect();
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
    let host = &posed.problem.devices[posed.host].name;
    warning(first, &format!("{count} on @{host} because no other device supports them: {}", kinds.join(", ")));
}

/// How many inputs the plan of a module is for.
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
