//! Fast kernels for GPUs: tiles of convolutions and products, rows that a block of threads works on together. Vendors' libraries
//! may do the same, where they are installed; whatever follows element by element in a task is computed with it.

mod blocks;
mod concat;
mod conv;
mod finish;
mod matmul;
mod rows;
mod tile;

use crate::{
    backend::{Reason, TargetBackend},
    chain,
    error::{Error, Result},
    graph::{Id, Node, Value},
    kernels::Kernels,
    layout::Blocked,
    lowering::{Hooks, Lowering},
    ops, stage,
    target::Gpu,
};
use divi_onnx::DType;
use divi_runtime::bundle::Device;

/// Back end of CUDA devices.
pub(crate) struct CudaBackend;

impl TargetBackend for CudaBackend {
    fn kind(&self) -> &str {
        "cuda"
    }

    fn supports_device(&self, device: &Device) -> std::result::Result<(), Reason> {
        Ok(gpu(device).map(drop)?)
    }

    fn has_operator(&self, op: &str) -> bool {
        ops::find(op).is_some()
    }

    fn supports(&self, node: &Node, values: &[Value]) -> std::result::Result<(), Reason> {
        Ok(stage::check(node, values, &CudaHooks, Some(&mut Kernels::unbuilt_simt()))?)
    }
}

/// Returns the architecture that code for a device is generated for.
pub(crate) fn gpu(device: &Device) -> std::result::Result<Gpu, Error> {
    let arch = device.arch.as_ref().ok_or_else(|| {
        Error::Target(format!("device '{}' does not say which GPU it is: give its arch, as sm_90", device.id))
    })?;
    Gpu::named(arch)
}

/// Lowering hooks of CUDA devices.
pub(crate) struct CudaHooks;

impl Hooks for CudaHooks {
    fn lower_fast(&self, cx: &mut Lowering<'_>, nodes: &[Node], position: usize) -> Result<Option<usize>> {
        let node = &nodes[position];
        match node.op.as_str() {
            "Conv" => conv::lower(cx, nodes, position),
            "MatMul" | "Gemm" => matmul::lower(cx, nodes, position),
            "Softmax" => rows::softmax(cx, node),
            "LayerNormalization" => rows::layer_normalization(cx, node),
            "GlobalAveragePool" | "ReduceMean" => rows::mean(cx, node),
            "Concat" => concat::lower(cx, node, nodes.len()),
            _ => chain::lower(cx, nodes, position),
        }
    }

    fn read_blocked(&self, cx: &mut Lowering<'_>, input: usize, value: Id, layout: Blocked) {
        let blocked = cx.temporary(DType::F32, &layout.shape());
        cx.place_at_input(blocked, input);
        blocks::to_dense(cx, blocked, value, layout);
    }

    fn write_blocked(&self, cx: &mut Lowering<'_>, output: usize, value: Id, layout: Blocked, _: bool) {
        let copy = cx.temporary(DType::F32, &layout.shape());
        cx.place_at_output(copy, output);
        blocks::to_blocks(cx, value, copy, layout);
    }
}
