//! Fast kernels for CPUs, of the operators that models spend their time with.
//!
//! Images between these kernels are in blocks ([`crate::layout`]). Operators that follow a convolution or product of matrices element by
//! element in its task are computed with it ([`crate::epilogue`]).

mod concat;
mod conv;
mod image;
mod map;
mod matmul;
mod pack;
mod pool;
#[cfg(test)]
mod tests;

use crate::{
    backend::{BoundaryLayouts, Code, CompiledStage, Executable, Reason, StageCompiler, StageInput, TargetBackend},
    error::{Error, Result},
    graph::{Id, Node, Value},
    host::HostModule,
    layout::{Blocked, Halo, Layout},
    lowering::{Hooks, Lowering},
    ops, stage,
};
use divi_cost::device::{self, Kind};
use divi_onnx::{DType, Op, operators::CpuKernel};
use divi_runtime::bundle::Device;
use rustc_hash::{FxHashMap, FxHashSet};

/// Bytes of a cache line.
const LINE: usize = 64;

/// Back end of CPUs.
pub(crate) struct CpuBackend;

impl TargetBackend for CpuBackend {
    fn kind(&self) -> Kind {
        device::CPU
    }

    fn has_operator(&self, op: Op) -> bool {
        ops::find(op).is_some()
    }

    fn supports(&self, node: &Node, values: &[Value]) -> std::result::Result<(), Reason> {
        Ok(stage::check(node, values, &CpuHooks, None)?)
    }

    fn boundary_layouts(&self) -> BoundaryLayouts {
        BoundaryLayouts::Assigned
    }

    fn compiler(&self, _: &[&Device]) -> Box<dyn StageCompiler> {
        Box::new(CpuCompiler)
    }
}

/// Stages of CPUs are part of the host's code.
struct CpuCompiler;

impl StageCompiler for CpuCompiler {
    fn compile(&mut self, stage: StageInput<'_>, host: &mut HostModule) -> std::result::Result<CompiledStage, Error> {
        let boundary = stage.boundary();
        Ok(stage::lower(stage.graph, boundary, &CpuHooks, host, None)?.compiled(Code::Host))
    }

    fn finish(self: Box<Self>, _: &[&CompiledStage]) -> std::result::Result<Vec<Executable>, Error> {
        Ok(vec![])
    }
}

/// Lowering hooks of CPUs.
pub(crate) struct CpuHooks;

impl Hooks for CpuHooks {
    fn lower_fast(&self, cx: &mut Lowering<'_>, nodes: &[Node], position: usize) -> Result<Option<usize>> {
        match nodes[position].op.cpu_kernel() {
            Some(CpuKernel::Conv) => conv::lower(cx, nodes, position),
            Some(CpuKernel::MatMul) => matmul::lower(cx, nodes, position),
            Some(CpuKernel::Pool) => pool::lower(cx, &nodes[position]),
            Some(CpuKernel::Mean) => pool::lower_global(cx, &nodes[position]),
            Some(CpuKernel::Concat) => concat::lower(cx, &nodes[position]),
            Some(CpuKernel::Map) => map::lower(cx, nodes, position),
            None => Ok(None),
        }
    }

    fn halos(&self, cx: &Lowering<'_>, nodes: &[Node]) -> FxHashMap<Id, Halo> {
        wanted_halos(cx, nodes)
    }

    fn blocked_values(&self, cx: &Lowering<'_>, nodes: &[Node]) -> FxHashSet<Id> {
        images(cx, nodes)
    }

    /// Devices copy lines that are in the caches of cores at half the speed.
    fn stream(&self, cx: &mut Lowering<'_>, output: Id, layout: Layout) {
        let writes_whole_lines = cx.lanes() * 4 == LINE;
        if writes_whole_lines {
            cx.request_streaming(output, layout);
        }
    }

    fn read_blocked(&self, cx: &mut Lowering<'_>, input: usize, value: Id, layout: Blocked) {
        cx.set_layout(value, layout);
        cx.place_at_input(value, input);
    }

    fn write_blocked(&self, cx: &mut Lowering<'_>, output: usize, value: Id, layout: Blocked, is_streamed: bool) {
        let shape = cx.shape(value).to_vec();
        let copy = cx.temporary(DType::F32, &shape);
        cx.set_layout(copy, layout);
        cx.place_at_output(copy, output);
        if is_streamed {
            self.stream(cx, copy, Layout::Blocked(layout));
        }
        cx.copy_into_blocks(value, copy, &layout);
    }
}

/// The values that fast kernels would read or write in blocks, if they were free to.
fn images(cx: &Lowering<'_>, nodes: &[Node]) -> FxHashSet<Id> {
    let mut images = FxHashSet::default();
    for node in nodes {
        let Some(result) = node.result(0) else { continue };
        let shape = cx.shape(result);
        let operands = || node.inputs.iter().flatten().copied().filter(|&id| !cx.is_constant(id));
        if conv::wanted_halo(cx, node).is_some() || pool::is_of_images(cx, node) {
            images.extend(node.optional(0).into_iter().chain([result]));
        } else if concat::is_of_channels(cx, node) || operands().any(|id| images.contains(&id) && cx.shape(id) == shape)
        {
            // What is computed element by element of an image is one.
            images.extend(operands().filter(|&id| cx.shape(id).len() == 4).chain([result]));
        }
    }
    images
}

/// The pixels that fast kernels read around each value.
fn wanted_halos(cx: &Lowering<'_>, nodes: &[Node]) -> FxHashMap<Id, Halo> {
    let mut halos: FxHashMap<Id, Halo> = FxHashMap::default();
    for node in nodes {
        let (Some(input), Some(halo)) =
            (node.optional(0), conv::wanted_halo(cx, node).or_else(|| pool::wanted_halo(cx, node)))
        else {
            continue;
        };
        let known = halos.entry(input).or_insert(Halo::NONE);
        // Where two cannot agree, the first has its halo, and the other makes a copy.
        *known = known.union(&halo).unwrap_or(*known);
    }
    // What is concatenated can be written in its place if it has the same halo.
    for node in nodes.iter().rev().filter(|node| node.op == Op::Concat) {
        let Some(&halo) = node.result(0).and_then(|result| halos.get(&result)) else { continue };
        for &input in node.inputs.iter().flatten() {
            let known = halos.entry(input).or_insert(Halo::NONE);
            *known = known.union(&halo).unwrap_or(*known);
        }
    }
    halos
}
