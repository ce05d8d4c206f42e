//! Whether a changed problem has a plan, as far as cheap algorithms tell; so often, and no longer.

use std::time::{Duration, Instant};

use crate::model::instance::Instance;
use crate::model::observer::Observer;
use crate::model::options::Options;
use crate::model::plan::{Limit, Objective};
use crate::model::problem::Problem;
use crate::solvers::baseline;
use crate::solvers::exact::{self, Limits};
use crate::solvers::pipeline;
use crate::solvers::split;

/// Number of changes that may be tried: fewer where there are more tasks and devices, as list schedulers try each task on each, so
/// that all trials together take about a second.
const MOST: usize = 120;
const LEAST: usize = 8;
const TRIED_PLACES: usize = 20_000;
/// How long it may take where seconds are limited. Of more tasks than this, a single trial may take longer.
const SECONDS: f64 = 1.0;
const TIMED_TASKS: usize = 5_000;
/// Up to so many tasks every placement can be looked at, with so much effort.
const FEW_TASKS: usize = 40;
const EXTENSIONS: u64 = 20_000;

pub(super) struct Trials {
    objective: Objective,
    left: usize,
    until: Option<Instant>,
    /// The longest so far.
    longest: Duration,
    /// Told of each trial, so that progress is shown.
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

    /// Whether there is a plan for sure. Without anything left to try with, nothing is.
    pub(super) fn is_possible(&mut self, problem: &Problem, options: &Options) -> bool {
        let now = Instant::now();
        if self.left == 0 || self.until.is_some_and(|until| now + self.longest > until) {
            return false;
        }
        self.left -= 1;
        self.observer.explored(1);
        let found = problem.check_form().is_ok()
            && problem.check_for(self.objective).is_ok()
            && match self.objective {
                Objective::Pipeline => pipeline::has_plan(problem, options),
                Objective::Latency => baseline::has_plan(problem, self.objective) || is_found(problem),
                Objective::Batch => baseline::has_plan(problem, self.objective),
            };
        self.longest = self.longest.max(now.elapsed());
        found
    }
}

/// Whether a search finds a schedule of few tasks.
fn is_found(problem: &Problem) -> bool {
    let Ok(instance) = Instance::new(problem, Objective::Latency) else { return false };
    let limits = Limits { extensions: EXTENSIONS, ..Limits::default() };
    problem.nodes.len() <= FEW_TASKS
        && split::solve(&instance, &limits, None).schedule.is_some_and(|found| exact::fits(&instance, &found))
}
