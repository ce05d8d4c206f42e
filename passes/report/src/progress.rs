//! A line on the terminal while a solver works: the best plan, the best bound, what is between them.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use divi_planner::{Observer, SolverEvent};

/// How often the line changes at most.
const PERIOD: Duration = Duration::from_millis(100);
/// The part of the planner that looks for remedies where there is no plan.
const REMEDIES: &str = "remedies";

/// The line; gone when dropped.
pub struct Progress(Arc<Mutex<Line>>);

struct Line {
    started: Instant,
    drawn: Option<Instant>,
    value: f64,
    /// Who has found the plan.
    by: &'static str,
    bound: f64,
}

impl Progress {
    /// None where stderr is no terminal.
    pub fn on_terminal() -> Option<Self> {
        let line = Line { started: Instant::now(), drawn: None, value: f64::INFINITY, by: "", bound: 0.0 };
        io::stderr().is_terminal().then(|| Self(Arc::new(Mutex::new(line))))
    }

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
                    "\r\x1b[K{:6.1} s  there is no plan; trying what would make one possible",
                    self.started.elapsed().as_secs_f64()
                ));
            }
            SolverEvent::Taken(_) | SolverEvent::Explored(..) | SolverEvent::Failed(_) => return,
        }
        if self.value.is_finite() {
            self.draw(&self.text());
        }
    }

    /// Draws the line, unless that was done just before.
    fn draw(&mut self, text: &str) {
        if self.drawn.is_none_or(|drawn| drawn.elapsed() >= PERIOD) {
            self.drawn = Some(Instant::now());
            write(text);
        }
    }

    fn text(&self) -> String {
        let Self { value, by, bound, .. } = self;
        let seconds = self.started.elapsed().as_secs_f64();
        let gap = 100.0 * (value - bound).max(0.0) / value.max(f64::MIN_POSITIVE);
        format!("\r\x1b[K{seconds:6.1} s  plan {value:.1} µs by {by}  bound {bound:.1} µs  gap {gap:.2} %")
    }
}

/// A line that cannot be drawn is not worth an error.
fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
