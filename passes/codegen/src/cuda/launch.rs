//! Launches of kernels, or of calls of vendors' libraries in their place.

use crate::{
    graph::Id,
    lowering::{Lowering, Phase, SimtKernel},
};
use divi_runtime::drivers::cuda::launch::{Launch, Library, LibraryCall, Then};

/// Returns the payload of a call that launches one kernel.
pub(super) fn payload(kernel: &SimtKernel) -> serde_json::Value {
    launch_of(kernel, vec![], None).to_payload()
}

fn launch_of(kernel: &SimtKernel, then: Vec<Then>, library: Option<LibraryCall>) -> Launch {
    Launch { blocks: kernel.blocks, threads: kernel.threads, can_fail: kernel.can_fail, then, library }
}

/// Launches kernels, one after the other, on the buffers of `reads`, then those of `writes`. A library may take their place, with
/// kernels that finish its result; it knows the first buffers and the last one.
pub(super) fn launch(
    cx: &mut Lowering<'_>,
    reads: &[Id],
    writes: &[Id],
    phases: &[Phase<'_>],
    library: Option<(Library, &[Phase<'_>])>,
) {
    let Some((first, rest)) = phases.split_first() else { return };
    let mut then = |phases: &[Phase<'_>]| -> Vec<Then> {
        let kernels = phases.iter().map(|phase| cx.add_simt_kernel(phase, reads, writes));
        kernels
            .map(|SimtKernel { name: kernel, blocks, threads, extent, .. }| Then { kernel, blocks, threads, extent })
            .collect()
    };
    let rest = then(rest);
    let library = library.map(|(way, phases)| LibraryCall { way, then: then(phases) });
    let kernel = cx.add_simt_kernel(first, reads, writes);
    let payload = launch_of(&kernel, rest, library).to_payload();
    cx.push_launch(kernel, reads, writes, payload);
}
