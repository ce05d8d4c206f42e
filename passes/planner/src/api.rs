//! The algorithms by the names that users type, and the one way in which each becomes a plan.

mod symmetry;

use std::time::Instant;

use crate::auto;
use crate::baseline;
use crate::bounds;
use crate::bus;
use crate::edge;
use crate::error::Error;
use crate::exact::solver;
use crate::infeasible;
use crate::instance::Instance;
use crate::milp;
use crate::pipeline::{self, OrderSearch, PipelineCost};
use crate::plan::{Bound, Limit, Objective, Plan, Schedule, Stages, gap};
use crate::problem::{Contention, Problem};
use crate::replicated;
use crate::search;
use crate::sortinghat;
use crate::units::Micros;
use crate::verify::{Terms, verify_under};
use crate::watch::Watch;

pub use symmetry::Symmetry;

/// From this gap on all of the default effort is spent; at no gap, this share of it.
const FULL_GAP: f64 = 0.4;
const LEAST_EFFORT: f64 = 0.02;

/// How an algorithm is to work.
#[derive(Clone, Debug)]
pub struct Options {
    pub seed: u64,
    /// None leaves it to the algorithm.
    pub limit: Option<Limit>,
    /// How many inputs a queue has, instead of what the problem says.
    pub inputs: Option<u32>,
    /// What transfers on one bus do to each other, instead of what the problem says.
    pub contention: Option<Contention>,
    /// How many stages a pipeline may have, instead of what the problem says.
    pub stages: Option<u32>,
    /// What a stage of a pipeline costs, instead of serial.
    pub pipeline_cost: Option<PipelineCost>,
    /// Whether a device may have several stages of a pipeline.
    pub shared_devices: bool,
    /// How often a pipeline of an edge network may change its machine, instead of what the problem says.
    pub splits: Option<u32>,
    /// How `slicegraph` looks for orders, instead of brkga.
    pub order: Option<OrderSearch>,
    /// Share of an algorithm's default effort that is spent where there is no limit.
    pub effort: f64,
    /// How integer programs tell equal devices and nodes apart.
    pub symmetry: Symmetry,
    /// Who is told of plans and bounds as they are found.
    pub watch: Watch,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            limit: None,
            inputs: None,
            contention: None,
            stages: None,
            pipeline_cost: None,
            shared_devices: false,
            splits: None,
            order: None,
            effort: 1.0,
            symmetry: Symmetry::default(),
            watch: Watch::default(),
        }
    }
}

impl Options {
    /// The same for an algorithm that is part of another.
    pub(crate) fn named(&self, part: &'static str) -> Self {
        Self { watch: self.watch.of(part), ..self.clone() }
    }

    /// The same with an effort in proportion to what a plan can still gain: all of it from a gap of [`FULL_GAP`] on, or where
    /// there is a limit.
    pub(crate) fn for_gap(&self, value: Micros, bound: Micros) -> Self {
        if self.limit.is_some() {
            return self.clone();
        }
        let share = (gap(value, bound) / FULL_GAP).clamp(LEAST_EFFORT, 1.0);
        Self { effort: self.effort * share, ..self.clone() }
    }

    /// A default of iterations, trials or nodes, less what is not worth the effort.
    pub(crate) fn worth(&self, most: u64) -> u64 {
        (most as f64 * self.effort).ceil() as u64
    }

    /// The same with what is left of the time, where that is limited.
    pub(crate) fn left_since(&self, since: Instant) -> Self {
        let limit = self.limit.map(|limit| match limit {
            Limit::Seconds(seconds) => Limit::Seconds((seconds - since.elapsed().as_secs_f64()).max(0.0)),
            Limit::Iterations(count) => Limit::Iterations(count),
        });
        Self { limit, ..self.clone() }
    }
}

/// What an algorithm answers: a schedule, and a lower bound where it has proven one.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    pub schedule: Schedule,
    pub bound: Option<Bound>,
}

impl Solution {
    /// The value of the best verified bound; 0 where there is none.
    pub(crate) fn verified_value(&self) -> f64 {
        self.bound.as_ref().map_or(0.0, Bound::verified_value)
    }
}

/// From a problem that is well-formed to an answer for the objective.
pub type Solver = fn(&Problem, Objective, &Options) -> Result<Solution, Error>;

/// One entry of the table of algorithms.
#[derive(Clone, Copy, Debug)]
pub struct Algorithm {
    pub name: &'static str,
    pub objectives: &'static [Objective],
    pub effort: Effort,
    pub summary: &'static str,
    pub solver: Solver,
}

/// Whether seed and limit make a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// They do not: the algorithm always does the same.
    Fixed,
    /// They do, and are recorded in the plan.
    Limited,
}

const LATENCY: &[Objective] = &[Objective::Latency];
const PIPELINE: &[Objective] = &[Objective::Pipeline];
const ALL: &[Objective] = &Objective::ALL;
const QUEUES: &[Objective] = &[Objective::Batch];
const SCHEDULES: &[Objective] = &[Objective::Latency, Objective::Batch];

static ALGORITHMS: &[Algorithm] = &[
    entry("auto", ALL, Effort::Limited, "the best plan of a portfolio of those below", auto::auto),
    entry("single", SCHEDULES, Effort::Fixed, "all that it can run on the best single device", baseline::single),
    entry("met", SCHEDULES, Effort::Fixed, "each task where it runs fastest, breadth-first", baseline::met),
    entry("greedy", SCHEDULES, Effort::Fixed, "each task where it ends first, breadth-first", baseline::greedy),
    entry("heft", SCHEDULES, Effort::Fixed, "each task where it ends first, by upward rank, in gaps", baseline::heft),
    entry("priced", QUEUES, Effort::Fixed, "each task where it ends first, with a price on memory", baseline::priced),
    entry(
        "replicated",
        QUEUES,
        Effort::Limited,
        "one node's plan on every node, for a part of the network or of the inputs",
        replicated::replicated,
    ),
    entry("milp-split", SCHEDULES, Effort::Limited, "modules between cuts, one after the other", solver::milp_split),
    entry("milp", ALL, Effort::Limited, "an integer program of the whole, through HiGHS", milp::milp),
    entry("milp-paper", LATENCY, Effort::Limited, "DiviML's own integer program, for comparison", milp::paper),
    entry("exact", LATENCY, Effort::Limited, "every schedule that no other makes superfluous", solver::exact),
    entry("anneal", ALL, Effort::Limited, "simulated annealing from the best of these", search::anneal),
    entry("lns", SCHEDULES, Effort::Limited, "large neighbourhoods from the best of these", search::neighbourhoods),
    entry(
        "slicegraph",
        PIPELINE,
        Effort::Limited,
        "orders of the tasks, each cut at its best places",
        pipeline::slicegraph,
    ),
    entry(
        "sortinghat",
        LATENCY,
        Effort::Limited,
        "pieces between dominators, buses and copies",
        sortinghat::sortinghat,
    ),
    entry(
        edge::NAME,
        PIPELINE,
        Effort::Limited,
        "every placement on an edge network that may be better",
        edge::branch_and_bound,
    ),
    entry("evolve", SCHEDULES, Effort::Limited, "the (1+1) evolutionary algorithm from met", search::evolve),
];

/// What runs where no algorithm is asked for.
pub const DEFAULT_ALGORITHM: &str = "auto";

/// A line of the table.
const fn entry(
    name: &'static str,
    objectives: &'static [Objective],
    effort: Effort,
    summary: &'static str,
    solver: Solver,
) -> Algorithm {
    Algorithm { name, objectives, effort, summary, solver }
}

/// Every algorithm there is.
pub fn algorithms() -> &'static [Algorithm] {
    ALGORITHMS
}

/// The algorithm of that name, if it has the objective.
pub fn algorithm(name: &str, objective: Objective) -> Result<&'static Algorithm, Error> {
    let Some(algorithm) = ALGORITHMS.iter().find(|algorithm| algorithm.name == name) else {
        let names: Vec<&str> = ALGORITHMS.iter().map(|algorithm| algorithm.name).collect();
        return Err(Error::Unsupported(format!("there is no algorithm '{name}'; there are {}", names.join(", "))));
    };
    if algorithm.objectives.contains(&objective) {
        return Ok(algorithm);
    }
    let names: Vec<&str> =
        ALGORITHMS.iter().filter(|other| other.objectives.contains(&objective)).map(|other| other.name).collect();
    let others = if names.is_empty() { "no algorithm has".to_owned() } else { format!("{} have", names.join(", ")) };
    Err(Error::Unsupported(format!("algorithm '{name}' has no objective {objective}; {others}")))
}

/// Solves a problem: the algorithm's schedule, the best bound that is known, verified.
pub fn solve(problem: &Problem, objective: Objective, name: &str, options: &Options) -> Result<Plan, Error> {
    let algorithm = algorithm(name, objective)?;
    let planned = if objective == Objective::Batch { problem.inputs } else { 1 };
    let inputs = options.inputs.filter(|inputs| *inputs != planned);
    let contention = options.contention.filter(|contention| *contention != problem.contention);
    if inputs.is_none() && contention.is_none() {
        return solve_as_is(problem, objective, algorithm, options);
    }
    if let Some(inputs) = inputs.filter(|_| objective != Objective::Batch) {
        let message = format!("objective {objective} takes one input, not {inputs}; batch queues them");
        return Err(Error::Unsupported(message));
    }
    let mut asked = problem.clone();
    asked.inputs = inputs.unwrap_or(asked.inputs);
    asked.contention = contention.unwrap_or(asked.contention);
    let mut plan = solve_as_is(&asked, objective, algorithm, options)?;
    if let Some(contention) = contention.filter(|_| !plan.schedule.uses_links()) {
        let message = format!(
            "contention {contention} is for links between devices: neither an edge network nor a pipeline of equal devices \
             has any"
        );
        return Err(Error::Unsupported(message));
    }
    plan.problem = problem.hash();
    (plan.inputs, plan.contention) = (inputs, contention.or(plan.contention));
    check(problem, &plan, options)?;
    Ok(plan)
}

/// A plan that does not hold never leaves.
fn check(problem: &Problem, plan: &Plan, options: &Options) -> Result<(), Error> {
    let wrong = |error: Error| Error::Bug(format!("algorithm '{}' made a plan that is wrong: {error}", plan.algorithm));
    verify_under(problem, plan, &Terms::from(options)).map(drop).map_err(wrong)
}

/// What only pipelines have is not left out where there is none.
fn check_options(objective: Objective, options: &Options) -> Result<(), Error> {
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

fn solve_as_is(
    problem: &Problem,
    objective: Objective,
    algorithm: &Algorithm,
    options: &Options,
) -> Result<Plan, Error> {
    problem.check_form()?;
    check_options(objective, options)?;
    edge::check_options(problem, algorithm.name, options)?;
    if algorithm.name == edge::NAME && problem.edge.is_none() && problem.contention != Contention::Off {
        let message = format!("{} does not plan contention {}; auto does", edge::NAME, problem.contention);
        return Err(Error::Unsupported(message));
    }
    if problem.cold.is_some() && objective != Objective::Latency {
        let message = format!("a cold start is for one input, objective latency, not {objective}");
        return Err(Error::Unsupported(message));
    }
    if problem.nodes.is_empty() {
        return Ok(empty_plan(problem, objective, algorithm, options));
    }
    let options = &options.named(algorithm.name);
    let (solution, moves) = if bus::is_needed(problem, objective) {
        let bus::Answer { timed, bound } = bus::solve(problem, objective, algorithm, options)?;
        (Solution { schedule: timed.schedule, bound: Some(bound) }, Some((timed.transfers, timed.copies)))
    } else {
        let solved = problem.check_for(objective).and_then(|()| (algorithm.solver)(problem, objective, options));
        let mut solution = solved.map_err(|error| infeasible::explain(problem, objective, options, error))?;
        let proven = solution.bound.into_iter().chain(known_bound(problem, objective)?);
        solution.bound = proven.reduce(Bound::or);
        (solution, None)
    };
    // A portfolio has said which part it took its plan from.
    if algorithm.name != DEFAULT_ALGORITHM {
        options.watch.plan(solution.schedule.value());
    }
    let bound = solution.bound.unwrap_or_else(Bound::none);
    let mut plan = Plan::new(problem, algorithm.name, solution.schedule, bound);
    (plan.transfers, plan.copies) = moves.unwrap_or_default();
    if objective == Objective::Pipeline {
        plan.pipeline_cost = options.pipeline_cost.map(|cost| cost.name().to_owned());
        plan.shared_devices = options.shared_devices;
        plan.splits = options.splits;
    }
    if algorithm.effort == Effort::Limited {
        plan.seed = options.seed;
        plan.limit = options.limit;
    }
    check(problem, &plan, options)?;
    Ok(plan)
}

/// Plan of a problem without tasks, such as a model that folds to constants: takes no time, which is optimal.
fn empty_plan(problem: &Problem, objective: Objective, algorithm: &Algorithm, options: &Options) -> Plan {
    let schedule = match objective {
        Objective::Latency => Schedule::Latency { device: vec![], start: vec![], makespan: 0.0 },
        Objective::Batch => Schedule::Batch { batches: vec![], makespan: 0.0 },
        Objective::Pipeline if problem.edge.is_some() => Schedule::Edge { place: vec![], period: 0.0 },
        Objective::Pipeline => {
            let block_device = problem.mtpp.is_none().then(Vec::new);
            let stages = Some(Stages { block_device, order: Some(vec![]) });
            Schedule::Pipeline { block: vec![], k: 0, bottleneck: 0.0, stages }
        }
    };
    let mut plan = Plan::new(problem, algorithm.name, schedule, Bound::new(0.0, "no tasks"));
    if objective == Objective::Pipeline {
        plan.pipeline_cost = options.pipeline_cost.map(|cost| cost.name().to_owned());
        (plan.shared_devices, plan.splits) = (options.shared_devices, options.splits);
    }
    plan
}

/// The best bound that holds whatever the algorithm was.
fn known_bound(problem: &Problem, objective: Objective) -> Result<Option<Bound>, Error> {
    if objective == Objective::Pipeline {
        return Ok(None);
    }
    Ok(Some(bounds::best(&Instance::new(problem, objective)?)))
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn effort_is_in_proportion_to_the_gap() {
        let plain = Options::default();
        let trials = |options: &Options, value: f64, bound: f64| options.for_gap(value, bound).worth(100_000);
        assert_eq!(trials(&plain, 100.0, 20.0), 100_000);
        assert_eq!(trials(&plain, 100.0, 60.0), 100_000);
        assert_eq!(trials(&plain, 100.0, 90.0), 25_000);
        assert_eq!(trials(&plain, 100.0, 99.9), 2_000);
        assert_eq!(trials(&plain, 0.0, 0.0), 2_000);
        // Limits are what the user says.
        let limited = Options { limit: Some(Limit::Iterations(7)), ..Options::default() };
        assert_eq!(trials(&limited, 100.0, 99.9), 100_000);
    }
}
