//! Terminal output: a progress bar, and a line for each result.

use std::{
    cell::Cell,
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

/// Minimum time between updates of the bar.
const PERIOD: Duration = Duration::from_millis(100);

const WIDTH: usize = 24;

/// Progress on stderr: a bar if it is a terminal, and lines unless quiet. The bar is erased on drop.
pub(crate) struct Progress {
    is_quiet: bool,
    has_bar: bool,
    jobs: usize,
    done: Cell<usize>,
    drawn: Cell<Option<Instant>>,
}

impl Progress {
    pub(crate) fn new(is_quiet: bool, jobs: usize) -> Self {
        let has_bar = !is_quiet && io::stderr().is_terminal();
        Self { is_quiet, has_bar, jobs, done: Cell::new(0), drawn: Cell::new(None) }
    }

    /// Marks the current job as done.
    pub(crate) fn next(&self) {
        self.done.set(self.done.get() + 1);
    }

    /// Shows the progress of the current job.
    pub(crate) fn show(&self, share: f64, text: &str) {
        if !self.has_bar || self.drawn.get().is_some_and(|drawn| drawn.elapsed() < PERIOD) {
            return;
        }
        self.drawn.set(Some(Instant::now()));
        write(&format!("\r\x1b[K{}", line(self.done.get() as f64 + share.clamp(0.0, 1.0), self.jobs, text)));
    }

    /// Prints a permanent line.
    pub(crate) fn say(&self, text: &str) {
        self.clear();
        if !self.is_quiet {
            write(&format!("divi-profile: {text}\n"));
        }
    }

    fn clear(&self) {
        if self.drawn.take().is_some() {
            write("\r\x1b[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn line(done: f64, jobs: usize, text: &str) -> String {
    let full = ((done / jobs.max(1) as f64).min(1.0) * WIDTH as f64) as usize;
    format!("[{}{}] {text}", "#".repeat(full), " ".repeat(WIDTH - full))
}

/// Writes to stderr; errors are ignored.
fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fills() {
        assert_eq!(line(0.0, 2, "a"), format!("[{}] a", " ".repeat(24)));
        assert_eq!(line(1.0, 2, "b"), format!("[{}{}] b", "#".repeat(12), " ".repeat(12)));
        assert_eq!(line(9.0, 2, "c"), format!("[{}] c", "#".repeat(24)));
        assert_eq!(line(0.0, 0, ""), format!("[{}] ", " ".repeat(24)));
    }
}
