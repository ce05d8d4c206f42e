//! Removal of temporary files when a signal terminates the process.

use crate::temporary::discard_all;
use std::{
    io, mem, ptr,
    sync::atomic::{AtomicI32, Ordering},
    thread,
};

const SIGNALS: [libc::c_int; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGPIPE, libc::SIGTERM];

/// Write end of the pipe from the handler to the signal thread.
static PIPE: AtomicI32 = AtomicI32::new(-1);

/// Installs handlers that remove the temporary files of this process on SIGHUP, SIGINT, SIGPIPE or SIGTERM and then terminate it by
/// the same signal.
///
/// Only for the `main` of tools: a library must not install signal handlers. Ignored signals stay ignored, except for SIGPIPE, which
/// Rust ignores at startup: a tool whose reader has closed the pipe (`| head`) ends silently, as other filters do.
pub fn clean_up_on_signals() -> io::Result<()> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    PIPE.store(ends[1], Ordering::SeqCst);
    let [reader, _] = ends;
    // The signal thread inherits the blocked signals: a handler that runs there would wait for itself.
    let before = block();
    let spawned = thread::Builder::new().name("signals".to_owned()).spawn(move || wait(reader));
    if spawned.is_ok() {
        install_handlers();
    }
    restore(&before);
    spawned.map(drop)
}

/// Blocks the signals in this thread, and returns the signals that were blocked before.
fn block() -> libc::sigset_t {
    // SAFETY: all zeros is a valid set.
    let [mut blocked, mut before]: [libc::sigset_t; 2] = [(); 2].map(|()| unsafe { mem::zeroed() });
    // SAFETY: the pointer is valid for writes.
    unsafe { libc::sigemptyset(&mut blocked) };
    for signal in SIGNALS {
        // SAFETY: the set is initialized, and the signal exists.
        unsafe { libc::sigaddset(&mut blocked, signal) };
    }
    // SAFETY: both sets are valid.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &blocked, &mut before) };
    before
}

/// Blocks exactly the signals of a set in this thread.
fn restore(blocked: &libc::sigset_t) {
    // SAFETY: the set is valid, and the old one is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, blocked, ptr::null_mut()) };
}

fn install_handlers() {
    for signal in SIGNALS {
        // SAFETY: all zeros is a valid `sigaction`.
        let [mut action, mut before]: [libc::sigaction; 2] = [(); 2].map(|()| unsafe { mem::zeroed() });
        action.sa_sigaction = handle as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: the pointer is valid for writes.
        unsafe { libc::sigemptyset(&mut action.sa_mask) };
        // SAFETY: `before` is valid for writes.
        unsafe { libc::sigaction(signal, ptr::null(), &mut before) };
        if before.sa_sigaction != libc::SIG_IGN || signal == libc::SIGPIPE {
            // SAFETY: the handler only calls `write` and `pause`, which are async-signal-safe.
            unsafe { libc::sigaction(signal, &action, ptr::null_mut()) };
        }
    }
}

extern "C" fn handle(signal: libc::c_int) {
    let byte = signal as u8;
    // SAFETY: takes no arguments; errno is thread-local.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the pointer is valid for this thread.
    let before = unsafe { *errno };
    // SAFETY: the buffer has one byte.
    unsafe { libc::write(PIPE.load(Ordering::SeqCst), (&raw const byte).cast(), 1) };
    if signal == libc::SIGPIPE {
        // The failed write must not return, or the tool would report an error for it.
        loop {
            // SAFETY: takes no arguments.
            unsafe { libc::pause() };
        }
    }
    // SAFETY: as above. Restores errno for the interrupted code.
    unsafe { *errno = before };
}

fn wait(reader: libc::c_int) {
    let mut signal = 0_u8;
    // SAFETY: the buffer has room for one byte.
    while unsafe { libc::read(reader, (&raw mut signal).cast(), 1) } != 1 {}
    discard_all();
    // SAFETY: restores the default action; installs no handler.
    unsafe { libc::signal(signal.into(), libc::SIG_DFL) };
    // SAFETY: all zeros is the empty set on Linux: no signal is blocked.
    restore(&unsafe { mem::zeroed() });
    // SAFETY: takes no arguments.
    let process = unsafe { libc::getpid() };
    // SAFETY: terminates this process by the signal, as without a handler.
    unsafe { libc::kill(process, signal.into()) };
}
