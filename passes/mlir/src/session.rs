//! What one run of a driver keeps beside the module: the problem, the plan, and how it was found.

use crate::{cost::Posed, node_names::node_names};
use divi_planner::{Observer, Plan, Problem, SolverEvent};
use std::{
    any::Any,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

/// Shows how a solver gets on: who is told, and what is dropped when it is done.
type Line = Box<dyn Fn() -> Option<(Observer, Box<dyn Any>)>>;

/// A driver makes one and hands it to the passes that plan; passes that MLIR makes from text have none.
#[derive(Default)]
pub struct Session {
    /// What the model is called.
    pub title: String,
    line: Option<Line>,
    events: Arc<Mutex<Vec<(f64, SolverEvent)>>>,
    planned: Option<Planned>,
}

/// The problem that a module posed, and its plan.
pub struct Planned {
    pub problem: Problem,
    /// As it was made: what is written, and can be replayed.
    pub plan: Plan,
    /// As its stages have it: what is shown.
    pub staged: Plan,
    /// What each node is: the kind of a task; `input` or `output`.
    pub kinds: Vec<String>,
    /// Kind of each device.
    pub device_kinds: Vec<String>,
    /// The operators that each node was made of, by name.
    pub members: Vec<Vec<String>>,
    /// How it was planned.
    pub options: divi_planner::Options,
}

impl Planned {
    /// How many operators each node was made of; the model's inputs and outputs of none.
    pub fn operators(&self) -> Vec<usize> {
        let count = |(members, kind): (&Vec<String>, &String)| match kind.as_str() {
            "input" | "output" => 0,
            _ => members.len(),
        };
        self.members.iter().zip(&self.kinds).map(count).collect()
    }

    /// The node that an operator became part of, by its name or the end of it. The error says which names there are.
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
                Err(format!("there is no operator '{name}'; there are {}, …", names.join(", ")))
            }
            [first, ..] => {
                let first = &self.members[first][0];
                Err(format!("'{name}' fits {} tasks: give the whole name, as in '{first}'", found.len()))
            }
        }
    }
}

impl Session {
    /// One that shows how solvers get on.
    pub fn showing(line: impl Fn() -> Option<(Observer, Box<dyn Any>)> + 'static) -> Self {
        Self { line: Some(Box::new(line)), ..Self::default() }
    }

    pub fn planned_module(&self) -> Option<&Planned> {
        self.planned.as_ref()
    }

    /// What solvers told, each with the seconds since they began.
    pub fn events(&self) -> Vec<(f64, SolverEvent)> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A solver begins: whom it tells, and what to keep until it is done.
    pub(crate) fn begin(&self) -> (Observer, Option<Box<dyn Any>>) {
        let (told, line) = self.line.as_ref().and_then(|line| line()).unzip();
        let (events, started) = (Arc::clone(&self.events), Instant::now());
        let observer = Observer::new(move |event| {
            let seconds = started.elapsed().as_secs_f64();
            events.lock().unwrap_or_else(PoisonError::into_inner).push((seconds, event));
            told.iter().for_each(|told| told.notify(event));
        });
        (observer, line)
    }

    pub(crate) fn planned(&mut self, posed: Posed<'_>, plan: Plan, options: divi_planner::Options) {
        let mut members: Vec<Vec<String>> = vec![vec![]; posed.problem.nodes.len()];
        for (task, node) in posed.tasks.iter().zip(posed.first_task..) {
            members[node] = node_names(*task).into_iter().map(str::to_owned).collect();
        }
        for (members, node) in members.iter_mut().zip(&posed.problem.nodes) {
            if members.is_empty() {
                members.extend(node.name.clone());
            }
        }
        let outputs = posed.problem.nodes.len() - posed.first_task - posed.kinds.len();
        let mut kinds = vec!["input".to_owned(); posed.first_task];
        kinds.extend(posed.kinds);
        kinds.resize(kinds.len() + outputs, "output".to_owned());
        self.planned = Some(Planned {
            problem: posed.problem,
            staged: plan.clone(),
            plan,
            kinds,
            device_kinds: posed.device_kinds,
            members,
            options,
        });
    }

    /// A later phase has made stages of it.
    pub(crate) fn staged(&mut self, plan: Plan) {
        if let Some(planned) = &mut self.planned {
            planned.staged = plan;
        }
    }
}
