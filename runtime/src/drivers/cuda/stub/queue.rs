//! Streams of the stub: queues of operations that are executed when the host waits for them.

use super::kernels::{multiply, run};
use crate::drivers::cuda::{
    driver::{Address, CudaError, CudaResult, Event, Graph, Stream},
    launch::MatMul,
};
use std::{
    alloc::{Layout, alloc, dealloc},
    collections::{HashMap, VecDeque},
    ptr,
};

/// Duration of every operation in µs of the stub's virtual clock.
const STEP: f64 = 10.0;

pub(crate) struct State {
    pub(crate) log: Vec<String>,
    /// Targets and sources of copies.
    pub(crate) copied: Vec<(usize, usize)>,
    /// Free memory in bytes.
    pub(crate) free: u64,
    /// Kernel that accesses an invalid address.
    pub(crate) crashes: Option<String>,
    /// True if captures fail.
    pub(crate) refuses_captures: bool,
    pub(super) is_lost: bool,
    pub(super) clock: f64,
    /// Live allocations.
    pub(super) sizes: HashMap<usize, Layout>,
    /// Allocations of pinned host memory.
    pub(super) pinned: Vec<usize>,
    pub(super) names: Vec<String>,
    pub(super) events: Vec<Known>,
    /// Pending work of each stream.
    pub(super) streams: Vec<VecDeque<Queued>>,
    /// Current captures; GPUs capture at the same time.
    pub(super) captures: Vec<Captured>,
    pub(super) graphs: Vec<Option<Vec<Operation>>>,
}

/// State of an event.
#[derive(Clone, Copy, Default)]
pub(super) struct Known {
    /// Number of enqueued records, except in captures.
    pub(super) ordered: u64,
    /// Number of executed records.
    pub(super) happened: u64,
    /// Time of the last executed record.
    pub(super) time: f64,
}

pub(super) enum Queued {
    Operation(Operation),
    Graph(Graph),
    /// Waits until an event has been recorded this many times.
    Wait(Event, u64),
}

pub(super) struct Captured {
    /// Streams that take part in the capture.
    pub(super) streams: Vec<Stream>,
    /// Streams that were joined into others.
    pub(super) joined: Vec<Stream>,
    /// By event: the stream on which it was recorded.
    pub(super) recorded: HashMap<usize, Stream>,
    pub(super) operations: Vec<Operation>,
}

#[derive(Clone)]
pub(super) enum Operation {
    Copy { to: usize, from: usize, bytes: u64 },
    Record { event: Event },
    Await { event: Event },
    Zero { at: usize, bytes: u64 },
    Kernel { name: String, arguments: Vec<u64> },
    Multiply { product: MatMul, buffers: Vec<Address>, micros: f64 },
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            log: vec![],
            copied: vec![],
            free: 1 << 30,
            crashes: None,
            refuses_captures: false,
            is_lost: false,
            clock: 0.0,
            sizes: HashMap::new(),
            pinned: vec![],
            names: vec![],
            events: vec![],
            streams: vec![VecDeque::new()],
            captures: Vec::new(),
            graphs: vec![],
        }
    }

    pub(super) fn allocate(&mut self, bytes: u64, line: &str) -> CudaResult<*mut u8> {
        if bytes > self.free {
            return Err(CudaError::Memory);
        }
        self.free -= bytes;
        self.log.push(format!("{line} {bytes}"));
        let layout = Layout::from_size_align(bytes as usize, 256).unwrap();
        // SAFETY: allocations are never empty.
        let pointer = unsafe { alloc(layout) };
        self.sizes.insert(pointer.expose_provenance(), layout);
        Ok(pointer)
    }

    pub(super) fn free(&mut self, address: usize) {
        let layout = self.sizes.remove(&address).expect("it was allocated, and is freed once");
        self.free += layout.size() as u64;
        // SAFETY: it was allocated with this layout.
        unsafe { dealloc(ptr::with_exposed_provenance_mut(address), layout) };
    }

    /// Returns the capture that a stream is part of.
    pub(super) fn capture_of(&mut self, stream: Stream) -> Option<&mut Captured> {
        self.captures.iter_mut().find(|captured| captured.streams.contains(&stream))
    }

    /// Enqueues an operation, or adds it to the capture of its stream.
    pub(super) fn do_or_keep(&mut self, stream: Stream, operation: Operation) -> CudaResult<()> {
        match self.capture_of(stream) {
            Some(captured) => {
                captured.operations.push(operation);
                Ok(())
            }
            None => self.put(stream, Queued::Operation(operation)),
        }
    }

    fn lost() -> CudaError {
        CudaError::Lost("an illegal memory access was encountered".to_owned())
    }

    pub(super) fn put(&mut self, stream: Stream, queued: Queued) -> CudaResult<()> {
        if self.is_lost {
            return Err(Self::lost());
        }
        if let Queued::Operation(Operation::Record { event }) = &queued {
            self.events[event.0].ordered += 1;
        }
        self.streams[stream.0].push_back(queued);
        Ok(())
    }

    /// Executes the pending work of a stream, and the work of other streams that it waits for.
    pub(super) fn finish(&mut self, stream: Stream) -> CudaResult<()> {
        while let Some(queued) = self.streams[stream.0].pop_front() {
            match queued {
                Queued::Operation(operation) => self.execute(&operation)?,
                Queued::Graph(graph) => {
                    let operations = self.graphs[graph.0].clone().expect("the graph is not dropped");
                    operations.iter().try_for_each(|operation| self.execute(operation))?;
                }
                Queued::Wait(event, count) => self.await_event(event, count)?,
            }
        }
        if self.is_lost { Err(Self::lost()) } else { Ok(()) }
    }

    /// Executes the minimum work after which an event has been recorded `count` times.
    pub(super) fn await_event(&mut self, event: Event, count: u64) -> CudaResult<()> {
        while !self.is_lost && self.events[event.0].happened < count {
            let is_record = |queued: &Queued| match queued {
                Queued::Operation(Operation::Record { event: other }) => *other == event,
                _ => false,
            };
            let mut streams = self.streams.iter().enumerate();
            let found = streams.find_map(|(index, stream)| Some((index, stream.iter().position(is_record)?)));
            let (stream, place) = found.expect("what is waited for is on a stream");
            let rest = self.streams[stream].split_off(place + 1);
            let done = self.finish(Stream(stream));
            self.streams[stream].extend(rest);
            done?;
        }
        if self.is_lost { Err(Self::lost()) } else { Ok(()) }
    }

    fn execute(&mut self, operation: &Operation) -> CudaResult<()> {
        if self.is_lost {
            return Err(Self::lost());
        }
        if let Operation::Record { event } = operation {
            let known = &mut self.events[event.0];
            known.happened += 1;
            // Records in graphs are not counted when the graph is enqueued.
            known.ordered = known.ordered.max(known.happened);
            known.time = self.clock;
            return Ok(());
        }
        if let Operation::Await { event } = operation {
            let ordered = self.events[event.0].ordered;
            assert!(ordered > 0, "what is waited for was begun before");
            return self.await_event(*event, ordered);
        }
        self.clock += STEP;
        match operation {
            Operation::Record { .. } | Operation::Await { .. } => {}
            Operation::Copy { to, from, bytes } => {
                self.log.push(format!("copy {bytes}"));
                self.copied.push((*to, *from));
                let (to, from) =
                    (ptr::with_exposed_provenance_mut::<u8>(*to), ptr::with_exposed_provenance::<u8>(*from));
                // SAFETY: guaranteed by the caller that enqueued the copy.
                unsafe { ptr::copy(from, to, *bytes as usize) };
            }
            Operation::Zero { at, bytes } => {
                // SAFETY: as above.
                unsafe { ptr::with_exposed_provenance_mut::<u8>(*at).write_bytes(0, *bytes as usize) };
            }
            Operation::Kernel { name, arguments } => {
                self.log.push(format!("kernel {name}"));
                if self.crashes.as_ref() == Some(name) {
                    self.is_lost = true;
                    // As on a real GPU, the error is reported by a later wait.
                    return Ok(());
                }
                run(name, arguments);
            }
            Operation::Multiply { product, buffers, micros } => {
                self.log.push(format!("library {micros}"));
                self.clock += micros - STEP;
                multiply(product, buffers);
            }
        }
        Ok(())
    }
}
