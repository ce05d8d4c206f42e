//! Calls of CPU kernels and launches of SIMT kernels.

use super::{Lowering, Storage};
use crate::{
    emit::{Builder, Grid, Signature},
    graph::Id,
    kernels::{Kernels, THREADS},
};
use divi_runtime::bundle::Call;

/// A call whose buffers have no addresses yet.
pub(super) struct PendingCall {
    pub(super) kernel: String,
    pub(super) reads: Vec<Id>,
    pub(super) writes: Vec<Id>,
    pub(super) extent: i64,
    pub(super) grain: i64,
    pub(super) task: usize,
    /// Payload for the driver of the device.
    pub(super) payload: serde_json::Value,
}

/// Maximal number of blocks of a grid; larger extents take several iterations per thread.
const MOST_BLOCKS: u64 = 1 << 20;

/// Kernels of a SIMT device.
pub(crate) struct Simt<'a> {
    pub(crate) kernels: &'a mut Kernels,
    /// Returns the payload by which the driver launches a kernel.
    pub(crate) payload: fn(&SimtKernel) -> serde_json::Value,
}

/// A built kernel of a SIMT device with its launch configuration.
#[derive(Clone, Debug)]
pub(crate) struct SimtKernel {
    pub(crate) name: String,
    pub(crate) blocks: u32,
    pub(crate) threads: u32,
    pub(crate) extent: i64,
    pub(crate) can_fail: bool,
}

/// A kernel of a SIMT device that is not built yet.
pub(crate) struct SimtKernelSpec<'a> {
    pub(crate) extent: i64,
    pub(crate) distribution: Distribution,
    pub(crate) body: &'a dyn Fn(&Builder, &Signature<'_>),
}

/// Distribution of a kernel's extent over threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Distribution {
    /// Each thread executes some iterations.
    Iterations,
    /// One block of this many threads per iteration; the kernel itself distributes work by block and thread index.
    Blocks(u32),
    /// A single thread executes all iterations.
    SingleThread,
}

impl SimtKernelSpec<'_> {
    /// Returns the number of blocks, and the threads per block.
    fn grid(&self) -> (u32, u32) {
        match self.distribution {
            Distribution::Iterations => {
                ((self.extent as u64).div_ceil(THREADS.into()).clamp(1, MOST_BLOCKS) as u32, THREADS)
            }
            Distribution::Blocks(threads) => (self.extent as u32, threads),
            Distribution::SingleThread => (1, 1),
        }
    }
}

impl Lowering<'_> {
    /// Adds a call of a kernel whose buffers are `reads`, then `writes`. Its outermost loop has `extent` iterations, which the runtime
    /// splits into chunks of at least `grain`.
    pub(crate) fn call(
        &mut self,
        extent: i64,
        grain: i64,
        reads: &[Id],
        writes: &[Id],
        body: impl FnOnce(&Builder, Signature<'_>),
    ) {
        if self.is_at_load {
            for &id in writes {
                // An earlier call may have written another part or alias of the value.
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
        if self.is_simt() {
            // Elements narrower than a byte share bytes: parallel writes would race.
            let is_shared = writes.iter().any(|&id| self.dtype(id).bits() < 8);
            let body = std::cell::Cell::new(Some(body));
            let body = |b: &Builder, signature: &Signature<'_>| {
                if let Some(body) = body.take() {
                    body(b, Signature { ..*signature });
                }
            };
            let distribution = if is_shared { Distribution::SingleThread } else { Distribution::Iterations };
            let kernel = self.add_simt_kernel(&SimtKernelSpec { extent, distribution, body: &body }, reads, writes);
            let payload = self.simt.as_ref().map_or_else(Default::default, |simt| (simt.payload)(&kernel));
            return self.push_launch(kernel, reads, writes, payload);
        }
        let is_streamed: Vec<_> = writes.iter().map(|&id| self.is_streamed(id)).collect();
        let half_precision: Vec<_> = reads.iter().chain(writes).map(|&id| self.half_precision(id)).collect();
        let (kernel, ..) = self.kernels.add(None, false, buffers, |b, signature| {
            for (&buffer, &dtype) in signature.buffers.iter().zip(&half_precision) {
                dtype.into_iter().for_each(|dtype| b.set_half_precision(buffer, dtype));
            }
            let written = signature.buffers[reads.len()..].iter();
            written.zip(is_streamed).filter(|(_, is_it)| *is_it).for_each(|(&buffer, _)| b.stream(buffer));
            body(b, signature);
        });
        let (reads, writes) = (reads.to_vec(), writes.to_vec());
        let grain = grain.clamp(1, extent);
        let call =
            PendingCall { kernel, reads, writes, extent, grain, task: self.task, payload: serde_json::Value::Null };
        if !self.is_at_load {
            return self.calls.push(call);
        }
        let (bytes, writes) = self.touched(&call);
        let ids: Vec<_> = call.reads.iter().chain(&call.writes).copied().collect();
        let buffers = ids.into_iter().map(|id| self.placed(id).expect("calls at load access only constants"));
        let buffers = buffers.collect();
        let (kernel, grain, after, payload) = (call.kernel, call.grain, vec![], Default::default());
        self.pool.load_calls.push(Call { kernel, buffers, bytes, writes, extent, grain, task: 0, after, payload });
    }

    /// Returns the number of bytes that a call accesses in each buffer, and the indices of the buffers that it writes.
    pub(super) fn touched(&self, call: &PendingCall) -> (Vec<u64>, Vec<usize>) {
        let bytes = call.reads.iter().chain(&call.writes).map(|&id| self.touched_bytes(id)).collect();
        (bytes, (call.reads.len()..call.reads.len() + call.writes.len()).collect())
    }

    /// Runs `body`, whose calls read only `read`. If that is a constant, its calls run once, when the bundle is loaded.
    pub(crate) fn at_load_if_constant(&mut self, read: Id, body: impl FnOnce(&mut Self)) {
        let is_constant = self.is_constant(read);
        let before = std::mem::replace(&mut self.is_at_load, is_constant);
        body(self);
        self.is_at_load = before;
    }

    /// Adds a launch of a SIMT kernel whose buffers are `reads`, then `writes`.
    pub(crate) fn push_launch(&mut self, kernel: SimtKernel, reads: &[Id], writes: &[Id], payload: serde_json::Value) {
        let (reads, writes, task) = (reads.to_vec(), writes.to_vec(), self.task);
        let SimtKernel { name: kernel, extent, .. } = kernel;
        self.calls.push(PendingCall { kernel, reads, writes, extent, grain: 1, task, payload });
    }

    /// Builds a SIMT kernel.
    pub(crate) fn add_simt_kernel(&mut self, spec: &SimtKernelSpec<'_>, reads: &[Id], writes: &[Id]) -> SimtKernel {
        const MOST: i64 = i32::MAX as i64;
        let has_32_bit_indices = spec.extent < MOST && reads.iter().chain(writes).all(|&id| self.count(id) < MOST);
        let grid = match spec.distribution {
            Distribution::Iterations => Grid::Iterations,
            Distribution::Blocks(threads) => Grid::Blocks(threads),
            Distribution::SingleThread => Grid::Blocks(1),
        };
        let simt = self.simt.as_mut().expect("only stages of SIMT devices are launched");
        let buffers = reads.len() + writes.len();
        let (name, can_fail) =
            simt.kernels.add(Some(grid), has_32_bit_indices, buffers, |b, signature| (spec.body)(b, &signature));
        let (blocks, threads) = spec.grid();
        SimtKernel { name, blocks, threads, extent: spec.extent, can_fail }
    }
}
