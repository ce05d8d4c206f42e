//! Lowering of a stage: places its inputs, lowers its nodes in order, places its outputs.

use crate::{
    backend::{Code, CompiledStage, StageInput},
    constant_pool::ConstantPool,
    error::{Error, Result},
    graph::{Graph, Id, Node, Value},
    half_precision::{ResultStorage, widen},
    host::HostModule,
    kernels::Kernels,
    layout::{Blocked, Layout, StageLayouts},
    lowering::{Hooks, Lowered, Lowering, Simt},
    ops, rearranged_constants,
    slow_operators::SlowNode,
};
use divi_onnx::{
    DType,
    operators::{self, HalfPrecision},
};
use rustc_hash::FxHashSet;

/// Stage boundary: layouts of inputs and outputs, and the outputs that only transfers to other devices read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Boundary<'a> {
    pub(crate) layouts: &'a StageLayouts,
    pub(crate) is_streamed: &'a [bool],
}

/// A stage as calls of kernels.
pub(crate) struct LoweredStage {
    pub(crate) calls: Lowered,
    /// Layouts of inputs and outputs; none is unassigned.
    pub(crate) layouts: StageLayouts,
    /// Nodes without a fast kernel.
    pub(crate) slow: Vec<SlowNode>,
}

impl LoweredStage {
    pub(crate) fn compiled(self, code: Code) -> CompiledStage {
        let Self { calls: Lowered { arena, calls }, layouts, slow } = self;
        CompiledStage { arena, calls, payload: serde_json::Value::Null, constants: vec![], code, layouts, slow }
    }
}

impl<'a> StageInput<'a> {
    pub(crate) fn boundary(&self) -> Boundary<'a> {
        Boundary { layouts: self.layouts, is_streamed: self.is_streamed }
    }
}

/// Lowers the graph of a stage.
pub(crate) fn lower(
    mut graph: Graph,
    boundary: Boundary<'_>,
    hooks: &dyn Hooks,
    host: &mut HostModule,
    simt: Option<Simt<'_>>,
) -> std::result::Result<LoweredStage, Error> {
    move_constants_first(&mut graph);
    let reads_half = |node: &Node, values: &[Value]| simt.is_none() && hooks.reads_half(node, values, &host.kernels);
    let stores_f32 = simt.is_none() && host.kernels.converts_once();
    widen(&mut graph, if stores_f32 { ResultStorage::F32 } else { ResultStorage::Half(&reads_half) });
    let mut cx = Lowering::of(&mut graph, &mut host.kernels, simt, &mut host.pool);
    let Graph { nodes, inputs, outputs, .. } = graph;
    let Boundary { layouts, is_streamed } = boundary;
    cx.set_halos(hooks.halos(&cx, &nodes));
    for (&output, layout) in outputs.iter().zip(&layouts.outputs) {
        if let Layout::Blocked(layout) = layout {
            cx.widen_halo(output, &layout.halo);
        }
    }
    for ((&output, &layout), _) in outputs.iter().zip(&layouts.outputs).zip(is_streamed).filter(|(_, is_it)| **is_it) {
        hooks.stream(&mut cx, output, layout);
    }
    let inputs = place_inputs(&mut cx, hooks, &inputs, &nodes, &layouts.inputs);
    let (mut position, mut slow) = (0, vec![]);
    while position < nodes.len() {
        position += lower_nodes(&mut cx, hooks, &nodes, position, &mut slow)?;
    }
    let outputs = place_outputs(&mut cx, hooks, &outputs, boundary);
    Ok(LoweredStage { calls: cx.finish(), layouts: StageLayouts { inputs, outputs }, slow })
}

/// Moves the nodes that read only constants before all others, so that those stay adjacent that are fused.
fn move_constants_first(graph: &mut Graph) {
    let mut constant: FxHashSet<Id> = FxHashSet::default();
    let is_constant = |node: &Node| {
        let mut operands = node.inputs.iter().flatten().peekable();
        let is_one = operands.peek().is_some()
            && operands.all(|&id| graph.values[id.0].constant.is_some() || constant.contains(&id));
        if is_one {
            constant.extend(node.outputs.iter().flatten());
        }
        is_one
    };
    let (first, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut graph.nodes).into_iter().partition(is_constant);
    graph.nodes = [first, rest].concat();
}

/// Checks that a node can be lowered by lowering it without building kernels.
pub(crate) fn check(
    node: &Node,
    values: &[Value],
    hooks: &dyn Hooks,
    simt: Option<Simt<'_>>,
) -> std::result::Result<(), Error> {
    let graph = Graph::of_node(node, values);
    let layouts = StageLayouts::row_major(graph.inputs.len(), graph.outputs.len());
    let boundary = Boundary { layouts: &layouts, is_streamed: &vec![false; graph.outputs.len()] };
    let mut host = HostModule { kernels: Kernels::unbuilt(), pool: ConstantPool::default() };
    lower(graph, boundary, hooks, &mut host, simt).map(drop)
}

/// Lowers the node at a position, possibly fused with the following ones. Returns their number. Calls of nodes that read only constants
/// run once, when the bundle is loaded.
fn lower_nodes(
    cx: &mut Lowering<'_>,
    hooks: &dyn Hooks,
    nodes: &[Node],
    position: usize,
    slow: &mut Vec<SlowNode>,
) -> std::result::Result<usize, Error> {
    let node = &nodes[position];
    let at = |error: divi_onnx::Error| Error::Node { op: node.op, name: node.name.clone(), message: error.to_string() };
    cx.set_task(node.task);
    let operands: Vec<_> = node.inputs.iter().flatten().copied().collect();
    cx.set_at_load(!operands.is_empty() && operands.iter().all(|&id| cx.is_constant(id)));
    let count = lower_node(cx, hooks, nodes, position, slow).map_err(at);
    cx.set_at_load(false);
    count
}

/// As [`lower_nodes`], without the name of the node in errors.
fn lower_node(
    cx: &mut Lowering<'_>,
    hooks: &dyn Hooks,
    nodes: &[Node],
    position: usize,
    slow: &mut Vec<SlowNode>,
) -> Result<usize> {
    let node = &nodes[position];
    if let (true, Some(input), Some(result)) = (cx.is_at_load(), node.optional(0), node.result(0))
        && let Some(constant) = rearranged_constants::rearranged(node, cx.value(input), cx.value(result))?
    {
        cx.set_constant(result, constant);
        return Ok(1);
    }
    if !cx.is_at_load() {
        if let Some(count) = hooks.lower_fast(cx, nodes, position)? {
            return Ok(count);
        }
        let first = node.inputs.iter().flatten().next();
        slow.extend(first.and_then(|&input| SlowNode::of(node, cx.dtype(input))));
    }
    let lower = ops::find(node.op).ok_or_else(|| {
        divi_onnx::Error::new("code generation does not support this operator; remove it from the model, or replace it")
    })?;
    // Only arithmetic loads elements through their type in memory; other operators need a copy in the value's own type.
    let is_arithmetic = matches!(node.op.half_precision(), Some(HalfPrecision::Sum | HalfPrecision::Elementwise));
    let converts = is_arithmetic || node.op.lowering() == Some(operators::Lowering::View);
    let mut operand = |id: Id| {
        let id = cx.dense(id);
        if converts { id } else { ops::in_own_type(cx, id) }
    };
    let inputs = node.inputs.iter().map(|input| input.map(&mut operand)).collect();
    lower(cx, &Node { inputs, ..node.clone() }).map(|()| 1)
}

/// Assigns storage and layouts to the inputs. Returns the layouts.
fn place_inputs(
    cx: &mut Lowering<'_>,
    hooks: &dyn Hooks,
    inputs: &[Id],
    nodes: &[Node],
    layouts: &[Layout],
) -> Vec<Layout> {
    let blocked = hooks.blocked_values(cx, nodes);
    let mut assigned = vec![];
    for (i, (&input, &layout)) in inputs.iter().zip(layouts).enumerate() {
        let layout = layout.or(preferred(cx, input).filter(|_| blocked.contains(&input)));
        assigned.push(layout);
        match layout {
            Layout::Blocked(layout) => {
                let reader = nodes.iter().find(|node| node.inputs.contains(&Some(input)));
                cx.set_task(reader.map_or(0, |node| node.task));
                hooks.read_blocked(cx, i, input, layout);
            }
            Layout::RowMajor | Layout::Unassigned => cx.place_at_input(input, i),
        }
    }
    assigned
}

/// Returns the blocked layout of an input; `None` if blocking does not pay off, or for half precision, whose layout at boundaries is dense.
fn preferred(cx: &Lowering<'_>, input: Id) -> Option<Blocked> {
    Blocked::of(cx.shape(input), cx.lanes(), cx.halo(input))
        .filter(|layout| layout.is_profitable() && cx.dtype(input) == DType::F32)
}

/// Places outputs so that the kernels that compute them write them directly, or adds copies. Returns their layouts.
fn place_outputs(cx: &mut Lowering<'_>, hooks: &dyn Hooks, outputs: &[Id], boundary: Boundary<'_>) -> Vec<Layout> {
    let mut assigned = vec![];
    let ends = boundary.layouts.outputs.iter().zip(boundary.is_streamed);
    for (i, (&output, (&layout, &is_streamed))) in outputs.iter().zip(ends).enumerate() {
        let is_single = cx.dtype(output) == DType::F32;
        let layout = layout.or(cx.layout(output).filter(|layout| is_single && layout.is_profitable()));
        assigned.push(layout);
        match layout {
            Layout::Blocked(layout) if cx.layout(output) == Some(layout) && cx.is_unplaced(output) => {
                cx.place_at_output(output, i);
            }
            Layout::Blocked(layout) => hooks.write_blocked(cx, i, output, layout, is_streamed),
            Layout::RowMajor | Layout::Unassigned => place_dense_output(cx, hooks, i, output, is_streamed),
        }
    }
    assigned
}

fn place_dense_output(cx: &mut Lowering<'_>, hooks: &dyn Hooks, i: usize, output: Id, is_streamed: bool) {
    let output = cx.dense(output);
    let output = ops::in_own_type(cx, output);
    let root = cx.root(output);
    // Output buffers have no offset, so a value that contains parts stays in the arena and is copied.
    if cx.is_unplaced(root) && cx.value(root).constant.is_none() {
        return cx.place_at_output(root, i);
    }
    let Value { dtype, shape, .. } = cx.value(output).clone();
    let copy = cx.temporary(dtype, &shape);
    cx.place_at_output(copy, i);
    if is_streamed {
        hooks.stream(cx, copy, Layout::RowMajor);
    }
    ops::copy_to_output(cx, output, copy);
}
