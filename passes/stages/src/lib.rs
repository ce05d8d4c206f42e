//! Partition of a plan into stages, the units that a device launches, and the transfers between them.
//!
//! A stage starts when all its operands have arrived and its device is free; its results leave when the whole stage has
//! run. The task sequence of a device is therefore cut wherever a tensor leaves or arrives, so that no task is later than
//! in the plan. Stages too small to be worth a launch may be merged, at the price of waiting. If the plan lists transfer
//! times (bus contention), they are kept. Model inputs and outputs belong to no stage.
//!
//! Used by the passes that emit a plan, not by planning. Independent of MLIR.

mod buses;
mod cut;
mod launches;
mod line;
mod merge;
mod pipeline;
mod turns;

use divi_planner::error::Error;
use divi_planner::plan::{Batch, Objective, Plan, Schedule};
use divi_planner::problem::Problem;
use divi_planner::units::Micros;
use divi_planner::{Terms, Timed, time_as_it_is, verify_under};

use launches::{Handed, Launches};
use line::{Line, Times};
use merge::{Judge, Merge};
pub use turns::{MOST_REQUEST_INPUTS, TurnStages, in_stage_order, request_launches};

/// Tasks that a device runs as one launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Index of the device.
    pub device: usize,
    /// Inputs of the queue or of a request of a pipeline, sorted; a single one for latency and most pipelines.
    pub inputs: Vec<u32>,
    /// Number of the stage in a pipeline; in a pipeline of batches, several launches have the same one.
    pub number: Option<usize>,
    /// Nodes of the problem, in execution order.
    pub tasks: Vec<usize>,
    /// Start time.
    pub start: Micros,
    /// End time.
    pub end: Micros,
}

/// Producer of a transferred tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Index of a stage.
    Stage(usize),
    /// A model input: a node of the problem.
    Input(usize),
}

/// Transfer of a tensor to a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    /// Index of the problem's tensor, see [`Problem::all_tensors`].
    pub tensor: usize,
    /// Producer of the tensor.
    pub source: Source,
    /// Index of the sending device.
    pub from: usize,
    /// Index of the receiving device.
    pub to: usize,
    /// Queued inputs, sorted.
    pub inputs: Vec<u32>,
    /// Start time.
    pub start: Micros,
    /// End time.
    pub end: Micros,
}

/// A plan partitioned into stages.
#[derive(Clone, Debug, PartialEq)]
pub struct Staged {
    /// Stages by start, in topological order; those of a pipeline of single inputs in pipeline order.
    pub stages: Vec<Stage>,
    /// Number of inputs of the queue or of a request of a pipeline; 1 for latency.
    pub inputs: u32,
    /// Transfers by start. A tensor is transferred once to each consuming device, for each input.
    pub moves: Vec<Move>,
    /// The plan of tasks with the times that the stages imply.
    pub plan: Plan,
    /// Reads across devices that need no transfer of their own, because another consumer's transfer serves them.
    pub elided: usize,
    /// Number of stages merged into others because they were too small.
    pub merged: usize,
    /// Number of stages that are still too small.
    pub small: usize,
}

/// Options of [`stages`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageOptions {
    /// Stages of fewer tasks are merged with others if possible, which may move them to another device.
    pub min_tasks: usize,
    /// Nodes of the model inputs and outputs. `None` detects them: they take no time, are pinned, and have no predecessors
    /// or no successors.
    pub ports: Option<Vec<usize>>,
}

/// Partitions a plan into stages. Devices, batches and the order of starts on each device are kept, and the cost is at most
/// that of the plan at its earliest times, unless small stages are merged.
pub fn stages(problem: &Problem, plan: &Plan, options: &StageOptions) -> Result<Staged, Error> {
    if matches!(plan.schedule, Schedule::BatchedPipeline { .. }) {
        return batched_stages(problem, plan, options);
    }
    let launches = Launches::of(problem, plan, options.ports.as_deref())?;
    if plan.objective == Objective::Pipeline {
        return pipeline_stages(problem, plan, options, &launches);
    }
    if problem.lists_transfers(plan.objective) {
        return stages_on_buses(problem, plan, options);
    }
    let Retimed { line, times, as_planned, .. } = retimed(problem, plan, &launches)?;
    let mut line = cut::join(&launches, &line, &times);
    let judge = Makespan { launches: &launches };
    let merge = Merge { launches: &launches, as_planned, min_tasks: options.min_tasks, judge: &judge };
    let mut merged = 0;
    loop {
        let times = times_of(&line, &launches, as_planned)?;
        // Merging may remove transfers that cut other stages.
        line = cut::join(&launches, &line, &times);
        match merge.run(&mut line) {
            0 => break,
            more => merged += more,
        }
    }
    line = cut::split_alike(&launches, &line);
    let times = times_of(&line, &launches, as_planned)?;
    let plan = rescheduled(plan, schedule(&launches, &line, &times, plan.objective));
    check(problem, &plan)?;
    let order = by_begin(&line, &times);
    Ok(staged(&launches, &line, &times, &order, Made { plan, merged, min_tasks: options.min_tasks }))
}

/// Partitions a plan that lists the times of transfers or parameter copies. All times are kept if they are valid. Otherwise
/// they are recomputed, with buses assigned in the order of starts; parameter copies cannot be recomputed.
fn stages_on_buses(problem: &Problem, plan: &Plan, options: &StageOptions) -> Result<Staged, Error> {
    if options.min_tasks > 1 && problem.cold.is_some() {
        let message = "stages cannot be merged in a cold start (parameters arrive with the input); remove the minimum size \
                       of stages";
        return Err(Error::Unsupported(message.to_owned()));
    }
    let mut plan = match verify_as_stated(problem, plan) {
        Ok(_) => plan.clone(),
        Err(error) if problem.cold.is_some() => return Err(error),
        Err(_) => {
            let launches = Launches::of(problem, plan, options.ports.as_deref())?;
            let in_order = launches.numbered(&plan.schedule);
            let Timed { schedule, transfers, .. } = time_as_it_is(problem, &in_order)?;
            let anew = Plan { transfers, ..rescheduled(plan, schedule) };
            verify_as_stated(problem, &anew)?;
            anew
        }
    };
    let mut launches = Launches::of(problem, &plan, options.ports.as_deref())?;
    let line = cut::single(&launches, &launches.by_start());
    let mut line = cut::join(&launches, &line, &times_of(&line, &launches, true)?);
    let mut merged = 0;
    if let Some((other, count, anew)) = merged_on_buses(problem, &plan, &launches, &line, options.min_tasks) {
        launches = Launches::of(problem, &anew, options.ports.as_deref())?;
        (line, merged, plan) = (other, count, anew);
    }
    line = cut::split_alike(&launches, &line);
    let times = times_of(&line, &launches, true)?;
    let order = by_begin(&line, &times);
    Ok(staged(&launches, &line, &times, &order, Made { plan, merged, min_tasks: options.min_tasks }))
}

/// Merges small stages; returns the new line, the number of merged stages and the new plan, or `None` if impossible.
fn merged_on_buses(
    problem: &Problem,
    plan: &Plan,
    launches: &Launches,
    line: &Line,
    min_tasks: usize,
) -> Option<(Line, usize, Plan)> {
    if min_tasks < 2 || launches.listed.is_empty() {
        return None;
    }
    let mut line = line.clone();
    let judge = Makespan { launches };
    let merged = Merge { launches, as_planned: false, min_tasks, judge: &judge }.run(&mut line);
    let (times, transfers) = buses::times(problem, launches, &line).filter(|_| merged > 0)?;
    let plan = Plan { transfers, ..rescheduled(plan, schedule(launches, &line, &times, plan.objective)) };
    verify_as_stated(problem, &plan).ok()?;
    Some((line, merged, plan))
}

/// Returns the pieces sorted by begin, in topological order.
fn by_begin(line: &Line, times: &Times) -> Vec<usize> {
    let mut order = times.order.clone();
    let mut place = vec![0; line.pieces.len()];
    order.iter().enumerate().for_each(|(index, piece)| place[*piece] = index);
    order.sort_by(|a, b| times.begin[*a].total_cmp(&times.begin[*b]).then(place[*a].cmp(&place[*b])));
    order
}

/// Reschedules a plan at its earliest times: devices, batches, blocks and, as far as dependences allow, the order of starts
/// on each device are kept. Updates value and gap; the bound stays. If memory suffices only at the plan's own times, they are
/// kept. A plan that lists the times of transfers or parameter copies is returned unchanged.
pub fn retime(problem: &Problem, plan: &Plan) -> Result<Plan, Error> {
    if !plan.transfers.is_empty() || !plan.copies.is_empty() {
        return Ok(plan.clone());
    }
    if matches!(plan.schedule, Schedule::BatchedPipeline { .. }) {
        return in_stage_order(problem, plan.clone(), None).map(|(plan, _)| plan);
    }
    let launches = Launches::of(problem, plan, None)?;
    if plan.objective != Objective::Pipeline {
        return Ok(retimed(problem, plan, &launches)?.plan);
    }
    let line = pipeline::blocks(&launches, &plan.schedule)?;
    let times = times_of(&line, &launches, false)?;
    let value = bottleneck_of(problem, plan, &launches).value(&line, &times);
    let plan = rescheduled(plan, with_bottleneck(&plan.schedule, value));
    verify_as_stated(problem, &plan)?;
    Ok(plan)
}

/// A plan at its earliest times, with one piece per launch.
struct Retimed {
    line: Line,
    times: Times,
    plan: Plan,
    as_planned: bool,
}

fn retimed(problem: &Problem, plan: &Plan, launches: &Launches) -> Result<Retimed, Error> {
    let line = cut::single(launches, &launches.by_start());
    let at = |as_planned: bool| -> Result<(Times, Plan), Error> {
        let times = times_of(&line, launches, as_planned)?;
        let plan = rescheduled(plan, schedule(launches, &line, &times, plan.objective));
        verify_as_stated(problem, &plan)?;
        Ok((times, plan))
    };
    // An earlier start may extend a live range.
    let (as_planned, (times, plan)) = match at(false) {
        Ok(retimed) => (false, retimed),
        Err(error) => (true, at(true).map_err(|_| error)?),
    };
    Ok(Retimed { line, times, plan, as_planned })
}

fn pipeline_stages(
    problem: &Problem,
    plan: &Plan,
    options: &StageOptions,
    launches: &Launches,
) -> Result<Staged, Error> {
    let mut line = pipeline::blocks(launches, &plan.schedule)?;
    let judge = bottleneck_of(problem, plan, launches);
    let merge = Merge { launches, as_planned: false, min_tasks: options.min_tasks, judge: &judge };
    let merged = merge.run(&mut line);
    let times = times_of(&line, launches, false)?;
    let value = judge.value(&line, &times);
    // Pieces are numbered in pipeline order; merged pieces are in the topological order of their times.
    let order = if merged == 0 { line.alive_in_order() } else { times.order.clone() };
    let schedule = match merged {
        0 => with_bottleneck(&plan.schedule, value),
        _ => pipeline::schedule(launches, &line, &order, value),
    };
    let plan = rescheduled(plan, schedule);
    verify_as_stated(problem, &plan)?;
    Ok(staged(launches, &line, &times, &order, Made { plan, merged, min_tasks: options.min_tasks }))
}

/// Partitions a pipeline whose stages take batches or whose devices take turns: a stage for each launch of a request. Small
/// stages are not merged.
fn batched_stages(problem: &Problem, plan: &Plan, options: &StageOptions) -> Result<Staged, Error> {
    let ports = options.ports.as_deref();
    let (plan, stages) = in_stage_order(problem, plan.clone(), ports)?;
    let stages = stages.ok_or_else(launches::no_devices)?;
    let launches = Launches::of_request(problem, &stages, ports)?;
    let line = turns::line(&launches, &stages);
    let times = times_of(&line, &launches, false)?;
    let order = by_begin(&line, &times);
    let small = stages.order.iter().filter(|tasks| tasks.len() < options.min_tasks).count();
    let made = Made { plan, merged: 0, min_tasks: 0 };
    let mut staged = staged(&launches, &line, &times, &order, made);
    staged.small = small;
    for stage in &mut staged.stages {
        stage.number = stage.tasks.first().and_then(|task| stages.stage[*task]);
    }
    Ok(staged)
}

fn bottleneck_of<'a>(problem: &Problem, plan: &Plan, launches: &'a Launches) -> pipeline::Bottleneck<'a> {
    let overlap = plan.pipeline_cost.as_deref() == Some("overlap");
    pipeline::Bottleneck { launches, overlap, buses: problem.buses() }
}

fn with_bottleneck(schedule: &Schedule, value: Micros) -> Schedule {
    let mut schedule = schedule.clone();
    if let Schedule::Pipeline { bottleneck, .. } = &mut schedule {
        *bottleneck = value;
    }
    schedule
}

fn times_of(line: &Line, launches: &Launches, as_planned: bool) -> Result<Times, Error> {
    line.times(launches, as_planned)
        .ok_or_else(|| Error::NotFound("the plan uses a missing link, or its stages form a cycle".to_owned()))
}

/// Replaces the schedule of a plan.
fn rescheduled(plan: &Plan, schedule: Schedule) -> Plan {
    let mut plan = Plan { value: schedule.value(), schedule, ..plan.clone() };
    plan.prove(plan.bound());
    plan
}

/// Verifies a plan under the terms that it states itself; the caller's terms were checked when it was made or read.
fn verify_as_stated(problem: &Problem, plan: &Plan) -> Result<Micros, Error> {
    verify_under(problem, plan, &Terms::stated_by(plan))
}

/// Checks that the resulting plan is still valid.
fn check(problem: &Problem, plan: &Plan) -> Result<(), Error> {
    let wrong = |error: Error| Error::Bug(format!("stages produced an invalid plan: {error}"));
    verify_as_stated(problem, plan).map(drop).map_err(wrong)
}

/// Builds the schedule from the devices and times of all launches.
fn schedule(launches: &Launches, line: &Line, times: &Times, objective: Objective) -> Schedule {
    let makespan = times.makespan;
    if objective == Objective::Batch {
        return Schedule::Batch { batches: batches(launches, line, times), makespan };
    }
    let mut device = vec![0; launches.all.len()];
    let mut start = vec![Micros::ZERO; launches.all.len()];
    for (index, launch) in launches.all.iter().enumerate() {
        device[launch.node] = line.device_of(launches, index);
        start[launch.node] = times.start[index];
    }
    Schedule::Latency { device, start, makespan }
}

fn batches(launches: &Launches, line: &Line, times: &Times) -> Vec<Batch> {
    let batch = |(index, launch): (usize, &launches::Launch)| Batch {
        node: launch.node,
        device: line.device_of(launches, index),
        inputs: launch.inputs.clone(),
        start: times.start[index],
    };
    launches.all.iter().enumerate().map(batch).collect()
}

/// Objective for one input or a queue: end of the last launch.
struct Makespan<'a> {
    launches: &'a Launches,
}

impl Judge for Makespan<'_> {
    fn value(&self, _: &Line, times: &Times) -> Micros {
        times.makespan
    }

    fn fits(&self, line: &Line, times: &Times) -> bool {
        let instance = &self.launches.instance;
        !instance.memory_binds() || instance.fits_launches(&batches(self.launches, line, times))
    }
}

/// Parts of the result other than the stages.
struct Made {
    plan: Plan,
    merged: usize,
    min_tasks: usize,
}

fn staged(launches: &Launches, line: &Line, times: &Times, order: &[usize], made: Made) -> Staged {
    let mut number = vec![0; line.pieces.len()];
    order.iter().enumerate().for_each(|(index, piece)| number[*piece] = index);
    let is_pipeline = made.plan.objective == Objective::Pipeline;
    let stage = |piece: &usize| {
        let own = &line.pieces[*piece].launches;
        Stage {
            number: is_pipeline.then_some(number[*piece]),
            device: line.pieces[*piece].device,
            inputs: launches.all[own[0]].inputs.clone(),
            tasks: own.iter().map(|launch| launches.all[*launch].node).collect(),
            start: times.begin[*piece],
            end: times.end[*piece],
        }
    };
    let stages: Vec<Stage> = order.iter().map(stage).collect();
    let (moving, crossing) = cut::moves(launches, line);
    let elided = crossing - moving.len();
    let mut moves: Vec<Move> = moving
        .into_iter()
        .map(|moving| {
            let from = line.device_of(launches, moving.from);
            let (source, done) = match line.piece_of(moving.from) {
                Some(piece) => (Source::Stage(number[piece]), times.end[piece]),
                None => (Source::Input(launches.all[moving.from].node), times.start[moving.from]),
            };
            let count = moving.inputs.len() as u32;
            let handed = Handed { launch: moving.from, tensor: moving.tensor, count };
            let (start, end) = launches.moved(handed, from, moving.to, done);
            Move { tensor: moving.tensor, source, from, to: moving.to, inputs: moving.inputs, start, end }
        })
        .collect();
    moves.sort_by(|a, b| a.start.total_cmp(&b.start).then(a.tensor.cmp(&b.tensor)).then(a.to.cmp(&b.to)));
    let small = stages.iter().filter(|stage| stage.tasks.len() < made.min_tasks).count();
    let inputs = launches.instance.inputs();
    Staged { stages, inputs, moves, plan: made.plan, elided, merged: made.merged, small }
}
