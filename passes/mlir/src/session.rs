//! State of one run of a driver beside the module: the problem, the plan, and the progress of solvers.

use crate::{cost::ModuleProblem, node_names::node_names};
use divi_planner::{Observer, Plan, Problem, SolverEvent};
use std::{
    any::Any,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

/// Starts a progress display: returns its observer, and a guard to drop when the solver is done.
type Progress = Box<dyn Fn() -> Option<(Observer, Box<dyn Any>)>>;

/// Created by a driver and passed to the passes that plan; passes that MLIR creates from text have none.
#[derive(Default)]
pub struct Session {
    /// Name of the model.
    pub title: String,
    progress: Option<Progress>,
    events: Arc<Mutex<Vec<(f64, SolverEvent)>>>,
    planned: Option<Planned>,
}

/// Planning problem of a module, and its plan.
pub struct Planned {
    /// Planning problem.
    pub problem: Problem,
    /// Plan as solved, which is written and can be replayed.
    pub plan: Plan,
    /// Plan after outlining, with the times of its stages, which is shown in reports.
    pub staged: Plan,
    /// Kind of each node: that of the task, or `input` or `output`.
    pub kinds: Vec<String>,
    /// Kind of each device.
    pub device_kinds: Vec<String>,
    /// Source of the costs: `measured`, `mostly measured`, `calibrated` or `estimated`, if it is known.
    pub costs: Option<&'static str>,
    /// Names of each node's operators.
    pub members: Vec<Vec<String>>,
    /// Options of the planner.
    pub options: divi_planner::Options,
}

impl Planned {
    /// Returns the number of operators of each node; 0 for the model's inputs and outputs.
    pub fn operators(&self) -> Vec<usize> {
        let count = |(members, kind): (&Vec<String>, &String)| match kind.as_str() {
            "input" | "output" => 0,
            _ => members.len(),
        };
        self.members.iter().zip(&self.kinds).map(count).collect()
    }

    /// Finds the node that contains an operator, by its name or a suffix of it. The error lists some names.
    pub fn node_named(&self, name: &str) -> Result<usize, String> {
        let find = |fits: &dyn Fn(&str) -> bool| -> Vec<usize> {
            let has = |node: &usize| self.members[*node].iter().any(|member| fits(member));
            (0..self.members.len()).filter(has).collect()
        };
        let exact = find(&|member| member == name);
        let found = if exact.is_empty() { find(&|member| member.ends_with(name)) } else { exact };
        match found[..] {
            [node] => Ok(node),
            [] => {
                let names: Vec<&str> = self.members.iter().flatten().take(5).map(String::as_str).collect();
                Err(format!("unknown operator '{name}'; expected one of {}, …", names.join(", ")))
            }
            [first, ..] => {
                let first = &self.members[first][0];
                Err(format!("'{name}' matches {} tasks: use the full name, such as '{first}'", found.len()))
            }
        }
    }
}

impl Session {
    /// Creates a session that displays the progress of solvers.
    pub fn showing(progress: impl Fn() -> Option<(Observer, Box<dyn Any>)> + 'static) -> Self {
        Self { progress: Some(Box::new(progress)), ..Self::default() }
    }

    /// Returns the planned module, if one has been planned.
    pub fn planned_module(&self) -> Option<&Planned> {
        self.planned.as_ref()
    }

    /// Returns the events of solvers, each with the seconds since the solver started.
    pub fn events(&self) -> Vec<(f64, SolverEvent)> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts observing a solver. Returns its observer, and a guard to keep until the solver is done.
    pub(crate) fn begin(&self) -> (Observer, Option<Box<dyn Any>>) {
        let (display, guard) = self.progress.as_ref().and_then(|progress| progress()).unzip();
        let (events, started) = (Arc::clone(&self.events), Instant::now());
        let observer = Observer::new(move |event| {
            let seconds = started.elapsed().as_secs_f64();
            events.lock().unwrap_or_else(PoisonError::into_inner).push((seconds, event));
            display.iter().for_each(|display| display.notify(event));
        });
        (observer, guard)
    }

    pub(crate) fn planned(&mut self, module_problem: ModuleProblem<'_>, plan: Plan, options: divi_planner::Options) {
        let mut members: Vec<Vec<String>> = vec![vec![]; module_problem.problem.nodes.len()];
        for (task, node) in module_problem.tasks.iter().zip(module_problem.first_task..) {
            members[node] = node_names(*task).into_iter().map(str::to_owned).collect();
        }
        for (members, node) in members.iter_mut().zip(&module_problem.problem.nodes) {
            if members.is_empty() {
                members.extend(node.name.clone());
            }
        }
        let outputs = module_problem.problem.nodes.len() - module_problem.first_task - module_problem.kinds.len();
        let mut kinds = vec!["input".to_owned(); module_problem.first_task];
        kinds.extend(module_problem.kinds);
        kinds.resize(kinds.len() + outputs, "output".to_owned());
        self.planned = Some(Planned {
            problem: module_problem.problem,
            staged: plan.clone(),
            plan,
            kinds,
            device_kinds: module_problem.device_kinds,
            costs: module_problem.cost_source.name(),
            members,
            options,
        });
    }

    /// Replaces the plan to show by the outlined one.
    pub(crate) fn staged(&mut self, plan: Plan) {
        if let Some(planned) = &mut self.planned {
            planned.staged = plan;
        }
    }
}
