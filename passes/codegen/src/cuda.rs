//! CUDA back end, with fast kernels: tiled convolutions and matrix multiplications, and reductions of rows by a block of threads.
//!
//! The driver may replace tiled kernels by vendor libraries if they are installed. Element-wise operators that follow in the same task are
//! fused as epilogue.

mod blocks;
mod concat;
mod conv;
mod finish;
mod intrinsics;
mod launch;
mod matmul;
mod ptx;
mod rows;
#[cfg(test)]
mod tests;
mod tile;

use crate::{
    backend::{BoundaryLayouts, Code, CompiledStage, Executable, Reason, StageCompiler, StageInput, TargetBackend},
    elementwise_chain,
    error::{Error, Result},
    graph::{Id, Node, Value},
    host::HostModule,
    kernels::Kernels,
    layout::Blocked,
    lowering::{Hooks, Lowering, Simt},
    machine_code, ops, stage,
    target::Gpu,
};
use divi_cost::device::{self, Kind};
use divi_onnx::{DType, Op, operators::CudaKernel};
use divi_runtime::{
    bundle::{self, Device},
    drivers::cuda::{self as cuda_driver, launch::Launch},
};

/// CUDA back end.
pub(crate) struct CudaBackend;

impl TargetBackend for CudaBackend {
    fn kind(&self) -> Kind {
        device::CUDA
    }

    fn supports_device(&self, device: &Device) -> std::result::Result<(), Reason> {
        Ok(gpu(device).map(drop)?)
    }

    fn has_operator(&self, op: Op) -> bool {
        ops::find(op).is_some()
    }

    fn supports(&self, node: &Node, values: &[Value]) -> std::result::Result<(), Reason> {
        let simt = Simt { kernels: &mut Kernels::unbuilt_simt(), payload: launch::payload };
        Ok(stage::check(node, values, &CudaHooks, Some(simt))?)
    }

    fn boundary_layouts(&self) -> BoundaryLayouts {
        BoundaryLayouts::Any
    }

    fn compiler(&self, devices: &[&Device]) -> Box<dyn StageCompiler> {
        let mut gpus: Vec<Gpu> = vec![];
        // Unsupported devices have no stages.
        for gpu in devices.iter().filter_map(|device| gpu(device).ok()) {
            if !gpus.contains(&gpu) {
                gpus.push(gpu);
            }
        }
        Box::new(CudaCompiler { kernels: Kernels::simt(), gpus })
    }
}

/// Kernels of all stages, and the architectures that they are compiled for.
struct CudaCompiler {
    kernels: Kernels,
    gpus: Vec<Gpu>,
}

impl StageCompiler for CudaCompiler {
    fn compile(&mut self, stage: StageInput<'_>, host: &mut HostModule) -> std::result::Result<CompiledStage, Error> {
        let gpu = gpu(stage.device)?;
        let executable = self.gpus.iter().position(|known| *known == gpu).ok_or_else(|| {
            Error::Internal(format!("stage '{}' is on a device that is not part of the program", stage.name))
        })?;
        let boundary = stage.boundary();
        let simt = Simt { kernels: &mut self.kernels, payload: launch::payload };
        Ok(stage::lower(stage.graph, boundary, &CudaHooks, host, Some(simt))?.compiled(Code::Own(executable)))
    }

    fn finish(mut self: Box<Self>, stages: &[&CompiledStage]) -> std::result::Result<Vec<Executable>, Error> {
        let calls = stages.iter().flat_map(|stage| &stage.calls);
        let signatures = calls.map(|call| Launch::of(call).map(|launch| launch.signatures(call)));
        let signatures = signatures.collect::<std::result::Result<Vec<_>, _>>().map_err(Error::Internal)?;
        let signatures = machine_code::signature_lines(signatures.into_iter().flatten());
        let codes = ptx::compile(&mut self.kernels, &self.gpus, &signatures)?;
        let executables = self.gpus.iter().zip(codes).map(|(gpu, bytes)| {
            let target = cuda_driver::Target { arch: gpu.arch.clone() };
            let bundle::Executable { format, file, target } = target.executable(format!("{}.ptx", gpu.arch));
            Executable { format, file, target, bytes }
        });
        Ok(executables.collect())
    }
}

/// Returns the architecture that code for a device is generated for.
fn gpu(device: &Device) -> std::result::Result<Gpu, Error> {
    let arch = device.arch.as_ref().ok_or_else(|| {
        Error::Target(format!("device '{}' has no GPU architecture; set 'arch', for example to sm_90", device.id))
    })?;
    Gpu::named(arch)
}

/// Lowering hooks of the CUDA back end.
pub(crate) struct CudaHooks;

impl Hooks for CudaHooks {
    fn lower_fast(&self, cx: &mut Lowering<'_>, nodes: &[Node], position: usize) -> Result<Option<usize>> {
        let node = &nodes[position];
        match node.op.cuda_kernel() {
            Some(CudaKernel::Conv) => conv::lower(cx, nodes, position),
            Some(CudaKernel::MatMul) => matmul::lower(cx, nodes, position),
            Some(CudaKernel::Softmax) => rows::softmax(cx, node),
            Some(CudaKernel::LayerNormalization) => rows::layer_normalization(cx, node),
            Some(CudaKernel::Mean) => rows::mean(cx, node),
            Some(CudaKernel::Concat) => concat::lower(cx, node, nodes.len()),
            Some(CudaKernel::Map) => elementwise_chain::lower(cx, nodes, position),
            None => Ok(None),
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
