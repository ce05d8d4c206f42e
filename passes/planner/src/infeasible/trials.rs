//! Tests whether a changed problem has a plan, with cheap algorithms and within a limit.

use std::time::{Duration, Instant};

use crate::model::instance::Instance;
use crate::model::observer::Observer;
use crate::model::options::Options;
use crate::model::plan::{LaunchRule, Limit, Objective};
use crate::model::problem::Problem;
use crate::solvers::baseline;
use crate::solvers::exact::{self, Limits};
use crate::solvers::pipeline;
use crate::solvers::split;

/// Number of trials: fewer for more tasks and devices, as list schedulers try each task on each device, so that all
/// trials together take about a second.
const MOST: usize = 120;
const LEAST: usize = 8;
const TRIED_PLACES: usize = 20_000;
/// Time limit if seconds are limited. With more than [`TIMED_TASKS`] tasks a single trial may exceed it.
const SECONDS: f64 = 1.0;
const TIMED_TASKS: usize = 5_000;
/// Maximum number of tasks of an exhaustive search, and its effort.
const FEW_TASKS: usize = 40;
const EXTENSIONS: u64 = 20_000;

pub(super) struct Trials {
    objective: Objective,
    left: usize,
    until: Option<Instant>,
    /// Duration of the longest trial so far.
    longest: Duration,
    /// Notified of each trial, for progress displays.
    observer: Observer,
}

impl Trials {
    pub(super) fn new(problem: &Problem, objective: Objective, options: &Options) -> Self {
        let (tasks, places) = (problem.nodes.len(), problem.nodes.len() * problem.devices.len());
        let is_timed = matches!(options.limit, Some(Limit::Seconds(_)));
        Self {
            objective,
            left: if is_timed && tasks > TIMED_TASKS { 0 } else { (TRIED_PLACES / places.max(1)).clamp(LEAST, MOST) },
            until: is_timed.then(|| Instant::now() + Duration::from_secs_f64(SECONDS)),
            longest: Duration::ZERO,
            observer: options.observer.of("remedies"),
        }
    }

    fn may_have_plan(&self, problem: &Problem, options: &Options) -> bool {
        match self.objective {
            Objective::Pipeline => {
                let most = problem.largest_batch(options.max_batch);
                problem.check_up_to(self.objective, LaunchRule::One, most).is_ok()
            }
            Objective::Latency | Objective::Batch => problem.check_for(self.objective).is_ok(),
        }
    }

    /// Returns true if a plan was found. Always false once the limit is reached.
    pub(super) fn is_possible(&mut self, problem: &Problem, options: &Options) -> bool {
        let now = Instant::now();
        if self.left == 0 || self.until.is_some_and(|until| now + self.longest > until) {
            return false;
        }
        self.left -= 1;
        self.observer.explored(1);
        let found = problem.check_form().is_ok()
            && self.may_have_plan(problem, options)
            && match self.objective {
                Objective::Pipeline => pipeline::has_plan(problem, options),
                Objective::Latency => baseline::has_plan(problem, self.objective) || is_found(problem),
                Objective::Batch => baseline::has_plan(problem, self.objective),
            };
        self.longest = self.longest.max(now.elapsed());
        found
    }
}

/// Returns true if a search finds a schedule of a small problem.
fn is_found(problem: &Problem) -> bool {
    let Ok(instance) = Instance::new(problem, Objective::Latency) else { return false };
    let limits = Limits { extensions: EXTENSIONS, ..Limits::default() };
    problem.nodes.len() <= FEW_TASKS
        && split::solve(&instance, &limits, None).schedule.is_some_and(|found| exact::fits(&instance, &found))
}
