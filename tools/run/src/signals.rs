//! Interrupts: the first one cancels running requests, a second one ends the program immediately.
//!
//! Launchers of jobs send SIGTERM to all ranks if one of them has failed: it ends this rank with an error.

use crate::INTERRUPTED;
use divi_runtime::ResilientRuntime;
use std::{
    fmt::Display,
    io::{self, Write},
    mem,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// Error of a rank that is ended by a signal.
const TERMINATED: &str = "a signal has ended this rank, which a launcher sends if another rank has failed";

/// Time that a failed rank gives the others to end with their own errors, before its launcher ends them.
const FAREWELL: Duration = Duration::from_millis(300);

#[derive(Clone)]
pub(crate) struct Signals(Arc<Watched>);

struct Watched {
    were_seen: AtomicBool,
    /// True if this process is a rank of a job.
    is_rank: AtomicBool,
    /// True if the process is about to end, so that signals have no effect.
    is_ending: AtomicBool,
    runtime: Mutex<Weak<ResilientRuntime>>,
}

/// Prints an error in one piece, so that those of several ranks do not mix.
pub(crate) fn print_error(error: &dyn Display) {
    // Nothing can be done about an error of standard error.
    let _ = io::stderr().write_all(format!("divi-run: error: {error}\n").as_bytes());
}

impl Signals {
    /// Starts the signal thread. Must be called before other threads are started, so that only this thread receives signals.
    pub(crate) fn watch() -> Result<Self, String> {
        let no = || AtomicBool::new(false);
        let watched = Watched { were_seen: no(), is_rank: no(), is_ending: no(), runtime: Mutex::new(Weak::new()) };
        let signals = Self(Arc::new(watched));
        // SAFETY: a signal set is plain data, and is emptied before use.
        let mut set: libc::sigset_t = unsafe { mem::zeroed() };
        // SAFETY: the set outlives the calls; threads started later inherit the mask.
        unsafe { libc::sigemptyset(&mut set) };
        for signal in [libc::SIGINT, libc::SIGTERM] {
            // SAFETY: the set is initialized.
            unsafe { libc::sigaddset(&mut set, signal) };
        }
        // SAFETY: as above.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) };
        let theirs = signals.clone();
        let wait = move || {
            loop {
                let mut signal = 0;
                // SAFETY: both arguments outlive the call.
                if unsafe { libc::sigwait(&set, &mut signal) } == 0 {
                    theirs.handle(signal);
                }
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(wait).map_err(|error| error.to_string())?;
        Ok(signals)
    }

    fn handle(&self, signal: libc::c_int) {
        if self.0.is_ending.load(Ordering::SeqCst) {
            return;
        }
        let is_second = self.0.were_seen.swap(true, Ordering::SeqCst);
        let runtime = self.0.runtime.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        // There is none during a recovery.
        let runtime = runtime.and_then(|runtime| runtime.try_current());
        let is_rank = self.0.is_rank.load(Ordering::SeqCst);
        match runtime {
            Some(runtime) if is_rank && (signal == libc::SIGTERM || runtime.rank() > 0) => {
                // The launcher soon ends the rank with a signal that cannot be handled.
                if let Err(error) = runtime.fail(TERMINATED) {
                    self.report(&error);
                }
                self.exit()
            }
            None if is_rank => {
                self.report(&TERMINATED);
                self.exit()
            }
            Some(runtime) if !is_second => runtime.close(),
            // Nothing runs yet, or a second interrupt arrived.
            _ => {
                divi_files::discard_all();
                std::process::exit(INTERRUPTED.into())
            }
        }
    }

    /// Sets whether this process is a rank of a job.
    pub(crate) fn set_rank(&self, is_rank: bool) {
        self.0.is_rank.store(is_rank, Ordering::SeqCst);
    }

    /// Ignores signals from now on, because the process ends. Returns false if it already did.
    pub(crate) fn ignore(&self) -> bool {
        !self.0.is_ending.swap(true, Ordering::SeqCst)
    }

    /// Prints the only error of this rank, and ignores signals from now on.
    pub(crate) fn report(&self, error: &dyn Display) {
        if self.ignore() {
            print_error(error);
        }
    }

    /// Ends this rank with an error, after the other ranks had time to end with their own errors.
    pub(crate) fn exit(&self) -> ! {
        thread::sleep(FAREWELL);
        divi_files::discard_all();
        std::process::exit(1)
    }

    /// Makes interrupts close the runtime from now on.
    pub(crate) fn close_on_signal(&self, runtime: &Arc<ResilientRuntime>) {
        *self.0.runtime.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(runtime);
    }

    pub(crate) fn were_seen(&self) -> bool {
        self.0.were_seen.load(Ordering::SeqCst)
    }
}
