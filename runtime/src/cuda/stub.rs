//! A stub of CUDA for tests: its GPUs are on the host, do nothing before somebody waits for it, and keep a log. They fail when
//! they are told to.

use super::driver::{Address, Driver, Event, Fault, Function, Gpu, Graph, Grid, Module, Outcome, Plan, Stream};
use crate::{
    bundle::{Library, Product},
    sync::Mutex,
};
use std::{
    alloc::{Layout, alloc, dealloc},
    collections::{HashMap, VecDeque},
    ffi::CStr,
    ptr, slice,
    sync::Arc,
};

/// Microseconds that anything takes, by a clock that nothing else moves.
const STEP: f64 = 10.0;

/// A machine with GPUs.
pub(crate) struct Stub {
    pub(crate) count: usize,
    pub(crate) capability: (u32, u32),
    /// Why there is no driver.
    pub(crate) refusal: Option<String>,
    /// What a library's ways to compute something take, in microseconds, and in bytes of workspace.
    pub(crate) plans: Vec<(f64, u64)>,
    pub(crate) state: Arc<Mutex<State>>,
}

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
    is_lost: bool,
    clock: f64,
    sizes: HashMap<usize, Layout>,
    /// Which of them are the host's.
    pinned: Vec<usize>,
    names: Vec<String>,
    events: Vec<Known>,
    /// What streams have to do yet.
    streams: Vec<VecDeque<Queued>>,
    /// The streams that are captured, those that were joined to others again, and what was put on them.
    captured: Option<Captured>,
    graphs: Vec<Option<Vec<Operation>>>,
}

/// What is known of an event.
#[derive(Clone, Copy, Default)]
struct Known {
    /// How often it was to be recorded, and how often it was; those of captures are none.
    ordered: u64,
    happened: u64,
    /// When it was recorded last.
    time: f64,
}

enum Queued {
    Operation(Operation),
    Graph(Graph),
    /// Until an event has been recorded so often.
    Wait(Event, u64),
}

struct Captured {
    streams: Vec<Stream>,
    joined: Vec<Stream>,
    /// Which streams events are of.
    recorded: HashMap<usize, Stream>,
    operations: Vec<Operation>,
}

#[derive(Clone)]
enum Operation {
    Copy { to: usize, from: usize, bytes: u64 },
    Record { event: Event },
    Await { event: Event },
    Zero { at: usize, bytes: u64 },
    Kernel { name: String, arguments: Vec<u64> },
    Multiply { product: Product, buffers: Vec<Address>, micros: f64 },
}

impl Stub {
    pub(crate) fn new() -> Self {
        let state = State {
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
        };
        let state = Arc::new(Mutex::new(state));
        Self { count: 1, capability: (9, 0), refusal: None, plans: vec![], state }
    }

    /// How often something was done.
    pub(crate) fn times(&self, what: &str) -> usize {
        self.state.lock().log.iter().filter(|line| line.starts_with(what)).count()
    }

    /// How many pieces of memory are not freed.
    pub(crate) fn pieces(&self) -> usize {
        self.state.lock().sizes.len()
    }
}

impl Driver for Stub {
    fn count(&self) -> Outcome<usize> {
        self.refusal.clone().map_or(Ok(self.count), |refusal| Err(Fault::Driver(refusal)))
    }

    fn open(&self, _: usize) -> Outcome<Arc<dyn Gpu>> {
        Ok(Arc::new(StubGpu { capability: self.capability, plans: self.plans.clone(), state: self.state.clone() }))
    }
}

struct StubGpu {
    capability: (u32, u32),
    plans: Vec<(f64, u64)>,
    state: Arc<Mutex<State>>,
}

impl State {
    fn allocate(&mut self, bytes: u64, line: &str) -> Outcome<*mut u8> {
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

    fn free(&mut self, address: usize) {
        let layout = self.sizes.remove(&address).expect("it was allocated, and is freed once");
        self.free += layout.size() as u64;
        // SAFETY: it was allocated with this layout.
        unsafe { dealloc(ptr::with_exposed_provenance_mut(address), layout) };
    }

    fn do_or_keep(&mut self, stream: Stream, operation: Operation) -> Outcome<()> {
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

    fn put(&mut self, stream: Stream, queued: Queued) -> Outcome<()> {
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
    fn finish(&mut self, stream: Stream) -> Outcome<()> {
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
    fn await_event(&mut self, event: Event, count: u64) -> Outcome<()> {
        while self.events[event.0].happened < count {
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

fn floats(address: u64, count: usize) -> &'static mut [f32] {
    // SAFETY: the tests' kernels have buffers as long as their extent.
    unsafe { slice::from_raw_parts_mut(ptr::with_exposed_provenance_mut(address as usize), count) }
}

/// The kernels of tests: as in `tests/runtime/kernels.c`.
fn run(name: &str, arguments: &[u64]) {
    match (name, arguments) {
        ("add", &[out, left, right, extent]) => {
            let count = extent as usize;
            let (left, right) = (floats(left, count).to_vec(), floats(right, count).to_vec());
            floats(out, count)
                .iter_mut()
                .zip(left.iter().zip(right))
                .for_each(|(out, (left, right))| *out = left + right);
        }
        ("scale", &[out, numbers, by, extent]) => {
            let (numbers, by) = (floats(numbers, extent as usize).to_vec(), floats(by, 1)[0]);
            floats(out, extent as usize).iter_mut().zip(numbers).for_each(|(out, number)| *out = number * by);
        }
        ("root", &[out, numbers, extent, status]) => {
            let numbers = floats(numbers, extent as usize).to_vec();
            if numbers.iter().any(|&number| number < 0.0) {
                // SAFETY: it is the address of the status.
                unsafe { ptr::with_exposed_provenance_mut::<i32>(status as usize).write(3) };
                return;
            }
            floats(out, extent as usize).iter_mut().zip(numbers).for_each(|(out, number)| *out = number * number);
        }
        ("product", &[left, right, out, extent]) => {
            let size = (extent as f64).sqrt() as u32;
            multiply(&square(size), &[left, right, out]);
        }
        _ => panic!("no kernel '{name}' takes {} arguments", arguments.len()),
    }
}

/// A product of square matrices.
pub(crate) fn square(size: u32) -> Product {
    Product {
        count: 1,
        left_stride: 0,
        right_stride: 0,
        output_stride: 0,
        rows: size,
        columns: size,
        depth: size,
        left_is_turned: false,
        right_is_turned: false,
        alpha: 1.0_f32.to_bits(),
        has_bias: false,
        epilogue: crate::bundle::Epilogue::None,
    }
}

fn multiply(product: &Product, buffers: &[Address]) {
    let size = product.rows as usize;
    let matrix = |index: usize| floats(buffers[index], size * size);
    let (left, right) = (matrix(0).to_vec(), matrix(1).to_vec());
    for (place, out) in matrix(2).iter_mut().enumerate() {
        let (row, column) = (place / size, place % size);
        *out = (0..size).map(|k| left[row * size + k] * right[k * size + column]).sum();
    }
}

struct StubPlan {
    product: Product,
    micros: f64,
    workspace: u64,
    state: Arc<Mutex<State>>,
}

impl Plan for StubPlan {
    fn name(&self) -> String {
        format!("library {}", self.micros)
    }

    fn workspace(&self) -> u64 {
        self.workspace
    }

    unsafe fn run(&self, buffers: &[Address], workspace: Address, stream: Stream) -> Outcome<()> {
        let mut state = self.state.lock();
        let room = state.sizes.get(&(workspace as usize)).map_or(0, Layout::size);
        assert!(room as u64 >= self.workspace, "the workspace has {room} bytes");
        let operation =
            Operation::Multiply { product: self.product.clone(), buffers: buffers.to_vec(), micros: self.micros };
        state.do_or_keep(stream, operation)
    }
}

impl Gpu for StubGpu {
    fn name(&self) -> &str {
        "stub"
    }

    fn capability(&self) -> (u32, u32) {
        self.capability
    }

    fn free_memory(&self) -> Outcome<u64> {
        Ok(self.state.lock().free)
    }

    fn allocate(&self, bytes: u64) -> Outcome<Address> {
        Ok(self.state.lock().allocate(bytes, "allocate")?.addr() as Address)
    }

    fn free(&self, address: Address) {
        self.state.lock().free(address as usize);
    }

    fn allocate_pinned(&self, bytes: u64) -> Outcome<*mut u8> {
        let mut state = self.state.lock();
        let pointer = state.allocate(bytes, "pin")?;
        state.pinned.push(pointer.addr());
        Ok(pointer)
    }

    fn free_pinned(&self, pointer: *mut u8) {
        let mut state = self.state.lock();
        state.pinned.retain(|pinned| *pinned != pointer.addr());
        state.free(pointer.addr());
    }

    fn is_pinned(&self, pointer: *const u8) -> bool {
        let state = self.state.lock();
        let is_in = |begin: &usize| (*begin..begin + state.sizes[begin].size()).contains(&pointer.addr());
        state.pinned.iter().any(is_in)
    }

    fn stream(&self) -> Outcome<Stream> {
        let mut state = self.state.lock();
        state.streams.push(VecDeque::new());
        Ok(Stream(state.streams.len() - 1))
    }

    fn event(&self) -> Outcome<Event> {
        let mut state = self.state.lock();
        state.events.push(Known::default());
        Ok(Event(state.events.len() - 1))
    }

    fn record(&self, event: Event, stream: Stream) -> Outcome<()> {
        let mut state = self.state.lock();
        match &mut state.captured {
            Some(captured) if captured.streams.contains(&stream) => {
                captured.recorded.insert(event.0, stream);
                Ok(())
            }
            _ => state.put(stream, Queued::Operation(Operation::Record { event })),
        }
    }

    fn record_in_graph(&self, event: Event, stream: Stream) -> Outcome<()> {
        self.state.lock().do_or_keep(stream, Operation::Record { event })
    }

    fn wait(&self, stream: Stream, event: Event) -> Outcome<()> {
        let mut state = self.state.lock();
        if let Some(captured) = &mut state.captured
            && let Some(&of) = captured.recorded.get(&event.0)
        {
            if !captured.streams.contains(&stream) {
                captured.streams.push(stream);
            }
            captured.joined.push(of);
            return Ok(());
        }
        let ordered = state.events[event.0].ordered;
        state.put(stream, Queued::Wait(event, ordered))
    }

    fn wait_in_graph(&self, stream: Stream, event: Event) -> Outcome<()> {
        self.state.lock().do_or_keep(stream, Operation::Await { event })
    }

    fn micros_between(&self, first: Event, second: Event) -> Outcome<f64> {
        let state = self.state.lock();
        let [first, second] = [first, second].map(|event| state.events[event.0]);
        match first.happened > 0 && second.happened > 0 {
            true => Ok(second.time - first.time),
            false => Err(Fault::Other("an event was not recorded".to_owned())),
        }
    }

    fn await_event(&self, event: Event) -> Outcome<()> {
        let mut state = self.state.lock();
        state.log.push("await".to_owned());
        let ordered = state.events[event.0].ordered;
        state.await_event(event, ordered)
    }

    fn finish(&self, stream: Stream) -> Outcome<()> {
        let mut state = self.state.lock();
        state.log.push("finish".to_owned());
        state.finish(stream)
    }

    unsafe fn copy_in(&self, to: Address, from: *const u8, bytes: u64, stream: Stream) -> Outcome<()> {
        let operation = Operation::Copy { to: to as usize, from: from.expose_provenance(), bytes };
        self.state.lock().do_or_keep(stream, operation)
    }

    unsafe fn copy_out(&self, to: *mut u8, from: Address, bytes: u64, stream: Stream) -> Outcome<()> {
        let operation = Operation::Copy { to: to.expose_provenance(), from: from as usize, bytes };
        self.state.lock().do_or_keep(stream, operation)
    }

    unsafe fn copy_within(&self, to: Address, from: Address, bytes: u64, stream: Stream) -> Outcome<()> {
        let operation = Operation::Copy { to: to as usize, from: from as usize, bytes };
        self.state.lock().do_or_keep(stream, operation)
    }

    unsafe fn zero(&self, at: Address, bytes: u64, stream: Stream) -> Outcome<()> {
        self.state.lock().do_or_keep(stream, Operation::Zero { at: at as usize, bytes })
    }

    fn load(&self, ptx: &CStr) -> Outcome<Module> {
        if ptx.to_bytes().starts_with(b"// PTX") {
            return Ok(Module(0));
        }
        Err(Fault::Other("a PTX JIT compilation failed: line 1; fatal: unexpected end".to_owned()))
    }

    fn function(&self, _: Module, name: &CStr) -> Outcome<Function> {
        let name = name.to_string_lossy().into_owned();
        if !["add", "scale", "root", "product"].contains(&&name[..]) {
            return Err(Fault::Other("named symbol not found".to_owned()));
        }
        let mut state = self.state.lock();
        state.names.push(name);
        Ok(Function(state.names.len() - 1))
    }

    unsafe fn launch(&self, function: Function, grid: Grid, arguments: &[u64], stream: Stream) -> Outcome<()> {
        assert!(grid.blocks > 0 && grid.threads > 0);
        let mut state = self.state.lock();
        let name = state.names[function.0].clone();
        state.do_or_keep(stream, Operation::Kernel { name, arguments: arguments.to_vec() })
    }

    fn begin_capture(&self, stream: Stream) -> Outcome<()> {
        let captured = Captured { streams: vec![stream], joined: vec![], recorded: HashMap::new(), operations: vec![] };
        self.state.lock().captured = Some(captured);
        Ok(())
    }

    fn end_capture(&self, stream: Stream) -> Outcome<Graph> {
        let mut state = self.state.lock();
        let captured = state.captured.take().expect("a capture has begun");
        if state.refuses_captures {
            return Err(Fault::Other("operation not permitted when stream is capturing".to_owned()));
        }
        if captured.streams.iter().any(|other| *other != stream && !captured.joined.contains(other)) {
            return Err(Fault::Other("capture was not ended properly: unjoined work".to_owned()));
        }
        state.log.push(format!("graph of {} on {}", captured.operations.len(), captured.streams.len()));
        state.graphs.push(Some(captured.operations));
        Ok(Graph(state.graphs.len() - 1))
    }

    fn upload_graph(&self, graph: Graph, _: Stream) -> Outcome<()> {
        assert!(self.state.lock().graphs[graph.0].is_some());
        Ok(())
    }

    fn launch_graph(&self, graph: Graph, stream: Stream) -> Outcome<()> {
        let mut state = self.state.lock();
        state.log.push("launch graph".to_owned());
        state.put(stream, Queued::Graph(graph))
    }

    fn drop_graph(&self, graph: Graph) {
        self.state.lock().graphs[graph.0] = None;
    }

    fn plans(&self, library: &Library, _: u64) -> Outcome<Vec<Arc<dyn Plan>>> {
        let Library::Product(product) = library else { return Ok(vec![]) };
        let plan = |&(micros, workspace): &(f64, u64)| {
            let (product, state) = (product.clone(), self.state.clone());
            Arc::new(StubPlan { product, micros, workspace, state }) as Arc<dyn Plan>
        };
        Ok(self.plans.iter().map(plan).collect())
    }
}
