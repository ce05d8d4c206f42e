//! What the streams of a stub have to do, which is done when somebody waits for it.

use super::kernels::{multiply, run};
use crate::drivers::cuda::{
    driver::{Address, Event, Fault, Graph, Outcome, Stream},
    launch::Product,
};
use std::{
    alloc::{Layout, alloc, dealloc},
    collections::{HashMap, VecDeque},
    ptr,
};

/// Microseconds that anything takes, by a clock that nothing else moves.
const STEP: f64 = 10.0;

pub(crate) struct State {
    pub(crate) log: Vec<String>,
    /// Where copies went to, and came from.
    pub(crate) copied: Vec<(usize, usize)>,
    /// Bytes that can still be allocated.
    pub(crate) free: u64,
    /// A kernel that uses an address that is not there.
    pub(crate) crashes: Option<String>,
    /// Whether nothing can be captured.
    pub(crate) refuses_captures: bool,
    pub(super) is_lost: bool,
    pub(super) clock: f64,
    pub(super) sizes: HashMap<usize, Layout>,
    /// Which of them are the host's.
    pub(super) pinned: Vec<usize>,
    pub(super) names: Vec<String>,
    pub(super) events: Vec<Known>,
    /// What streams have to do yet.
    pub(super) streams: Vec<VecDeque<Queued>>,
    /// The streams that are captured, those that were joined to others again, and what was put on them.
    pub(super) captured: Option<Captured>,
    pub(super) graphs: Vec<Option<Vec<Operation>>>,
}

/// What is known of an event.
#[derive(Clone, Copy, Default)]
pub(super) struct Known {
    /// How often it was to be recorded, and how often it was; those of captures are none.
    pub(super) ordered: u64,
    pub(super) happened: u64,
    /// When it was recorded last.
    pub(super) time: f64,
}

pub(super) enum Queued {
    Operation(Operation),
    Graph(Graph),
    /// Until an event has been recorded so often.
    Wait(Event, u64),
}

pub(super) struct Captured {
    pub(super) streams: Vec<Stream>,
    pub(super) joined: Vec<Stream>,
    /// Which streams events are of.
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
    Multiply { product: Product, buffers: Vec<Address>, micros: f64 },
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
            captured: None,
            graphs: vec![],
        }
    }

    pub(super) fn allocate(&mut self, bytes: u64, line: &str) -> Outcome<*mut u8> {
        if bytes > self.free {
            return Err(Fault::Memory);
        }
        self.free -= bytes;
        self.log.push(format!("{line} {bytes}"));
        let layout = Layout::from_size_align(bytes as usize, 256).unwrap();
        // SAFETY: there is no piece of no bytes.
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

    pub(super) fn do_or_keep(&mut self, stream: Stream, operation: Operation) -> Outcome<()> {
        match &mut self.captured {
            Some(captured) if captured.streams.contains(&stream) => {
                captured.operations.push(operation);
                Ok(())
            }
            _ => self.put(stream, Queued::Operation(operation)),
        }
    }

    fn lost() -> Fault {
        Fault::Lost("an illegal memory access was encountered".to_owned())
    }

    pub(super) fn put(&mut self, stream: Stream, queued: Queued) -> Outcome<()> {
        if self.is_lost {
            return Err(Self::lost());
        }
        if let Queued::Operation(Operation::Record { event }) = &queued {
            self.events[event.0].ordered += 1;
        }
        self.streams[stream.0].push_back(queued);
        Ok(())
    }

    /// Does what a stream has to do, and what it waits for.
    pub(super) fn finish(&mut self, stream: Stream) -> Outcome<()> {
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

    /// Does no more than what has to be done for an event to have been recorded so often.
    pub(super) fn await_event(&mut self, event: Event, count: u64) -> Outcome<()> {
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

    fn execute(&mut self, operation: &Operation) -> Outcome<()> {
        if self.is_lost {
            return Err(Self::lost());
        }
        if let Operation::Record { event } = operation {
            let known = &mut self.events[event.0];
            known.happened += 1;
            // Those of graphs are not ordered one by one.
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
                // SAFETY: the caller's of the copy.
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
                    // As with a real one: it is found out when somebody waits.
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
