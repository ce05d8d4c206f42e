//! Interrupts: the first one cancels running requests, a second one ends the program immediately.

use crate::INTERRUPTED;
use divi_runtime::Runtime;
use std::{
    mem,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

#[derive(Clone)]
pub(crate) struct Signals(Arc<Watched>);

struct Watched {
    were_seen: AtomicBool,
    runtime: Mutex<Weak<Runtime>>,
}

impl Signals {
    /// Starts the signal thread. Must be called before other threads are started, so that only this thread receives signals.
    pub(crate) fn watch() -> Result<Self, String> {
        let watched = Watched { were_seen: AtomicBool::new(false), runtime: Mutex::new(Weak::new()) };
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
                    theirs.handle();
                }
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(wait).map_err(|error| error.to_string())?;
        Ok(signals)
    }

    fn handle(&self) {
        let is_second = self.0.were_seen.swap(true, Ordering::SeqCst);
        let runtime = self.0.runtime.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        match runtime {
            Some(runtime) if !is_second => runtime.close(),
            // Nothing runs yet, or a second interrupt arrived.
            _ => {
                divi_files::discard_all();
                std::process::exit(INTERRUPTED.into())
            }
        }
    }

    /// Makes interrupts close the runtime from now on.
    pub(crate) fn close_on_signal(&self, runtime: &Arc<Runtime>) {
        *self.0.runtime.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(runtime);
    }

    pub(crate) fn were_seen(&self) -> bool {
        self.0.were_seen.load(Ordering::SeqCst)
    }
}
