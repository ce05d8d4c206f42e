//! Ranks of a job: rank 0 reads inputs, runs requests and writes outputs; the other ranks run their parts of the requests.
//!
//! A rank that fails ends all ranks, each with one error. It leaves without finalizing MPI, which could block if a rank does not
//! exist any more; its launcher then ends what is left of the job.

use crate::{arguments::Arguments, files, load, serve_user, signals::Signals};
use divi_mpi::{Launch, World};
use divi_runtime::{Error, bundle::Bundle, communicator::Communicator, refuse};
use std::{
    fmt::Display,
    process::ExitCode,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// Time that a failed rank gives the others to end with their own errors, before its launcher ends them.
const FAREWELL: Duration = Duration::from_millis(300);

/// This rank of a job.
pub(crate) struct Job {
    world: Arc<World>,
}

impl Job {
    /// Joins the job of a launcher; `None` if there is no launcher, or only one rank.
    pub(crate) fn join() -> Result<Option<Self>, String> {
        let Some(launch) = Launch::detect() else { return Ok(None) };
        let world = World::join(&launch).map_err(|error| error.to_string())?;
        Ok(world.map(|world| Self { world }))
    }

    pub(crate) fn communicator(&self) -> Arc<dyn Communicator> {
        self.world.clone()
    }

    /// Runs this rank.
    pub(crate) fn run(&self, arguments: &Arguments, signals: &Signals) -> Result<ExitCode, String> {
        signals.set_rank();
        let rank = self.world.rank();
        let named = |message: &dyn Display| format!("rank {rank}: {message}");
        if rank == 0
            && let Err(message) = check(arguments)
        {
            // The other ranks end with this error, too.
            refuse(&*self.world, &message).map_err(|error| named(&error))?;
            return self.leave(signals, &message);
        }
        let start = Instant::now();
        let runtime = match load(arguments, Some(self)) {
            Ok(runtime) => Arc::new(runtime),
            Err(error) if is_agreed(&error) => return self.leave(signals, &error),
            Err(error) => return Err(named(&error)),
        };
        let load_time = start.elapsed();
        if rank == 0 && !arguments.is_quiet {
            eprintln!("divi-run: {} ranks, {}", self.world.size(), self.world.library());
        }
        let result = if rank == 0 {
            let result = serve_user(arguments, signals, &runtime, load_time);
            if let Err(message) = &result {
                let _ = runtime.fail(message);
            }
            result
        } else {
            signals.close_on_signal(&runtime);
            runtime.serve().map(|()| ExitCode::SUCCESS).map_err(|error| error.to_string())
        };
        signals.ignore();
        // Rank 0 ends the others.
        drop(runtime);
        match result {
            Ok(status) => {
                self.finalize()?;
                Ok(status)
            }
            Err(message) => {
                eprintln!("divi-run: error: {}", named(&message));
                thread::sleep(FAREWELL);
                divi_files::discard_all();
                std::process::exit(1)
            }
        }
    }

    /// Ends with an error that all ranks end with. Leaving MPI is last, because the launcher ends the other ranks when one has
    /// ended.
    fn leave(&self, signals: &Signals, error: &dyn Display) -> Result<ExitCode, String> {
        signals.ignore();
        eprintln!("divi-run: error: rank {}: {error}", self.world.rank());
        self.finalize().map(|()| ExitCode::FAILURE)
    }

    fn finalize(&self) -> Result<(), String> {
        self.world.finalize().map_err(|error| format!("rank {}: {error}", self.world.rank()))
    }
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
