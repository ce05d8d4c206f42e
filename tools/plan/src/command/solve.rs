//! `divi-plan solve`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use clap::builder::{PossibleValue, PossibleValuesParser};
use divi_planner::DEFAULT_ALGORITHM;
use divi_planner::plan::{LaunchRule, Limit};
use divi_planner::problem::Contention;
use divi_planner::{Objective, Observer, Options, OrderSearch, Plan, Problem, SolverEvent, Symmetry, algorithms};
use divi_report::Progress;
use serde_json::json;

use super::{Pipeline, contentions, launch_rules, objectives};
use crate::files;

/// Find a plan for a problem, with a proven bound
///
/// Prints on stderr the value of the plan, the bound, the gap between them and the time of the search.
#[derive(clap::Args)]
pub(crate) struct Solve {
    /// Problem to solve, a divi-problem/1 file
    problem: PathBuf,
    /// File for the plan, instead of stdout
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Objective; by default batch if the problem queues several inputs, else latency
    ///
    /// Finish time of one input (latency) or of all queued inputs (batch), or time of the slowest stage (pipeline).
    #[arg(long, value_name = "NAME", value_parser = objectives())]
    objective: Option<Objective>,
    /// Algorithm
    #[arg(long, value_name = "NAME", default_value = DEFAULT_ALGORITHM, value_parser = algorithm_names())]
    algorithm: String,
    /// Number of queued inputs, instead of the problem's; 1 is latency
    #[arg(long, value_name = "N")]
    inputs: Option<u32>,
    /// Number of launches of a task on each device of a queue
    ///
    /// At most one (one, as in the DiviML paper), or any number (many): then inputs may pass in groups.
    #[arg(long, value_name = "NAME", default_value = LaunchRule::Many.name(), value_parser = launch_rules())]
    launches: LaunchRule,
    /// Contention of transfers on one bus, instead of the problem's
    ///
    /// Transfers are independent (off), one at a time (exclusive), or share the bandwidth (shared).
    #[arg(long, value_name = "NAME", value_parser = contentions())]
    contention: Option<Contention>,
    /// Start with all parameters in host memory; their copies are part of the plan (latency)
    #[arg(long)]
    cold: bool,
    /// Plan a second cold start, with a share R of the copied parameters still on their devices
    #[arg(long, value_name = "R", value_parser = share)]
    resident: Option<f64>,
    /// File for the problem that was solved, with the changes of --cold, for divi-plan verify
    #[arg(long, value_name = "FILE")]
    write_problem: Option<PathBuf>,
    #[command(flatten)]
    pipeline: Pipeline,
    /// Search for the orders that slicegraph slices; by default brkga
    #[arg(long, value_name = "NAME", value_parser = divi_cli::named::<OrderSearch>(OrderSearch::ALL.map(OrderSearch::name)))]
    order: Option<OrderSearch>,
    /// Symmetry breaking between equal devices and equal nodes in integer programs
    ///
    /// By the first task that uses them, or by their number of batches, their number of tasks or their time.
    #[arg(
        long, value_name = "NAME", default_value = "first-use",
        value_parser = divi_cli::named::<Symmetry>(Symmetry::ALL.map(Symmetry::name))
    )]
    symmetry: Symmetry,
    /// Seed of search algorithms
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Search effort in iterations, reproducible
    #[arg(long, value_name = "N", conflicts_with = "time_limit")]
    iterations: Option<u64>,
    /// Time limit of the search in seconds, not reproducible
    #[arg(long, value_name = "S", value_parser = divi_cli::seconds)]
    time_limit: Option<f64>,
    /// Print the summary as JSON on stdout; the plan is only written to -o FILE
    #[arg(long)]
    json: bool,
    /// Print neither the summary nor progress on a terminal
    #[arg(short, long)]
    quiet: bool,
}

/// Returns the names of the algorithms with their summaries and objectives.
fn algorithm_names() -> PossibleValuesParser {
    let describe = |algorithm: &divi_planner::Algorithm| {
        let objectives: Vec<&str> = algorithm.objectives().map(|objective| objective.name()).collect();
        PossibleValue::new(algorithm.name).help(format!("{} ({})", algorithm.summary, objectives.join(", ")))
    };
    algorithms().into_iter().map(describe).into()
}

impl Solve {
    pub(super) fn run(self) -> Result<(), String> {
        let outputs = [("-o", self.output.as_deref()), ("--write-problem", self.write_problem.as_deref())];
        files::check(&[&self.problem], &outputs)?;
        if self.json && self.output.as_deref().is_some_and(files::is_standard) {
            return Err("--json writes to stdout, so the plan cannot go there too".to_owned());
        }
        let mut options = self.options();
        let problem = files::problem(&self.problem)?;
        let is_single = options.inputs.unwrap_or(problem.inputs) == 1;
        let objective = self.objective.unwrap_or(if is_single { Objective::Latency } else { Objective::Batch });

        let progress = (!self.quiet).then(Progress::on_terminal).flatten();
        let (part, explored) = (Arc::new(OnceLock::new()), Arc::new(AtomicU64::new(0)));
        options.observer =
            observer(progress.as_ref().map(Progress::observer), Arc::clone(&part), Arc::clone(&explored));
        let started = Instant::now();
        let is_cold = self.cold || self.resident.is_some();
        // A problem file may describe its cold start in more detail than `cold_start` assumes.
        let problem = if is_cold && problem.cold.is_none() { problem.cold_start() } else { problem };
        let contention = options.contention.unwrap_or(problem.contention);
        if !self.quiet && contention != Contention::Off && problem.bus.is_none() && problem.devices.len() > 1 {
            eprintln!("divi-plan: warning: contention {contention} has no effect: the problem names no bus");
        }
        if !self.quiet && objective == Objective::Batch && options.launches == LaunchRule::Many {
            self.note_launches();
        }
        let solve = |problem: &Problem| divi_planner::solve(problem, objective, &self.algorithm, &options);
        let mut solved = solve(&problem).map(|plan| (problem, plan));
        if let (Ok((problem, plan)), Some(share)) = (&solved, self.resident) {
            let problem = problem.still_warm(plan, share);
            solved = solve(&problem).map(|plan| (problem, plan));
        }
        drop(progress);
        let (problem, plan) = solved.map_err(|error| error.to_string())?;
        let seconds = started.elapsed().as_secs_f64();
        plan.warnings().iter().for_each(|message| eprintln!("divi-plan: warning: {message}"));

        if let Some(file) = &self.write_problem {
            files::write(Some(file), &problem.write())?;
        }
        if !self.json || self.output.is_some() {
            files::write(self.output.as_deref(), &plan.write())?;
        }
        let (part, explored) = (part.get().copied(), Some(explored.load(Ordering::Relaxed)).filter(|&nodes| nodes > 0));
        if self.json {
            files::print(&format!("{}\n", summary(&plan, part, explored, seconds)))?;
        } else if !self.quiet {
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

    /// Prints a note if the algorithm plans one launch, whatever the options allow.
    fn note_launches(&self) {
        let all = algorithms();
        if all.iter().any(|algorithm| algorithm.name == self.algorithm && !algorithm.plans_many_launches) {
            let others: Vec<&str> =
                all.iter().filter(|algorithm| algorithm.plans_many_launches).map(|algorithm| algorithm.name).collect();
            eprintln!(
                "divi-plan: note: algorithm '{}' plans at most one launch of a task on each device; {} plan any number",
                self.algorithm,
                others.join(", ")
            );
        }
    }

    fn options(&self) -> Options {
        let &Pipeline { k: stages, allow_shared_devices: shared_devices, pipeline_cost, splits, .. } = &self.pipeline;
        let &Pipeline { max_batch, replicas: max_replicas, .. } = &self.pipeline;
        let &Self { inputs, launches, contention, order, symmetry, seed, .. } = self;
        let limit = self.iterations.map(Limit::Iterations).or(self.time_limit.map(Limit::Seconds));
        Options {
            seed,
            limit,
            inputs,
            launches,
            contention,
            stages,
            pipeline_cost,
            shared_devices,
            splits,
            max_batch,
            max_replicas,
            order,
            symmetry,
            ..Options::default()
        }
    }
}

/// Parses a share from 0 to 1.
fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "must be a share from 0 to 1".to_owned())
}

/// Forwards events to the progress line, and records the portfolio member of the plan and the number of search nodes.
fn observer(progress: Option<Observer>, part: Arc<OnceLock<&'static str>>, explored: Arc<AtomicU64>) -> Observer {
    Observer::new(move |event| {
        match event {
            SolverEvent::Taken(name) => {
                part.get_or_init(|| name);
            }
            SolverEvent::Explored(count, _) => {
                explored.fetch_add(count, Ordering::Relaxed);
            }
            SolverEvent::Failed(part) => {
                eprintln!(
                    "divi-plan: warning: the solver of {part} failed; the plan and the bound are from other algorithms"
                );
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
        summary["verified_bound"] = verified.0.into();
    }
    if let Some(explored) = explored {
        summary["explored"] = explored.into();
    }
    summary
}
