//! `divi-plan solve`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use divi_planner::DEFAULT_ALGORITHM;
use divi_planner::plan::Limit;
use divi_planner::problem::Contention;
use divi_planner::{Objective, Observer, Options, Plan, Problem, SolverEvent, algorithms};
use divi_report::Progress;
use lexopt::Parser;
use serde_json::json;

use super::{parse, value};
use crate::files;

fn usage() -> String {
    let mut usage = format!(
        "\
usage: divi-plan solve PROBLEM [OPTIONS]

Writes a plan, and on stderr what it costs, what is proven, and how long it took.

  -o FILE              where the plan goes; without it to stdout
  --objective=NAME     latency (one input), batch (all queued inputs) or pipeline; by default
                       batch where the problem queues several inputs, else latency
  --algorithm=NAME     by default {DEFAULT_ALGORITHM}
  --inputs=N           how many inputs are queued, instead of what the problem says; 1 is latency
  --contention=NAME    what transfers on one bus do to each other, instead of what the problem says: off,
                       exclusive (one at a time) or shared (they share its bandwidth)
  --cold               parameters are in the host's memory and come with the input (latency)
  --resident=R         the same once more, with a share R of what was copied still where it was
  --write-problem=FILE the problem that was solved, where --cold has changed it, for divi-plan verify
  --k=N                how many stages a pipeline may have, instead of what the problem says
  --allow-shared-devices
                       a device may have several stages, and takes their sum
  --pipeline-cost=NAME what a stage takes: serial (inputs, work, outputs; the default), or overlap
                       (the longer of work and transfers)
  --splits=N           how often the machine may change from a layer to the next, on an edge network
  --order=NAME         where slicegraph's orders come from: brkga (the default), random, mla or
                       mla-weighted
  --symmetry=NAME      how integer programs tell equal devices and equal nodes apart: by first-use (the
                       default), or by which has more batches, tasks or time; or off
  --seed=N             of algorithms that search, by default 1
  --iterations=N       how much they search; reproducible
  --time-limit=S       how long they search, in seconds; not reproducible
  --json               the summary as JSON on stdout; the plan only goes to -o FILE
  -q                   no summary, and no progress on a terminal

algorithms:
"
    );
    for algorithm in algorithms() {
        let objectives: Vec<&str> = algorithm.objectives().map(|objective| objective.name()).collect();
        usage += &format!("  {:<18} {} ({})\n", algorithm.name, algorithm.summary, objectives.join(", "));
    }
    usage
}

pub(super) fn run(parser: &mut Parser) -> Result<(), String> {
    let mut objective: Option<Objective> = None;
    let mut algorithm = DEFAULT_ALGORITHM.to_owned();
    let mut options = Options::default();
    let (mut as_json, mut quiet) = (false, false);
    let mut cold = Cold::default();
    let parsed = parse(parser, &usage(), |name, parser| {
        match name {
            "objective" => objective = Some(value(parser, name)?),
            "algorithm" => algorithm = value(parser, name)?,
            "inputs" => options.inputs = Some(value(parser, name)?),
            "contention" => options.contention = Some(value(parser, name)?),
            "cold" => cold.from_host = true,
            "resident" => cold.resident = Some(share(value(parser, name)?)?),
            "write-problem" => cold.file = Some(value::<PathBuf>(parser, name)?),
            "k" => options.stages = Some(value(parser, name)?),
            "allow-shared-devices" => options.shared_devices = true,
            "pipeline-cost" => options.pipeline_cost = Some(value(parser, name)?),
            "splits" => options.splits = Some(value(parser, name)?),
            "order" => options.order = Some(value(parser, name)?),
            "symmetry" => options.symmetry = value(parser, name)?,
            "seed" => options.seed = value(parser, name)?,
            "iterations" => limit(&mut options, Limit::Iterations(value(parser, name)?))?,
            "time-limit" => limit(&mut options, Limit::Seconds(value(parser, name)?))?,
            "json" => as_json = true,
            "q" | "quiet" => quiet = true,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let Some(arguments) = parsed else { return Ok(()) };
    let [problem_file] = arguments.files(["PROBLEM"])?;
    arguments.check_outputs(&cold.file.iter().map(|file| ("--write-problem", file)).collect::<Vec<_>>())?;
    if as_json && arguments.output.as_deref().is_some_and(files::is_standard) {
        return Err("--json writes to stdout, so the plan cannot go there too".to_owned());
    }
    let problem = files::problem(problem_file)?;
    let by_default = if options.inputs.unwrap_or(problem.inputs) == 1 { Objective::Latency } else { Objective::Batch };

    let progress = (!quiet).then(Progress::on_terminal).flatten();
    let (part, explored) = (Arc::new(OnceLock::new()), Arc::new(AtomicU64::new(0)));
    options.observer = observer(progress.as_ref().map(Progress::observer), Arc::clone(&part), Arc::clone(&explored));
    let started = Instant::now();
    let is_cold = cold.from_host || cold.resident.is_some();
    // A problem may know more about its cold start than can be said here.
    let problem = if is_cold && problem.cold.is_none() { problem.cold_start() } else { problem };
    let contention = options.contention.unwrap_or(problem.contention);
    if !quiet && contention != Contention::Off && problem.bus.is_none() && problem.devices.len() > 1 {
        eprintln!("divi-plan: warning: contention {contention} changes nothing, as the problem names no bus");
    }
    let solve = |problem: &Problem| divi_planner::solve(problem, objective.unwrap_or(by_default), &algorithm, &options);
    let mut solved = solve(&problem).map(|plan| (problem, plan));
    if let (Ok((problem, plan)), Some(share)) = (&solved, cold.resident) {
        let problem = problem.still_warm(plan, share);
        solved = solve(&problem).map(|plan| (problem, plan));
    }
    drop(progress);
    let (problem, plan) = solved.map_err(|error| error.to_string())?;
    let seconds = started.elapsed().as_secs_f64();
    plan.warnings().iter().for_each(|message| eprintln!("divi-plan: warning: {message}"));

    if let Some(file) = &cold.file {
        files::write(Some(file), &problem.write())?;
    }
    if !as_json || arguments.output.is_some() {
        files::write(arguments.output.as_deref(), &plan.write())?;
    }
    let (part, explored) = (part.get().copied(), Some(explored.load(Ordering::Relaxed)).filter(|&nodes| nodes > 0));
    if as_json {
        files::print(&format!("{}\n", summary(&plan, part, explored, seconds)))?;
    } else if !quiet {
        eprintln!(
            "{}{}: {} {:.1} µs, bound {:.1} µs by {}{}, gap {:.2} %, {}{seconds:.3} s",
            plan.algorithm,
            part.map(|part| format!(" ({part})")).unwrap_or_default(),
            plan.objective,
            plan.value,
            plan.bound,
            plan.bound_by,
            plan.bound_remark(),
            plan.gap * 100.0,
            explored.map(|count| format!("{count} nodes explored, ")).unwrap_or_default()
        );
    }
    Ok(())
}

/// Where parameters are when an input comes.
#[derive(Default)]
struct Cold {
    from_host: bool,
    resident: Option<f64>,
    /// Where the problem with that goes.
    file: Option<PathBuf>,
}

fn share(share: f64) -> Result<f64, String> {
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err("--resident must be a share from 0 to 1".to_owned()) }
}

fn limit(options: &mut Options, limit: Limit) -> Result<(), String> {
    if options.limit.is_some() {
        return Err("only one of --iterations and --time-limit can be given, once".to_owned());
    }
    if matches!(limit, Limit::Seconds(seconds) if !seconds.is_finite() || seconds < 0.0) {
        return Err("--time-limit must be a number of seconds from 0 on".to_owned());
    }
    options.limit = Some(limit);
    Ok(())
}

/// Tells of progress, and keeps which part of a portfolio has found the plan, and how many nodes of a tree were looked at.
fn observer(progress: Option<Observer>, part: Arc<OnceLock<&'static str>>, explored: Arc<AtomicU64>) -> Observer {
    Observer::new(move |event| {
        match event {
            SolverEvent::Taken(name) => {
                part.get_or_init(|| name);
            }
            SolverEvent::Explored(count, _) => {
                explored.fetch_add(count, Ordering::Relaxed);
            }
            SolverEvent::Plan(..) | SolverEvent::Bound(..) => {}
        }
        progress.iter().for_each(|progress| progress.notify(event));
    })
}

fn summary(plan: &Plan, part: Option<&str>, explored: Option<u64>, seconds: f64) -> serde_json::Value {
    let mut summary = json!({
        "algorithm": plan.algorithm, "found_by": part.unwrap_or(&plan.algorithm), "objective": plan.objective.name(),
        "value": plan.value, "bound": plan.bound, "bound_by": plan.bound_by, "proof": plan.proof.name(), "gap": plan.gap,
        "seconds": seconds,
    });
    if let Some(verified) = plan.verified_bound {
        summary["verified_bound"] = verified.into();
    }
    if let Some(explored) = explored {
        summary["explored"] = explored.into();
    }
    summary
}
