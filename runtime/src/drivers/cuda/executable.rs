//! A GPU with a bundle's code and constants on it.

mod launch;
mod moments;
mod queue;
mod timeline;

use moments::Moments;
use timeline::Timeline;

use super::{
    SIGNATURE_COMMENT,
    chains::CHAINS,
    choice::Chooser,
    choices::Choices,
    driver::{self, Address, Fault, Function, Gpu, Graph, Outcome, Stream},
    launch::Launch,
    memory::{DeviceMemory, Pinned},
    stage::{Events, Stage, Stopwatch},
    upload::{Image, Upload},
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

pub(crate) struct CudaExecutable {
    id: String,
    /// Those of this device.
    stages: HashMap<usize, Stage>,
    constants: Upload,
    /// What calls' constants pass through that do not fit all at once.
    window: Option<Window>,
    workspaces: Vec<DeviceMemory>,
    shared: Shared,
    /// Stages run on these, one stage at a time.
    streams: Vec<Stream>,
    events: Events,
    /// Values come and go on these.
    inward: Stream,
    outward: Stream,
    moments: Mutex<Moments>,
    timeline: Mutex<Timeline>,
    /// Whether there are constants that are not here yet.
    is_cold: AtomicBool,
    state: Mutex<State>,
    gpu: Arc<dyn Gpu>,
}

struct State {
    /// By step and slot; `None` of a stage that cannot be captured.
    graphs: HashMap<(usize, usize), Option<Graph>>,
    /// By step and slot: stages whose tasks are measured.
    measured: HashMap<(usize, usize), (Graph, Stopwatch)>,
    /// By step and slot: stages that wait for constants by themselves, and whether for the last of them.
    cold: HashMap<(usize, usize), (Graph, bool)>,
    /// Constants that are not here yet.
    image: Option<Image>,
    /// The same when they are.
    spent: Option<Image>,
    /// Why nothing can be done any more.
    lost: Option<String>,
}

/// What kernels that fail write, on the GPU and on the host.
pub(crate) struct Shared {
    there: DeviceMemory,
    here: Pinned,
}

impl Shared {
    pub(crate) fn status(&self) -> Address {
        self.there.address
    }
}

/// No PTX is larger.
const MOST_CODE_BYTES: u64 = 1 << 30;

/// The code of a bundle on a GPU.
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

/// Finds the signatures in the comments of PTX.
fn signatures(text: &[u8]) -> Signatures {
    let text = String::from_utf8_lossy(text);
    let lines: HashSet<_> =
        text.lines().filter_map(|line| line.strip_prefix(SIGNATURE_COMMENT)).map(str::to_owned).collect();
    Signatures::new((!lines.is_empty()).then_some(lines))
}

impl CudaExecutable {
    /// Loads code and constants, and chooses how calls are computed.
    pub(crate) fn load(request: &LoadRequest<'_>, gpu: Arc<dyn Gpu>) -> Result<Self> {
        let &LoadRequest { folder, bundle, device: index, constants, options, .. } = request;
        let mut choices = Choices::read(options.choices)?;
        let id = request.description().id.clone();
        let failed = |fault: Fault| Error::Device { what: format!("device '{id}'"), problem: fault.to_string() };
        let streams = (0..CHAINS).map(|_| gpu.stream()).collect::<Outcome<Vec<_>>>().map_err(failed)?;
        let (inward, outward) = (gpu.stream().map_err(failed)?, gpu.stream().map_err(failed)?);
        let room = window_bytes(bundle, index);
        let uploaded = Upload::new(&gpu, bundle, index, constants, room.is_some())?;
        let window = room.map(|bytes| Window::new(&gpu, bundle, index, constants, bytes)).transpose()?;
        let image = match options.cold {
            Some(mode) => Some(uploaded.image(&gpu, constants, mode)?),
            None => uploaded.copy(&gpu, constants, [inward, outward]).map(|()| None)?,
        };
        let what = format!("the status of device '{id}'");
        let shared = Shared { there: DeviceMemory::new(&gpu, 4, &what)?, here: Pinned::new(&gpu, 4, &what)? };
        let mut stages = HashMap::new();
        let mut modules: HashMap<usize, Module> = HashMap::new();
        let launches = launches(bundle, index)?;
        let mut chooser = Chooser::new(&gpu, bundle, index, launches.values().flatten(), streams[0], &mut choices)?;
        for (number, stage) in bundle.stages_of(index) {
            let module = match modules.entry(stage.executable) {
                Entry::Occupied(place) => place.into_mut(),
                Entry::Vacant(place) => {
                    place.insert(Module::load(&gpu, folder.join(&bundle.executables[stage.executable].file))?)
                }
            };
            let launches = &launches[&number][..];
            for (call, launch) in stage.calls.iter().zip(launches) {
                let wanted = launch.signatures(call);
                module.signatures.check(&wanted, &call.kernel, bundle.has_extents(), &module.path)?;
            }
            let constants = (&uploaded, window.as_ref());
            stages.insert(number, Stage::plan((stage, launches), module, &shared, constants, &mut chooser)?);
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
            shared,
            streams,
            events,
            inward,
            outward,
            moments: Mutex::new(Moments::default()),
            timeline: Mutex::new(Timeline::default()),
            is_cold: AtomicBool::new(image.is_some()),
            state: Mutex::new(State {
                graphs: HashMap::new(),
                measured: HashMap::new(),
                cold: HashMap::new(),
                image,
                spent: None,
                lost: None,
            }),
            gpu,
        })
    }

    /// Waits until nothing is done any more.
    fn finish(&self) {
        for &stream in self.streams.iter().chain([&self.inward, &self.outward]) {
            // What is lost is done.
            let _ = self.gpu.finish(stream);
        }
    }

    /// For one stage at a time, and for none if the GPU is lost.
    fn enter(&self) -> std::result::Result<Guard<'_, State>, String> {
        let state = self.state.lock();
        match &state.lost {
            Some(text) => Err(text.clone()),
            None => Ok(state),
        }
    }

    fn failed(&self, state: &mut State, fault: &Fault) -> String {
        let problem = self.remedy(fault);
        if matches!(fault, Fault::Lost(_)) {
            state.lost = Some(problem.clone());
        }
        problem
    }

    fn problem(&self, fault: Fault) -> String {
        let problem = self.remedy(&fault);
        if matches!(fault, Fault::Lost(_)) {
            self.state.lock().lost = Some(problem.clone());
        }
        problem
    }

    /// What is wrong, and whether it can be gone on.
    fn remedy(&self, fault: &Fault) -> String {
        match fault {
            Fault::Lost(text) => {
                let place = self.running();
                format!("{text}{place}; CUDA does nothing more on this GPU in this process: start it again")
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

/// How much memory the plan leaves for a device's weights, if it has them streamed and they are more.
fn window_bytes(bundle: &Bundle, device: usize) -> Option<u64> {
    let bundle::Device { streams_weights, memory, .. } = bundle.devices[device];
    let used = MemoryUse::planned(bundle, None)[device];
    let room = memory.saturating_sub(used.total() - used.weights);
    (streams_weights && Window::wanted(bundle, device) > room).then_some(room)
}

impl Drop for CudaExecutable {
    fn drop(&mut self) {
        self.finish();
        let mut state = self.state.lock();
        let State { graphs, measured, cold, .. } = &mut *state;
        let graphs = graphs.drain().filter_map(|(_, graph)| graph);
        let graphs = graphs.chain(measured.drain().map(|(_, (graph, _))| graph));
        graphs.chain(cold.drain().map(|(_, (graph, _))| graph)).for_each(|graph| self.gpu.drop_graph(graph));
    }
}
