//! Presentation data that the problem does not contain: titles, kinds, search events.

use divi_planner::units::Micros;

/// Titles and kinds. Every field may be empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// Title of the report; defaults to the problem's name.
    pub title: Option<String>,
    /// Kind of each task, for instance `conv_bn_relu`.
    pub task_kinds: Vec<String>,
    /// Kind of each device, as in the IR.
    pub device_kinds: Vec<String>,
    /// Number of operators in each task.
    pub operators: Vec<usize>,
    /// Source of the tasks' times, for instance `estimated`.
    pub costs: Option<String>,
}

impl About {
    pub(crate) fn task_kind(&self, task: usize) -> &str {
        self.task_kinds.get(task).map_or("", String::as_str)
    }
}

/// Result of one member of a portfolio, with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Seconds since the search began.
    pub seconds: f64,
    /// Name of the algorithm or of the bounding procedure.
    pub part: String,
    /// The result.
    pub found: Found,
}

/// Kind and value of a search result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found {
    /// A plan with this objective value.
    Plan(Micros),
    /// A lower bound.
    Bound(Micros),
}
