//! Progress line on the terminal while a solver runs: incumbent, best bound, gap.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use divi_planner::units::Micros;
use divi_planner::{Observer, SolverEvent};

/// Minimum time between updates of the line.
const PERIOD: Duration = Duration::from_millis(100);
/// Name of the planner's search for remedies of an infeasible problem.
const REMEDIES: &str = "remedies";

/// The progress line; erased on drop.
pub struct Progress(Arc<Mutex<Line>>);

struct Line {
    started: Instant,
    drawn: Option<Instant>,
    value: Micros,
    /// Algorithm that found the incumbent.
    by: &'static str,
    bound: Micros,
}

impl Progress {
    /// Returns the progress line, or `None` if stderr is not a terminal.
    pub fn on_terminal() -> Option<Self> {
        let line = Line { started: Instant::now(), drawn: None, value: Micros::INFINITY, by: "", bound: Micros::ZERO };
        io::stderr().is_terminal().then(|| Self(Arc::new(Mutex::new(line))))
    }

    /// Returns an observer that updates the line.
    pub fn observer(&self) -> Observer {
        let line = Arc::clone(&self.0);
        Observer::new(move |event| line.lock().unwrap_or_else(PoisonError::into_inner).take(event))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.0.lock().is_ok_and(|line| line.drawn.is_some()) {
            write("\r\x1b[K");
        }
    }
}

impl Line {
    fn take(&mut self, event: SolverEvent) {
        match event {
            SolverEvent::Plan(value, by) if value < self.value => (self.value, self.by) = (value, by),
            SolverEvent::Plan(..) => {}
            SolverEvent::Bound(value, _) => self.bound = self.bound.max(value),
            SolverEvent::Explored(_, REMEDIES) => {
                return self.draw(&format!(
                    "\r\x1b[K{:6.1} s  no feasible plan; searching for remedies",
                    self.started.elapsed().as_secs_f64()
                ));
            }
            SolverEvent::Taken(_) | SolverEvent::Explored(..) | SolverEvent::Failed(_) => return,
        }
        if self.value.is_finite() {
            self.draw(&self.text());
        }
    }

    /// Draws the line unless it was drawn less than a period ago.
    fn draw(&mut self, text: &str) {
        if self.drawn.is_none_or(|drawn| drawn.elapsed() >= PERIOD) {
            self.drawn = Some(Instant::now());
            write(text);
        }
    }

    fn text(&self) -> String {
        let Self { value, by, bound, .. } = *self;
        let seconds = self.started.elapsed().as_secs_f64();
        let gap = 100.0 * (value - bound).max(Micros::ZERO) / value.max(Micros(f64::MIN_POSITIVE));
        format!("\r\x1b[K{seconds:6.1} s  plan {value:.1} µs by {by}  bound {bound:.1} µs  gap {gap:.2} %")
    }
}

/// Writes to stderr; errors are ignored.
fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
