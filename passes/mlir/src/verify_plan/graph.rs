//! Graph of tasks and tensors.

use super::{Findings, size, task::Task};
use crate::tasks::{Tasks, is_constant_value, reads};
use divi_dialect::Value;
use divi_planner::units::Bytes;
use rustc_hash::FxHashMap;

/// A task, or one of the model's inputs or outputs, which take no time and are on the host.
pub(super) enum Node<'m> {
    Input,
    Task(Task<'m>),
    Output,
}

impl<'m> Node<'m> {
    pub(super) fn task(&self) -> Option<&Task<'m>> {
        match self {
            Self::Task(task) => Some(task),
            Self::Input | Self::Output => None,
        }
    }
}

/// Value that is computed or an argument, and the nodes that read it.
pub(super) struct Tensor {
    pub(super) from: usize,
    /// Bytes for one input.
    pub(super) bytes: Bytes,
    pub(super) to: Vec<usize>,
}

/// Nodes in topological order.
#[derive(Default)]
pub(super) struct Graph<'m> {
    pub(super) nodes: Vec<Node<'m>>,
    pub(super) tensors: Vec<Tensor>,
    positions: FxHashMap<Value<'m>, usize>,
}

impl<'m> Graph<'m> {
    /// Builds the graph of a function whose tasks have decisions.
    pub(super) fn of(tasks: &Tasks<'m>, findings: &mut Findings) -> Self {
        let mut graph = Self::default();
        tasks.arguments.iter().for_each(|&argument| graph.input(argument));
        for &operation in &tasks.operations {
            let reads: Vec<_> = reads(operation).into_iter().filter(|&value| !is_constant_value(value)).collect();
            graph.task(Task::of(operation, findings), &reads);
        }
        tasks.returned.iter().for_each(|&value| graph.output(value));
        graph
    }

    pub(super) fn input(&mut self, argument: Value<'m>) {
        self.nodes.push(Node::Input);
        self.tensor(argument);
    }

    /// Adds a task with the values that it reads, each once, which must have been added before.
    pub(super) fn task(&mut self, task: Task<'m>, reads: &[Value<'m>]) {
        let results = task.operation.results();
        let node = self.nodes.len();
        self.nodes.push(Node::Task(task));
        reads.iter().for_each(|&value| self.read(value, node));
        results.into_iter().for_each(|result| self.tensor(result));
    }

    /// Adds a value that the model returns, unless it is a constant.
    pub(super) fn output(&mut self, value: Value<'m>) {
        if self.positions.contains_key(&value) {
            self.nodes.push(Node::Output);
            self.read(value, self.nodes.len() - 1);
        }
    }

    /// Makes a value an alias of a known one.
    pub(super) fn alias(&mut self, value: Value<'m>, known: Value<'m>) {
        if let Some(&tensor) = self.positions.get(&known) {
            self.positions.insert(value, tensor);
        }
    }

    /// Returns each task with its node.
    pub(super) fn tasks(&self) -> impl Iterator<Item = (usize, &Task<'m>)> {
        self.nodes.iter().enumerate().filter_map(|(node, kind)| Some((node, kind.task()?)))
    }

    /// Returns the tensor of a value.
    pub(super) fn tensor_of(&self, value: Value<'m>) -> Option<usize> {
        self.positions.get(&value).copied()
    }

    fn tensor(&mut self, value: Value<'m>) {
        self.positions.insert(value, self.tensors.len());
        let tensor = Tensor { from: self.nodes.len() - 1, bytes: size(value), to: vec![] };
        self.tensors.push(tensor);
    }

    fn read(&mut self, value: Value<'m>, node: usize) {
        if let Some(&tensor) = self.positions.get(&value) {
            let readers = &mut self.tensors[tensor].to;
            if readers.last() != Some(&node) {
                readers.push(node);
            }
        }
    }
}
