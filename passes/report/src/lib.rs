//! Presentation of plans: timeline, graph, terminal summary, and a self-contained HTML page. Independent of MLIR.
//!
//! [`Timeline`] computes the times that a plan implies; [`Report`] renders them.

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

/// A plan for a problem with its presentation data.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    problem: &'a Problem,
    plan: &'a Plan,
    timeline: Timeline,
    about: About,
    history: Vec<Event>,
}

impl<'a> Report<'a> {
    /// Computes the plan's timeline. Returns an error if the plan does not match the problem; its validity is checked by
    /// the planner's verifier only.
    pub fn new(problem: &'a Problem, plan: &'a Plan) -> Result<Self, Error> {
        let timeline = Timeline::of(problem, plan)?;
        Ok(Self { problem, plan, timeline, about: About::default(), history: Vec::new() })
    }

    /// Sets titles and kinds.
    pub fn about(self, about: About) -> Self {
        Self { about, ..self }
    }

    /// Sets the events of the search, sorted by time.
    pub fn history(self, history: Vec<Event>) -> Self {
        Self { history, ..self }
    }

    /// Returns the timeline.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Returns the terminal summary: one line per device, then the objective with its bound, then transfers.
    pub fn summary(&self, colours: bool) -> String {
        summary::text(self, colours)
    }

    /// Returns the contents of the summary as JSON.
    pub fn summary_json(&self) -> serde_json::Value {
        summary::json(self)
    }

    /// Draws the timeline as an SVG image.
    pub fn svg(&self) -> String {
        svg::draw(self)
    }

    /// Returns the graph in Graphviz format, colored by device.
    pub fn dot(&self) -> String {
        dot::draw(self)
    }

    /// Returns the report as one self-contained page.
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

    /// Returns the kind of a device; empty for the homogeneous devices of a pipeline, which are not in the problem.
    fn device_kind(&self, device: usize) -> &str {
        let equal = self.problem.devices.get(device).map(|device| &device.name)
            != self.timeline.devices.get(device).map(|device| &device.name);
        self.about.device_kinds.get(device).filter(|_| !equal).map_or("", String::as_str)
    }

    /// Returns the shortest unique label of each task.
    fn labels(&self) -> Vec<String> {
        let names: Vec<String> = (0..self.problem.nodes.len()).map(|task| self.task_name(task)).collect();
        labels::labels(&names)
    }

    /// Returns the devices of each task, sorted; several if a queue of inputs is split.
    fn places(&self) -> Vec<Vec<usize>> {
        let mut places = vec![Vec::new(); self.problem.nodes.len()];
        for launch in &self.timeline.launches {
            places[launch.task].push(launch.device);
        }
        places.iter_mut().for_each(|place| place.sort_unstable());
        places
    }
}
