//! The peak memory of a set of tasks in an order on a device: one answer for the planner, which must not exceed what the
//! device has, and for the runtime, which allocates.
//!
//! What is in memory:
//!
//! - **Weights** all the time. A constant that several tasks read is there once.
//! - **Results** from the start of the task that writes them until the end of the last task of the set that reads them; a
//!   result that nobody reads while its task runs. Nothing is computed in place: operands and results of a task are there
//!   together while it runs.
//! - **Results that leave**, because a task outside the set reads them or the model returns them, until the very end: when
//!   their transfer is done is not known here. A caller that knows says so ([`Stay::leaves`]).
//! - **Arrivals**, which are read here and computed elsewhere (the model's inputs too), from the very start: a transfer may
//!   be early. A caller that knows says so ([`Stay::arrives`]). They go after their last reader in the set.
//! - **Scratch** while its task runs.
//!
//! A view shares the memory of what it is a view of, if the task that makes it is in the set; both are there as long as
//! either is. If that task ran elsewhere, the view arrives as a tensor of its own.

#[cfg(test)]
mod tests;

use crate::Bytes;

/// A tensor of a [`MemoryGraph`], by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorId(pub usize);

/// A constant of a [`MemoryGraph`], by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConstantId(pub usize);

/// A task of a [`MemoryGraph`], by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub usize);

/// An activation: an input of the model, or the result of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryTensor {
    pub bytes: Bytes,
    /// The tensor whose memory this one shares: an operand of the task that writes it.
    pub alias: Option<TensorId>,
    /// Whether the model returns it.
    pub is_output: bool,
}

/// What a task needs in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryTask {
    pub reads: Vec<TensorId>,
    pub writes: Vec<TensorId>,
    pub constants: Vec<ConstantId>,
    pub scratch: Bytes,
}

/// All tasks of a model, whichever device they run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryGraph {
    tensors: Vec<MemoryTensor>,
    constants: Vec<Bytes>,
    tasks: Vec<MemoryTask>,
    /// The task that writes each tensor; `None` for inputs of the model.
    producers: Vec<Option<TaskId>>,
    /// How often each tensor is read.
    reads: Vec<usize>,
}

/// When a tensor that crosses the set's border is on the device, as positions in the order; `None` is the conservative
/// answer. It cannot arrive later than its first reader starts, nor leave before its last one ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stay {
    /// The first task while which a tensor from elsewhere is there; else it is from the start.
    pub arrives: Option<usize>,
    /// The last task while which a tensor for elsewhere is there; else it is to the end.
    pub leaves: Option<usize>,
}

/// The moment at which most memory is in use, the first of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// Everything: the sum of the three below.
    pub bytes: Bytes,
    pub weights: Bytes,
    pub activations: Bytes,
    pub scratch: Bytes,
    /// The task that runs then; `None` if there are no tasks.
    pub at: Option<TaskId>,
}

/// What is wrong with a graph or an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    #[error("there is no task {}", .0.0)]
    NoSuchTask(TaskId),
    #[error("task {} names tensor {}, which does not exist", .task.0, .tensor.0)]
    NoSuchTensor { task: TaskId, tensor: TensorId },
    #[error("task {} names constant {}, which does not exist", .task.0, .constant.0)]
    NoSuchConstant { task: TaskId, constant: ConstantId },
    /// Two tasks, or one task twice, write the same tensor.
    #[error("tasks {} and {} both write tensor {}", .tasks[0].0, .tasks[1].0, .tensor.0)]
    WrittenTwice { tensor: TensorId, tasks: [TaskId; 2] },
    /// A tensor shares the memory of one that its task does not read.
    #[error(
        "tensor {} shares the memory of tensor {}, which is no operand of the task that writes it",
        .tensor.0, .alias.0
    )]
    AliasOfStranger { tensor: TensorId, alias: TensorId },
    /// A task is in the order twice.
    #[error("task {} is in the order twice", .0.0)]
    RunsTwice(TaskId),
    /// A task comes before the one whose result it reads.
    #[error("task {} reads tensor {} before task {}, which writes it: swap them", .task.0, .tensor.0, .producer.0)]
    ReadsBeforeWritten { task: TaskId, tensor: TensorId, producer: TaskId },
}

impl MemoryGraph {
    pub fn new(tensors: Vec<MemoryTensor>, constants: Vec<Bytes>, tasks: Vec<MemoryTask>) -> Result<Self, MemoryError> {
        let mut producers = vec![None; tensors.len()];
        let mut reads = vec![0; tensors.len()];
        for (task, MemoryTask { reads: operands, writes, constants: weights, .. }) in tasks.iter().enumerate() {
            let task = TaskId(task);
            if let Some(&tensor) = operands.iter().chain(writes).find(|tensor| tensor.0 >= tensors.len()) {
                return Err(MemoryError::NoSuchTensor { task, tensor });
            }
            if let Some(&constant) = weights.iter().find(|constant| constant.0 >= constants.len()) {
                return Err(MemoryError::NoSuchConstant { task, constant });
            }
            operands.iter().for_each(|tensor| reads[tensor.0] += 1);
            for &tensor in writes {
                if let Some(other) = producers[tensor.0].replace(task) {
                    return Err(MemoryError::WrittenTwice { tensor, tasks: [other, task] });
                }
            }
        }
        for (tensor, MemoryTensor { alias, .. }) in tensors.iter().enumerate() {
            let Some(alias) = *alias else { continue };
            let reads_it = |TaskId(task): TaskId| tasks[task].reads.contains(&alias);
            if !producers[tensor].is_some_and(reads_it) {
                return Err(MemoryError::AliasOfStranger { tensor: TensorId(tensor), alias });
            }
        }
        Ok(Self { tensors, constants, tasks, producers, reads })
    }

    /// The same graph for a batch of this many of its inputs, where every activation and all scratch grow in proportion.
    /// Weights do not. A graph whose tensors do not all grow so is made anew for each batch.
    pub fn at_batch(&self, batch: u64) -> Self {
        let mut graph = self.clone();
        graph.tensors.iter_mut().for_each(|tensor| tensor.bytes = tensor.bytes.times(batch));
        graph.tasks.iter_mut().for_each(|task| task.scratch = task.scratch.times(batch));
        graph
    }

    /// The peak of tasks that run on one device in this order, in time linear in the graph.
    pub fn peak(&self, order: &[TaskId]) -> Result<Peak, MemoryError> {
        self.peak_with(order, |_| Stay::default())
    }

    /// As [`peak`](Self::peak), for a caller who knows when tensors arrive and leave.
    pub fn peak_with(&self, order: &[TaskId], stay: impl Fn(TensorId) -> Stay) -> Result<Peak, MemoryError> {
        let set = Set::new(self, order)?;
        let weights = self.weights(order);
        let (mut comes, mut goes) = (vec![0u128; order.len()], vec![0u128; order.len()]);
        for Buffer { bytes, first, last } in set.buffers(self, order, stay)? {
            comes[first] += u128::from(bytes.0);
            goes[last] += u128::from(bytes.0);
        }
        let mut peak = Peak { bytes: weights, weights, ..Peak::default() };
        let mut live = 0;
        for (position, &at) in order.iter().enumerate() {
            live += comes[position];
            let activations = Bytes(u64::try_from(live).unwrap_or(u64::MAX));
            let scratch = self.tasks[at.0].scratch;
            let bytes = weights + activations + scratch;
            if peak.at.is_none() || bytes > peak.bytes {
                peak = Peak { bytes, weights, activations, scratch, at: Some(at) };
            }
            live -= goes[position];
        }
        Ok(peak)
    }

    /// Constants that tasks of the set read, each once.
    fn weights(&self, order: &[TaskId]) -> Bytes {
        let mut seen = vec![false; self.constants.len()];
        let constants = order.iter().flat_map(|task| &self.tasks[task.0].constants);
        constants.filter(|id| !std::mem::replace(&mut seen[id.0], true)).map(|id| self.constants[id.0]).sum()
    }
}

/// Memory that one tensor, or several that share it, occupy from the start of one task to the end of another.
#[derive(Clone, Copy)]
struct Buffer {
    bytes: Bytes,
    /// Positions in the order.
    first: usize,
    last: usize,
}

/// The tasks on the device.
struct Set {
    /// Whether each task of the graph is in it.
    contains: Vec<bool>,
    /// How often its tasks read each tensor of the graph.
    reads: Vec<usize>,
}

impl Set {
    fn new(graph: &MemoryGraph, order: &[TaskId]) -> Result<Self, MemoryError> {
        let mut set = Self { contains: vec![false; graph.tasks.len()], reads: vec![0; graph.tensors.len()] };
        for &task in order {
            match set.contains.get_mut(task.0) {
                None => return Err(MemoryError::NoSuchTask(task)),
                Some(true) => return Err(MemoryError::RunsTwice(task)),
                Some(contained) => *contained = true,
            }
            graph.tasks[task.0].reads.iter().for_each(|tensor| set.reads[tensor.0] += 1);
        }
        Ok(set)
    }

    /// Whether somebody else needs a tensor that a task of the set writes.
    fn leaves(&self, graph: &MemoryGraph, TensorId(tensor): TensorId) -> bool {
        graph.tensors[tensor].is_output || self.reads[tensor] < graph.reads[tensor]
    }

    fn buffers(
        &self,
        graph: &MemoryGraph,
        order: &[TaskId],
        stay: impl Fn(TensorId) -> Stay,
    ) -> Result<Vec<Buffer>, MemoryError> {
        let mut buffers: Vec<Buffer> = vec![];
        // Which buffer each tensor of the graph is in, once it is in any.
        let mut places: Vec<Option<usize>> = vec![None; graph.tensors.len()];
        for (position, &task) in order.iter().enumerate() {
            let MemoryTask { reads, writes, .. } = &graph.tasks[task.0];
            for &tensor in reads {
                let place = match (places[tensor.0], graph.producers[tensor.0]) {
                    (Some(place), _) => place,
                    (None, Some(producer)) if self.contains[producer.0] => {
                        return Err(MemoryError::ReadsBeforeWritten { task, tensor, producer });
                    }
                    (None, _) => {
                        let first = stay(tensor).arrives.unwrap_or(0).min(position);
                        buffers.push(Buffer { bytes: graph.tensors[tensor.0].bytes, first, last: position });
                        buffers.len() - 1
                    }
                };
                places[tensor.0] = Some(place);
                buffers[place].last = buffers[place].last.max(position);
            }
            for &tensor in writes {
                let MemoryTensor { bytes, alias, .. } = graph.tensors[tensor.0];
                let place = alias.and_then(|alias| places[alias.0]).unwrap_or_else(|| {
                    buffers.push(Buffer { bytes, first: position, last: position });
                    buffers.len() - 1
                });
                places[tensor.0] = Some(place);
                let buffer = &mut buffers[place];
                buffer.bytes = buffer.bytes.max(bytes);
                if self.leaves(graph, tensor) {
                    let end = order.len() - 1;
                    buffer.last = buffer.last.max(stay(tensor).leaves.map_or(end, |last| last.min(end)));
                }
            }
        }
        Ok(buffers)
    }
}
