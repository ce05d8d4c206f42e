//! What was measured: when steps and tasks began and ended.

/// What spans are kept of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Recording {
    Off,
    /// Steps, and tasks of CPUs; all of it runs as it does else.
    Steps,
    /// Steps and their tasks. A device with a queue runs these one after the other then, and the host waits for it.
    Tasks,
}

/// Spans that are kept of each thread that runs steps, and of each device with a queue; more are counted only.
const LIMIT: usize = 1 << 20;

/// A step, or a task of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Of the order in which requests were let in.
    pub request: u64,
    /// An index of the bundle's `steps`.
    pub step: usize,
    /// An index of the stage's `tasks`, if it is not the whole step.
    pub task: Option<usize>,
    /// Nanoseconds since the runtime was loaded.
    pub begin_ns: u64,
    pub end_ns: u64,
}

/// Measurements of one thread, or of one device with a queue.
#[derive(Default)]
pub(crate) struct Spans {
    pub(crate) spans: Vec<Span>,
    pub(crate) left_out: u64,
}

impl Spans {
    pub(crate) fn push(&mut self, span: Span) {
        if self.spans.len() < LIMIT {
            self.spans.push(span);
        } else {
            self.left_out += 1;
        }
    }
}
