//! Interface to the CUDA functions in use. [`super::real`] implements it with CUDA; tests use a stub that runs on the host.

use super::launch::LibraryOp;
use std::{ffi::CStr, fmt, sync::Arc};

/// Address in GPU memory.
pub(crate) type Address = u64;

// Handles of a GPU, valid as long as the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stream(pub(crate) usize);
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event(pub(crate) usize);
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Module(pub(crate) usize);
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Function(pub(crate) usize);
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Graph(pub(crate) usize);

impl Stream {
    /// CUDA's default stream.
    pub(crate) const DEFAULT: Self = Self(0);
}

/// Error of CUDA.
#[derive(Clone, Debug)]
pub(crate) enum CudaError {
    /// The driver is missing or too old.
    Driver(String),
    /// Out of memory.
    Memory,
    /// The context is corrupted: the GPU cannot be used in this process any more.
    Lost(String),
    Other(String),
}

impl fmt::Display for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Driver(text) | Self::Lost(text) | Self::Other(text) => f.write_str(text),
            Self::Memory => f.write_str("out of memory"),
        }
    }
}

pub(crate) type CudaResult<T> = Result<T, CudaError>;

/// GPUs of a machine.
pub(crate) trait Api: Send + Sync {
    fn count(&self) -> CudaResult<usize>;
    fn open(&self, ordinal: usize) -> CudaResult<Arc<dyn Gpu>>;
}

/// GPU, usable from any thread. Operations on a stream are asynchronous and execute in order.
pub(crate) trait Gpu: Send + Sync {
    fn name(&self) -> &str;
    /// Returns the compute capability: `(9, 0)` for `sm_90`.
    fn capability(&self) -> (u32, u32);
    /// Returns the free memory in bytes.
    fn free_memory(&self) -> CudaResult<u64>;

    fn allocate(&self, bytes: u64) -> CudaResult<Address>;
    fn free(&self, address: Address);
    /// Allocates pinned host memory.
    fn allocate_pinned(&self, bytes: u64) -> CudaResult<*mut u8>;
    fn free_pinned(&self, pointer: *mut u8);
    /// Returns true for pinned host memory.
    fn is_pinned(&self, pointer: *const u8) -> bool;

    fn stream(&self) -> CudaResult<Stream>;
    fn event(&self) -> CudaResult<Event>;
    fn record(&self, event: Event, stream: Stream) -> CudaResult<()>;
    /// Adds an event record node to the graph that is being captured: each launch of the graph records the event.
    fn record_in_graph(&self, event: Event, stream: Stream) -> CudaResult<()>;
    /// Makes later work on the stream wait for the last record of an event.
    fn wait(&self, stream: Stream, event: Event) -> CudaResult<()>;
    /// Adds an event wait node to the graph that is being captured. The event must be recorded before the graph is launched.
    fn wait_in_graph(&self, stream: Stream, event: Event) -> CudaResult<()>;
    /// Returns the time between two events that have occurred, in µs.
    fn micros_between(&self, first: Event, second: Event) -> CudaResult<f64>;
    /// Polls until an event has occurred; returns immediately if it was never recorded.
    fn await_event(&self, event: Event) -> CudaResult<()>;
    /// Polls until all work on a stream has completed.
    fn synchronize(&self, stream: Stream) -> CudaResult<()>;

    /// Enqueues a copy from the host.
    ///
    /// # Safety
    /// Both ranges are valid until the copy has completed.
    unsafe fn copy_to_device(&self, to: Address, from: *const u8, bytes: u64, stream: Stream) -> CudaResult<()>;
    /// Enqueues a copy to the host.
    ///
    /// # Safety
    /// As above.
    unsafe fn copy_to_host(&self, to: *mut u8, from: Address, bytes: u64, stream: Stream) -> CudaResult<()>;
    /// Enqueues a copy within GPU memory.
    ///
    /// # Safety
    /// As above.
    unsafe fn copy_on_device(&self, to: Address, from: Address, bytes: u64, stream: Stream) -> CudaResult<()>;
    /// Enqueues zeroing of GPU memory.
    ///
    /// # Safety
    /// As above.
    unsafe fn zero(&self, at: Address, bytes: u64, stream: Stream) -> CudaResult<()>;

    fn load(&self, ptx: &CStr) -> CudaResult<Module>;
    fn function(&self, module: Module, name: &CStr) -> CudaResult<Function>;
    /// Enqueues a kernel.
    ///
    /// # Safety
    /// The function takes these arguments, eight bytes each.
    unsafe fn launch(&self, function: Function, grid: Grid, arguments: &[u64], stream: Stream) -> CudaResult<()>;

    /// Starts capturing: operations of this thread on the stream become nodes of a graph until [`Gpu::end_capture`].
    fn begin_capture(&self, stream: Stream) -> CudaResult<()>;
    fn end_capture(&self, stream: Stream) -> CudaResult<Graph>;
    /// Uploads a graph to the GPU, which makes its first launch faster.
    fn upload_graph(&self, graph: Graph, stream: Stream) -> CudaResult<()>;
    fn launch_graph(&self, graph: Graph, stream: Stream) -> CudaResult<()>;
    fn drop_graph(&self, graph: Graph);

    /// Returns the algorithms of a vendor library for a computation; empty if the library is not installed. Buffers are
    /// aligned to `alignment` bytes.
    fn plans(&self, library: &LibraryOp, alignment: u64) -> CudaResult<Vec<Arc<dyn Plan>>>;
}

/// Captures the operations that `issue` enqueues on a stream as a graph.
pub(crate) fn capture(gpu: &dyn Gpu, stream: Stream, issue: impl FnOnce() -> CudaResult<()>) -> CudaResult<Graph> {
    gpu.begin_capture(stream)?;
    let issued = issue();
    let graph = gpu.end_capture(stream);
    if let (Err(_), Ok(graph)) = (&issued, &graph) {
        gpu.drop_graph(*graph);
    }
    issued.and(graph)
}

/// As [`capture`]; returns `None` if the operations cannot be captured. The caller then enqueues them directly, which reports
/// an error that is not about capturing.
pub(crate) fn try_capture(
    gpu: &dyn Gpu,
    stream: Stream,
    issue: impl FnOnce() -> CudaResult<()>,
) -> CudaResult<Option<Graph>> {
    match capture(gpu, stream, issue) {
        Ok(graph) => Ok(Some(graph)),
        Err(fault @ CudaError::Lost(_)) => Err(fault),
        Err(_) => Ok(None),
    }
}

/// Launch grid of a kernel: number of blocks, and threads per block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(crate) blocks: u32,
    pub(crate) threads: u32,
}

/// Algorithm of a library for a computation.
pub(crate) trait Plan: Send + Sync {
    /// Returns the library with its version, and the algorithm. Stable across processes.
    fn name(&self) -> String;
    /// Returns the required workspace in bytes.
    fn workspace(&self) -> u64;
    /// Enqueues the computation.
    ///
    /// # Safety
    /// Buffers match the computation of the plan; the workspace is large enough and not used by other work.
    unsafe fn run(&self, buffers: &[Address], workspace: Address, stream: Stream) -> CudaResult<()>;
}
