//! Processes of other ranks, which may have to be ended when they stall.

use serde::{Deserialize, Serialize};
use std::fs;

/// Rank as seen by another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Its process, if this rank may end it.
    pub(crate) process: Option<Process>,
    /// True if at least one rank may end it.
    pub(crate) can_be_ended: bool,
}

/// Process of a rank. The time of its start distinguishes it from later processes with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    number: u32,
    started: u64,
}

impl Process {
    pub(crate) fn own() -> Option<Self> {
        let number = std::process::id();
        Some(Self { number, started: start(number)? })
    }

    /// Returns true for this process, which has several ranks then.
    pub(crate) fn is_own(self) -> bool {
        self.number == std::process::id()
    }

    /// Ends the process at once, also if it is stopped. Does nothing if it has ended.
    pub(crate) fn kill(self) {
        if self.is_own() || start(self.number) != Some(self.started) {
            return;
        }
        if let Ok(number) = libc::pid_t::try_from(self.number) {
            // SAFETY: has no preconditions.
            unsafe { libc::kill(number, libc::SIGKILL) };
        }
    }
}

/// Returns the start of a process in clock ticks since the system's start.
fn start(process: u32) -> Option<u64> {
    /// Position of the field behind the name, which is in parentheses.
    const FIELD: usize = 19;
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(FIELD)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{os::unix::process::ExitStatusExt, process::Command};

    #[test]
    fn only_the_process_that_was_meant_is_ended() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process { number: child.id(), started: start(child.id()).unwrap() };
        Process { started: process.started + 1, ..process }.kill();
        Process::own().unwrap().kill();
        assert!(child.try_wait().unwrap().is_none());
        process.kill();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    }
}
