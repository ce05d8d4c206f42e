//! A plan as code generation reads it: its steps, and the graph of each stage.

use crate::{
    graph::{self, Graph},
    target::Target,
};
use divi_runtime::{
    bundle::{Device, Layout, Objective, Port, Step, Task, Tensor, Value},
    prepare::Expression,
};
use std::path::Path;

/// A plan: its steps, and what each stage computes.
#[derive(Clone, Debug)]
pub struct Program {
    pub model: String,
    pub objective: Objective,
    pub devices: Vec<Device>,
    pub values: Vec<Value>,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
    pub stages: Vec<StageProgram>,
    pub steps: Vec<Step>,
    /// Constants of `values`.
    pub constants: Vec<(Expression, u64)>,
}

#[derive(Clone, Debug)]
pub struct StageProgram {
    pub name: String,
    /// An index of the program's devices.
    pub device: usize,
    pub graph: Graph,
    pub tasks: Vec<Task>,
}

#[derive(Clone)]
pub struct Options<'a> {
    pub target: Target,
    /// The folder that paths of weights are relative to.
    pub weights_folder: &'a Path,
    /// How the bundle refers to a file in that folder; `None` if it is to copy what it needs.
    pub refer: &'a dyn Fn(&str) -> Option<String>,
    /// The folder of the model's files, relative to the bundle's folder; empty if the bundle refers to none.
    pub model_folder: String,
}

/// A value as bundles describe it.
pub fn tensor(value: &graph::Value) -> Tensor {
    Tensor {
        dtype: value.dtype.name().into(),
        shape: value.shape.iter().map(|&size| size as u64).collect(),
        bytes: value.bytes(),
        layout: Layout::RowMajor,
    }
}
