//! A stage on its way from operators to calls of kernels.

mod calls;
mod ends;
mod images;
mod order;

pub(crate) use calls::{Phase, Way};

use crate::{
    arena,
    borders::{Ends, Form},
    constants,
    error::{Error, Result},
    gpu,
    graph::{Constant, Graph, Id, Node, Value},
    hot::{
        self,
        layout::{Blocked, Margin},
    },
    kernels::Kernels,
    pool::Pool,
    slow::SlowNode,
    widen::widen,
};
use calls::PendingCall;
use divi_onnx::{DType, Tensor};
use divi_runtime::{
    bundle::{Buffer, Call, Launch},
    prepare::Expression,
};
use rustc_hash::{FxHashMap, FxHashSet};
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
    /// All those of another value.
    Same(Id),
    /// Some of those of another value, from a byte on.
    Part(Id, u64),
}

/// What the lowering of operators works on.
pub(crate) struct Lowering<'a> {
    kernels: &'a mut Kernels,
    /// The kernels of the GPU that the stage is for.
    gpu: Option<&'a mut Kernels>,
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
    streamed: FxHashMap<Id, Form>,
    slow: Vec<SlowNode>,
}

/// What is left of a stage.
pub(crate) struct Lowered {
    pub(crate) arena: u64,
    pub(crate) calls: Vec<Call>,
    /// None of them is free any more.
    pub(crate) ends: Ends,
    /// Nodes without a fast kernel.
    pub(crate) slow: Vec<SlowNode>,
}

/// Lowers a stage's graph, for a GPU if its kernels are given; what is computed once is computed by a CPU. Of the outputs, some are
/// `for_gpus`: copies to those are all that read them.
pub(crate) fn lower(
    name: &str,
    mut graph: Graph,
    ends: &Ends,
    for_gpus: &[bool],
    kernels: &mut Kernels,
    gpu: Option<&mut Kernels>,
    pool: &mut Pool,
) -> std::result::Result<Lowered, Error> {
    widen(&mut graph);
    let mut lowering = Lowering::of(&mut graph, kernels, gpu, pool);
    let Graph { nodes, inputs, outputs, .. } = graph;
    if !lowering.is_gpu() {
        lowering.margins = hot::wanted_margins(&lowering, &nodes);
        lowering.want_margins_of(&outputs, &ends.outputs);
    }
    for ((&output, &form), _) in
        outputs.iter().zip(&ends.outputs).zip(for_gpus).filter(|(_, is_for_gpus)| **is_for_gpus)
    {
        lowering.stream(output, form);
    }
    let inputs = lowering.place_inputs(&inputs, &nodes, &ends.inputs);
    let mut position = 0;
    while position < nodes.len() {
        position += lowering.nodes(&nodes, position)?;
    }
    let outputs = lowering.place_outputs(&outputs, &ends.outputs, for_gpus);
    let ends = Ends { inputs, outputs };
    lowering.finish(ends).map_err(|message| Error::Stage { name: name.into(), message })
}

impl<'a> Lowering<'a> {
    /// With the values of a graph; nothing is placed yet, and nothing called.
    pub(crate) fn of(
        graph: &mut Graph,
        kernels: &'a mut Kernels,
        gpu: Option<&'a mut Kernels>,
        pool: &'a mut Pool,
    ) -> Self {
        let Graph { nodes, outputs, .. } = &*graph;
        let mut readers: FxHashMap<Id, Vec<usize>> = FxHashMap::default();
        let reads = nodes.iter().enumerate().flat_map(|(i, node)| node.inputs.iter().flatten().map(move |&id| (id, i)));
        for (id, position) in reads.chain(outputs.iter().map(|&id| (id, nodes.len()))) {
            readers.entry(id).or_default().push(position);
        }
        let values = std::mem::take(&mut graph.values);
        Self {
            kernels,
            gpu,
            pool,
            storage: vec![Storage::Unplaced; values.len()],
            values,
            calls: vec![],
            is_preparing: false,
            task: 0,
            layouts: FxHashMap::default(),
            margins: FxHashMap::default(),
            by_rows: FxHashSet::default(),
            dense: FxHashMap::default(),
            blocked: FxHashMap::default(),
            readers,
            wholes: FxHashSet::default(),
            streamed: FxHashMap::default(),
            slow: vec![],
        }
    }

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
        let fast = match (self.is_preparing, self.is_gpu()) {
            (true, _) => None,
            (false, true) => gpu::lower(self, nodes, position).map_err(at)?,
            (false, false) => hot::lower(self, nodes, position).map_err(at)?,
        };
        if let Some(count) = fast {
            return Ok(count);
        }
        if let (false, Some(input)) = (self.is_preparing, operands.first()) {
            self.slow.extend(SlowNode::of(node, self.dtype(*input)));
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
            Storage::Same(other) | Storage::Part(other, _) => self.is_constant(other),
            _ => self.values[id.0].constant.is_some(),
        }
    }

    /// Whether a GPU runs what is lowered now.
    pub(crate) fn is_gpu(&self) -> bool {
        self.gpu.is_some() && !self.is_preparing
    }

    /// How many neighbours one iteration computes where that is of use: on a GPU, each is a thread's.
    pub(crate) fn at_once(&self, neighbours: i64) -> i64 {
        if self.is_gpu() { 1 } else { neighbours }
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

    /// Makes a value be written into a part of another one, from a byte on, or copies it if it lies elsewhere already. What a
    /// stage hands on is read behind its last node, and lies elsewhere.
    pub(crate) fn place_part(&mut self, part: Id, whole: Id, first: u64, node_count: usize) {
        self.wholes.insert(whole);
        let is_free = self.storage[part.0] == Storage::Unplaced
            && self.values[part.0].constant.is_none()
            && first.is_multiple_of(16)
            && self.is_read_only_by(part, 0..node_count);
        if is_free {
            self.storage[part.0] = Storage::Part(whole, first);
            return;
        }
        let Value { dtype, shape, .. } = self.values[part.0].clone();
        let place = self.temporary(dtype, &shape);
        self.storage[place.0] = Storage::Part(whole, first);
        crate::ops::copy(self, part, place);
    }

    // --- Where things are ---------------------------------------------------------------------------------------------

    /// The value whose bytes a value has.
    fn root(&self, id: Id) -> Id {
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

    pub(crate) fn finish(mut self, ends: Ends) -> std::result::Result<Lowered, String> {
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
                launch: call.launch.map(|launch| Launch { after, ..launch }),
            }
        });
        Ok(Lowered { calls: calls.collect(), arena: plan.bytes, ends, slow: std::mem::take(&mut self.slow) })
    }
}
