//! A stage on its way from operators to calls of kernels.

mod images;

use crate::{
    arena, constants,
    emit::{Builder, Signature},
    error::{Error, Result},
    graph::{Constant, Graph, Id, Node, Value},
    hot::{
        self,
        layout::{Blocked, Margin},
    },
    kernels::Kernels,
    pool::Pool,
};
use divi_onnx::{DType, Tensor};
use divi_runtime::{
    bundle::{Buffer, Call},
    prepare::Expression,
};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Where the bytes of a value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Storage {
    /// Nobody has said so yet: in the arena, if anybody writes it.
    Unplaced,
    /// An input of the stage.
    Input(usize),
    /// An output of the stage.
    Output(usize),
    /// A constant of the bundle.
    Constant(usize),
    /// Those of another value, from a byte on.
    Same(Id, u64),
}

/// A call before its buffers are placed.
struct PendingCall {
    kernel: String,
    reads: Vec<Id>,
    writes: Vec<Id>,
    extent: i64,
    grain: i64,
    task: usize,
}

/// What the lowering of operators works on.
pub(crate) struct Lowering<'a> {
    kernels: &'a mut Kernels,
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
    margins: FxHashMap<Id, Margin>,
    /// Dense copies of those in blocks, and copies in blocks of others.
    dense: FxHashMap<Id, Id>,
    blocked: FxHashMap<Id, Id>,
    /// Who reads a value, by position; what the stage hands on is read behind its last node.
    readers: FxHashMap<Id, Vec<usize>>,
}

/// What is left of a stage.
pub(crate) struct Lowered {
    pub(crate) arena: u64,
    pub(crate) calls: Vec<Call>,
}

/// Lowers a stage's graph.
pub(crate) fn lower(
    name: &str,
    graph: Graph,
    kernels: &mut Kernels,
    pool: &mut Pool,
) -> std::result::Result<Lowered, Error> {
    let Graph { values, nodes, inputs, outputs } = graph;
    let storage = vec![Storage::Unplaced; values.len()];
    let mut readers: FxHashMap<Id, Vec<usize>> = FxHashMap::default();
    let reads = nodes.iter().enumerate().flat_map(|(i, node)| node.inputs.iter().flatten().map(move |&id| (id, i)));
    for (id, position) in reads.chain(outputs.iter().map(|&id| (id, nodes.len()))) {
        readers.entry(id).or_default().push(position);
    }
    let mut lowering = Lowering {
        kernels,
        pool,
        values,
        storage,
        calls: vec![],
        is_preparing: false,
        task: 0,
        layouts: FxHashMap::default(),
        margins: FxHashMap::default(),
        dense: FxHashMap::default(),
        blocked: FxHashMap::default(),
        readers,
    };
    lowering.margins = hot::wanted_margins(&lowering, &nodes);
    for (i, &input) in inputs.iter().enumerate() {
        lowering.storage[input.0] = Storage::Input(i);
    }
    let mut position = 0;
    while position < nodes.len() {
        position += lowering.nodes(&nodes, position)?;
    }
    lowering.place_outputs(&outputs);
    lowering.finish().map_err(|message| Error::Stage { name: name.into(), message })
}

impl Lowering<'_> {
    /// Lowers the node at a position, and perhaps some behind it; says how many.
    fn nodes(&mut self, nodes: &[Node], position: usize) -> std::result::Result<usize, Error> {
        let node = &nodes[position];
        let at = |error: divi_onnx::Error| Error::Node {
            op: node.op.clone(),
            name: node.name.clone(),
            message: error.to_string(),
        };
        self.task = node.task;
        let operands: Vec<_> = node.inputs.iter().flatten().copied().collect();
        self.is_preparing = !operands.is_empty() && operands.iter().all(|&id| self.is_constant(id));
        if let (true, Some(input), Some(result)) = (self.is_preparing, node.optional(0), node.result(0))
            && let Some(constant) =
                constants::arranged(node, &self.values[input.0], &self.values[result.0]).map_err(at)?
        {
            self.values[result.0].constant = Some(constant);
            self.is_preparing = false;
            return Ok(1);
        }
        if !self.is_preparing
            && let Some(count) = hot::lower(self, nodes, position).map_err(at)?
        {
            return Ok(count);
        }
        let lower = crate::ops::find(&node.op).ok_or_else(|| {
            at(divi_onnx::Error::new("there is no code for this operator yet: compute it elsewhere, or without it"))
        })?;
        let inputs = node.inputs.iter().map(|input| input.map(|id| self.dense(id))).collect();
        let outcome = lower(self, &Node { inputs, ..node.clone() });
        self.is_preparing = false;
        outcome.map_err(at).map(|()| 1)
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
            Storage::Same(other, _) => self.is_constant(other),
            _ => self.values[id.0].constant.is_some(),
        }
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
        self.storage[result.0] = Storage::Same(of, 0);
    }

    /// Calls a kernel whose buffers are those of `reads`, then those of `writes`. Its outermost loop has `extent` iterations;
    /// fewer than `grain` are not worth a thread.
    pub(crate) fn call(
        &mut self,
        extent: i64,
        grain: i64,
        reads: &[Id],
        writes: &[Id],
        body: impl FnOnce(&Builder, Signature<'_>),
    ) {
        if self.is_preparing {
            for &id in writes {
                // Several calls may write parts of a value, or another view of it.
                let root = self.root(id);
                if !matches!(self.storage[root.0], Storage::Constant(_)) {
                    let bytes = self.values[root.0].bytes();
                    self.storage[root.0] = Storage::Constant(self.pool.computed(bytes));
                }
            }
        }
        if extent <= 0 {
            return;
        }
        let kernel = self.kernels.add(reads.len() + writes.len(), body);
        let (reads, writes) = (reads.to_vec(), writes.to_vec());
        let call = PendingCall { kernel, reads, writes, extent, grain: grain.clamp(1, extent), task: self.task };
        if !self.is_preparing {
            return self.calls.push(call);
        }
        let ids: Vec<_> = call.reads.iter().chain(&call.writes).copied().collect();
        let buffers = ids.into_iter().map(|id| self.placed(id).expect("what is prepared is made of constants"));
        let buffers = buffers.collect();
        self.pool.prepare.push(Call { kernel: call.kernel, buffers, extent, grain: call.grain, task: 0, launch: None });
    }

    // --- Where things are ---------------------------------------------------------------------------------------------

    /// The value whose bytes a value has.
    fn root(&self, id: Id) -> Id {
        self.place(id).0
    }

    /// The value whose bytes a value has, and the first of them that it has.
    fn place(&self, mut id: Id) -> (Id, u64) {
        let mut first = 0;
        while let Storage::Same(other, offset) = self.storage[id.0] {
            (id, first) = (other, first + offset);
        }
        (id, first)
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
            Storage::Same(..) => unreachable!("roots have bytes of their own"),
        }
    }

    /// Makes what the stage hands on be written to its outputs, by those who compute it or by a copy.
    fn place_outputs(&mut self, outputs: &[Id]) {
        for (i, &output) in outputs.iter().enumerate() {
            let output = self.dense(output);
            let root = self.root(output);
            let is_free = self.storage[root.0] == Storage::Unplaced && self.values[root.0].constant.is_none();
            if is_free {
                self.storage[root.0] = Storage::Output(i);
                continue;
            }
            let Value { dtype, shape, .. } = self.values[output.0].clone();
            let copy = self.temporary(dtype, &shape);
            self.storage[copy.0] = Storage::Output(i);
            crate::ops::copy(self, output, copy);
        }
    }

    fn finish(mut self) -> std::result::Result<Lowered, String> {
        let calls = std::mem::take(&mut self.calls);
        let mut lives = arena::Lives::default();
        for (time, call) in calls.iter().enumerate() {
            for &id in call.reads.iter().chain(&call.writes) {
                if self.placed(id).is_none() {
                    let root = self.root(id);
                    lives.touch(root, self.bytes(root), time);
                }
            }
        }
        let plan = lives.plan();
        let calls = calls.into_iter().map(|call| {
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
                extent: call.extent,
                grain: call.grain,
                task: call.task,
                launch: None,
            }
        });
        Ok(Lowered { calls: calls.collect(), arena: plan.bytes })
    }
}
