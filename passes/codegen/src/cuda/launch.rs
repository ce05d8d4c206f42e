//! Launches of kernels, or of vendor libraries that may replace them.

use crate::{
    graph::Id,
    lowering::{Lowering, SimtKernel, SimtKernelSpec},
};
use divi_runtime::drivers::cuda::launch::{FollowUpKernel, Launch, LibraryCall, LibraryOp};

/// Returns the payload of a call that launches one kernel.
pub(super) fn payload(kernel: &SimtKernel) -> serde_json::Value {
    launch_of(kernel, vec![], None).to_payload()
}

fn launch_of(kernel: &SimtKernel, then: Vec<FollowUpKernel>, library: Option<LibraryCall>) -> Launch {
    Launch { blocks: kernel.blocks, threads: kernel.threads, can_fail: kernel.can_fail, then, library }
}

/// Adds a call that launches kernels in sequence on the buffers `reads`, then `writes`. A library call, followed by the kernels of its
/// epilogue, may replace them; it uses the first buffers and the last one.
pub(super) fn launch(
    cx: &mut Lowering<'_>,
    reads: &[Id],
    writes: &[Id],
    specs: &[SimtKernelSpec<'_>],
    library: Option<(LibraryOp, &[SimtKernelSpec<'_>])>,
) {
    let Some((first, rest)) = specs.split_first() else { return };
    let mut then = |specs: &[SimtKernelSpec<'_>]| -> Vec<FollowUpKernel> {
        let kernels = specs.iter().map(|spec| cx.add_simt_kernel(spec, reads, writes));
        kernels
            .map(|SimtKernel { name: kernel, blocks, threads, extent, .. }| FollowUpKernel {
                kernel,
                blocks,
                threads,
                extent,
            })
            .collect()
    };
    let rest = then(rest);
    let library = library.map(|(computation, specs)| LibraryCall { computation, then: then(specs) });
    let kernel = cx.add_simt_kernel(first, reads, writes);
    let payload = launch_of(&kernel, rest, library).to_payload();
    cx.push_launch(kernel, reads, writes, payload);
}
