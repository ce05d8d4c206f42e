//! Membership of a process in a job: joining and leaving within time limits.

use crate::{Error, Launch, World};
use divi_runtime::communicator::Communicator;
use std::{
    fmt::Display,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// Time limits for all ranks to join MPI, and to leave it at the end of a job, when none of them has anything else to do. MPI
/// reports no rank that dies meanwhile.
const JOIN: Duration = Duration::from_secs(120);
const LEAVE: Duration = Duration::from_secs(10);

/// Function that prints an error of this program.
pub type PrintError = fn(&dyn Display);

/// This rank of a job.
pub struct Job {
    world: Arc<World>,
    print_error: PrintError,
}

impl Job {
    /// Joins the job of a launcher; `None` if it has only one rank. Ends the process if other ranks do not join it.
    pub fn join(launch: &Launch, print_error: PrintError) -> Result<Option<Self>, Error> {
        let is_joined = watch("other ranks have not joined the job", JOIN, print_error);
        let world = World::join(launch)?;
        is_joined.store(true, Ordering::SeqCst);
        Ok(world.map(|world| Self { world, print_error }))
    }

    /// Returns all ranks of the job.
    pub fn world(&self) -> &Arc<World> {
        &self.world
    }

    /// Returns the message of an error with the number of this rank, unless it begins with that.
    pub fn named(&self, error: &dyn Display) -> String {
        let (error, rank) = (error.to_string(), format!("rank {}: ", self.world.rank()));
        if error.starts_with(&rank) { error } else { rank + &error }
    }

    /// Leaves MPI together with all ranks, or with the `survivors` that are left. Ends the process if they do not.
    pub fn finalize(&self, survivors: Option<&dyn Communicator>) {
        let rank = self.world.rank();
        let has_left = watch(&format!("rank {rank}: other ranks have not left the job"), LEAVE, self.print_error);
        if let Err(error) = survivors.unwrap_or(&*self.world).finalize() {
            (self.print_error)(&format!("rank {rank}: {error}"));
            std::process::exit(1)
        }
        has_left.store(true, Ordering::SeqCst);
    }
}

/// Ends the process with an error if the flag that is returned has not been set within a time limit.
fn watch(problem: &str, limit: Duration, print_error: PrintError) -> Arc<AtomicBool> {
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
