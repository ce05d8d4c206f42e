//! What is needed of CUDA. The real one is [`super::real`]; tests have one that runs on the host.

use super::launch::Library;
use std::{ffi::CStr, fmt, sync::Arc};

/// An address in a GPU's memory.
pub(crate) type Address = u64;

/// Handles of a GPU, which live as long as it does.
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
    /// There without having been made.
    pub(crate) const DEFAULT: Self = Self(0);
}

/// Why CUDA did not do something.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// There is no driver, or none that is new enough.
    Driver(String),
    /// There is not enough memory.
    Memory,
    /// The context is lost: nothing can be done with the GPU in this process any more.
    Lost(String),
    Other(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Driver(text) | Self::Lost(text) | Self::Other(text) => f.write_str(text),
            Self::Memory => f.write_str("out of memory"),
        }
    }
}

pub(crate) type Outcome<T> = Result<T, Fault>;

/// The GPUs of a machine.
pub(crate) trait Api: Send + Sync {
    fn count(&self) -> Outcome<usize>;
    fn open(&self, ordinal: usize) -> Outcome<Arc<dyn Gpu>>;
}

/// A GPU, for any thread. What is done on a stream is done in its order, and later.
pub(crate) trait Gpu: Send + Sync {
    fn name(&self) -> &str;
    /// `(9, 0)` for `sm_90`.
    fn capability(&self) -> (u32, u32);
    /// Bytes that are free.
    fn free_memory(&self) -> Outcome<u64>;

    fn allocate(&self, bytes: u64) -> Outcome<Address>;
    fn free(&self, address: Address);
    /// Memory of the host that the GPU copies from and to by itself.
    fn allocate_pinned(&self, bytes: u64) -> Outcome<*mut u8>;
    fn free_pinned(&self, pointer: *mut u8);
    /// Whether memory of the host is such memory.
    fn is_pinned(&self, pointer: *const u8) -> bool;

    fn stream(&self) -> Outcome<Stream>;
    fn event(&self) -> Outcome<Event>;
    fn record(&self, event: Event, stream: Stream) -> Outcome<()>;
    /// The same in a capture: the event is recorded whenever the graph gets there.
    fn record_in_graph(&self, event: Event, stream: Stream) -> Outcome<()>;
    /// What comes later on the stream waits for what was on another one when the event was recorded.
    fn wait(&self, stream: Stream, event: Event) -> Outcome<()>;
    /// The same in a capture, for an event that is recorded before the graph is launched.
    fn wait_in_graph(&self, stream: Stream, event: Event) -> Outcome<()>;
    /// Microseconds between two events that have happened.
    fn micros_between(&self, first: Event, second: Event) -> Outcome<f64>;
    /// Waits, awake, until an event has happened, if it was ever recorded.
    fn await_event(&self, event: Event) -> Outcome<()>;
    /// Waits, awake, until all that is on a stream is done.
    fn finish(&self, stream: Stream) -> Outcome<()>;

    /// # Safety
    /// Both places are as long, and stay until it is done.
    unsafe fn copy_in(&self, to: Address, from: *const u8, bytes: u64, stream: Stream) -> Outcome<()>;
    /// # Safety
    /// As above.
    unsafe fn copy_out(&self, to: *mut u8, from: Address, bytes: u64, stream: Stream) -> Outcome<()>;
    /// # Safety
    /// As above.
    unsafe fn copy_within(&self, to: Address, from: Address, bytes: u64, stream: Stream) -> Outcome<()>;
    /// # Safety
    /// As above.
    unsafe fn zero(&self, at: Address, bytes: u64, stream: Stream) -> Outcome<()>;

    fn load(&self, ptx: &CStr) -> Outcome<Module>;
    fn function(&self, module: Module, name: &CStr) -> Outcome<Function>;
    /// # Safety
    /// The function takes these arguments, eight bytes each.
    unsafe fn launch(&self, function: Function, grid: Grid, arguments: &[u64], stream: Stream) -> Outcome<()>;

    /// What this thread puts on the stream until [`Gpu::end_capture`] is not done, but kept as a graph.
    fn begin_capture(&self, stream: Stream) -> Outcome<()>;
    fn end_capture(&self, stream: Stream) -> Outcome<Graph>;
    /// Has the GPU know a graph before its first launch, which takes longer else.
    fn upload_graph(&self, graph: Graph, stream: Stream) -> Outcome<()>;
    fn launch_graph(&self, graph: Graph, stream: Stream) -> Outcome<()>;
    fn drop_graph(&self, graph: Graph);

    /// The ways in which a vendor's library can compute something, if it is installed. Buffers begin at multiples of
    /// `alignment`.
    fn plans(&self, library: &Library, alignment: u64) -> Outcome<Vec<Arc<dyn Plan>>>;
}

/// What is put on a stream, as a graph.
pub(crate) fn capture(gpu: &dyn Gpu, stream: Stream, issue: impl FnOnce() -> Outcome<()>) -> Outcome<Graph> {
    gpu.begin_capture(stream)?;
    let issued = issue();
    let graph = gpu.end_capture(stream);
    if let (Err(_), Ok(graph)) = (&issued, &graph) {
        gpu.drop_graph(*graph);
    }
    issued.and(graph)
}

/// How many threads run a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(crate) blocks: u32,
    pub(crate) threads: u32,
}

/// A way in which a library computes something.
pub(crate) trait Plan: Send + Sync {
    /// The library with its version, and the algorithm: the same in every process.
    fn name(&self) -> String;
    /// Bytes that it needs beside its buffers.
    fn workspace(&self) -> u64;
    /// # Safety
    /// Buffers are those of the call that the plan was made for; the workspace is large enough and nobody else's.
    unsafe fn run(&self, buffers: &[Address], workspace: Address, stream: Stream) -> Outcome<()>;
}
