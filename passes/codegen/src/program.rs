//! Input of code generation: the steps of a plan, and the graph of each stage.

use crate::{
    graph::{self, Graph},
    target::Target,
};
use divi_runtime::{
    bundle::{Device, Layout, Objective, Port, Step, Task, TaskResult, Tensor, Value},
    prepare::Expression,
};
use std::path::Path;

/// A plan with the graphs of its stages.
#[derive(Clone, Debug)]
pub struct Program {
    /// Name of the model.
    pub model: String,
    /// Objective of the plan, with predicted value and bound.
    pub objective: Objective,
    /// Devices of the plan.
    pub devices: Vec<Device>,
    /// Values at stage boundaries, one for each device that holds them.
    pub values: Vec<Value>,
    /// Inputs of the model.
    pub inputs: Vec<Port>,
    /// Outputs of the model.
    pub outputs: Vec<Port>,
    /// Outputs that are results of tasks.
    pub task_results: Vec<TaskResult>,
    /// Stages, which launches refer to by index.
    pub stages: Vec<StageProgram>,
    /// Launches, transfers, slices and gathers of the plan, in topological order.
    pub steps: Vec<Step>,
    /// Expressions and sizes in bytes of the constants that `values` refer to by index.
    pub constants: Vec<(Expression, u64)>,
}

/// Loss of a node that was planned for.
#[derive(Clone, Debug)]
pub struct Loss {
    /// Index of the node.
    pub node: usize,
    /// Program for the other nodes, or the reason why there is none.
    pub program: Result<Program, String>,
}

/// A stage to compile.
#[derive(Clone, Debug)]
pub struct StageProgram {
    /// Name of the stage.
    pub name: String,
    /// Index into the program's devices.
    pub device: usize,
    /// Operators of the stage.
    pub graph: Graph,
    /// Tasks of the plan that the stage consists of.
    pub tasks: Vec<Task>,
}

/// Options of [`crate::write`].
#[derive(Clone)]
pub struct Options<'a> {
    /// Processor that CPU code is generated for.
    pub target: Target,
    /// Folder that paths of weights are relative to.
    pub weights_folder: &'a Path,
    /// Returns the path by which the bundle refers to a file in that folder; `None` if it must copy the contents.
    pub refer: &'a dyn Fn(&str) -> Option<String>,
    /// Folder of the model's files, relative to the bundle's folder; empty if the bundle refers to none.
    pub model_folder: String,
}

/// Returns the row-major tensor description of a value in the bundle format.
pub fn tensor(value: &graph::Value) -> Tensor {
    Tensor {
        dtype: value.dtype.name().into(),
        shape: value.shape.iter().map(|&size| size as u64).collect(),
        bytes: value.bytes(),
        layout: Layout::RowMajor,
    }
}
