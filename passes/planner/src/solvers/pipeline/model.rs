//! Model of pipelines on equal devices: tasks that must share a block are merged, and tensors inside a task are
//! dropped.

use std::iter::Sum;

use crate::model::error::Error;
use crate::model::options::Options;
use crate::model::options::PipelineCost;
use crate::model::problem::{Pipeline, Problem};
use crate::model::units::{Bytes, BytesPerMicro, Micros};

use super::merge::merge_nodes;

/// A value with readers in other tasks; it crosses blocks unless all readers are in its producer's block.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub(super) producer: u32,
    pub(super) readers: Vec<u32>,
    /// Time to move it into or out of a block.
    pub(super) time: Micros,
    pub(super) bytes: Bytes,
}

/// Fast memory of a block, and what overflows it.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    pub(super) capacity: Bytes,
    pub(super) bandwidth: BytesPerMicro,
    /// Parameters of each task.
    pub(super) weight: Vec<Bytes>,
    /// Bytes that are live only while a task runs: scratch, and results without readers.
    pub(super) scratch: Vec<Bytes>,
}

impl Memory {
    /// Returns a lower bound on the live bytes while a task runs, for any block. Zero for a task of several nodes,
    /// which run one after the other.
    pub(super) fn alive(&self, model: &Model, task: usize) -> Bytes {
        if model.nodes[task].len() > 1 {
            return Bytes::ZERO;
        }
        let tensors = model.makes[task].iter().chain(&model.reads[task]);
        self.scratch[task] + tensors.map(|tensor| model.tensors[*tensor as usize].bytes).sum::<Bytes>()
    }

    /// Overflow by eq. (2) of a block whose tasks run in this order. A tensor from another block is live from the start
    /// until its last reader; one produced here until its last reader, or until the end if one is in another block.
    pub(super) fn overflow(&self, model: &Model, tasks: &[u32]) -> Micros {
        const ELSEWHERE: usize = usize::MAX;
        let mut step = vec![ELSEWHERE; model.tasks()];
        tasks.iter().enumerate().for_each(|(index, task)| step[*task as usize] = index);
        let mut change = vec![Bytes::ZERO; tasks.len() + 1];
        let mut held = Bytes::ZERO;
        for (index, &task) in tasks.iter().enumerate() {
            let task = task as usize;
            held += self.weight[task];
            change[index] += self.scratch[task];
            change[index + 1] -= self.scratch[task];
            for &tensor in &model.makes[task] {
                let tensor = &model.tensors[tensor as usize];
                change[index] += tensor.bytes;
                let last = tensor.readers.iter().map(|reader| step[*reader as usize]).max().unwrap_or(index);
                let last = if last == ELSEWHERE { tasks.len() - 1 } else { last };
                change[last + 1] -= tensor.bytes;
            }
            for &tensor in &model.reads[task] {
                let tensor = &model.tensors[tensor as usize];
                let here = tensor.readers.iter().map(|reader| step[*reader as usize]).filter(|step| *step != ELSEWHERE);
                if step[tensor.producer as usize] == ELSEWHERE && here.max() == Some(index) {
                    change[0] += tensor.bytes;
                    change[index + 1] -= tensor.bytes;
                }
            }
        }
        let mut peak = Bytes::ZERO;
        let mut live = Bytes::ZERO;
        for change in change {
            live += change;
            peak = peak.max(live);
        }
        (held + peak - self.capacity).max(Bytes::ZERO) / self.bandwidth
    }
}

/// Equal stages. Tasks are numbered in topological order.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// Maximum number of blocks.
    pub(super) k: usize,
    /// By block: part of its cost that counts, less than one if several devices take turns. Empty if all are one.
    pub(super) parts: Vec<f64>,
    pub(super) cost: PipelineCost,
    pub(super) work: Vec<Micros>,
    pub(super) tensors: Vec<Tensor>,
    /// Tensors that each task produces, and reads.
    pub(super) makes: Vec<Vec<u32>>,
    pub(super) reads: Vec<Vec<u32>>,
    /// Predecessors and successors, without duplicates.
    pub(super) before: Vec<Vec<u32>>,
    pub(super) after: Vec<Vec<u32>>,
    pub(super) memory: Option<Memory>,
    /// The problem's nodes of each task, in execution order.
    pub(super) nodes: Vec<Vec<usize>>,
}

impl Model {
    /// Builds the model of a problem whose form has been checked.
    pub(super) fn new(problem: &Problem, view: &Pipeline, options: &Options) -> Result<Self, Error> {
        let k = stages(view, options)?;
        let nodes = merge_nodes(problem, problem.colocate.as_deref().unwrap_or_default())?;
        let mut task_of = vec![0_u32; problem.nodes.len()];
        for (task, nodes) in nodes.iter().enumerate() {
            nodes.iter().for_each(|node| task_of[*node] = task as u32);
        }
        let memory = view.memory.map(|capacity| Memory {
            capacity,
            bandwidth: view.bandwidth,
            weight: sums(&nodes, |node| problem.nodes[node].weight),
            scratch: sums(&nodes, |node| problem.nodes[node].scratch),
        });
        let work = sums(&nodes, |node| view.work[node]);
        let mut model = Self { memory, ..Self::plain(k, options.pipeline_cost.unwrap_or_default(), work, nodes) };
        for tensor in problem.all_tensors() {
            let producer = task_of[tensor.from];
            let mut readers: Vec<u32> = tensor.to.iter().map(|to| task_of[*to]).filter(|to| *to != producer).collect();
            readers.sort_unstable();
            readers.dedup();
            model.add(Tensor { producer, readers, time: tensor.bytes / view.bandwidth, bytes: tensor.bytes });
        }
        model.tidy();
        Ok(model)
    }

    /// Returns a model without tensors and with unlimited memory.
    pub(super) fn plain(k: usize, cost: PipelineCost, work: Vec<Micros>, nodes: Vec<Vec<usize>>) -> Self {
        let none = vec![Vec::new(); nodes.len()];
        Self {
            k: k.min(nodes.len()),
            parts: Vec::new(),
            cost,
            work,
            tensors: Vec::new(),
            makes: none.clone(),
            reads: none.clone(),
            before: none.clone(),
            after: none,
            memory: None,
            nodes,
        }
    }

    /// Removes duplicate edges; called after the last tensor is added.
    pub(super) fn tidy(&mut self) {
        for list in self.before.iter_mut().chain(&mut self.after) {
            list.sort_unstable();
            list.dedup();
        }
    }

    pub(super) fn add(&mut self, tensor: Tensor) {
        let producer = tensor.producer as usize;
        if tensor.readers.is_empty() {
            // It stays in its block, and is live while its task runs.
            if let Some(memory) = &mut self.memory {
                memory.scratch[producer] += tensor.bytes;
            }
            return;
        }
        let index = self.tensors.len() as u32;
        self.makes[producer].push(index);
        self.after[producer].extend(&tensor.readers);
        for &reader in &tensor.readers {
            self.reads[reader as usize].push(index);
            self.before[reader as usize].push(tensor.producer);
        }
        self.tensors.push(tensor);
    }

    pub(super) fn tasks(&self) -> usize {
        self.work.len()
    }

    /// Returns the cost of a block: eq. (3), or the maximum of compute and transfers if they overlap.
    pub(super) fn block_cost(&self, work: Micros, overflow: Micros, io: Micros) -> Micros {
        self.cost.of(work + overflow, io)
    }

    /// Returns each node's block, from each task's.
    pub(super) fn node_blocks(&self, block: &[u32]) -> Vec<usize> {
        let mut blocks = vec![0; self.nodes.iter().map(Vec::len).sum()];
        for (nodes, block) in self.nodes.iter().zip(block) {
            nodes.iter().for_each(|node| blocks[*node] = *block as usize);
        }
        blocks
    }
}

/// Returns the maximum number of blocks: the option, or else the view's number if it is unique.
pub(super) fn stages(view: &Pipeline, options: &Options) -> Result<usize, Error> {
    let k = match (options.stages, view.k.as_slice()) {
        (Some(k), _) => k,
        (None, [k]) => *k,
        (None, several) => {
            let numbers: Vec<String> = several.iter().map(u32::to_string).collect();
            let message = format!(
                "the number of stages is ambiguous: the problem's view has k = [{}]; choose one with --k",
                numbers.join(", ")
            );
            return Err(Error::Unsupported(message));
        }
    };
    if k == 0 {
        return Err(Error::Unsupported("a pipeline has at least one stage, not 0".to_owned()));
    }
    Ok(k as usize)
}

/// Sums a figure over the nodes of each task.
fn sums<T: Sum>(tasks: &[Vec<usize>], figure: impl Fn(usize) -> T) -> Vec<T> {
    tasks.iter().map(|nodes| nodes.iter().map(|node| figure(*node)).sum()).collect()
}
