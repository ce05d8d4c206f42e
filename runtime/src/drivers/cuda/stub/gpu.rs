//! Stub GPU, and a library algorithm on it.

use super::queue::{Captured, Known, Operation, Queued, State};
use crate::drivers::cuda::{
    driver::{Address, CudaError, CudaResult, Event, Function, Gpu, Graph, Grid, Module, Plan, Stream},
    launch::{LibraryOp, MatMul},
};
use divi_threads::sync::Mutex;
use std::{
    alloc::Layout,
    collections::{HashMap, VecDeque},
    ffi::CStr,
    sync::Arc,
};

pub(super) struct StubGpu {
    pub(super) capability: (u32, u32),
    pub(super) plans: Vec<(f64, u64)>,
    pub(super) state: Arc<Mutex<State>>,
}

struct StubPlan {
    product: MatMul,
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

    unsafe fn run(&self, buffers: &[Address], workspace: Address, stream: Stream) -> CudaResult<()> {
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

    fn free_memory(&self) -> CudaResult<u64> {
        Ok(self.state.lock().free)
    }

    fn allocate(&self, bytes: u64) -> CudaResult<Address> {
        Ok(self.state.lock().allocate(bytes, "allocate")?.addr() as Address)
    }

    fn free(&self, address: Address) {
        self.state.lock().free(address as usize);
    }

    fn allocate_pinned(&self, bytes: u64) -> CudaResult<*mut u8> {
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

    fn stream(&self) -> CudaResult<Stream> {
        let mut state = self.state.lock();
        state.streams.push(VecDeque::new());
        Ok(Stream(state.streams.len() - 1))
    }

    fn event(&self) -> CudaResult<Event> {
        let mut state = self.state.lock();
        state.events.push(Known::default());
        Ok(Event(state.events.len() - 1))
    }

    fn record(&self, event: Event, stream: Stream) -> CudaResult<()> {
        let mut state = self.state.lock();
        match state.capture_of(stream) {
            Some(captured) => {
                captured.recorded.insert(event.0, stream);
                Ok(())
            }
            None => state.put(stream, Queued::Operation(Operation::Record { event })),
        }
    }

    fn record_in_graph(&self, event: Event, stream: Stream) -> CudaResult<()> {
        self.state.lock().do_or_keep(stream, Operation::Record { event })
    }

    fn wait(&self, stream: Stream, event: Event) -> CudaResult<()> {
        let mut state = self.state.lock();
        if let Some(captured) = state.captures.iter_mut().find(|captured| captured.recorded.contains_key(&event.0)) {
            let of = captured.recorded[&event.0];
            if !captured.streams.contains(&stream) {
                captured.streams.push(stream);
            }
            captured.joined.push(of);
            return Ok(());
        }
        let ordered = state.events[event.0].ordered;
        state.put(stream, Queued::Wait(event, ordered))
    }

    fn wait_in_graph(&self, stream: Stream, event: Event) -> CudaResult<()> {
        self.state.lock().do_or_keep(stream, Operation::Await { event })
    }

    fn micros_between(&self, first: Event, second: Event) -> CudaResult<f64> {
        let state = self.state.lock();
        let [first, second] = [first, second].map(|event| state.events[event.0]);
        match !state.is_lost
            && [first, second].iter().all(|event| event.happened > 0 && event.happened == event.ordered)
        {
            true => Ok(second.time - first.time),
            false => Err(CudaError::Other("an event has not happened".to_owned())),
        }
    }

    fn await_event(&self, event: Event) -> CudaResult<()> {
        let mut state = self.state.lock();
        state.log.push("await".to_owned());
        let ordered = state.events[event.0].ordered;
        state.await_event(event, ordered)
    }

    fn synchronize(&self, stream: Stream) -> CudaResult<()> {
        let mut state = self.state.lock();
        state.log.push("finish".to_owned());
        state.finish(stream)
    }

    unsafe fn copy_to_device(&self, to: Address, from: *const u8, bytes: u64, stream: Stream) -> CudaResult<()> {
        let operation = Operation::Copy { to: to as usize, from: from.expose_provenance(), bytes };
        self.state.lock().do_or_keep(stream, operation)
    }

    unsafe fn copy_to_host(&self, to: *mut u8, from: Address, bytes: u64, stream: Stream) -> CudaResult<()> {
        let operation = Operation::Copy { to: to.expose_provenance(), from: from as usize, bytes };
        self.state.lock().do_or_keep(stream, operation)
    }

    unsafe fn copy_on_device(&self, to: Address, from: Address, bytes: u64, stream: Stream) -> CudaResult<()> {
        let operation = Operation::Copy { to: to as usize, from: from as usize, bytes };
        self.state.lock().do_or_keep(stream, operation)
    }

    unsafe fn zero(&self, at: Address, bytes: u64, stream: Stream) -> CudaResult<()> {
        self.state.lock().do_or_keep(stream, Operation::Zero { at: at as usize, bytes })
    }

    fn load(&self, ptx: &CStr) -> CudaResult<Module> {
        if ptx.to_bytes().starts_with(b"// PTX") {
            return Ok(Module(0));
        }
        Err(CudaError::Other("a PTX JIT compilation failed: line 1; fatal: unexpected end".to_owned()))
    }

    fn function(&self, _: Module, name: &CStr) -> CudaResult<Function> {
        let name = name.to_string_lossy().into_owned();
        if !["add", "scale", "root", "product"].contains(&&name[..]) {
            return Err(CudaError::Other("named symbol not found".to_owned()));
        }
        let mut state = self.state.lock();
        state.names.push(name);
        Ok(Function(state.names.len() - 1))
    }

    unsafe fn launch(&self, function: Function, grid: Grid, arguments: &[u64], stream: Stream) -> CudaResult<()> {
        assert!(grid.blocks > 0 && grid.threads > 0);
        let mut state = self.state.lock();
        let name = state.names[function.0].clone();
        state.do_or_keep(stream, Operation::Kernel { name, arguments: arguments.to_vec() })
    }

    fn begin_capture(&self, stream: Stream) -> CudaResult<()> {
        let captured = Captured { streams: vec![stream], joined: vec![], recorded: HashMap::new(), operations: vec![] };
        self.state.lock().captures.push(captured);
        Ok(())
    }

    fn end_capture(&self, stream: Stream) -> CudaResult<Graph> {
        let mut state = self.state.lock();
        let index = state.captures.iter().position(|captured| captured.streams.contains(&stream));
        let captured = index.map(|index| state.captures.remove(index)).expect("a capture has begun");
        if state.refuses_captures {
            return Err(CudaError::Other("operation not permitted when stream is capturing".to_owned()));
        }
        if captured.streams.iter().any(|other| *other != stream && !captured.joined.contains(other)) {
            return Err(CudaError::Other("capture was not ended properly: unjoined work".to_owned()));
        }
        state.log.push(format!("graph of {} on {}", captured.operations.len(), captured.streams.len()));
        state.graphs.push(Some(captured.operations));
        Ok(Graph(state.graphs.len() - 1))
    }

    fn upload_graph(&self, graph: Graph, _: Stream) -> CudaResult<()> {
        assert!(self.state.lock().graphs[graph.0].is_some());
        Ok(())
    }

    fn launch_graph(&self, graph: Graph, stream: Stream) -> CudaResult<()> {
        let mut state = self.state.lock();
        state.log.push("launch graph".to_owned());
        state.put(stream, Queued::Graph(graph))
    }

    fn drop_graph(&self, graph: Graph) {
        self.state.lock().graphs[graph.0] = None;
    }

    fn plans(&self, library: &LibraryOp, _: u64) -> CudaResult<Vec<Arc<dyn Plan>>> {
        let LibraryOp::MatMul(product) = library else { return Ok(vec![]) };
        let plan = |&(micros, workspace): &(f64, u64)| {
            let (product, state) = (product.clone(), self.state.clone());
            Arc::new(StubPlan { product, micros, workspace, state }) as Arc<dyn Plan>
        };
        Ok(self.plans.iter().map(plan).collect())
    }
}
