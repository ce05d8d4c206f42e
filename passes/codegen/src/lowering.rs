//! Context in which operators are lowered to calls of kernels: the values of a stage, their storage, and the calls.
//!
//! The context depends on neither operators nor back ends: `ops`, `reorder` and the back ends add calls to it, and `stage` drives them.

mod calls;
mod hooks;
mod layouts;
mod order;

pub(crate) use calls::{Distribution, Simt, SimtKernel, SimtKernelSpec};
pub(crate) use hooks::Hooks;

use crate::{
    arena,
    constant_pool::ConstantPool,
    error::Result,
    graph::{Constant, Graph, Id, Value},
    half_precision::{self, is_half},
    kernels::Kernels,
    layout::{Blocked, Halo, Layout},
};
use calls::PendingCall;
use divi_onnx::{DType, Tensor};
use divi_runtime::{
    bundle::{Buffer, Call},
    prepare::Expression,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// Storage of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Storage {
    /// Not assigned yet; defaults to the arena.
    Unassigned,
    /// Input of the stage.
    Input(usize),
    /// Output of the stage.
    Output(usize),
    /// Constant of the bundle.
    Constant(usize),
    /// Alias of another value.
    Alias(Id),
    /// Part of another value, at an offset in bytes.
    Subview(Id, u64),
}

/// Context of the lowering of a stage.
pub(crate) struct Lowering<'a> {
    /// Kernels of the host.
    kernels: &'a mut Kernels,
    /// Kernels of the SIMT device that runs the stage; `None` for CPU stages.
    simt: Option<Simt<'a>>,
    pool: &'a mut ConstantPool,
    values: Vec<Value>,
    storage: Vec<Storage>,
    calls: Vec<PendingCall>,
    /// True if new calls run once, when the bundle is loaded.
    is_at_load: bool,
    /// Task of new calls.
    task: usize,
    /// Layouts of blocked values; all other values are row-major.
    layouts: FxHashMap<Id, Blocked>,
    /// Halos that values get if they are blocked.
    halos: FxHashMap<Id, Halo>,
    /// Images whose kernels are parallel over rows, with all channels per thread, rather than over channel blocks.
    by_rows: FxHashSet<Id>,
    /// Blocked values whose lanes beyond the last channel are finite.
    finite_lanes: FxHashSet<Id>,
    /// Row-major copies of blocked values.
    dense: FxHashMap<Id, Id>,
    /// Blocked copies of values.
    blocked: FxHashMap<Id, Id>,
    node_count: usize,
    /// Positions of the nodes that use a value. Outputs of the stage have a use at the position after the last node.
    readers: FxHashMap<Id, Vec<usize>>,
    /// Values that contain other values ([`Storage::Subview`]).
    containers: FxHashSet<Id>,
    /// Outputs that only transfers to GPUs read, with their layout at the stage boundary.
    streamed: FxHashMap<Id, Layout>,
}

/// Calls of a stage with assigned buffers.
pub(crate) struct Lowered {
    /// Size of the arena in bytes.
    pub(crate) arena: u64,
    pub(crate) calls: Vec<Call>,
}

impl<'a> Lowering<'a> {
    /// Creates a context for the values of a graph, which are moved out of it. No storage is assigned.
    pub(crate) fn of(
        graph: &mut Graph,
        kernels: &'a mut Kernels,
        simt: Option<Simt<'a>>,
        pool: &'a mut ConstantPool,
    ) -> Self {
        let Graph { nodes, outputs, .. } = &*graph;
        let mut readers: FxHashMap<Id, Vec<usize>> = FxHashMap::default();
        let reads = nodes.iter().enumerate().flat_map(|(i, node)| node.inputs.iter().flatten().map(move |&id| (id, i)));
        for (id, position) in reads.chain(outputs.iter().map(|&id| (id, nodes.len()))) {
            readers.entry(id).or_default().push(position);
        }
        let node_count = nodes.len();
        let values = std::mem::take(&mut graph.values);
        Self {
            kernels,
            simt,
            pool,
            storage: vec![Storage::Unassigned; values.len()],
            values,
            calls: vec![],
            is_at_load: false,
            task: 0,
            layouts: FxHashMap::default(),
            halos: FxHashMap::default(),
            by_rows: FxHashSet::default(),
            finite_lanes: FxHashSet::default(),
            dense: FxHashMap::default(),
            blocked: FxHashMap::default(),
            node_count,
            readers,
            containers: FxHashSet::default(),
            streamed: FxHashMap::default(),
        }
    }

    // --- Properties of values -----------------------------------------------------------------------------------------

    pub(crate) fn dtype(&self, id: Id) -> DType {
        self.values[id.0].dtype
    }

    pub(crate) fn shape(&self, id: Id) -> &[i64] {
        &self.values[id.0].shape
    }

    /// Returns the number of elements of a value.
    pub(crate) fn count(&self, id: Id) -> i64 {
        self.values[id.0].count()
    }

    /// Returns the size of a value in its layout, in bytes.
    fn bytes(&self, id: Id) -> u64 {
        let count = self.layouts.get(&id).map_or_else(|| self.count(id), Blocked::elements);
        self.type_in_memory(id).byte_len(count as u64).expect("graphs have tensors that fit into memory")
    }

    /// Returns the type that the elements of a value have in memory.
    pub(crate) fn type_in_memory(&self, id: Id) -> DType {
        let is_converted = |dtype| dtype == DType::F32 || is_half(dtype);
        let own = self.dtype(id);
        match self.storage[id.0] {
            Storage::Alias(of) | Storage::Subview(of, _) if is_converted(own) && is_converted(self.dtype(of)) => {
                self.type_in_memory(of)
            }
            _ => own,
        }
    }

    /// Returns the half-precision type that the elements of a value have in memory, if kernels convert them from and to `f32`.
    pub(crate) fn half_precision(&self, id: Id) -> Option<DType> {
        Some(self.type_in_memory(id)).filter(|&dtype| is_half(dtype))
    }

    /// Returns true if kernels compute the elements of a value in `f32`.
    pub(crate) fn is_computed_in_f32(&self, id: Id) -> bool {
        self.dtype(id) == DType::F32 || !self.is_simt() && is_half(self.dtype(id))
    }

    /// Returns the elements of a small constant.
    pub(crate) fn tensor(&self, id: Id) -> Option<&Tensor> {
        self.values[id.0].constant.as_ref()?.tensor.as_ref()
    }

    /// Returns the integers of a small constant.
    pub(crate) fn ints(&self, id: Id) -> Option<Vec<i64>> {
        self.tensor(id)?.ints()
    }

    /// Returns the integers of an operand that must be a small constant. `what` names the operand in the error message.
    pub(crate) fn known_ints(&self, id: Id, what: &str) -> Result<Vec<i64>> {
        self.ints(id).ok_or_else(|| {
            divi_onnx::Error::new(format!("{what} must be constant: kernels are generated for fixed shapes"))
        })
    }

    /// Returns the expression of a constant; `None` if the value is computed by calls.
    pub(crate) fn expression(&self, id: Id) -> Option<&Expression> {
        Some(&self.values[id.0].constant.as_ref()?.source)
    }

    /// Returns the expression of a constant of a floating-point type of at most 32 bits, as `f32`.
    pub(crate) fn f32_expression(&self, id: Id) -> Option<Expression> {
        half_precision::widened(self.expression(id)?, self.dtype(id))
    }

    /// Returns true if a value is the same for every request.
    pub(crate) fn is_constant(&self, id: Id) -> bool {
        match self.storage[id.0] {
            Storage::Constant(_) => true,
            Storage::Alias(other) | Storage::Subview(other, _) => self.is_constant(other),
            _ => self.values[id.0].constant.is_some(),
        }
    }

    /// Returns true if new calls run on a SIMT device.
    pub(crate) fn is_simt(&self) -> bool {
        self.simt.is_some() && !self.is_at_load
    }

    /// Returns the number of adjacent elements that one iteration computes: `neighbors` on a CPU, 1 per thread on a SIMT device.
    pub(crate) fn elements_per_iteration(&self, neighbors: i64) -> i64 {
        if self.is_simt() { 1 } else { neighbors }
    }

    /// Returns the number of `f32` lanes of a vector register.
    pub(crate) fn lanes(&self) -> usize {
        self.kernels.lanes()
    }

    /// Returns the number of vector registers that kernels may use.
    pub(crate) fn registers(&self) -> usize {
        self.kernels.registers()
    }

    /// Returns true if kernels may use tile registers of `bf16`.
    pub(crate) fn has_tiles(&self) -> bool {
        self.kernels.has_tiles()
    }

    /// Returns the number of threads of the device.
    pub(crate) fn threads(&self) -> i64 {
        self.kernels.threads as i64
    }

    /// Returns true if packed weights may be larger than the model's.
    pub(crate) fn has_spare_memory(&self) -> bool {
        self.kernels.has_spare_memory
    }

    /// Returns true if half-precision values are converted once, not at every load.
    pub(crate) fn converts_once(&self) -> bool {
        self.kernels.converts_once()
    }

    /// Returns true if all uses of a value are nodes at these positions.
    pub(crate) fn is_read_only_by(&self, id: Id, positions: Range<usize>) -> bool {
        self.readers.get(&id).is_none_or(|readers| readers.iter().all(|reader| positions.contains(reader)))
    }

    // --- Values and storage -------------------------------------------------------------------------------------------

    /// Adds a value that is not in the graph.
    pub(crate) fn temporary(&mut self, dtype: DType, shape: &[i64]) -> Id {
        self.push(Value { dtype, shape: shape.to_vec(), constant: None })
    }

    /// Adds a constant.
    pub(crate) fn constant(&mut self, dtype: DType, shape: &[i64], source: Expression) -> Id {
        self.push(Value { dtype, shape: shape.to_vec(), constant: Some(Constant { source, tensor: None }) })
    }

    fn push(&mut self, value: Value) -> Id {
        self.values.push(value);
        self.storage.push(Storage::Unassigned);
        Id(self.values.len() - 1)
    }

    /// Makes a result an alias of an operand, as for views.
    pub(crate) fn alias(&mut self, result: Id, of: Id) {
        self.storage[result.0] = Storage::Alias(of);
    }

    /// Makes the result of a conversion between half precision and `f32` a view of its operand, whose elements kernels convert when they
    /// load them.
    pub(crate) fn view_converted(&mut self, result: Id, of: Id) {
        self.alias(result, of);
        let copied = self.layouts.get(&of).copied();
        self.layouts.extend(copied.map(|layout| (result, layout)));
        if self.by_rows.contains(&of) {
            self.by_rows.insert(result);
        }
    }

    /// Places a value at an offset in bytes inside another value. Returns false if that is impossible: the value already has a storage, is
    /// a constant or an output of the stage, or the offset is not aligned.
    pub(crate) fn try_place_subview(&mut self, part: Id, whole: Id, first: u64, node_count: usize) -> bool {
        self.containers.insert(whole);
        let is_free = self.storage[part.0] == Storage::Unassigned
            && self.values[part.0].constant.is_none()
            && first.is_multiple_of(16)
            && self.is_read_only_by(part, 0..node_count);
        if is_free {
            self.storage[part.0] = Storage::Subview(whole, first);
        }
        is_free
    }

    /// Makes a result a view of contiguous elements of a value, from element `first` on. Returns false if that is impossible: the value is not
    /// in the arena, or the offset is not aligned.
    pub(crate) fn try_view_part(&mut self, result: Id, of: Id, first: i64) -> bool {
        let root = self.root(of);
        // An output of the stage would have to be copied out of the arena.
        let is_output = [of, root].iter().any(|&id| !self.is_read_only_by(id, 0..self.node_count));
        let is_in_arena = self.storage[root.0] == Storage::Unassigned && !self.is_constant(root) && !is_output;
        let bits = first as u64 * self.type_in_memory(of).bits();
        let is_possible = is_in_arena && bits.is_multiple_of(16 * 8);
        if is_possible {
            self.containers.insert(root);
            self.storage[result.0] = Storage::Subview(of, bits / 8);
        }
        is_possible
    }

    /// Places a value that has not been written yet at an offset in bytes inside another value.
    pub(crate) fn place_subview(&mut self, id: Id, whole: Id, first: u64) {
        self.storage[id.0] = Storage::Subview(whole, first);
    }

    /// Places a value at an input of the stage.
    pub(crate) fn place_at_input(&mut self, id: Id, input: usize) {
        self.storage[id.0] = Storage::Input(input);
    }

    /// Places a value at an output of the stage.
    pub(crate) fn place_at_output(&mut self, id: Id, output: usize) {
        self.storage[id.0] = Storage::Output(output);
    }

    /// Returns true if a value has no storage yet and contains no other value.
    pub(crate) fn is_unplaced(&self, id: Id) -> bool {
        self.storage[id.0] == Storage::Unassigned && !self.containers.contains(&id)
    }

    /// Makes a result a constant.
    pub(crate) fn set_constant(&mut self, id: Id, constant: Constant) {
        self.values[id.0].constant = Some(constant);
    }

    /// Sets the task of new calls.
    pub(crate) fn set_task(&mut self, task: usize) {
        self.task = task;
    }

    /// Sets whether new calls run once, when the bundle is loaded.
    pub(crate) fn set_at_load(&mut self, is_at_load: bool) {
        self.is_at_load = is_at_load;
    }

    pub(crate) fn is_at_load(&self) -> bool {
        self.is_at_load
    }

    pub(crate) fn value(&self, id: Id) -> &Value {
        &self.values[id.0]
    }

    // --- Buffers ------------------------------------------------------------------------------------------------------

    /// Returns the value that owns the storage of a value.
    pub(crate) fn root(&self, id: Id) -> Id {
        self.place(id).0
    }

    /// Returns true if two values are in the storage of the same value.
    pub(crate) fn share_bytes(&self, a: Id, b: Id) -> bool {
        self.root(a) == self.root(b)
    }

    /// Returns the value that owns the storage of a value, and the value's offset there in bytes.
    fn place(&self, mut id: Id) -> (Id, u64) {
        let mut first = 0;
        loop {
            (id, first) = match self.storage[id.0] {
                Storage::Alias(other) => (other, first),
                Storage::Subview(other, offset) => (other, first + offset),
                _ => return (id, first),
            };
        }
    }

    /// Returns the number of bytes that kernels may access through a value. An alias may access all of its original. A part may access only
    /// itself, since a kernel may read one part of a value and write another.
    fn touched_bytes(&self, mut id: Id) -> u64 {
        let mut bytes = self.bytes(id);
        while let Storage::Alias(other) = self.storage[id.0] {
            (id, bytes) = (other, bytes.max(self.bytes(other)));
        }
        bytes
    }

    /// Returns the buffer of a value; `None` if it is in the arena. Adds constants to the pool.
    fn placed(&mut self, id: Id) -> Option<Buffer> {
        let root = self.root(id);
        match self.storage[root.0] {
            Storage::Input(i) => Some(Buffer::Input(i)),
            Storage::Output(i) => Some(Buffer::Output(i)),
            Storage::Constant(i) => Some(Buffer::Constant(i)),
            Storage::Unassigned => {
                let source = self.values[root.0].constant.as_ref()?.source.clone();
                let index = self.pool.constant(source, self.values[root.0].bytes());
                self.storage[root.0] = Storage::Constant(index);
                Some(Buffer::Constant(index))
            }
            Storage::Alias(_) | Storage::Subview(..) => unreachable!("roots have bytes of their own"),
        }
    }

    /// Orders the calls, assigns offsets in the arena, and computes the dependencies.
    pub(crate) fn finish(mut self) -> Lowered {
        let calls = std::mem::take(&mut self.calls);
        let calls = self.ordered(calls);
        let mut live_ranges = arena::LiveRanges::default();
        for &(time, ref call) in &calls {
            for &id in call.reads.iter().chain(&call.writes) {
                if self.placed(id).is_none() {
                    let root = self.root(id);
                    live_ranges.add_access(root, self.bytes(root), time);
                }
            }
        }
        let plan = live_ranges.plan();
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
