//! Ranks of a job: rank 0 reads inputs, runs requests and writes outputs; the other ranks run their parts of the requests.
//!
//! After the death of a rank, the others continue if the bundle has a plan for them. A rank that fails otherwise ends all ranks, each
//! with one error. It leaves without finalizing MPI, which could block if a rank does not exist any more; its launcher then ends
//! what is left of the job.

use crate::{
    arguments::Arguments,
    files, load, serve_user,
    signals::{Signals, print_error},
};
use divi_mpi::Launch;
use divi_runtime::{Error, bundle::Bundle, communicator::Communicator, refuse};
use std::{fmt::Display, process::ExitCode, sync::Arc, time::Instant};

/// This rank of a job.
pub(crate) struct Job(divi_mpi::Job);

impl Job {
    /// Joins the job of a launcher; `None` if there is no launcher, or only one rank.
    pub(crate) fn join(signals: &Signals) -> Result<Option<Self>, String> {
        let Some(launch) = Launch::detect() else { return Ok(None) };
        signals.set_rank(true);
        let job = divi_mpi::Job::join(&launch, print_error).map_err(|error| error.to_string())?;
        signals.set_rank(job.is_some());
        Ok(job.map(Self))
    }

    pub(crate) fn communicator(&self) -> Arc<dyn Communicator> {
        self.0.world().clone()
    }

    /// Runs this rank.
    pub(crate) fn run(&self, arguments: &Arguments, signals: &Signals) -> Result<ExitCode, String> {
        let world = self.0.world();
        let rank = world.rank();
        if rank == 0
            && let Err(message) = files::check_outputs(arguments, Bundle::read(&arguments.bundle).ok().as_ref())
        {
            // The other ranks end with this error, too.
            return match refuse(&**world, &message) {
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
                eprintln!("divi-run: {} ranks, {}", world.size(), world.library());
            }
            let result = serve_user(arguments, signals, &runtime, load_time);
            result.inspect_err(|message| _ = runtime.current().and_then(|runtime| runtime.fail(message)))
        } else {
            runtime.serve().map(|()| ExitCode::SUCCESS).map_err(|error| error.to_string())
        };
        let result = match result {
            // Ends the other ranks.
            Ok(status) if rank == 0 => runtime.close().map(|()| status).map_err(|error| error.to_string()),
            result => result,
        };
        match result {
            Ok(status) => {
                signals.ignore();
                self.0.finalize(runtime.communicator().as_deref());
                Ok(status)
            }
            Err(message) => self.end(signals, &message),
        }
    }

    /// Ends with an error that all ranks end with. Leaving MPI is last, because the launcher ends the other ranks when one has
    /// ended.
    fn leave(&self, signals: &Signals, error: &dyn Display) -> Result<ExitCode, String> {
        signals.report(&self.0.named(error));
        self.0.finalize(None);
        Ok(ExitCode::FAILURE)
    }

    /// Ends with an error after which ranks cannot leave MPI together.
    fn end(&self, signals: &Signals, error: &dyn Display) -> ! {
        signals.report(&self.0.named(error));
        signals.exit()
    }
}

/// Returns true if all ranks end with the error, so that they can leave MPI together.
fn is_agreed(error: &Error) -> bool {
    !error.is_death() && !matches!(error, Error::InvalidMessage { .. } | Error::Communication { .. })
}
