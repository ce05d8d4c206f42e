//! Peak memory of a sequence of tasks on a device. Shared by the planner, which must respect the device's capacity, and the
//! runtime, which allocates.
//!
//! Live ranges:
//!
//! - **Weights** are always live. A constant that several tasks read is counted once.
//! - **Results** are live from the start of the task that writes them to the end of the last task of the set that reads them;
//!   a result without readers, while its task runs. Nothing is computed in place: operands and results of a task are live
//!   together while it runs.
//! - **Outgoing results**, which a task outside the set reads or the model returns, are live to the end, because the end of
//!   their transfer is unknown here. Callers can limit it with [`LiveRange::last`].
//! - **Incoming tensors**, which are read here and computed elsewhere (including the model's inputs), are live from the start,
//!   because a transfer may be early. Callers can limit it with [`LiveRange::first`]. They end with their last reader in
//!   the set.
//! - **Scratch** is live while its task runs.
//!
//! A view shares the buffer of its operand if the task that creates it is in the set; the buffer is live while either is.
//! Otherwise the view is an incoming tensor with its own buffer.

#[cfg(test)]
mod tests;

use crate::Bytes;

/// Index of a tensor in a [`MemoryGraph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorId(pub usize);

/// Index of a constant in a [`MemoryGraph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConstantId(pub usize);

/// Index of a task in a [`MemoryGraph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub usize);

/// Activation: an input of the model, or the result of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryTensor {
    /// Size.
    pub bytes: Bytes,
    /// Tensor whose memory this one shares: an operand of the task that writes it.
    pub alias: Option<TensorId>,
    /// True if the model returns it.
    pub is_output: bool,
}

/// Memory accesses of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryTask {
    /// Operands.
    pub reads: Vec<TensorId>,
    /// Results.
    pub writes: Vec<TensorId>,
    /// Constant operands.
    pub constants: Vec<ConstantId>,
    /// Size of temporary buffers.
    pub scratch: Bytes,
}

/// All tasks of a model, on any device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryGraph {
    tensors: Vec<MemoryTensor>,
    constants: Vec<Bytes>,
    tasks: Vec<MemoryTask>,
    /// Task that writes each tensor; `None` for inputs of the model.
    producers: Vec<Option<TaskId>>,
    /// Number of reads of each tensor.
    reads: Vec<usize>,
}

/// Live range of a tensor that crosses the boundary of the set, as positions in the order; `None` is conservative. The range
/// always includes all readers in the set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveRange {
    /// Position of the first task during which an incoming tensor is live; `None` for the start.
    pub first: Option<usize>,
    /// Position of the last task during which an outgoing tensor is live; `None` for the end.
    pub last: Option<usize>,
}

/// Maximum memory use, at the first task that attains it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// Total: the sum of the three below.
    pub bytes: Bytes,
    /// Weights.
    pub weights: Bytes,
    /// Live activations.
    pub activations: Bytes,
    /// Scratch of the task.
    pub scratch: Bytes,
    /// Task at which the maximum is attained; `None` if there are no tasks.
    pub at: Option<TaskId>,
}

/// Error in a graph or an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// The order contains a task that the graph does not have.
    #[error("task {} does not exist", .0.0)]
    NoSuchTask(TaskId),
    /// A task accesses a tensor that the graph does not have.
    #[error("task {} names tensor {}, which does not exist", .task.0, .tensor.0)]
    NoSuchTensor {
        /// Task.
        task: TaskId,
        /// Missing tensor.
        tensor: TensorId,
    },
    /// A task reads a constant that the graph does not have.
    #[error("task {} names constant {}, which does not exist", .task.0, .constant.0)]
    NoSuchConstant {
        /// Task.
        task: TaskId,
        /// Missing constant.
        constant: ConstantId,
    },
    /// Two tasks, or one task twice, write the same tensor.
    #[error("tasks {} and {} both write tensor {}", .tasks[0].0, .tasks[1].0, .tensor.0)]
    WrittenTwice {
        /// Tensor.
        tensor: TensorId,
        /// Tasks that write it.
        tasks: [TaskId; 2],
    },
    /// A tensor shares the memory of one that its task does not read.
    #[error(
        "tensor {} shares the memory of tensor {}, which is not an operand of the task that writes it",
        .tensor.0, .alias.0
    )]
    AliasOfNonOperand {
        /// Tensor.
        tensor: TensorId,
        /// Tensor whose memory it shares.
        alias: TensorId,
    },
    /// The order contains a task twice.
    #[error("task {} is in the order twice", .0.0)]
    RunsTwice(TaskId),
    /// A task precedes the one whose result it reads.
    #[error("task {} reads tensor {} before task {}, which writes it: swap them", .task.0, .tensor.0, .producer.0)]
    ReadsBeforeWritten {
        /// Task that reads.
        task: TaskId,
        /// Tensor.
        tensor: TensorId,
        /// Task that writes.
        producer: TaskId,
    },
}

impl MemoryGraph {
    /// Creates a graph; `constants` are the sizes of the constants.
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
                return Err(MemoryError::AliasOfNonOperand { tensor: TensorId(tensor), alias });
            }
        }
        Ok(Self { tensors, constants, tasks, producers, reads })
    }

    /// Returns the graph for a batch of `batch` inputs, in which all activations and scratch, but not weights, grow
    /// proportionally. Not for graphs whose tensors do not all grow proportionally.
    pub fn at_batch(&self, batch: u64) -> Self {
        let mut graph = self.clone();
        graph.tensors.iter_mut().for_each(|tensor| tensor.bytes = tensor.bytes.times(batch));
        graph.tasks.iter_mut().for_each(|task| task.scratch = task.scratch.times(batch));
        graph
    }

    /// Returns the peak of tasks that run on one device in this order. Takes time linear in the size of the graph.
    pub fn peak(&self, order: &[TaskId]) -> Result<Peak, MemoryError> {
        self.peak_with(order, |_| LiveRange::default())
    }

    /// Returns the peak like [`peak`](Self::peak), given the live ranges of incoming and outgoing tensors.
    pub fn peak_with(&self, order: &[TaskId], live_range: impl Fn(TensorId) -> LiveRange) -> Result<Peak, MemoryError> {
        let set = Set::new(self, order)?;
        let weights = self.weights(order);
        let (mut allocated, mut freed) = (vec![0u128; order.len()], vec![0u128; order.len()]);
        for Buffer { bytes, first, last } in set.buffers(self, order, live_range)? {
            allocated[first] += u128::from(bytes.0);
            freed[last] += u128::from(bytes.0);
        }
        let mut peak = Peak { bytes: weights, weights, ..Peak::default() };
        let mut live = 0;
        for (position, &at) in order.iter().enumerate() {
            live += allocated[position];
            let activations = Bytes(u64::try_from(live).unwrap_or(u64::MAX));
            let scratch = self.tasks[at.0].scratch;
            let bytes = weights + activations + scratch;
            if peak.at.is_none() || bytes > peak.bytes {
                peak = Peak { bytes, weights, activations, scratch, at: Some(at) };
            }
            live -= freed[position];
        }
        Ok(peak)
    }

    /// Returns the size of the constants that tasks of the set read, each counted once.
    fn weights(&self, order: &[TaskId]) -> Bytes {
        let mut seen = vec![false; self.constants.len()];
        let constants = order.iter().flat_map(|task| &self.tasks[task.0].constants);
        constants.filter(|id| !std::mem::replace(&mut seen[id.0], true)).map(|id| self.constants[id.0]).sum()
    }
}

/// Memory of one tensor, or of several that share it, with its live range.
#[derive(Clone, Copy)]
struct Buffer {
    bytes: Bytes,
    /// Position of the first task in the order.
    first: usize,
    /// Position of the last task in the order.
    last: usize,
}

/// Tasks on the device.
struct Set {
    /// Membership, by task of the graph.
    contains: Vec<bool>,
    /// Number of reads of each tensor by tasks of the set.
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

    /// Returns true if a tensor that a task of the set writes is outgoing.
    fn leaves(&self, graph: &MemoryGraph, TensorId(tensor): TensorId) -> bool {
        graph.tensors[tensor].is_output || self.reads[tensor] < graph.reads[tensor]
    }

    fn buffers(
        &self,
        graph: &MemoryGraph,
        order: &[TaskId],
        live_range: impl Fn(TensorId) -> LiveRange,
    ) -> Result<Vec<Buffer>, MemoryError> {
        let mut buffers: Vec<Buffer> = vec![];
        // Index of the buffer of each tensor; `None` before its first use.
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
                        let first = live_range(tensor).first.unwrap_or(0).min(position);
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
                    buffer.last = buffer.last.max(live_range(tensor).last.map_or(end, |last| last.min(end)));
                }
            }
        }
        Ok(buffers)
    }
}
