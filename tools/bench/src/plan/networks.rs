//! Networks of the tables: instances of `test/problems` if available, otherwise generated.

use std::path::Path;

use divi_papers::generate::{Rwnn, rwnn};
use divi_planner::Problem;

use crate::files::read;

/// Parameters of a randomly wired network.
#[derive(Clone, Copy)]
pub(super) struct Network {
    pub(super) modules: usize,
    pub(super) channels: usize,
    pub(super) strong: bool,
    pub(super) inputs: u32,
}

impl Network {
    /// Returns the problem, and true if it was generated.
    pub(super) fn problem(&self) -> Result<(Problem, bool), String> {
        let Self { modules, channels, strong, inputs } = *self;
        let dependence = if strong { "sdep" } else { "wdep" };
        let name = format!("rwnn_ER_N10_m{modules}_c{channels}_{dependence}_s1");
        let file = match inputs {
            1 => format!("test/problems/rwnn/{name}.json"),
            _ => format!("test/problems/batch/{name}_L{inputs}.json"),
        };
        if Path::new(&file).exists() {
            return read(&file).map(|problem| (problem, false));
        }
        let network = Rwnn { modules, channels, strong, inputs, ..Rwnn::default() };
        rwnn(&network).map(|problem| (problem, true)).map_err(|error| error.to_string())
    }
}
