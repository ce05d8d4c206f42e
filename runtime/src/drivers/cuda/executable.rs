//! Code and constants of a bundle on a GPU.

mod completion;
mod launch;
mod queue;
mod timeline;

use completion::CompletionEvents;
use timeline::Timeline;

use super::{
    SIGNATURE_COMMENT,
    benchmark::AlgorithmSelector,
    chains::CHAINS,
    choices::AlgorithmCache,
    driver::{self, Address, CudaError, CudaResult, Function, Gpu, Graph, Stream},
    launch::Launch,
    memory::{DeviceMemory, Pinned},
    stage::{Events, Stage, TaskTimer},
    upload::{ColdStartImage, DeviceConstants},
    window::Window,
};
use crate::{
    bundle::{self, Bundle},
    drivers::signatures::Signatures,
    error::{Error, Result},
    files,
    footprint::MemoryUse,
    hal::LoadRequest,
};
use divi_threads::sync::{Guard, Mutex};
use std::{
    collections::{BTreeMap, HashMap, HashSet, hash_map::Entry},
    ffi::CString,
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

/// Executable of a GPU.
pub(crate) struct CudaExecutable {
    /// Identifier of the device in the bundle.
    id: String,
    /// Stages of this device, by index in the bundle.
    stages: HashMap<usize, Stage>,
    constants: DeviceConstants,
    /// Window for constants that do not fit into GPU memory all at once.
    window: Option<Window>,
    workspaces: Vec<DeviceMemory>,
    status: KernelStatus,
    /// Streams of the calls of a stage; one stage runs at a time.
    streams: Vec<Stream>,
    events: Events,
    /// Stream of uploads.
    upload_stream: Stream,
    /// Stream of downloads.
    download_stream: Stream,
    completions: Mutex<CompletionEvents>,
    timeline: Mutex<Timeline>,
    /// True until all constants have arrived.
    is_cold: AtomicBool,
    state: Mutex<State>,
    gpu: Arc<dyn Gpu>,
}

struct State {
    /// By step and slot: captured stage; `None` if it cannot be captured.
    graphs: HashMap<(usize, usize), Option<Graph>>,
    /// By step and slot: captured stage with timing events.
    measured: HashMap<(usize, usize), (Option<Graph>, TaskTimer)>,
    /// By step and slot: captured stage that waits for constants, and true if it waits for the last of them.
    cold: HashMap<(usize, usize), (Graph, bool)>,
    /// Constants of a cold start; `None` when all have arrived.
    image: Option<ColdStartImage>,
    /// ColdStartImage of a finished cold start, whose memory is freed on drop only.
    retired_image: Option<ColdStartImage>,
    /// Error that made the GPU unusable.
    lost: Option<String>,
}

/// Status that failing kernels write, on the GPU, and its copy on the host.
pub(crate) struct KernelStatus {
    device: DeviceMemory,
    host: Pinned,
}

impl KernelStatus {
    /// Returns the address of the status on the GPU.
    pub(crate) fn address(&self) -> Address {
        self.device.address
    }
}

/// Maximum size of a PTX file.
const MOST_CODE_BYTES: u64 = 1 << 30;

/// Module of a bundle's PTX on a GPU.
pub(crate) struct Module {
    gpu: Arc<dyn Gpu>,
    path: PathBuf,
    module: driver::Module,
    signatures: Signatures,
}

impl Module {
    fn load(gpu: &Arc<dyn Gpu>, path: PathBuf) -> Result<Self> {
        let failed = |reason: String| Error::Code { path: path.clone(), reason };
        let text = files::read(&path, MOST_CODE_BYTES)?;
        let signatures = signatures(&text);
        let text = CString::new(text).map_err(|_| failed("it is not text".to_owned()))?;
        let module = gpu.load(&text).map_err(|fault| failed(format!("{}: {fault}", gpu.name())))?;
        Ok(Self { gpu: gpu.clone(), path, module, signatures })
    }

    pub(crate) fn function(&self, name: &str) -> Result<Function> {
        let missing = || Error::Code { path: self.path.clone(), reason: format!("it has no kernel '{name}'") };
        let symbol = CString::new(name).map_err(|_| missing())?;
        self.gpu.function(self.module, &symbol).map_err(|_| missing())
    }
}

/// Extracts the signatures from the comments of PTX.
fn signatures(text: &[u8]) -> Signatures {
    let text = String::from_utf8_lossy(text);
    let lines: HashSet<_> =
        text.lines().filter_map(|line| line.strip_prefix(SIGNATURE_COMMENT)).map(str::to_owned).collect();
    Signatures::new((!lines.is_empty()).then_some(lines))
}

impl CudaExecutable {
    /// Loads code and constants, and chooses the algorithms of calls.
    pub(crate) fn load(request: &LoadRequest<'_>, gpu: Arc<dyn Gpu>) -> Result<Self> {
        let &LoadRequest { folder, bundle, device: index, constants, options, .. } = request;
        let mut choices = AlgorithmCache::read(options.choices)?;
        let id = request.description().id.clone();
        let failed = |fault: CudaError| Error::Device { what: format!("device '{id}'"), problem: fault.to_string() };
        let streams = (0..CHAINS).map(|_| gpu.stream()).collect::<CudaResult<Vec<_>>>().map_err(failed)?;
        let (upload_stream, download_stream) = (gpu.stream().map_err(failed)?, gpu.stream().map_err(failed)?);
        let room = window_bytes(bundle, index);
        let uploaded = DeviceConstants::new(&gpu, bundle, index, constants, room.is_some())?;
        let window = room.map(|bytes| Window::new(&gpu, bundle, index, constants, bytes)).transpose()?;
        let image = match options.cold {
            Some(mode) => Some(uploaded.image(&gpu, constants, mode)?),
            None => uploaded.copy(&gpu, constants, [upload_stream, download_stream]).map(|()| None)?,
        };
        let what = format!("the status of device '{id}'");
        let status = KernelStatus { device: DeviceMemory::new(&gpu, 4, &what)?, host: Pinned::new(&gpu, 4, &what)? };
        let mut stages = HashMap::new();
        let mut modules: HashMap<usize, Module> = HashMap::new();
        let launches = launches(bundle, index)?;
        let mut selector =
            AlgorithmSelector::new(&gpu, bundle, index, launches.values().flatten(), streams[0], &mut choices)?;
        for (number, stage) in bundle.stages_of(index) {
            let module = match modules.entry(stage.executable) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    entry.insert(Module::load(&gpu, folder.join(&bundle.executables[stage.executable].file))?)
                }
            };
            let launches = &launches[&number][..];
            for (call, launch) in stage.calls.iter().zip(launches) {
                let wanted = launch.signatures(call);
                module.signatures.check(&wanted, &call.kernel, bundle.has_extents(), &module.path)?;
            }
            let constants = (&uploaded, window.as_ref());
            stages.insert(number, Stage::plan((stage, launches), module, &status, constants, &mut selector)?);
        }
        choices.save()?;
        let workspace = stages.values().map(|stage| stage.workspace).max().unwrap_or(0);
        let chains = stages.values().map(|stage| stage.chains).max().unwrap_or(1);
        let what = format!("a workspace on device '{id}'");
        let workspaces = (0..chains).map(|_| DeviceMemory::new(&gpu, workspace, &what)).collect::<Result<Vec<_>>>()?;
        let calls = stages.values().map(Stage::call_count).max().unwrap_or(0);
        let events = Events::new(&*gpu, chains, calls, if window.is_some() { calls } else { 0 }).map_err(failed)?;
        Ok(Self {
            id,
            stages,
            constants: uploaded,
            window,
            workspaces,
            status,
            streams,
            events,
            upload_stream,
            download_stream,
            completions: Mutex::new(CompletionEvents::default()),
            timeline: Mutex::new(Timeline::default()),
            is_cold: AtomicBool::new(image.is_some()),
            state: Mutex::new(State {
                graphs: HashMap::new(),
                measured: HashMap::new(),
                cold: HashMap::new(),
                image,
                retired_image: None,
                lost: None,
            }),
            gpu,
        })
    }

    /// Waits for all streams.
    fn synchronize_streams(&self) {
        for &stream in self.streams.iter().chain([&self.upload_stream, &self.download_stream]) {
            // A lost context has no pending work.
            let _ = self.gpu.synchronize(stream);
        }
    }

    /// Locks the state, so that one stage is issued at a time. Fails if the GPU is lost.
    fn enter(&self) -> std::result::Result<Guard<'_, State>, String> {
        let state = self.state.lock();
        match &state.lost {
            Some(text) => Err(text.clone()),
            None => Ok(state),
        }
    }

    /// Returns the message of a fault, and marks the GPU as lost if it is.
    fn note_fault(&self, state: &mut State, fault: &CudaError) -> String {
        let problem = self.describe(fault);
        if matches!(fault, CudaError::Lost(_)) {
            state.lost = Some(problem.clone());
        }
        problem
    }

    /// As [`CudaExecutable::note_fault`], for callers that do not hold the state.
    fn fault_message(&self, fault: CudaError) -> String {
        let problem = self.describe(&fault);
        if matches!(fault, CudaError::Lost(_)) {
            self.state.lock().lost = Some(problem.clone());
        }
        problem
    }

    /// Returns the message of a fault, with the remedy.
    fn describe(&self, fault: &CudaError) -> String {
        match fault {
            CudaError::Lost(text) => {
                let stages = self.running();
                format!("{text}{stages}; the CUDA context is lost: restart the process")
            }
            other => other.to_string(),
        }
    }

    fn error(&self, what: &str, problem: String) -> Error {
        Error::Device { what: format!("{what} on device '{}' ({})", self.id, self.gpu.name()), problem }
    }
}

/// Parses the launches of all calls of a device, by stage.
fn launches(bundle: &Bundle, device: usize) -> Result<BTreeMap<usize, Vec<Launch>>> {
    let of_stage = |(number, stage): (usize, &bundle::Stage)| {
        let invalid = |reason| Error::Device { what: format!("stage '{}'", stage.name), problem: reason };
        let launches: std::result::Result<_, _> = stage.calls.iter().map(Launch::of).collect();
        Ok((number, launches.map_err(invalid)?))
    };
    bundle.stages_of(device).map(of_stage).collect()
}

/// Returns the size of the window for streamed weights: the memory that the plan leaves for them; `None` if they fit into it
/// or are not streamed.
fn window_bytes(bundle: &Bundle, device: usize) -> Option<u64> {
    let bundle::Device { streams_weights, memory, .. } = bundle.devices[device];
    let used = MemoryUse::planned(bundle, None)[device];
    let room = memory.saturating_sub(used.total() - used.weights);
    (streams_weights && Window::wanted(bundle, device) > room).then_some(room)
}

impl Drop for CudaExecutable {
    fn drop(&mut self) {
        self.synchronize_streams();
        let mut state = self.state.lock();
        let State { graphs, measured, cold, .. } = &mut *state;
        let graphs = graphs.drain().filter_map(|(_, graph)| graph);
        let graphs = graphs.chain(measured.drain().filter_map(|(_, (graph, _))| graph));
        graphs.chain(cold.drain().map(|(_, (graph, _))| graph)).for_each(|graph| self.gpu.drop_graph(graph));
    }
}
