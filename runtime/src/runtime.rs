//! Public interface of the runtime: a loaded program with its threads and memory.

use crate::{
    admission::Admission,
    bundle::{Bundle, Port, Tensor},
    dtype::DType,
    engine::{ClockDifference, Engine, Messages, Worker},
    error::{Error, Result},
    footprint::{self, MemoryUse},
    hal,
    options::Options,
    pool::Pool,
    program::Program,
    request::{Outputs, Request, Ticket},
    slot::Slot,
    span::{Recording, Span},
    tensor::{TensorData, TensorRef},
    workers::Executors,
};
use divi_threads::Executor;
use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicU8},
    thread::JoinHandle,
    time::Instant,
};

/// Engines whose values the message-passing library may still access, because operations were given up.
static ABANDONED: Mutex<Vec<Arc<Engine>>> = Mutex::new(vec![]);

/// Loaded bundle. Thread-safe. Dropping it cancels the requests in flight.
pub struct Runtime {
    engine: Arc<Engine>,
    /// Pinned memory for inputs and outputs; `Some` if a device has its own memory.
    pool: Option<Arc<Pool>>,
    threads: Vec<JoinHandle<()>>,
    /// Thread that passes messages.
    messenger: Option<JoinHandle<()>>,
    output_names: Arc<Vec<String>>,
}

impl Runtime {
    /// Loads the bundle in a folder and starts its threads.
    pub fn load(folder: impl AsRef<Path>, options: Options) -> Result<Self> {
        let program = Program::load(folder.as_ref(), &options)?;
        let bundle = &program.bundle;
        let in_flight = program.in_flight;
        let arena = |(index, &bytes): (usize, &u64)| {
            hal::allocate(
                &*program.devices[index].device,
                bytes,
                &format!("the arena of '{}'", bundle.devices[index].id),
            )
        };
        let arenas = footprint::arena_bytes(bundle).iter().enumerate().map(arena).collect::<Result<Vec<_>>>()?;
        let slots = (0..in_flight).map(|index| Slot::new(index, &program, &arenas)).collect::<Result<_>>()?;
        let may_read_in_place = bundle.inputs.iter().map(|port| program.may_read_in_place(port.value)).collect();
        let may_write_in_place = bundle.outputs.iter().map(|port| program.may_write_in_place(port.value)).collect();
        let remote = program.devices.iter().find(|device| !device.is_on_host());
        let pool = remote.map(|device| Pool::new(device.device.clone(), in_flight + 1));
        let Executors { executors, lanes, completions } =
            program.workers.executors(program.steps.len() * in_flight, program.has_device_outputs());
        let messages = options.communicator.clone();
        let messages = messages.map(|communicator| Messages::new(communicator, &program, options.stall_timeout));
        let output_names = Arc::new(bundle.outputs.iter().map(|output| output.name.clone()).collect());
        let engine = Arc::new(Engine {
            may_read_in_place,
            may_write_in_place,
            _arenas: arenas,
            slots,
            admission: Admission::new(in_flight),
            executors,
            lanes,
            completions,
            messages: messages.transpose()?,
            before_launch: options.before_launch,
            recording: AtomicU8::new(Recording::Off as u8),
            loaded: Instant::now(),
            program,
        });
        if options.cold.is_some() {
            engine.prepare_cold()?;
        }
        let mut runtime = Self { engine, pool, threads: vec![], messenger: None, output_names };
        // Fill the pool now: pinning memory is slow and should not delay the first requests.
        drop((0..in_flight).map(|_| runtime.make_outputs()).collect::<Result<Vec<_>>>()?);
        for index in 0..runtime.engine.executors.len() {
            let engine = runtime.engine.clone();
            let workers = &runtime.engine.program.workers;
            let (name, core) = (workers.name(index), workers.core(index));
            runtime.threads.push(divi_threads::start(name, core, move || engine.serve(index)).map_err(Error::Thread)?);
        }
        if runtime.engine.messages.is_some() {
            let engine = runtime.engine.clone();
            let serve = move || engine.messages.iter().for_each(|messages| engine.serve_messages(messages));
            runtime.messenger = Some(divi_threads::start("messages".into(), None, serve).map_err(Error::Thread)?);
        }
        Ok(runtime)
    }

    /// Returns the number of this rank; 0 if this process runs all parts of the plan.
    pub fn rank(&self) -> usize {
        self.engine.messages.as_ref().map_or(0, Messages::rank)
    }

    /// Runs this rank's part of the requests of rank 0 until rank 0 has closed its runtime, or until a rank has failed. Only
    /// for ranks other than 0: the others wait for nothing.
    pub fn serve(&self) -> Result<()> {
        match self.engine.messages.as_ref().filter(|messages| messages.rank() > 0) {
            Some(messages) => messages.wait_for_end(),
            None => Ok(()),
        }
    }

    /// Returns the error that has ended the job, or will end it. Only after a request has failed with such an error.
    pub(crate) fn wait_for_end(&self) -> Result<()> {
        self.engine.messages.as_ref().map_or(Ok(()), Messages::wait_for_end)
    }

    /// Returns the host and the stages of a rank, as a clause of error messages.
    pub(crate) fn describe_rank(&self, rank: usize) -> &str {
        self.engine.program.peers.get(rank).map_or("", |peer| &peer[..])
    }

    /// Ends the runtimes of all ranks with an error. Returns the error, which has the requests that are lost, or an earlier one
    /// that has ended them. Does nothing if this process runs all parts of the plan.
    pub fn fail(&self, message: &str) -> Result<()> {
        self.engine.fail_job(message)
    }

    /// Returns the description of the bundle.
    pub fn bundle(&self) -> &Bundle {
        &self.engine.program.bundle
    }

    /// Returns the description of the whole bundle, of which ranks run parts.
    pub fn plan(&self) -> &Bundle {
        self.engine.program.plan()
    }

    /// Returns the names and types of the model's inputs.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        let bundle = self.bundle();
        bundle.inputs.iter().map(|port| (&port.name[..], &bundle.values[port.value].tensor))
    }

    /// Returns the names and types of the model's outputs.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        let bundle = self.bundle();
        bundle.outputs.iter().map(|port| (&port.name[..], &bundle.values[port.value].tensor))
    }

    /// Returns the maximum number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.engine.slots.len()
    }

    /// Runs the model and waits for its outputs.
    pub fn run(&self, inputs: &[(&str, TensorRef<'_>)]) -> Result<Vec<(String, TensorData)>> {
        let inputs = self.match_inputs(inputs)?;
        let mut tensors = self.make_outputs()?;
        let pointers = tensors.iter_mut().map(|tensor| tensor.bytes_mut().as_mut_ptr()).collect();
        self.run_to(&inputs, pointers)?;
        Ok(self.output_names.iter().cloned().zip(tensors).collect())
    }

    /// Runs the model and waits until its outputs have been written to the caller's buffers, which are in the model's order.
    pub fn run_into(&self, inputs: &[(&str, TensorRef<'_>)], outputs: &mut [&mut [u8]]) -> Result<()> {
        let inputs = self.match_inputs(inputs)?;
        if outputs.len() != self.outputs().count() {
            let reason = format!("the model has {}, and {} buffers are given", self.outputs().count(), outputs.len());
            return Err(Error::WrongOutput { reason });
        }
        for ((name, tensor), buffer) in self.outputs().zip(&*outputs) {
            if tensor.bytes != buffer.len() as u64 {
                let reason = format!("'{name}' has {} bytes, its buffer {}", tensor.bytes, buffer.len());
                return Err(Error::WrongOutput { reason });
            }
        }
        self.run_to(&inputs, outputs.iter_mut().map(|buffer| buffer.as_mut_ptr()).collect())
    }

    /// Runs the model on the calling thread and the executors. `outputs` have the sizes of the outputs, and nothing else
    /// accesses them during the call.
    fn run_to(&self, inputs: &[TensorRef<'_>], outputs: Vec<*mut u8>) -> Result<()> {
        let engine = &self.engine;
        let request = Request::new();
        let admitted = engine.admission.acquire()?;
        let worker = Worker::blocked_on(admitted.0);
        engine.begin(admitted, request.clone(), Outputs::Lent(outputs), inputs, true, &worker);
        engine.drive(&worker, || request.is_done());
        request.wait().map(|_| ())
    }

    /// Moves a tensor to pinned memory if a device has its own memory, which saves a copy when it is an input.
    pub fn adopt(&self, tensor: TensorData) -> Result<TensorData> {
        let Some(pool) = &self.pool else { return Ok(tensor) };
        let mut adopted = TensorData::pooled(tensor.dtype(), tensor.shape(), pool)?;
        adopted.bytes_mut().copy_from_slice(tensor.bytes());
        Ok(adopted)
    }

    /// Submits a request. Blocks while the maximum number of requests is in flight. The inputs are copied.
    pub fn submit(&self, inputs: &[(&str, TensorRef<'_>)]) -> Result<Ticket> {
        self.admit(&self.match_inputs(inputs)?, Request::new(), false)
    }

    /// As [`Runtime::submit`], but the request shares ownership of its inputs and reads them in place. Inputs of devices with
    /// their own memory are staged nevertheless, unless they were [adopted](Runtime::adopt).
    pub fn submit_shared(&self, inputs: &[(&str, Arc<TensorData>)]) -> Result<Ticket> {
        let views: Vec<_> = inputs.iter().map(|(name, tensor)| (*name, tensor.view())).collect();
        let request = Request::with_inputs(inputs.iter().map(|(_, tensor)| tensor.clone()).collect());
        self.admit(&self.match_inputs(&views)?, request, true)
    }

    /// Admits a request and starts it. `lent` inputs stay valid until the request is complete.
    fn admit(&self, inputs: &[TensorRef<'_>], request: Arc<Request>, lent: bool) -> Result<Ticket> {
        let outputs = Outputs::Owned(self.make_outputs()?);
        let admitted = self.engine.admission.acquire()?;
        let worker = Worker::default();
        self.engine.begin(admitted, request.clone(), outputs, inputs, lent, &worker);
        self.engine.drive(&worker, || false);
        Ok(Ticket { request, id: admitted.1, names: self.output_names.clone() })
    }

    /// Cancels all requests in flight.
    pub fn cancel_all(&self) {
        for slot in &self.engine.slots {
            if let Some(current) = &slot.progress.lock().current {
                current.request.cancel();
            }
        }
    }

    /// Rejects new requests and cancels those in flight.
    pub fn close(&self) {
        self.engine.admission.close();
        self.cancel_all();
    }

    /// Sets which spans are recorded from now on, by all ranks if this is rank 0.
    pub fn record(&self, recording: Recording) {
        self.engine.record(recording);
    }

    /// Returns the recorded spans and the number of dropped ones, and clears both. At rank 0, they are those of all ranks, on
    /// its clock; at other ranks, they are its own. Their steps are those of [`Runtime::plan`].
    pub fn take_spans(&self) -> (Vec<Span>, u64) {
        let (spans, dropped, _) = self.engine.take_spans();
        (spans, dropped)
    }

    /// As [`Runtime::take_spans`], with the differences of the clocks of other ranks from that of rank 0.
    pub fn take_spans_and_clocks(&self) -> (Vec<Span>, u64, Vec<ClockDifference>) {
        self.engine.take_spans()
    }

    /// Returns the product name of the first device of a kind; empty if there is none.
    pub fn processor(&self, kind: &str) -> String {
        let mut devices = self.bundle().devices.iter().zip(&self.engine.program.devices);
        let found = devices.find(|(device, _)| device.kind == kind);
        found.map_or_else(String::new, |(_, device)| device.device.name())
    }

    /// Returns the memory use of each device of [`Runtime::plan`].
    pub fn memory(&self) -> Vec<MemoryUse> {
        MemoryUse::planned(self.plan(), Some(self.in_flight()))
    }

    /// Checks the inputs and returns them in the bundle's order.
    fn match_inputs<'a>(&self, inputs: &[(&str, TensorRef<'a>)]) -> Result<Vec<TensorRef<'a>>> {
        if self.rank() > 0 {
            return Err(Error::OtherRank { rank: self.rank() });
        }
        for (index, (name, _)) in inputs.iter().enumerate() {
            let unexpected = |reason| Err(Error::UnexpectedInput { name: (*name).to_owned(), reason });
            if inputs[..index].iter().any(|(other, _)| other == name) {
                return unexpected("is given twice".to_owned());
            }
            if !self.inputs().any(|(known, _)| known == *name) {
                let known: Vec<_> = self.inputs().map(|(known, _)| format!("'{known}'")).collect();
                return unexpected(format!("is not an input of the model; expected one of {}", known.join(", ")));
            }
        }
        self.inputs()
            .map(|(name, wanted)| match inputs.iter().find(|(given, _)| *given == name) {
                None => Err(Error::MissingInput { name: name.to_owned(), wanted: wanted.to_string() }),
                Some((_, tensor)) => {
                    let fits = tensor.dtype.name() == wanted.dtype && tensor.shape == wanted.shape;
                    let (wanted_text, mut found) = (wanted.to_string(), tensor.to_string());
                    if fits && tensor.bytes.len() as u64 == wanted.bytes {
                        return Ok(*tensor);
                    }
                    if fits {
                        found = format!("{found} with {} bytes instead of {}", tensor.bytes.len(), wanted.bytes);
                    }
                    Err(Error::WrongInput { name: name.to_owned(), wanted: wanted_text, found })
                }
            })
            .collect()
    }

    fn make_outputs(&self) -> Result<Vec<TensorData>> {
        let program = &self.engine.program;
        let make = |port: &Port| {
            let tensor = &program.bundle.values[port.value].tensor;
            let wrong = || Error::WrongOutput { reason: format!("'{}' is {tensor}", port.name) };
            let dtype = DType::from_name(&tensor.dtype).ok_or_else(wrong)?;
            match self.pool.as_ref().filter(|_| program.is_downloaded(port.value)) {
                Some(pool) => TensorData::pooled(dtype, &tensor.shape, pool),
                None => TensorData::zeroed(dtype, &tensor.shape),
            }
        };
        program.bundle.outputs.iter().map(make).collect()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.close();
        if !self.threads.is_empty() {
            self.engine.admission.wait_until_empty();
        }
        if let (Some(messages), Some(messenger)) = (&self.engine.messages, self.messenger.take()) {
            messages.close();
            // Panics in steps are caught by the engine.
            let _ = messenger.join();
            if messages.has_abandoned() {
                ABANDONED.lock().unwrap_or_else(PoisonError::into_inner).push(self.engine.clone());
            }
        }
        self.engine.executors.iter().for_each(Executor::close);
        for thread in self.threads.drain(..) {
            // Panics in steps are caught by the engine.
            let _ = thread.join();
        }
    }
}
