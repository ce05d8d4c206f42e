//! Progress line on the terminal while a table is computed.

use std::io::{self, IsTerminal, Write};

/// The progress line; erased on drop. Disabled if stderr is not a terminal.
pub(super) struct Progress(bool);

impl Progress {
    pub(super) fn on_terminal() -> Self {
        Self(io::stderr().is_terminal())
    }

    pub(super) fn show(&self, text: &str) {
        if self.0 {
            write(&format!("\r\x1b[K{text}"));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.show("");
    }
}

/// Writes to stderr; errors are ignored.
fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
