//! A stage on its way from operators to calls of kernels.

mod ends;
mod images;
mod order;

use crate::{
    arena,
    borders::{Ends, Form},
    constants,
    emit::{Builder, Grid, Signature},
    error::{Error, Result},
    gpu,
    graph::{Constant, Graph, Id, Node, Value},
    hot::{
        self,
        layout::{Blocked, Margin},
    },
    kernels::{Kernels, THREADS},
    pool::Pool,
};
use divi_onnx::{DType, Tensor};
use divi_runtime::{
    bundle::{Buffer, Call, Launch, Library, LibraryCall, Then},
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
    launch: Option<Launch>,
}

/// Blocks beyond these do more than one round.
const MOST_BLOCKS: u64 = 1 << 20;

/// A kernel of a GPU.
pub(crate) struct Phase<'a> {
    pub(crate) extent: i64,
    pub(crate) way: Way,
    pub(crate) body: &'a dyn Fn(&Builder, &Signature<'_>),
}

/// What a phase's extent is shared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Threads, each of which does some iterations.
    Iterations,
    /// As many blocks of so many threads, which find out themselves what they do.
    Blocks(u32),
    /// One thread does everything.
    Alone,
}

impl Phase<'_> {
    /// Blocks, and threads of each.
    fn grid(&self) -> (u32, u32) {
        match self.way {
            Way::Iterations => ((self.extent as u64).div_ceil(THREADS.into()).clamp(1, MOST_BLOCKS) as u32, THREADS),
            Way::Blocks(threads) => (self.extent as u32, threads),
            Way::Alone => (1, 1),
        }
    }
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
}

/// What is left of a stage.
pub(crate) struct Lowered {
    pub(crate) arena: u64,
    pub(crate) calls: Vec<Call>,
    /// None of them is free any more.
    pub(crate) ends: Ends,
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
    let mut lowering = Lowering::of(&mut graph, kernels, gpu, pool);
    let Graph { nodes, inputs, outputs, .. } = graph;
    if !lowering.is_gpu() {
        lowering.margins = hot::wanted_margins(&lowering, &nodes);
        lowering.want_margins_of(&outputs, &ends.outputs);
    }
    lowering.stream(&outputs, &ends.outputs, for_gpus);
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
        self.storage[result.0] = Storage::Same(of, 0);
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
            self.storage[part.0] = Storage::Same(whole, first);
            return;
        }
        let Value { dtype, shape, .. } = self.values[part.0].clone();
        let place = self.temporary(dtype, &shape);
        self.storage[place.0] = Storage::Same(whole, first);
        crate::ops::copy(self, part, place);
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
        let buffers = reads.len() + writes.len();
        if self.is_gpu() {
            // Bytes that have several elements are one thread's.
            let is_shared = writes.iter().any(|&id| self.dtype(id).bits() < 8);
            let body = std::cell::Cell::new(Some(body));
            let body = |b: &Builder, signature: &Signature<'_>| {
                if let Some(body) = body.take() {
                    body(b, Signature { ..*signature });
                }
            };
            let way = if is_shared { Way::Alone } else { Way::Iterations };
            return self.launch(reads, writes, &[Phase { extent, way, body: &body }], None);
        }
        let is_streamed: Vec<_> = writes.iter().map(|&id| !self.is_preparing && self.is_streamed(id)).collect();
        let (kernel, ..) = self.kernels.add(None, false, buffers, |b, signature| {
            let written = signature.buffers[reads.len()..].iter();
            written.zip(is_streamed).filter(|(_, is_it)| *is_it).for_each(|(&buffer, _)| b.stream(buffer));
            body(b, signature);
        });
        let (reads, writes) = (reads.to_vec(), writes.to_vec());
        let grain = grain.clamp(1, extent);
        let call = PendingCall { kernel, reads, writes, extent, grain, task: self.task, launch: None };
        if !self.is_preparing {
            return self.calls.push(call);
        }
        let ids: Vec<_> = call.reads.iter().chain(&call.writes).copied().collect();
        let buffers = ids.into_iter().map(|id| self.placed(id).expect("what is prepared is made of constants"));
        let buffers = buffers.collect();
        self.pool.prepare.push(Call { kernel: call.kernel, buffers, extent, grain: call.grain, task: 0, launch: None });
    }

    /// Launches kernels, one after the other, on the buffers of `reads`, then those of `writes`. A library may take their place, with
    /// kernels that finish what it has computed; it knows the first buffers and the last one.
    pub(crate) fn launch(
        &mut self,
        reads: &[Id],
        writes: &[Id],
        phases: &[Phase<'_>],
        library: Option<(Library, &[Phase<'_>])>,
    ) {
        let Some((first, rest)) = phases.split_first() else { return };
        let (kernel, can_fail) = self.add_phase(first, reads, writes);
        let then = rest.iter().map(|phase| self.then(phase, reads, writes)).collect();
        let library = library.map(|(way, phases)| LibraryCall {
            way,
            then: phases.iter().map(|phase| self.then(phase, reads, writes)).collect(),
        });
        let (blocks, threads) = first.grid();
        let launch = Some(Launch { blocks, threads, can_fail, then, library, after: vec![] });
        let (reads, writes, task) = (reads.to_vec(), writes.to_vec(), self.task);
        self.calls.push(PendingCall { kernel, reads, writes, extent: first.extent, grain: 1, task, launch });
    }

    fn then(&mut self, phase: &Phase<'_>, reads: &[Id], writes: &[Id]) -> Then {
        let (blocks, threads) = phase.grid();
        Then { kernel: self.add_phase(phase, reads, writes).0, blocks, threads, extent: phase.extent }
    }

    /// The name of a phase's kernel, and whether it can fail.
    fn add_phase(&mut self, phase: &Phase<'_>, reads: &[Id], writes: &[Id]) -> (String, bool) {
        const MOST: i64 = i32::MAX as i64;
        let is_narrow = phase.extent < MOST && reads.iter().chain(writes).all(|&id| self.count(id) < MOST);
        let grid = match phase.way {
            Way::Iterations => Grid::Iterations,
            Way::Blocks(threads) => Grid::Blocks(threads),
            Way::Alone => Grid::Blocks(1),
        };
        let kernels = self.gpu.as_mut().expect("only stages of GPUs are launched");
        let buffers = reads.len() + writes.len();
        kernels.add(Some(grid), is_narrow, buffers, |b, signature| (phase.body)(b, &signature))
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
                launch: call.launch.map(|launch| Launch { after, ..launch }),
            }
        });
        Ok(Lowered { calls: calls.collect(), arena: plan.bytes, ends })
    }
}
