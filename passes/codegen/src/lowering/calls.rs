//! Kernels that a stage calls, or launches.

use super::{Lowering, Storage};
use crate::{
    emit::{Builder, Grid, Signature},
    graph::Id,
    kernels::{Kernels, THREADS},
};
use divi_runtime::bundle::Call;

/// A call before its buffers are placed.
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

/// Blocks beyond these do more than one round.
const MOST_BLOCKS: u64 = 1 << 20;

/// Kernels of a SIMT device, and the payload by which its driver launches one.
pub(crate) struct Simt<'a> {
    pub(crate) kernels: &'a mut Kernels,
    pub(crate) payload: fn(&SimtKernel) -> serde_json::Value,
}

/// A kernel of a SIMT device with its grid.
#[derive(Clone, Debug)]
pub(crate) struct SimtKernel {
    pub(crate) name: String,
    pub(crate) blocks: u32,
    pub(crate) threads: u32,
    pub(crate) extent: i64,
    pub(crate) can_fail: bool,
}

/// A kernel of a SIMT device, before it is built.
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

impl Lowering<'_> {
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
        if self.is_simt() {
            // Bytes that have several elements are one thread's.
            let is_shared = writes.iter().any(|&id| self.dtype(id).bits() < 8);
            let body = std::cell::Cell::new(Some(body));
            let body = |b: &Builder, signature: &Signature<'_>| {
                if let Some(body) = body.take() {
                    body(b, Signature { ..*signature });
                }
            };
            let way = if is_shared { Way::Alone } else { Way::Iterations };
            let kernel = self.add_simt_kernel(&Phase { extent, way, body: &body }, reads, writes);
            let payload = self.simt.as_ref().map_or_else(Default::default, |simt| (simt.payload)(&kernel));
            return self.push_launch(kernel, reads, writes, payload);
        }
        let is_streamed: Vec<_> = writes.iter().map(|&id| self.is_streamed(id)).collect();
        let (kernel, ..) = self.kernels.add(None, false, buffers, |b, signature| {
            let written = signature.buffers[reads.len()..].iter();
            written.zip(is_streamed).filter(|(_, is_it)| *is_it).for_each(|(&buffer, _)| b.stream(buffer));
            body(b, signature);
        });
        let (reads, writes) = (reads.to_vec(), writes.to_vec());
        let grain = grain.clamp(1, extent);
        let call =
            PendingCall { kernel, reads, writes, extent, grain, task: self.task, payload: serde_json::Value::Null };
        if !self.is_preparing {
            return self.calls.push(call);
        }
        let (bytes, writes) = self.touched(&call);
        let ids: Vec<_> = call.reads.iter().chain(&call.writes).copied().collect();
        let buffers = ids.into_iter().map(|id| self.placed(id).expect("what is prepared is made of constants"));
        let buffers = buffers.collect();
        let (kernel, grain, after, payload) = (call.kernel, call.grain, vec![], Default::default());
        self.pool.prepare.push(Call { kernel, buffers, bytes, writes, extent, grain, task: 0, after, payload });
    }

    /// The bytes that a call touches of each of its buffers, and which of these it writes.
    pub(super) fn touched(&self, call: &PendingCall) -> (Vec<u64>, Vec<usize>) {
        let bytes = call.reads.iter().chain(&call.writes).map(|&id| self.touched_bytes(id)).collect();
        (bytes, (call.reads.len()..call.reads.len() + call.writes.len()).collect())
    }

    /// Makes the calls of `body` when the bundle is loaded if they read nothing but a constant.
    pub(crate) fn prepared_if_constant(&mut self, read: Id, body: impl FnOnce(&mut Self)) {
        let is_constant = self.is_constant(read);
        let before = std::mem::replace(&mut self.is_preparing, is_constant);
        body(self);
        self.is_preparing = before;
    }

    /// Adds a call that launches a SIMT kernel on the buffers of `reads`, then those of `writes`.
    pub(crate) fn push_launch(&mut self, kernel: SimtKernel, reads: &[Id], writes: &[Id], payload: serde_json::Value) {
        let (reads, writes, task) = (reads.to_vec(), writes.to_vec(), self.task);
        let SimtKernel { name: kernel, extent, .. } = kernel;
        self.calls.push(PendingCall { kernel, reads, writes, extent, grain: 1, task, payload });
    }

    /// Builds the kernel of a phase.
    pub(crate) fn add_simt_kernel(&mut self, phase: &Phase<'_>, reads: &[Id], writes: &[Id]) -> SimtKernel {
        const MOST: i64 = i32::MAX as i64;
        let is_narrow = phase.extent < MOST && reads.iter().chain(writes).all(|&id| self.count(id) < MOST);
        let grid = match phase.way {
            Way::Iterations => Grid::Iterations,
            Way::Blocks(threads) => Grid::Blocks(threads),
            Way::Alone => Grid::Blocks(1),
        };
        let simt = self.simt.as_mut().expect("only stages of SIMT devices are launched");
        let buffers = reads.len() + writes.len();
        let (name, can_fail) =
            simt.kernels.add(Some(grid), is_narrow, buffers, |b, signature| (phase.body)(b, &signature));
        let (blocks, threads) = phase.grid();
        SimtKernel { name, blocks, threads, extent: phase.extent, can_fail }
    }
}
