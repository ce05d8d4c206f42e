//! Recovery from the death of a rank: the others agree on who is left, load the program of the bundle for these nodes, and
//! repeat the requests that have no results yet.
//!
//! A rank that finds that another one has died revokes the communicator, so that all of them find out. Each rank then ends its
//! runtime, and all take part in an agreement. Ranks also agree when the job ends, since one may die at that very moment:
//! either all of them recover, or all of them leave.

use crate::{
    bundle::Bundle,
    communicator::Communicator,
    error::{Error, Result},
    options::Options,
    request::Ticket,
    runtime::Runtime,
    span::Recording,
    tensor::{TensorData, TensorRef},
};
use divi_threads::sync::Mutex;
use std::{
    collections::BTreeSet,
    mem,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

/// Flag of a rank whose runtime has ended without an error. The ranks leave the job if it is set on all of them.
const HAS_ENDED: u32 = 1;
/// Flag of all ranks, except for rank 0 when it has the results of all requests. The ranks leave the job if it is not set.
const HAS_REQUESTS: u32 = 2;

/// Callback that is called at rank 0 after a recovery.
pub type RecoveryObserver = Arc<dyn Fn(&Recovery) + Send + Sync>;

/// Recovery from the death of a rank.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// Error of the rank that has died, with its host and stages.
    pub problem: String,
    /// Node of the plan that is lost.
    pub node: usize,
    /// Number of ranks that are left.
    pub ranks: usize,
    /// Number of requests that are repeated.
    pub repeated: usize,
    /// Time from the end of the runtime to the restart of the requests.
    pub duration: Duration,
    /// Tasks that other kernels compute now, or devices of another kind. If there are none, outputs have the same bits as before.
    pub tasks_computed_otherwise: Vec<String>,
}

/// Runtime that continues after the death of a rank, if the bundle has a program for the other nodes
/// ([`Bundle::losses`](crate::bundle::Bundle)) and the communicator supports it. Otherwise, it behaves as a [`Runtime`].
pub struct ResilientRuntime {
    folder: PathBuf,
    options: Options,
    observer: Option<RecoveryObserver>,
    /// Number of ranks at the start of the job.
    ranks: usize,
    state: Mutex<State>,
}

struct State {
    /// Current runtime; `None` after the end of the job.
    runtime: Option<Arc<Runtime>>,
    communicator: Option<Arc<dyn Communicator>>,
    /// Number of recoveries.
    generation: usize,
    /// By rank at the start of the job: its host and stages, as a clause of error messages.
    names: Vec<String>,
    recording: Recording,
    /// Number of requests of the caller.
    requests: u64,
    /// Requests whose callers are blocked in [`ResilientRuntime::run`].
    blocking: BTreeSet<u64>,
    /// Submitted requests whose results have not been taken, in the order of submission.
    open: Vec<Arc<OpenRequest>>,
}

impl State {
    /// Returns the current runtime and its generation.
    fn current(&self) -> Result<(usize, Arc<Runtime>)> {
        let runtime = self.runtime.clone().ok_or(Error::Closed)?;
        Ok((self.generation, runtime))
    }

    fn number_request(&mut self) -> u64 {
        self.requests += 1;
        self.requests - 1
    }

    /// Returns the numbers of the requests without results.
    fn lost_requests(&self) -> Vec<u64> {
        let is_lost = |request: &&Arc<OpenRequest>| !matches!(*request.progress.lock(), Progress::Done(_));
        let open = self.open.iter().filter(is_lost).map(|request| request.number);
        open.chain(self.blocking.iter().copied()).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

type Outputs = Vec<(String, TensorData)>;

/// Submitted request, which may be repeated.
struct OpenRequest {
    number: u64,
    inputs: Vec<(String, Arc<TensorData>)>,
    progress: Mutex<Progress>,
}

enum Progress {
    /// Submitted to the runtime of a generation.
    Running(usize, Arc<Ticket>),
    /// The runtime of a generation has ended with an error.
    Lost(usize, Error),
    Done(Result<Outputs>),
    Taken,
}

impl OpenRequest {
    /// Submits the request to the runtime of a generation, if the one that it was submitted to has ended. Returns true if it did.
    fn repeat(&self, generation: usize, runtime: &Runtime) -> bool {
        self.settle();
        let mut progress = self.progress.lock();
        let is_lost = match &*progress {
            Progress::Running(submitted, _) | Progress::Lost(submitted, _) => *submitted < generation,
            Progress::Done(_) | Progress::Taken => false,
        };
        if is_lost {
            *progress = match submit(runtime, &self.inputs) {
                Ok(ticket) => Progress::Running(generation, Arc::new(ticket)),
                Err(error) => Progress::Done(Err(error)),
            };
        }
        is_lost
    }

    /// Takes the result of the ticket if it is complete.
    fn settle(&self) {
        let mut progress = self.progress.lock();
        let Progress::Running(generation, ticket) = &*progress else { return };
        *progress = match ticket.try_take() {
            None => return,
            Some(Err(error)) if error.is_death() => Progress::Lost(*generation, error),
            Some(result) => Progress::Done(result),
        };
    }
}

fn submit(runtime: &Runtime, inputs: &[(String, Arc<TensorData>)]) -> Result<Ticket> {
    let inputs: Vec<_> = inputs.iter().map(|(name, tensor)| (&name[..], tensor.clone())).collect();
    runtime.submit_shared(&inputs)
}

/// Handle of a submitted request.
pub struct ResilientTicket<'a> {
    runtime: &'a ResilientRuntime,
    request: Arc<OpenRequest>,
}

impl ResilientTicket<'_> {
    /// Waits for the outputs, with their names.
    pub fn wait(self) -> Result<Outputs> {
        loop {
            let ticket = match &*self.request.progress.lock() {
                Progress::Running(_, ticket) => Some(ticket.clone()),
                _ => None,
            };
            if let Some(ticket) = ticket {
                ticket.wait_timeout(Duration::MAX);
                self.request.settle();
            }
            let taken = mem::replace(&mut *self.request.progress.lock(), Progress::Taken);
            match taken {
                Progress::Done(result) => return result,
                Progress::Taken => return Err(Error::Taken),
                Progress::Running(generation, ticket) => {
                    // Another thread has repeated the request.
                    *self.request.progress.lock() = Progress::Running(generation, ticket);
                }
                Progress::Lost(generation, error) => {
                    *self.request.progress.lock() = Progress::Lost(generation, error);
                    self.runtime.recover(generation)?;
                    let (generation, runtime) = self.runtime.state.lock().current()?;
                    self.request.repeat(generation, &runtime);
                }
            }
        }
    }
}

impl Drop for ResilientTicket<'_> {
    fn drop(&mut self) {
        self.runtime.state.lock().open.retain(|request| !Arc::ptr_eq(request, &self.request));
    }
}

impl ResilientRuntime {
    /// Loads the bundle in a folder, or this rank's part of it. `observer` is called after each recovery.
    pub fn load(folder: impl AsRef<Path>, options: Options, observer: Option<RecoveryObserver>) -> Result<Self> {
        let communicator = options.communicator.clone();
        let state = State {
            runtime: None,
            communicator: communicator.clone(),
            generation: 0,
            names: vec![],
            recording: Recording::Off,
            requests: 0,
            blocking: BTreeSet::new(),
            open: vec![],
        };
        let ranks = communicator.map_or(1, |communicator| communicator.size());
        let resilient = Self { folder: folder.as_ref().to_owned(), options, observer, ranks, state: Mutex::new(state) };
        let loaded = Runtime::load(&resilient.folder, resilient.options.clone());
        let mut state = resilient.state.lock();
        match loaded {
            Ok(runtime) => {
                state.names = (0..ranks).map(|rank| runtime.describe_rank(rank).to_owned()).collect();
                state.runtime = Some(Arc::new(runtime));
            }
            Err(error) => _ = resilient.regroup(&mut state, Some(error))?,
        }
        drop(state);
        Ok(resilient)
    }

    /// Returns the current runtime. A recovery replaces it.
    pub fn current(&self) -> Result<Arc<Runtime>> {
        self.state.lock().current().map(|(_, runtime)| runtime)
    }

    /// As [`ResilientRuntime::current`]; `None` during a recovery and after the end of the job. Does not block.
    pub fn try_current(&self) -> Option<Arc<Runtime>> {
        self.state.try_lock()?.runtime.clone()
    }

    /// Returns the current communicator. A recovery replaces it.
    pub fn communicator(&self) -> Option<Arc<dyn Communicator>> {
        self.state.lock().communicator.clone()
    }

    /// Runs the model and waits for its outputs.
    pub fn run(&self, inputs: &[(&str, TensorRef<'_>)]) -> Result<Outputs> {
        let number = {
            let mut state = self.state.lock();
            let number = state.number_request();
            state.blocking.insert(number);
            number
        };
        let result = loop {
            let (generation, runtime) = self.state.lock().current()?;
            match runtime.run(inputs) {
                Err(error) if error.is_death() => {
                    drop(runtime);
                    self.recover(generation)?;
                }
                result => break result,
            }
        };
        self.state.lock().blocking.remove(&number);
        result
    }

    /// Submits a request, which shares ownership of its inputs. Blocks while the maximum number of requests is in flight.
    pub fn submit_shared(&self, inputs: &[(&str, Arc<TensorData>)]) -> Result<ResilientTicket<'_>> {
        let inputs: Vec<_> = inputs.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.clone())).collect();
        let (generation, runtime) = self.state.lock().current()?;
        let progress = Progress::Running(generation, Arc::new(submit(&runtime, &inputs)?));
        let mut state = self.state.lock();
        let number = state.number_request();
        let request = Arc::new(OpenRequest { number, inputs, progress: Mutex::new(progress) });
        state.open.push(request.clone());
        Ok(ResilientTicket { runtime: self, request })
    }

    /// Sets which spans are recorded from now on, also after a recovery.
    pub fn record(&self, recording: Recording) {
        let mut state = self.state.lock();
        state.recording = recording;
        state.runtime.iter().for_each(|runtime| runtime.record(recording));
    }

    /// Runs this rank's part of the requests of rank 0 until rank 0 has ended the job. Only for ranks other than 0.
    pub fn serve(&self) -> Result<()> {
        loop {
            let (_, runtime) = self.state.lock().current()?;
            let error = match runtime.serve() {
                Ok(()) => None,
                Err(error) if error.is_death() => Some(error),
                Err(error) => return Err(error),
            };
            drop(runtime);
            if !self.regroup(&mut self.state.lock(), error)? {
                return Ok(());
            }
        }
    }

    /// Ends the job of all ranks after the last request. Only for rank 0.
    pub fn close(&self) -> Result<()> {
        let mut state = self.state.lock();
        // Results are complete, so that the others leave as well, also after the death of a rank.
        match state.runtime.is_some() {
            true => self.regroup(&mut state, None).map(drop),
            false => Ok(()),
        }
    }

    /// Recovers from the end of the runtime of a generation, unless another thread has.
    fn recover(&self, generation: usize) -> Result<()> {
        let mut state = self.state.lock();
        if state.generation > generation {
            return Ok(());
        }
        let (_, runtime) = state.current()?;
        let end = runtime.wait_for_end();
        drop(runtime);
        match end {
            Ok(()) => Err(Error::Closed),
            Err(error) => self.regroup(&mut state, Some(error)).map(drop),
        }
    }

    /// Ends the runtime, which has ended with `error` or because all requests are complete, together with the other ranks.
    /// Returns true if a runtime of the survivors replaces it, and false if all ranks leave the job.
    fn regroup(&self, state: &mut State, mut error: Option<Error>) -> Result<bool> {
        let started = Instant::now();
        let agrees = |communicator: &Arc<dyn Communicator>| match &error {
            // Also without programs for losses: no rank leaves before all messages have arrived.
            None => communicator.can_recover(),
            Some(error) => error.is_death() && self.may_recover(state),
        };
        let Some(communicator) = state.communicator.clone().filter(agrees) else {
            // After an error, the caller ends the process at once, or drops this.
            if error.is_none() {
                state.runtime = None;
            }
            return error.map_or(Ok(false), Err);
        };
        let is_first = communicator.rank() == 0;
        let mut flags = match &error {
            None if is_first => HAS_ENDED,
            None => HAS_ENDED | HAS_REQUESTS,
            Some(_) => HAS_REQUESTS,
        };
        let mut communicator = communicator;
        loop {
            if error.is_some() {
                // Ranks that are not reached find out themselves.
                let _ = communicator.revoke();
            }
            state.runtime = None;
            let agreed = communicator.agree(flags)?;
            if agreed & HAS_ENDED != 0 || agreed & HAS_REQUESTS == 0 {
                return Ok(false);
            }
            communicator = communicator.survivors()?;
            state.communicator = Some(communicator.clone());
            state.generation += 1;
            match self.load_survivors(state, error.as_ref()) {
                Ok(lost) => {
                    self.repeat_requests(state, lost, started);
                    return Ok(true);
                }
                Err(other) if other.is_death() && !matches!(other, Error::Lost { .. }) => error = Some(other),
                Err(other) => return Err(other),
            }
            flags = HAS_REQUESTS;
        }
    }

    /// Returns true if the ranks recover from the death of one of them, or find out together that they cannot. The result is
    /// the same on all ranks.
    fn may_recover(&self, state: &State) -> bool {
        let has_losses = || match &state.runtime {
            Some(runtime) => !runtime.bundle().losses.is_empty(),
            None => Bundle::read_for(&self.folder, &self.options.drivers).is_ok_and(|bundle| !bundle.losses.is_empty()),
        };
        let is_supported = state.communicator.as_ref().is_some_and(|communicator| communicator.can_recover());
        is_supported && (state.generation > 0 || has_losses())
    }

    /// Loads the program for the ranks of the new communicator. Returns the node that is lost, if there is one.
    fn load_survivors(&self, state: &mut State, error: Option<&Error>) -> Result<Option<usize>> {
        let Some(communicator) = &state.communicator else { return Ok(None) };
        let left: Vec<usize> = (0..communicator.size()).map(|rank| communicator.original_rank(rank)).collect();
        let lost: Vec<usize> = (0..self.ranks).filter(|rank| !left.contains(rank)).collect();
        let whole = Bundle::read_for(&self.folder, &self.options.drivers)?;
        let lost_node = match lost[..] {
            [] => Ok(None),
            [node] => whole.file_without(node).map(|_| Some(node)),
            _ => Err("the bundle has plans for the loss of one node".to_owned()),
        };
        let lost_node = lost_node.map_err(|reason| {
            let problem = format!("{}; {reason}", describe(&lost, &state.names));
            let requests = match error {
                _ if left.first() == Some(&0) => state.lost_requests(),
                Some(Error::Lost { requests, .. }) if state.generation == 1 => requests.clone(),
                _ => vec![],
            };
            Error::Lost { problem, requests, is_death: true }
        })?;
        let options = Options { communicator: state.communicator.clone(), lost_node, ..self.options.clone() };
        let runtime = Runtime::load(&self.folder, options)?;
        runtime.record(state.recording);
        state.runtime = Some(Arc::new(runtime));
        Ok(lost_node)
    }

    /// Repeats the requests without results, in their order, and reports the recovery.
    fn repeat_requests(&self, state: &State, lost_node: Option<usize>, started: Instant) {
        let Ok((generation, runtime)) = state.current() else { return };
        if runtime.rank() > 0 {
            return;
        }
        let repeated = state.open.iter().filter(|request| request.repeat(generation, &runtime)).count();
        let (Some(observer), Some(node)) = (&self.observer, lost_node) else { return };
        let duration = started.elapsed();
        let whole = Bundle::read_for(&self.folder, &self.options.drivers);
        let otherwise =
            whole.map(|whole| whole.tasks_computed_otherwise(runtime.plan()).into_iter().map(str::to_owned).collect());
        observer(&Recovery {
            problem: describe(&[node], &state.names),
            node,
            ranks: state.communicator.as_ref().map_or(1, |communicator| communicator.size()),
            repeated: repeated + state.blocking.len(),
            duration,
            tasks_computed_otherwise: otherwise.unwrap_or_default(),
        });
    }
}

/// Describes ranks that have died.
fn describe(ranks: &[usize], names: &[String]) -> String {
    let describe = |&rank: &usize| format!("rank {rank} has failed{}", names.get(rank).map_or("", |name| &name[..]));
    ranks.iter().map(describe).collect::<Vec<_>>().join("; ")
}
