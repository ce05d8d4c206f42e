//! CPU back end, with fast kernels for the operators that dominate the run time of models.
//!
//! Images between these kernels are blocked ([`crate::layout`]). Element-wise operators after a convolution or matrix multiplication of the
//! same task are fused as its epilogue ([`crate::epilogue`]).

mod attention;
mod concat;
mod conv;
mod elementwise;
mod epilogue_operand;
mod matmul;
mod matrix;
mod pack;
mod pool;
mod softmax;
#[cfg(test)]
mod tests;
mod tile_block;
mod tile_order;

use crate::{
    backend::{BoundaryLayouts, Code, CompiledStage, Executable, Reason, StageCompiler, StageInput, TargetBackend},
    error::{Error, Result},
    graph::{Id, Node, Value},
    half_precision::rounds_to,
    host::HostModule,
    kernels::Kernels,
    layout::{Blocked, Halo, Layout},
    lowering::{Hooks, Lowering},
    ops, stage,
    target::Target,
};
use divi_cost::device::{self, Kind};
use divi_onnx::{DType, Op, operators::CpuKernel};
use divi_runtime::bundle::Device;
use rustc_hash::{FxHashMap, FxHashSet};

/// Bytes of a cache line.
const LINE: usize = 64;

/// CPU back end.
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

    /// Without tile registers, elements are converted to `f32`, which takes about as long as `f32`.
    fn fastest_precision(&self, cpu: &Target) -> DType {
        if cpu.has_tiles { DType::BF16 } else { DType::F32 }
    }

    fn boundary_layouts(&self) -> BoundaryLayouts {
        BoundaryLayouts::Assigned
    }

    fn compiler(&self, _: &[&Device]) -> Box<dyn StageCompiler> {
        Box::new(CpuCompiler)
    }
}

/// Number of threads that is assumed for a device that uses all cores of the machine.
const ALL_CORES: u64 = 16;

/// Compiler of CPU stages, whose kernels are part of the host's executable.
struct CpuCompiler;

impl StageCompiler for CpuCompiler {
    fn compile(&mut self, stage: StageInput<'_>, host: &mut HostModule) -> std::result::Result<CompiledStage, Error> {
        host.kernels.threads = match stage.device.threads {
            0 => ALL_CORES,
            threads => threads,
        };
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
        if let Some(count) = attention::lower(cx, nodes, position)? {
            return Ok(Some(count));
        }
        if let Some((input, result)) = conversion(cx, &nodes[position])
            && match cx.dtype(result) {
                DType::F32 => !is_read_often(cx, nodes, result),
                _ => !cx.is_blocked(input) && conv::rounds_itself(cx, nodes, position, result),
            }
        {
            cx.view_converted(result, input);
            return Ok(Some(1));
        }
        match nodes[position].op.cpu_kernel() {
            Some(CpuKernel::Conv) => conv::lower(cx, nodes, position),
            Some(CpuKernel::MatMul) => matmul::lower(cx, nodes, position),
            Some(CpuKernel::Pool) => pool::lower(cx, &nodes[position]),
            Some(CpuKernel::Mean) => pool::lower_global(cx, &nodes[position]),
            Some(CpuKernel::Concat) => concat::lower(cx, &nodes[position]),
            Some(CpuKernel::Softmax) => softmax::lower(cx, nodes, position),
            Some(CpuKernel::Map) => elementwise::lower(cx, nodes, position),
            None => Ok(None),
        }
    }

    fn reads_half(&self, node: &Node, values: &[Value], kernels: &Kernels) -> bool {
        let operand = |index: usize| node.optional(index).map(|id| &values[id.0]);
        let (Some(left), Some(right)) = (operand(0), operand(1)) else { return false };
        let are_half = [left, right].iter().all(|value| value.dtype == DType::BF16);
        if !are_half || !kernels.has_tiles() || left.constant.is_some() {
            return false;
        }
        match node.op {
            Op::Conv => conv::has_tiled_kernel(node, right),
            Op::MatMul | Op::Gemm => matmul::has_tiled_kernel(node, left, right, operand(2)),
            _ => false,
        }
    }

    fn halos(&self, cx: &Lowering<'_>, nodes: &[Node]) -> FxHashMap<Id, Halo> {
        wanted_halos(cx, nodes)
    }

    fn blocked_values(&self, cx: &Lowering<'_>, nodes: &[Node]) -> FxHashSet<Id> {
        images(cx, nodes)
    }

    /// Requests non-temporal stores if a vector has full cache lines: DMA from lines in the cores' caches has half the bandwidth.
    fn stream(&self, cx: &mut Lowering<'_>, output: Id, layout: Layout) {
        let writes_whole_lines = (cx.lanes() * 4).is_multiple_of(LINE);
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
        let copy = cx.temporary(cx.dtype(value), &shape);
        cx.set_layout(copy, layout);
        cx.place_at_output(copy, output);
        if is_streamed {
            self.stream(cx, copy, Layout::Blocked(layout));
        }
        cx.copy_into_blocks(value, copy, &layout);
    }
}

/// Returns the values that fast kernels prefer to read or write blocked.
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
            // Element-wise operators preserve the layout.
            images.extend(operands().filter(|&id| cx.shape(id).len() == 4).chain([result]));
        }
    }
    for (input, result) in nodes.iter().rev().filter_map(|node| conversion(cx, node)) {
        if images.contains(&result) {
            images.insert(input);
        }
    }
    images
}

/// Returns true if kernels that load each element of a value several times should read a converted copy of it.
fn is_read_often(cx: &Lowering<'_>, nodes: &[Node], value: Id) -> bool {
    let is_often = |node: &Node| matches!(node.op.cpu_kernel(), Some(CpuKernel::Conv | CpuKernel::MatMul));
    cx.converts_once() && nodes.iter().any(|node| node.inputs.contains(&Some(value)) && is_often(node))
}

/// Returns operand and result of a conversion between types whose elements kernels compute in `f32`.
fn conversion(cx: &Lowering<'_>, node: &Node) -> Option<(Id, Id)> {
    let (input, result) = (node.optional(0)?, node.result(0)?);
    let is_one = node.op == Op::Cast
        && [input, result].iter().all(|&id| cx.is_computed_in_f32(id))
        && rounds_to(node, cx.dtype(input), cx.dtype(result)).is_none();
    is_one.then_some((input, result))
}

/// Returns the halos of the values that fast kernels read.
fn wanted_halos(cx: &Lowering<'_>, nodes: &[Node]) -> FxHashMap<Id, Halo> {
    let mut halos: FxHashMap<Id, Halo> = FxHashMap::default();
    for node in nodes {
        let (Some(input), Some(halo)) =
            (node.optional(0), conv::wanted_halo(cx, node).or_else(|| pool::wanted_halo(cx, node)))
        else {
            continue;
        };
        let known = halos.entry(input).or_insert(Halo::NONE);
        // If padding values differ, the value has the halo of the first user, and the other one reads a copy.
        *known = known.union(&halo).unwrap_or(*known);
    }
    // Operands of a concatenation can be computed in place if they have its halo, and operands of conversions are read in place.
    for node in nodes.iter().rev().filter(|node| node.op == Op::Concat || conversion(cx, node).is_some()) {
        let Some(&halo) = node.result(0).and_then(|result| halos.get(&result)) else { continue };
        for &input in node.inputs.iter().flatten() {
            let known = halos.entry(input).or_insert(Halo::NONE);
            *known = known.union(&halo).unwrap_or(*known);
        }
    }
    halos
}
