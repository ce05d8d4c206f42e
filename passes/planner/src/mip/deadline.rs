//! HiGHS within a wall-clock limit.
//!
//! HiGHS checks the clock between steps, and on a large program a step (presolve, a root relaxation, a round of cuts) can
//! take longer than the whole limit. So it runs in a thread of its own. A thread that has not returned shortly after the
//! limit is detached: it owns all of its data, its stop flag is set, and its solutions and bounds so far are the result.

use super::{Event, Limits, Outcome, Program, ffi};
use crate::model::error::Error;
use crate::model::units::deadline;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// Time after the limit in which HiGHS may still return.
const GRACE_PERIOD: Duration = Duration::from_millis(50);

/// Number of detached threads that still run.
static DETACHED: AtomicUsize = AtomicUsize::new(0);

/// Ends the process without running exit handlers if a detached solver is still running: they would destroy data that
/// the solver's library uses. Otherwise returns. Programs call it last, after all output.
pub fn exit_if_solver_detached(status: u8) {
    if DETACHED.load(Ordering::Acquire) > 0 {
        // A normal exit would ignore errors of the last flush, too.
        let _ = (io::stdout().flush(), io::stderr().flush());
        ffi::exit_now(status);
    }
}

/// Events from the solver's thread, with owned data.
enum Message {
    Solution(Vec<f64>),
    Bound(f64),
    SolutionRequest(Sender<Option<Vec<f64>>>),
    Done(Result<Outcome, Error>),
}

/// Flags that both threads access.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    is_done: AtomicBool,
}

/// Solves within `seconds`, and at most [`GRACE_PERIOD`] more.
pub(super) fn solve(
    program: &Program,
    limits: &Limits,
    seconds: f64,
    start: Option<&[f64]>,
    observer: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
) -> Result<Outcome, Error> {
    let mut until = deadline(Instant::now(), seconds.max(0.0) + GRACE_PERIOD.as_secs_f64());
    let (sender, receiver) = mpsc::channel();
    let shared = Arc::new(Shared::default());
    spawn(program.clone(), *limits, start.map(<[f64]>::to_vec), sender, Arc::clone(&shared))?;
    let (mut values, mut bound) = (start.map(<[f64]>::to_vec), f64::NEG_INFINITY);
    loop {
        let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
        let flow = match receiver.recv_timeout(left) {
            Ok(Message::Done(outcome)) => return outcome,
            Ok(Message::Solution(found)) => {
                let flow = observer(Event::Solution(&found));
                values = Some(found);
                flow
            }
            Ok(Message::Bound(better)) => {
                bound = better;
                observer(Event::Bound(better))
            }
            Ok(Message::SolutionRequest(reply)) => {
                let mut solution = None;
                let flow = observer(Event::SolutionRequest(&mut solution));
                // The solver blocks on the reply, unless its thread has panicked.
                let _ = reply.send(solution);
                flow
            }
            Err(RecvTimeoutError::Timeout) => {
                detach(&shared);
                let verified = f64::NEG_INFINITY;
                let (duals, ray) = (Vec::new(), None);
                return Ok(Outcome { values, bound, verified, duals, ray, finished: false, iterations: 0, nodes: 0 });
            }
            Err(RecvTimeoutError::Disconnected) => return Err(Error::Bug("a solver's thread panicked".to_owned())),
        };
        if flow.is_break() && !shared.stop.swap(true, Ordering::Relaxed) {
            let soon = Instant::now() + GRACE_PERIOD;
            until = Some(until.map_or(soon, |until| until.min(soon)));
        }
    }
}

fn spawn(
    program: Program,
    limits: Limits,
    start: Option<Vec<f64>>,
    sender: Sender<Message>,
    shared: Arc<Shared>,
) -> Result<(), Error> {
    let run = move || {
        let mut relay = |event: Event<'_>| {
            let is_sent = match event {
                Event::Solution(values) => sender.send(Message::Solution(values.to_vec())).is_ok(),
                Event::Bound(bound) => sender.send(Message::Bound(bound)).is_ok(),
                Event::SolutionRequest(place) => {
                    let (reply, answer) = mpsc::channel();
                    let is_sent = sender.send(Message::SolutionRequest(reply)).is_ok();
                    *place = answer.recv().ok().flatten();
                    is_sent
                }
            };
            if is_sent && !shared.stop.load(Ordering::Relaxed) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        };
        let outcome = ffi::solve(&program, &limits, start.as_deref(), &mut relay);
        if shared.is_done.swap(true, Ordering::AcqRel) {
            DETACHED.fetch_sub(1, Ordering::AcqRel);
        }
        // The receiver is gone if this thread was detached.
        let _ = sender.send(Message::Done(outcome));
    };
    let spawned = thread::Builder::new().name("highs".to_owned()).spawn(run);
    spawned.map(drop).map_err(|error| Error::NotFound(format!("cannot create a solver thread: {error}")))
}

/// Requests a thread to stop, and counts it as detached until it has ended.
fn detach(shared: &Shared) {
    shared.stop.store(true, Ordering::Relaxed);
    DETACHED.fetch_add(1, Ordering::AcqRel);
    if shared.is_done.swap(true, Ordering::AcqRel) {
        // It has just ended.
        DETACHED.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::random::Random;

    /// Builds a generalized assignment problem that takes HiGHS minutes.
    fn hard() -> Program {
        let mut random = Random::new(3);
        let mut program = Program::default();
        let mut room: Vec<Vec<_>> = vec![Vec::new(); 8];
        for _ in 0..60 {
            let columns: Vec<_> = (0..8).map(|_| program.binary()).collect();
            program.exactly(1.0, columns.iter().map(|column| (*column, 1.0)));
            for (terms, column) in room.iter_mut().zip(&columns) {
                terms.push((*column, 10.0 + random.below(40) as f64));
                program.cost[column.0] = 10.0 + random.below(40) as f64;
            }
        }
        room.into_iter().for_each(|terms| program.at_most(140.0, terms));
        program
    }

    #[test]
    fn limits_are_kept_and_solutions_are_returned() {
        let (program, began) = (hard(), Instant::now());
        let limits = Limits { seed: 1, iterations: u64::MAX, seconds: Some(0.5) };
        let mut bounds = Vec::new();
        let mut observer = |event: Event<'_>| {
            if let Event::Bound(bound) = event {
                bounds.push(bound);
            }
            ControlFlow::Continue(())
        };
        let outcome = program.solve(&limits, None, &mut observer).unwrap();
        assert!(!outcome.finished && bounds.iter().all(|bound| outcome.bound >= *bound), "{outcome:?}");
        // Far more than the limit of 0.5 s, for busy machines.
        assert!(began.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn an_observer_stops_the_solve() {
        let (program, began) = (hard(), Instant::now());
        let limits = Limits { seed: 1, iterations: u64::MAX, seconds: Some(300.0) };
        let outcome = program.solve(&limits, None, &mut |_| ControlFlow::Break(())).unwrap();
        assert!(!outcome.finished && began.elapsed() < Duration::from_secs(60));
    }
}
