//! What one run of a driver keeps beside the module: the problem, the plan, and how it was found.

use crate::{cost::Posed, partition::node_names};
use divi_planner::{News, Plan, Problem, Watch};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

/// What a solver told, and when.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub seconds: f64,
    pub news: News,
}

/// A driver makes one and hands it to the passes that plan; passes that MLIR makes from text have none.
#[derive(Default)]
pub struct Session {
    /// Who else is told while a solver works.
    progress: Option<Watch>,
    events: Arc<Mutex<Vec<Event>>>,
    planned: Option<Planned>,
}

/// The problem that a module posed, and its plan.
pub struct Planned {
    pub problem: Problem,
    pub plan: Plan,
    /// What each node is: the kind of a task; `input` or `output`.
    pub kinds: Vec<String>,
    /// The operators that each node was made of, by name.
    pub members: Vec<Vec<String>>,
    /// How it was planned.
    pub options: divi_planner::Options,
}

impl Planned {
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
    pub fn new(progress: Option<Watch>) -> Self {
        Self { progress, ..Self::default() }
    }

    pub fn planned_module(&self) -> Option<&Planned> {
        self.planned.as_ref()
    }

    /// What solvers told so far.
    pub fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps what a solver tells.
    pub(crate) fn watch(&self) -> Watch {
        let (events, progress, started) = (Arc::clone(&self.events), self.progress.clone(), Instant::now());
        Watch::new(move |news| {
            let event = Event { seconds: started.elapsed().as_secs_f64(), news };
            events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
            progress.iter().for_each(|progress| progress.tell(news));
        })
    }

    pub(crate) fn planned(&mut self, posed: Posed, plan: Plan, options: divi_planner::Options) {
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
        self.planned = Some(Planned { problem: posed.problem, plan, kinds, members, options });
    }

    /// A later phase has made another plan of it.
    pub(crate) fn replanned(&mut self, plan: Plan) {
        if let Some(planned) = &mut self.planned {
            planned.plan = plan;
        }
    }
}
