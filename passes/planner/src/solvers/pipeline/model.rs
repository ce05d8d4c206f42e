//! The problem as pipelines see it: tasks that must share a block are one, tensors that never leave it are gone.

use crate::model::error::Error;
use crate::model::options::Options;
use crate::model::options::PipelineCost;
use crate::model::problem::{Pipeline, Problem};
use crate::model::units::{Bytes, BytesPerMicro, Micros};

use super::together::together;

/// A value that crosses from its block to others, unless all its readers are where it is made.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub(super) producer: u32,
    pub(super) readers: Vec<u32>,
    /// What it takes to bring it into a block or out of one.
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
    /// What each task needs only while it runs: scratch, and results that nobody else reads.
    pub(super) scratch: Vec<Bytes>,
}

impl Memory {
    /// What is alive while a task runs, whatever else is in its block. Of several nodes that are one task nothing is said:
    /// they run one after the other.
    pub(super) fn alive(&self, model: &Model, task: usize) -> Bytes {
        if model.nodes[task].len() > 1 {
            return 0.0;
        }
        let tensors = model.makes[task].iter().chain(&model.reads[task]);
        self.scratch[task] + tensors.map(|tensor| model.tensors[*tensor as usize].bytes).sum::<Bytes>()
    }

    /// Eq. (2) for a block whose tasks run in this order. A tensor from elsewhere is there from the start until its last
    /// reader; one made here until its last reader, or until the end where one is elsewhere.
    pub(super) fn overflow(&self, model: &Model, tasks: &[u32]) -> Micros {
        const ELSEWHERE: usize = usize::MAX;
        let mut step = vec![ELSEWHERE; model.tasks()];
        tasks.iter().enumerate().for_each(|(index, task)| step[*task as usize] = index);
        let mut change = vec![0.0; tasks.len() + 1];
        let mut held = 0.0;
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
        let mut peak: Bytes = 0.0;
        let mut live = 0.0;
        for change in change {
            live += change;
            peak = peak.max(live);
        }
        (held + peak - self.capacity).max(0.0) / self.bandwidth
    }
}

/// Equal stages. Tasks are numbered in an order in which each comes after those whose values it reads.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// At most so many blocks.
    pub(super) k: usize,
    pub(super) cost: PipelineCost,
    pub(super) work: Vec<Micros>,
    pub(super) tensors: Vec<Tensor>,
    /// The tensors that each task makes, and reads.
    pub(super) makes: Vec<Vec<u32>>,
    pub(super) reads: Vec<Vec<u32>>,
    /// Each other task once.
    pub(super) before: Vec<Vec<u32>>,
    pub(super) after: Vec<Vec<u32>>,
    pub(super) memory: Option<Memory>,
    /// The problem's nodes that are each task, in the order in which they run.
    pub(super) nodes: Vec<Vec<usize>>,
}

impl Model {
    /// The problem's form has been checked.
    pub(super) fn new(problem: &Problem, view: &Pipeline, options: &Options) -> Result<Self, Error> {
        let k = stages(view, options)?;
        let nodes = together(problem, problem.colocate.as_deref().unwrap_or_default())?;
        let mut task_of = vec![0_u32; problem.nodes.len()];
        for (task, nodes) in nodes.iter().enumerate() {
            nodes.iter().for_each(|node| task_of[*node] = task as u32);
        }
        let sum = |figure: &dyn Fn(usize) -> f64| -> Vec<f64> {
            nodes.iter().map(|nodes| nodes.iter().map(|node| figure(*node)).sum()).collect()
        };
        let memory = view.memory.map(|capacity| Memory {
            capacity,
            bandwidth: view.bandwidth,
            weight: sum(&|node| problem.nodes[node].weight),
            scratch: sum(&|node| problem.nodes[node].scratch),
        });
        let work = sum(&|node| view.work[node]);
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

    /// Tasks without tensors and with as much memory as they like.
    pub(super) fn plain(k: usize, cost: PipelineCost, work: Vec<Micros>, nodes: Vec<Vec<usize>>) -> Self {
        let none = vec![Vec::new(); nodes.len()];
        Self {
            k: k.min(nodes.len()),
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

    /// When all tensors are there.
    pub(super) fn tidy(&mut self) {
        for list in self.before.iter_mut().chain(&mut self.after) {
            list.sort_unstable();
            list.dedup();
        }
    }

    pub(super) fn add(&mut self, tensor: Tensor) {
        let producer = tensor.producer as usize;
        if tensor.readers.is_empty() {
            // It stays where it is; as long as its task runs it takes room.
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

    /// What a block costs (eq. 3), or the longer of what it does at the same time.
    pub(super) fn block_cost(&self, work: Micros, overflow: Micros, io: Micros) -> Micros {
        self.cost.of(work + overflow, io)
    }

    /// Each node's block, from each task's.
    pub(super) fn node_blocks(&self, block: &[u32]) -> Vec<usize> {
        let mut blocks = vec![0; self.nodes.iter().map(Vec::len).sum()];
        for (nodes, block) in self.nodes.iter().zip(block) {
            nodes.iter().for_each(|node| blocks[*node] = *block as usize);
        }
        blocks
    }
}

/// How many blocks there may be: what was asked for, else what the view says where it says one number.
fn stages(view: &Pipeline, options: &Options) -> Result<usize, Error> {
    let k = match (options.stages, view.k.as_slice()) {
        (Some(k), _) => k,
        (None, [k]) => *k,
        (None, several) => {
            let numbers: Vec<String> = several.iter().map(u32::to_string).collect();
            let message = format!("how many stages? the problem's view has k = [{}]; say which", numbers.join(", "));
            return Err(Error::Unsupported(message));
        }
    };
    if k == 0 {
        return Err(Error::Unsupported("a pipeline has at least one stage, not 0".to_owned()));
    }
    Ok(k as usize)
}
