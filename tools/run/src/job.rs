//! Ranks of a job: rank 0 reads inputs, runs requests and writes outputs; the other ranks run their parts of the requests.
//!
//! A rank that fails ends all ranks, each with one error. It leaves without finalizing MPI, which could block if a rank does not
//! exist any more; its launcher then ends what is left of the job.

use crate::{
    arguments::Arguments,
    files, load, serve_user,
    signals::{Signals, print_error},
};
use divi_mpi::{Launch, World};
use divi_runtime::{Error, bundle::Bundle, communicator::Communicator, refuse};
use std::{
    fmt::Display,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Time limits for all ranks to join MPI, and to leave it at the end of a job, when none of them has anything else to do. MPI
/// reports no rank that dies meanwhile.
const JOIN: Duration = Duration::from_secs(120);
const LEAVE: Duration = Duration::from_secs(10);

/// This rank of a job.
pub(crate) struct Job {
    world: Arc<World>,
}

impl Job {
    /// Joins the job of a launcher; `None` if there is no launcher, or only one rank.
    pub(crate) fn join(signals: &Signals) -> Result<Option<Self>, String> {
        let Some(launch) = Launch::detect() else { return Ok(None) };
        signals.set_rank(true);
        let is_joined = watch("other ranks have not joined the job", JOIN);
        let world = World::join(&launch).map_err(|error| error.to_string())?;
        is_joined.store(true, Ordering::SeqCst);
        signals.set_rank(world.is_some());
        Ok(world.map(|world| Self { world }))
    }

    pub(crate) fn communicator(&self) -> Arc<dyn Communicator> {
        self.world.clone()
    }

    /// Runs this rank.
    pub(crate) fn run(&self, arguments: &Arguments, signals: &Signals) -> Result<ExitCode, String> {
        let rank = self.world.rank();
        if rank == 0
            && let Err(message) = check(arguments)
        {
            // The other ranks end with this error, too.
            return match refuse(&*self.world, &message) {
                Ok(()) => self.leave(signals, &message),
                Err(error) => self.end(signals, &error),
            };
        }
        let start = Instant::now();
        let runtime = match load(arguments, Some(self)) {
            Ok(runtime) => Arc::new(runtime),
            Err(error) if is_agreed(&error) => return self.leave(signals, &error),
            Err(error) => self.end(signals, &error),
        };
        let load_time = start.elapsed();
        signals.close_on_signal(&runtime);
        let result = if rank == 0 {
            if !arguments.is_quiet {
                eprintln!("divi-run: {} ranks, {}", self.world.size(), self.world.library());
            }
            let result = serve_user(arguments, signals, &runtime, load_time);
            result.inspect_err(|message| _ = runtime.fail(message))
        } else {
            runtime.serve().map(|()| ExitCode::SUCCESS).map_err(|error| error.to_string())
        };
        match result {
            Ok(status) => {
                signals.ignore();
                // Rank 0 ends the others.
                drop(runtime);
                self.finalize();
                Ok(status)
            }
            Err(message) => self.end(signals, &message),
        }
    }

    fn named(&self, error: &dyn Display) -> String {
        let (error, rank) = (error.to_string(), format!("rank {}: ", self.world.rank()));
        if error.starts_with(&rank) { error } else { rank + &error }
    }

    /// Ends with an error that all ranks end with. Leaving MPI is last, because the launcher ends the other ranks when one has
    /// ended.
    fn leave(&self, signals: &Signals, error: &dyn Display) -> Result<ExitCode, String> {
        signals.report(&self.named(error));
        self.finalize();
        Ok(ExitCode::FAILURE)
    }

    /// Ends with an error after which ranks cannot leave MPI together.
    fn end(&self, signals: &Signals, error: &dyn Display) -> ! {
        signals.report(&self.named(error));
        signals.exit()
    }

    /// Leaves MPI together with all ranks.
    fn finalize(&self) {
        let rank = self.world.rank();
        let has_left = watch(&format!("rank {rank}: other ranks have not left the job"), LEAVE);
        if let Err(error) = self.world.finalize() {
            print_error(&format!("rank {rank}: {error}"));
            std::process::exit(1)
        }
        has_left.store(true, Ordering::SeqCst);
    }
}

/// Ends the process with an error if the flag that is returned has not been set within a time limit.
fn watch(problem: &str, limit: Duration) -> Arc<AtomicBool> {
    let is_done = Arc::new(AtomicBool::new(false));
    let (is_done_there, message) = (is_done.clone(), format!("{problem} within {} s", limit.as_secs()));
    let wait = move || {
        thread::sleep(limit);
        if !is_done_there.load(Ordering::SeqCst) {
            print_error(&message);
            std::process::exit(1)
        }
    };
    // Without a thread, the launcher has to end a rank that waits.
    let _ = thread::Builder::new().name("watch".to_owned()).spawn(wait);
    is_done
}

/// Returns true if all ranks end with the error, so that they can leave MPI together.
fn is_agreed(error: &Error) -> bool {
    !matches!(error, Error::PeerFailed { .. } | Error::InvalidMessage { .. } | Error::Communication { .. })
}

/// Checks arguments before anything is loaded.
fn check(arguments: &Arguments) -> Result<(), String> {
    for (is_given, option) in [(arguments.trace.is_some(), "--trace"), (arguments.profile.is_some(), "--profile-out")] {
        if is_given {
            return Err(format!("{option} does not support several ranks yet: run the bundle in one process"));
        }
    }
    files::check_outputs(arguments, Bundle::read(&arguments.bundle).ok().as_ref())
}
