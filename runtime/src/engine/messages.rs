//! Messages between hosts: sends and receives are steps, which any thread starts when they are ready and which a thread of
//! their own completes by polling.
//!
//! A step of a failed request sends an empty message, with which the receiver's part of the request fails, too. So every
//! message that a rank waits for is sent. Rank 0 completes a request when all ranks have completed their parts of it, and
//! reports the failure of the first step of the plan that failed.

mod control;
mod polling;
mod protocol;
mod spans;
mod watch;

use crate::{
    bundle::Message,
    communicator::{Communicator, Envelope, Operation},
    error::{Error, Result},
    process::Peer,
    program::Program,
    span::Spans,
};
use control::Control;
pub(super) use control::PartFailure;
use divi_threads::{
    Ready,
    sync::{Condition, Mutex},
};
pub use spans::ClockDifference;
use spans::Collected;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Time limit of the end of all operations on a revoked communicator, and the time between two tests.
const REVOCATION: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_micros(200);

/// Messages of this rank.
pub(crate) struct Messages {
    communicator: Arc<dyn Communicator>,
    /// Messages of a request, between all ranks.
    of_request: Vec<Message>,
    /// By rank: name in error messages, with its stages.
    peers: Vec<String>,
    /// By rank: the rank as seen by this one.
    processes: Vec<Peer>,
    /// Time after which a rank that does not answer is treated as dead.
    stall_timeout: Option<Duration>,
    spin_timeout: Duration,
    /// Number of devices that compute with threads of this host, and of those that are computing.
    devices: usize,
    computing: AtomicUsize,
    queue: Mutex<Queue>,
    changed: Condition,
    state: Mutex<State>,
    is_broken: AtomicBool,
    /// By rank: spans and clocks, at rank 0.
    collected: Mutex<BTreeMap<usize, Collected>>,
    has_collected: Condition,
    /// Result of the job on this rank, once it has ended.
    outcome: Mutex<Option<Outcome>>,
    ended: Condition,
}

/// End of the job on this rank.
enum Outcome {
    /// Rank 0 has closed its runtime.
    Closed,
    /// A rank has failed, and requests are lost.
    Lost { problem: String, requests: Vec<u64>, is_death: bool },
}

/// Messages that have not been started.
#[derive(Default)]
struct Queue {
    steps: BinaryHeap<Reverse<Ready>>,
    /// Control messages and their receivers.
    controls: Vec<(usize, Control)>,
    is_closing: bool,
    /// True if the polling thread is to poll without delay.
    is_urgent: bool,
}

/// Messages in progress.
#[derive(Default)]
struct State {
    steps: Vec<PendingStep>,
    controls: Vec<PendingControl>,
    spans: Spans,
    /// Operations that were given up; their memory must not be freed before they have ended.
    abandoned: Vec<Operation>,
}

struct PendingStep {
    operation: Operation,
    ready: Ready,
    begin_ns: u64,
    /// Number of bytes to receive; `None` for a send.
    expected: Option<u64>,
}

struct PendingControl {
    operation: Operation,
    /// Bytes that the operation reads.
    _bytes: Box<[u8; control::BYTES]>,
}

/// Result of polling.
enum Event {
    /// A step is complete.
    Step(Ready, Option<Error>),
    /// A rank has sent a control message.
    Control(usize, Control),
    /// Messages cannot be passed any more.
    Broken(Error),
}

impl Messages {
    /// Prepares the messages of a program.
    pub(crate) fn new(
        communicator: Arc<dyn Communicator>,
        program: &Program,
        stall_timeout: Option<Duration>,
    ) -> Result<Self> {
        let (of_request, in_flight) = (program.messages.clone(), program.in_flight);
        let is_computing = |device: usize| !program.devices[device].is_queued() && program.bundle.has_stages(device);
        let last = (of_request.len() as u64).saturating_mul(in_flight as u64);
        if last > u64::from(communicator.max_tag()) {
            let problem = format!(
                "{in_flight} requests in flight with {} messages each take {last} tags, and the library has {}: allow fewer \
                 requests, with --in-flight",
                of_request.len(),
                communicator.max_tag()
            );
            return Err(Error::Communication { problem });
        }
        Ok(Self {
            communicator,
            of_request,
            peers: program.peers.clone(),
            processes: program.processes.clone(),
            stall_timeout,
            spin_timeout: program.workers.idle_spin_timeout(),
            devices: (0..program.devices.len()).filter(|&device| is_computing(device)).count(),
            computing: AtomicUsize::new(0),
            queue: Mutex::default(),
            changed: Condition::default(),
            state: Mutex::default(),
            is_broken: AtomicBool::new(false),
            collected: Mutex::default(),
            has_collected: Condition::default(),
            outcome: Mutex::default(),
            ended: Condition::default(),
        })
    }

    pub(crate) fn rank(&self) -> usize {
        self.communicator.rank()
    }

    /// Returns the other ranks.
    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let own = self.rank();
        (0..self.communicator.size()).filter(move |&rank| rank != own)
    }

    /// Returns the number of ranks that report the completion of a request to this one.
    pub(super) fn reporting(&self) -> usize {
        if self.rank() == 0 { self.communicator.size() - 1 } else { 0 }
    }

    /// Adds a ready step. It is started by [`Engine::start_messages`](super::Engine::start_messages) or by the polling thread.
    pub(super) fn push(&self, ready: Ready) {
        self.queue.lock().steps.push(Reverse(ready));
    }

    /// Calls `compute`, during which a device computes.
    pub(super) fn while_computing<T>(&self, compute: impl FnOnce() -> T) -> T {
        self.computing.fetch_add(1, Ordering::Relaxed);
        let result = compute();
        self.computing.fetch_sub(1, Ordering::Relaxed);
        result
    }

    /// Returns true if all devices that compute with threads of this host are computing.
    fn is_busy(&self) -> bool {
        self.devices > 0 && self.computing.load(Ordering::Relaxed) >= self.devices
    }

    fn push_control(&self, to: usize, control: Control) {
        self.queue.lock().controls.push((to, control));
    }

    /// Makes the polling thread poll without delay.
    pub(super) fn wake(&self) {
        let mut queue = self.queue.lock();
        if !mem::replace(&mut queue.is_urgent, true) {
            self.changed.notify_one();
        }
    }

    /// Ends the polling thread after the delivery of all messages. Rank 0 ends the other ranks.
    pub(crate) fn close(&self) {
        if self.rank() == 0 && !self.is_broken.load(Ordering::SeqCst) {
            self.others().for_each(|rank| self.push_control(rank, Control::End));
        }
        self.queue.lock().is_closing = true;
        self.wake();
    }

    /// Returns true if the library may still access the memory of values or of control messages. After the death of a rank,
    /// the operations that were given up end when the ranks revoke the communicator, which this function waits for.
    pub(crate) fn has_abandoned(&self) -> bool {
        let mut state = self.state.lock();
        let is_revoked = self.communicator.can_recover() && self.lost().is_death();
        let deadline = Instant::now() + if is_revoked { REVOCATION } else { Duration::ZERO };
        let State { controls, abandoned, .. } = &mut *state;
        let is_in_progress = |operation: Operation| matches!(self.communicator.test(operation), Ok(None));
        loop {
            abandoned.retain(|operation| is_in_progress(*operation));
            controls.retain(|control| is_in_progress(control.operation));
            if abandoned.is_empty() && controls.is_empty() {
                return false;
            }
            if Instant::now() >= deadline {
                return true;
            }
            thread::sleep(POLL);
        }
    }

    /// Waits for the end of the job.
    pub(crate) fn wait_for_end(&self) -> Result<()> {
        let mut outcome = self.outcome.lock();
        loop {
            match &*outcome {
                None => outcome = self.ended.wait(outcome),
                Some(Outcome::Closed) => return Ok(()),
                Some(Outcome::Lost { problem, requests, is_death }) => {
                    let (problem, requests, is_death) = (problem.clone(), requests.clone(), *is_death);
                    return Err(Error::Lost { problem, requests, is_death });
                }
            }
        }
    }

    fn set_outcome(&self, outcome: Outcome) {
        self.outcome.lock().get_or_insert(outcome);
        self.ended.notify_all();
    }

    /// Returns the error that broke the job.
    fn lost(&self) -> Error {
        let (problem, is_death) = match &*self.outcome.lock() {
            Some(Outcome::Lost { problem, is_death, .. }) => (problem.clone(), *is_death),
            _ => ("the job has ended".to_owned(), false),
        };
        Error::Lost { problem, requests: vec![], is_death }
    }

    /// Describes an error for all ranks. Names the rank that caused it, with its host and stages.
    fn describe(&self, error: &Error) -> String {
        let peer = |rank: usize| self.peers.get(rank).map_or("", |peer| &peer[..]);
        match error {
            Error::PeerFailed { rank, .. } | Error::Stalled { rank, .. } | Error::InvalidMessage { rank, .. } => {
                format!("{error}{}", peer(*rank))
            }
            error => format!("rank {}: {error}{}", self.rank(), peer(self.rank())),
        }
    }

    fn tag(&self, slot: usize, message: usize) -> u32 {
        // The constructor checked the largest tag.
        control::TAG + 1 + (slot * self.of_request.len() + message) as u32
    }

    /// Checks that a step of this rank will receive a message. Its size is checked when it is received.
    fn check_expected(&self, Envelope { rank, tag, .. }: Envelope, slots: usize) -> Result<()> {
        let index = (tag - control::TAG).checked_sub(1).map(|index| index as usize);
        let message = index.filter(|index| index / self.of_request.len().max(1) < slots);
        let message = message.and_then(|index| self.of_request.get(index % self.of_request.len().max(1)));
        match message {
            Some(message) if (message.from, message.to) == (rank, self.rank()) => Ok(()),
            _ => Err(Error::InvalidMessage { rank, reason: format!("no step expects its tag {tag}") }),
        }
    }
}

fn wrong_size(rank: usize, expected: u64, found: u64) -> Error {
    Error::InvalidMessage { rank, reason: format!("it has {found} bytes instead of {expected}") }
}
