//! Cleaning up when a signal ends the process.

use crate::temporary::discard_all;
use std::{
    io, mem, ptr,
    sync::atomic::{AtomicI32, Ordering},
    thread,
};

const SIGNALS: [libc::c_int; 3] = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM];

/// Descriptor that the handler writes signals to.
static PIPE: AtomicI32 = AtomicI32::new(-1);

/// Removes the temporary files of this process when SIGHUP, SIGINT or SIGTERM ends it; it still ends by that signal.
///
/// For the `main` of tools: libraries leave signals to their host. Signals that are ignored stay so.
pub fn clean_up_on_signals() -> io::Result<()> {
    let mut ends = [0; 2];
    // SAFETY: there is room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    PIPE.store(ends[1], Ordering::SeqCst);
    let [reader, _] = ends;
    thread::Builder::new().name("signals".to_owned()).spawn(move || wait(reader))?;
    for signal in SIGNALS {
        // SAFETY: zeros are a valid value of the C structure.
        let [mut action, mut before]: [libc::sigaction; 2] = [(); 2].map(|()| unsafe { mem::zeroed() });
        action.sa_sigaction = handle as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: there is room for the set.
        unsafe { libc::sigemptyset(&mut action.sa_mask) };
        // SAFETY: there is room for the action.
        unsafe { libc::sigaction(signal, ptr::null(), &mut before) };
        if before.sa_sigaction != libc::SIG_IGN {
            // SAFETY: the handler only writes to a pipe, which may be done at any time.
            unsafe { libc::sigaction(signal, &action, ptr::null_mut()) };
        }
    }
    Ok(())
}

extern "C" fn handle(signal: libc::c_int) {
    let byte = signal as u8;
    // SAFETY: every thread has an errno for itself.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the pointer is that of this thread.
    let before = unsafe { *errno };
    // SAFETY: it is one byte.
    unsafe { libc::write(PIPE.load(Ordering::SeqCst), (&raw const byte).cast(), 1) };
    // SAFETY: as above. The code that was interrupted finds its errno unchanged.
    unsafe { *errno = before };
}

fn wait(reader: libc::c_int) {
    let mut signal = 0_u8;
    // SAFETY: there is room for one byte.
    while unsafe { libc::read(reader, (&raw mut signal).cast(), 1) } != 1 {}
    discard_all();
    // SAFETY: it sets a signal to its default.
    unsafe { libc::signal(signal.into(), libc::SIG_DFL) };
    // SAFETY: it takes nothing.
    let process = unsafe { libc::getpid() };
    // SAFETY: the process ends by the signal, as without a handler.
    unsafe { libc::kill(process, signal.into()) };
}
