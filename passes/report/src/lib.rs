//! What people look at: a plan as a timeline, as a graph, as text, and as one page to open in a browser. No MLIR here.
//!
//! [`Timeline`] lays a plan out in time; [`Report`] shows it.

mod about;
mod dot;
pub mod explain;
mod html;
mod labels;
mod layout;
mod order;
mod palette;
mod progress;
mod summary;
mod svg;
mod text;
mod timeline;

use divi_planner::{Error, Plan, Problem};

pub use about::{About, Event, Found};
pub use progress::Progress;
pub use timeline::{DeviceUse, Handover, Launch, LinkUse, Memory, StageCost, Timeline, Transfer, Way};

/// A plan for a problem, ready to be shown.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    problem: &'a Problem,
    plan: &'a Plan,
    timeline: Timeline,
    about: About,
    history: Vec<Event>,
}

impl<'a> Report<'a> {
    /// Lays the plan out in time; or says what keeps it from being for this problem. Whether it holds is the verifier's
    /// to say.
    pub fn new(problem: &'a Problem, plan: &'a Plan) -> Result<Self, Error> {
        let timeline = Timeline::of(problem, plan)?;
        Ok(Self { problem, plan, timeline, about: About::default(), history: Vec::new() })
    }

    /// With titles and kinds.
    pub fn about(self, about: About) -> Self {
        Self { about, ..self }
    }

    /// With what was found on the way to the plan, by time.
    pub fn history(self, history: Vec<Event>) -> Self {
        Self { history, ..self }
    }

    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// A few lines for the terminal: one a device, then the value with its proof, then transfers.
    pub fn summary(&self, colours: bool) -> String {
        summary::text(self, colours)
    }

    /// What the summary says, for programs.
    pub fn summary_json(&self) -> serde_json::Value {
        summary::json(self)
    }

    /// The timeline as an SVG image.
    pub fn svg(&self) -> String {
        svg::draw(self)
    }

    /// The graph for Graphviz, coloured by device.
    pub fn dot(&self) -> String {
        dot::draw(self)
    }

    /// All of it as one page that needs nothing else.
    pub fn html(&self) -> String {
        html::page(self)
    }

    fn title(&self) -> &str {
        self.about.title.as_deref().unwrap_or(&self.problem.name)
    }

    fn task_name(&self, task: usize) -> String {
        match self.problem.nodes.get(task).and_then(|node| node.name.clone()) {
            Some(name) => name,
            None => format!("task {task}"),
        }
    }

    /// None of a pipeline's equal devices, which are not the problem's.
    fn device_kind(&self, device: usize) -> &str {
        let equal = self.problem.devices.get(device).map(|device| &device.name)
            != self.timeline.devices.get(device).map(|device| &device.name);
        self.about.device_kinds.get(device).filter(|_| !equal).map_or("", String::as_str)
    }

    /// Of each task, as short as it can be told apart.
    fn labels(&self) -> Vec<String> {
        let names: Vec<String> = (0..self.problem.nodes.len()).map(|task| self.task_name(task)).collect();
        labels::labels(&names)
    }

    /// The devices of each task, ascending: several where a queue is shared out.
    fn places(&self) -> Vec<Vec<usize>> {
        let mut places = vec![Vec::new(); self.problem.nodes.len()];
        for launch in &self.timeline.launches {
            places[launch.task].push(launch.device);
        }
        places.iter_mut().for_each(|place| place.sort_unstable());
        places
    }
}
