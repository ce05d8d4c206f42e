//! Which task reads what of which.

use super::{Findings, task::Task};
use crate::{
    ir::{results, value_bytes},
    tasks::{Tasks, is_constant_value, reads},
};
use divi_planner::units::Bytes;
use mlir_sys::*;
use rustc_hash::FxHashMap;
use std::ffi::c_void;

/// A task, or one of the model's inputs or outputs: these take no time, and are on the host.
pub(super) enum Node {
    Input,
    Task(Task),
    Output,
}

impl Node {
    pub(super) fn task(&self) -> Option<&Task> {
        match self {
            Self::Task(task) => Some(task),
            Self::Input | Self::Output => None,
        }
    }
}

/// A value that is computed or given, and the nodes that read it.
pub(super) struct Tensor {
    pub(super) from: usize,
    /// For one input.
    pub(super) bytes: Bytes,
    pub(super) to: Vec<usize>,
}

/// Nodes in an order in which they can run.
#[derive(Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    pub(super) tensors: Vec<Tensor>,
    positions: FxHashMap<*const c_void, usize>,
}

impl Graph {
    /// Of a function whose tasks have decisions.
    pub(super) fn of(tasks: &Tasks, findings: &mut Findings) -> Self {
        let mut graph = Self::default();
        tasks.arguments.iter().for_each(|&argument| graph.input(argument));
        for &operation in &tasks.operations {
            let reads: Vec<_> = reads(operation).into_iter().filter(|&value| !is_constant_value(value)).collect();
            graph.task(Task::of(operation, findings), &reads);
        }
        tasks.returned.iter().for_each(|&value| graph.output(value));
        graph
    }

    pub(super) fn input(&mut self, argument: MlirValue) {
        self.nodes.push(Node::Input);
        self.tensor(argument);
    }

    /// The values are those that it reads, each once, as they were made known.
    pub(super) fn task(&mut self, task: Task, reads: &[MlirValue]) {
        let results = results(task.operation);
        let node = self.nodes.len();
        self.nodes.push(Node::Task(task));
        reads.iter().for_each(|&value| self.read(value, node));
        results.into_iter().for_each(|result| self.tensor(result));
    }

    /// A value that the model returns. A constant is there anyway.
    pub(super) fn output(&mut self, value: MlirValue) {
        if self.positions.contains_key(&value.ptr) {
            self.nodes.push(Node::Output);
            self.read(value, self.nodes.len() - 1);
        }
    }

    /// Another value that stands for one that is known.
    pub(super) fn alias(&mut self, value: MlirValue, known: MlirValue) {
        if let Some(&tensor) = self.positions.get(&known.ptr) {
            self.positions.insert(value.ptr, tensor);
        }
    }

    /// Each task with its node.
    pub(super) fn tasks(&self) -> impl Iterator<Item = (usize, &Task)> {
        self.nodes.iter().enumerate().filter_map(|(node, kind)| Some((node, kind.task()?)))
    }

    /// The tensor that a value is.
    pub(super) fn tensor_of(&self, value: MlirValue) -> Option<usize> {
        self.positions.get(&value.ptr).copied()
    }

    fn tensor(&mut self, value: MlirValue) {
        self.positions.insert(value.ptr, self.tensors.len());
        let tensor = Tensor { from: self.nodes.len() - 1, bytes: value_bytes(value) as f64, to: vec![] };
        self.tensors.push(tensor);
    }

    fn read(&mut self, value: MlirValue, node: usize) {
        if let Some(&tensor) = self.positions.get(&value.ptr) {
            let readers = &mut self.tensors[tensor].to;
            if readers.last() != Some(&node) {
                readers.push(node);
            }
        }
    }
}
