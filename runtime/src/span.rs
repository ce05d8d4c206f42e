//! Measured start and end times of steps and tasks.

/// Level of detail of recorded spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Recording {
    /// Nothing is recorded.
    Off,
    /// Steps, and tasks of CPUs. Does not change the execution.
    Steps,
    /// Steps and all tasks. Serializes the tasks of devices with queues and synchronizes after each step.
    Tasks,
}

/// Maximum number of spans per executor and per device with a queue; further ones are only counted.
const LIMIT: usize = 1 << 20;

/// Time interval of a step, or of a task of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Number of the request, in the order of admission.
    pub request: u64,
    /// Index into the bundle's `steps`.
    pub step: usize,
    /// Index into the stage's `tasks`; `None` for the whole step.
    pub task: Option<usize>,
    /// Start in nanoseconds since the runtime was loaded.
    pub begin_ns: u64,
    /// End in nanoseconds since the runtime was loaded.
    pub end_ns: u64,
}

/// Spans of one executor or of one device with a queue.
#[derive(Default)]
pub(crate) struct Spans {
    pub(crate) spans: Vec<Span>,
    pub(crate) dropped: u64,
}

impl Spans {
    pub(crate) fn push(&mut self, span: Span) {
        if self.spans.len() < LIMIT {
            self.spans.push(span);
        } else {
            self.dropped += 1;
        }
    }
}
