//! What a problem does not say about itself, but people want to see.

use divi_planner::units::Micros;

/// Titles and kinds. All of it may be missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// What the report is called; without it, the problem's name.
    pub title: Option<String>,
    /// Of each task: `conv_bn_relu`.
    pub task_kinds: Vec<String>,
    /// Kind of each device, as in IR.
    pub device_kinds: Vec<String>,
    /// How many operators each task is made of.
    pub operators: Vec<usize>,
}

impl About {
    pub(crate) fn task_kind(&self, task: usize) -> &str {
        self.task_kinds.get(task).map_or("", String::as_str)
    }
}

/// What a part of a portfolio found, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Since the search began.
    pub seconds: f64,
    /// The algorithm, or what proves a bound.
    pub part: String,
    pub found: Found,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found {
    /// A plan of this value.
    Plan(Micros),
    /// A proof that no plan is better than this.
    Bound(Micros),
}
