//! Context in which operators are lowered to calls of kernels: values of a stage, where their bytes are, and calls.
//!
//! The context knows neither operators nor back ends: `ops`, `reorder` and the back ends add calls to it, and `stage` drives them.

mod calls;
mod hooks;
mod images;
mod order;

pub(crate) use calls::{Phase, Simt, SimtKernel, Way};
pub(crate) use hooks::Hooks;

use crate::{
    arena,
    error::Result,
    graph::{Constant, Graph, Id, Value},
    kernels::Kernels,
    layout::{Blocked, Halo, Layout},
    pool::Pool,
};
use calls::PendingCall;
use divi_onnx::{DType, Tensor};
use divi_runtime::{
    bundle::{Buffer, Call},
    prepare::Expression,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// Place of the bytes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Storage {
    /// Not assigned yet; defaults to the arena.
    Unplaced,
    /// An input of the stage.
    Input(usize),
    /// An output of the stage.
    Output(usize),
    /// A constant of the bundle.
    Constant(usize),
    /// All bytes of another value.
    Same(Id),
    /// Some bytes of another value, from an offset on.
    Part(Id, u64),
}

/// Context of the lowering of a stage.
pub(crate) struct Lowering<'a> {
    kernels: &'a mut Kernels,
    /// Kernels of the SIMT device that the stage is for.
    simt: Option<Simt<'a>>,
    pool: &'a mut Pool,
    values: Vec<Value>,
    storage: Vec<Storage>,
    calls: Vec<PendingCall>,
    /// Whether calls are made once, when the bundle is loaded.
    is_preparing: bool,
    task: usize,
    /// Images in blocks.
    layouts: FxHashMap<Id, Blocked>,
    /// The pixels that values are to have around them, if they are in blocks.
    halos: FxHashMap<Id, Halo>,
    /// Images of which threads have written some rows of all channels, rather than some channels of all rows.
    by_rows: FxHashSet<Id>,
    /// Dense copies of those in blocks, and copies in blocks of others.
    dense: FxHashMap<Id, Id>,
    blocked: FxHashMap<Id, Id>,
    /// Who reads a value, by position; what the stage hands on is read behind its last node.
    readers: FxHashMap<Id, Vec<usize>>,
    /// Values that others are written into.
    wholes: FxHashSet<Id>,
    /// What only copies to GPUs will read, and the form that it is handed on in.
    streamed: FxHashMap<Id, Layout>,
}

/// Calls of a stage, with the place of every buffer.
pub(crate) struct Lowered {
    /// Bytes of the arena.
    pub(crate) arena: u64,
    pub(crate) calls: Vec<Call>,
}

impl<'a> Lowering<'a> {
    /// With the values of a graph; nothing is placed yet, and nothing called.
    pub(crate) fn of(graph: &mut Graph, kernels: &'a mut Kernels, simt: Option<Simt<'a>>, pool: &'a mut Pool) -> Self {
        let Graph { nodes, outputs, .. } = &*graph;
        let mut readers: FxHashMap<Id, Vec<usize>> = FxHashMap::default();
        let reads = nodes.iter().enumerate().flat_map(|(i, node)| node.inputs.iter().flatten().map(move |&id| (id, i)));
        for (id, position) in reads.chain(outputs.iter().map(|&id| (id, nodes.len()))) {
            readers.entry(id).or_default().push(position);
        }
        let values = std::mem::take(&mut graph.values);
        Self {
            kernels,
            simt,
            pool,
            storage: vec![Storage::Unplaced; values.len()],
            values,
            calls: vec![],
            is_preparing: false,
            task: 0,
            layouts: FxHashMap::default(),
            halos: FxHashMap::default(),
            by_rows: FxHashSet::default(),
            dense: FxHashMap::default(),
            blocked: FxHashMap::default(),
            readers,
            wholes: FxHashSet::default(),
            streamed: FxHashMap::default(),
        }
    }

    // --- What is known of values --------------------------------------------------------------------------------------

    pub(crate) fn dtype(&self, id: Id) -> DType {
        self.values[id.0].dtype
    }

    pub(crate) fn shape(&self, id: Id) -> &[i64] {
        &self.values[id.0].shape
    }

    /// How many elements a value has.
    pub(crate) fn count(&self, id: Id) -> i64 {
        self.values[id.0].count()
    }

    /// The bytes that a value takes, as it lies in memory.
    fn bytes(&self, id: Id) -> u64 {
        self.layouts.get(&id).map_or_else(|| self.values[id.0].bytes(), |layout| layout.elements() as u64 * 4)
    }

    /// The elements of a small constant.
    pub(crate) fn tensor(&self, id: Id) -> Option<&Tensor> {
        self.values[id.0].constant.as_ref()?.tensor.as_ref()
    }

    /// The integers of a small constant.
    pub(crate) fn ints(&self, id: Id) -> Option<Vec<i64>> {
        self.tensor(id)?.ints()
    }

    /// The integers of an operand that must be known when code is generated.
    pub(crate) fn known_ints(&self, id: Id, what: &str) -> Result<Vec<i64>> {
        self.ints(id).ok_or_else(|| {
            divi_onnx::Error::new(format!("{what} must be constant: kernels are generated for fixed shapes"))
        })
    }

    /// How a constant is made, if the value is one.
    pub(crate) fn expression(&self, id: Id) -> Option<&Expression> {
        Some(&self.values[id.0].constant.as_ref()?.source)
    }

    /// Whether a value is the same for every request.
    pub(crate) fn is_constant(&self, id: Id) -> bool {
        match self.storage[id.0] {
            Storage::Constant(_) => true,
            Storage::Same(other) | Storage::Part(other, _) => self.is_constant(other),
            _ => self.values[id.0].constant.is_some(),
        }
    }

    /// Whether a GPU runs what is lowered now.
    pub(crate) fn is_simt(&self) -> bool {
        self.simt.is_some() && !self.is_preparing
    }

    /// How many neighbours one iteration computes where that is of use: on a GPU, each is a thread's.
    pub(crate) fn at_once(&self, neighbours: i64) -> i64 {
        if self.is_simt() { 1 } else { neighbours }
    }

    /// Elements of `f32` that a register holds.
    pub(crate) fn lanes(&self) -> usize {
        self.kernels.lanes()
    }

    /// Registers that kernels may use.
    pub(crate) fn registers(&self) -> usize {
        self.kernels.registers()
    }

    /// Whether a value is read by nodes at these positions only.
    pub(crate) fn is_read_only_by(&self, id: Id, positions: Range<usize>) -> bool {
        self.readers.get(&id).is_none_or(|readers| readers.iter().all(|reader| positions.contains(reader)))
    }

    // --- What lowering makes ------------------------------------------------------------------------------------------

    /// A value of which nobody else knows.
    pub(crate) fn temporary(&mut self, dtype: DType, shape: &[i64]) -> Id {
        self.push(Value { dtype, shape: shape.to_vec(), constant: None })
    }

    /// A constant that is computed from weights.
    pub(crate) fn constant(&mut self, dtype: DType, shape: &[i64], source: Expression) -> Id {
        self.push(Value { dtype, shape: shape.to_vec(), constant: Some(Constant { source, tensor: None }) })
    }

    fn push(&mut self, value: Value) -> Id {
        self.values.push(value);
        self.storage.push(Storage::Unplaced);
        Id(self.values.len() - 1)
    }

    /// Makes a result of an operand, whose bytes it has: nothing is computed.
    pub(crate) fn alias(&mut self, result: Id, of: Id) {
        self.storage[result.0] = Storage::Same(of);
    }

    /// Makes a value be written into a part of another one, from a byte on. Returns false if the value lies elsewhere already. Outputs of
    /// the stage are read behind its last node, and lie elsewhere.
    pub(crate) fn try_place_part(&mut self, part: Id, whole: Id, first: u64, node_count: usize) -> bool {
        self.wholes.insert(whole);
        let is_free = self.storage[part.0] == Storage::Unplaced
            && self.values[part.0].constant.is_none()
            && first.is_multiple_of(16)
            && self.is_read_only_by(part, 0..node_count);
        if is_free {
            self.storage[part.0] = Storage::Part(whole, first);
        }
        is_free
    }

    /// Makes a value that nothing has written yet a part of another one, from a byte on.
    pub(crate) fn place_in_part(&mut self, id: Id, whole: Id, first: u64) {
        self.storage[id.0] = Storage::Part(whole, first);
    }

    /// Makes a value be read from an input of the stage.
    pub(crate) fn place_at_input(&mut self, id: Id, input: usize) {
        self.storage[id.0] = Storage::Input(input);
    }

    /// Makes a value be written to an output of the stage.
    pub(crate) fn place_at_output(&mut self, id: Id, output: usize) {
        self.storage[id.0] = Storage::Output(output);
    }

    /// True if a value has no place yet, and no other value is written into it.
    pub(crate) fn is_unplaced(&self, id: Id) -> bool {
        self.storage[id.0] == Storage::Unplaced && !self.wholes.contains(&id)
    }

    /// Makes a result a constant.
    pub(crate) fn set_constant(&mut self, id: Id, constant: Constant) {
        self.values[id.0].constant = Some(constant);
    }

    /// Sets the task that the next calls belong to.
    pub(crate) fn set_task(&mut self, task: usize) {
        self.task = task;
    }

    /// Sets whether the next calls are made once, when the bundle is loaded.
    pub(crate) fn set_preparing(&mut self, is_preparing: bool) {
        self.is_preparing = is_preparing;
    }

    pub(crate) fn is_preparing(&self) -> bool {
        self.is_preparing
    }

    pub(crate) fn value(&self, id: Id) -> &Value {
        &self.values[id.0]
    }

    // --- Where things are ---------------------------------------------------------------------------------------------

    /// The value whose bytes a value has.
    pub(crate) fn root(&self, id: Id) -> Id {
        self.place(id).0
    }

    /// True if two values are views of one.
    pub(crate) fn share_bytes(&self, a: Id, b: Id) -> bool {
        self.root(a) == self.root(b)
    }

    /// The value whose bytes a value has, and the first of them that it has.
    fn place(&self, mut id: Id) -> (Id, u64) {
        let mut first = 0;
        loop {
            (id, first) = match self.storage[id.0] {
                Storage::Same(other) => (other, first),
                Storage::Part(other, offset) => (other, first + offset),
                _ => return (id, first),
            };
        }
    }

    /// The bytes that kernels may touch of a value: a view touches what the value has that it is a view of. A part touches its own
    /// alone, since a kernel may read one part of a value and write another.
    fn touched_bytes(&self, mut id: Id) -> u64 {
        let mut bytes = self.bytes(id);
        while let Storage::Same(other) = self.storage[id.0] {
            (id, bytes) = (other, bytes.max(self.bytes(other)));
        }
        bytes
    }

    /// The buffer of a value that is not in the arena.
    fn placed(&mut self, id: Id) -> Option<Buffer> {
        let root = self.root(id);
        match self.storage[root.0] {
            Storage::Input(i) => Some(Buffer::Input(i)),
            Storage::Output(i) => Some(Buffer::Output(i)),
            Storage::Constant(i) => Some(Buffer::Constant(i)),
            Storage::Unplaced => {
                let source = self.values[root.0].constant.as_ref()?.source.clone();
                let index = self.pool.constant(source, self.values[root.0].bytes());
                self.storage[root.0] = Storage::Constant(index);
                Some(Buffer::Constant(index))
            }
            Storage::Same(_) | Storage::Part(..) => unreachable!("roots have bytes of their own"),
        }
    }

    pub(crate) fn finish(mut self) -> Lowered {
        let calls = std::mem::take(&mut self.calls);
        let calls = self.ordered(calls);
        let mut lives = arena::Lives::default();
        for &(time, ref call) in &calls {
            for &id in call.reads.iter().chain(&call.writes) {
                if self.placed(id).is_none() {
                    let root = self.root(id);
                    lives.touch(root, self.bytes(root), time);
                }
            }
        }
        let plan = lives.plan();
        let after = self.dependencies(&calls, &plan);
        let calls = calls.into_iter().zip(after).map(|((_, call), after)| {
            let (bytes, writes) = self.touched(&call);
            let ids: Vec<_> = call.reads.iter().chain(&call.writes).copied().collect();
            let buffers = ids.into_iter().map(|id| {
                self.placed(id).unwrap_or_else(|| {
                    let (root, first) = self.place(id);
                    Buffer::Arena(plan.offset(root) + first)
                })
            });
            Call {
                kernel: call.kernel,
                buffers: buffers.collect(),
                bytes,
                writes,
                extent: call.extent,
                grain: call.grain,
                task: call.task,
                after,
                payload: call.payload,
            }
        });
        Lowered { calls: calls.collect(), arena: plan.bytes }
    }
}
