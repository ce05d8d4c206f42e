//! A line on the terminal while a table is made.

use std::io::{self, IsTerminal, Write};

/// The line; gone when dropped. Where stderr is no terminal there is none.
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

/// A line that cannot be drawn is not worth an error.
fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
