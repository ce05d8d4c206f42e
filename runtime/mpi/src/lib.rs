//! MPI as a [`Communicator`]: detection of launchers ([`Launch`]), bindings to implementations of MPI, and membership in a job
//! ([`Job`]).
//!
//! Implementations of MPI have different ABIs. A binding is a small shared library (`binding/divi_mpi.c`) that is built for one
//! of them (`tools/mpi-binding`) and has the same interface for all (`binding/divi_mpi.h`). It is loaded only if the environment
//! of a launcher is present, so that nothing else depends on MPI.

mod ffi;
mod job;
mod launch;

use divi_runtime::{
    Error as RuntimeError, Result as RuntimeResult,
    communicator::{Communicator, Envelope, Operation},
};
use ffi::{Binding, Collective, Failure, Handle};
pub use job::{Job, PrintError};
pub use launch::{Implementation, Launch};
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

/// Error of joining a job.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No binding was found.
    #[error(
        "started by {launcher}, and there is no binding to MPI: searched {}; build it with tools/mpi-binding, or name it in \
         {variable}", list(.searched), variable = launch::VARIABLE
    )]
    NoBinding {
        /// Description of the launcher.
        launcher: &'static str,
        /// Files that do not exist.
        searched: Vec<PathBuf>,
    },
    /// A binding cannot be loaded.
    #[error("cannot load '{path}': {problem}; build it again with tools/mpi-binding")]
    Unloadable {
        /// File.
        path: PathBuf,
        /// Error of the loader.
        problem: String,
    },
    /// MPI cannot be initialized.
    #[error("cannot initialize MPI with '{path}', as started by {launcher}: {problem}")]
    Initialization {
        /// File of the binding.
        path: PathBuf,
        /// Description of the launcher.
        launcher: &'static str,
        /// Error of MPI.
        problem: String,
    },
}

fn list(files: &[PathBuf]) -> String {
    files.iter().map(|file| format!("'{}'", file.display())).collect::<Vec<_>>().join(", ")
}

/// Shortest and longest time between two tests of a collective operation: waiting ranks leave their cores to busy ones.
const SLEEP: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(1));

/// Ranks of a job: all of them (`MPI_COMM_WORLD`), or those that have survived the failure of others.
pub struct World {
    /// Calls are serialized, as `MPI_THREAD_SERIALIZED` requires.
    binding: Arc<Mutex<Binding>>,
    communicator: Handle,
    rank: usize,
    /// By rank: its number at the start of the job.
    original_ranks: Vec<usize>,
    max_tag: u32,
    can_recover: bool,
    library: String,
}

impl World {
    /// Joins the job that a launcher has started this process for. Returns `None` if the job has one rank.
    pub fn join(launch: &Launch) -> Result<Option<Arc<Self>>, Error> {
        let path = launch.binding()?;
        let binding = Binding::load(&path).map_err(|problem| Error::Unloadable { path: path.clone(), problem })?;
        let binding = Arc::new(Mutex::new(binding));
        let joined = lock(&binding).initialize();
        let joined = joined.and_then(|communicator| Self::of(binding.clone(), communicator));
        let initialization = |failure: Failure| {
            let launcher = launch.launcher();
            Error::Initialization { path: path.clone(), launcher, problem: failure.problem }
        };
        let world = joined.map_err(initialization)?;
        if world.size() > 1 {
            return Ok(Some(Arc::new(world)));
        }
        world.lock().finalize(world.communicator).map_err(initialization)?;
        Ok(None)
    }

    /// Returns the ranks of a communicator.
    fn of(binding: Arc<Mutex<Binding>>, communicator: Handle) -> Result<Self, Failure> {
        let locked = lock(&binding);
        let (rank, size) = (locked.rank(communicator)?, locked.size(communicator)?);
        let (max_tag, original_ranks) = (locked.max_tag(communicator)?, locked.original_ranks(communicator, size)?);
        let (can_recover, library) = (locked.can_recover(), locked.library());
        drop(locked);
        Ok(Self { binding, communicator, rank, original_ranks, max_tag, can_recover, library })
    }

    /// Returns the name and version of the implementation.
    pub fn library(&self) -> &str {
        &self.library
    }

    fn lock(&self) -> MutexGuard<'_, Binding> {
        lock(&self.binding)
    }

    /// Waits for an operation of all ranks, and returns its envelope.
    fn wait(&self, operation: &Collective) -> Result<Envelope, Failure> {
        let mut sleep = SLEEP.0;
        loop {
            if let Some(envelope) = self.lock().test_collective(operation)? {
                return Ok(envelope);
            }
            thread::sleep(sleep);
            sleep = (sleep * 2).min(SLEEP.1);
        }
    }
}

fn lock(binding: &Mutex<Binding>) -> MutexGuard<'_, Binding> {
    binding.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the error of a failed operation. `peer` is the other rank of the operation, if there is one.
fn error(failure: Failure, peer: Option<usize>) -> RuntimeError {
    let Failure { status, rank, problem } = failure;
    match (status, rank.or(peer)) {
        (ffi::PEER_FAILED, Some(rank)) => RuntimeError::PeerFailed { rank, problem },
        (ffi::REVOKED, _) => RuntimeError::Revoked,
        (ffi::TOO_LONG, Some(rank)) => RuntimeError::InvalidMessage { rank, reason: problem },
        (ffi::PEER_FAILED, None) => RuntimeError::Revoked,
        _ => RuntimeError::Communication { problem },
    }
}

impl Communicator for World {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.original_ranks.len()
    }

    fn max_tag(&self) -> u32 {
        self.max_tag
    }

    unsafe fn send(&self, to: usize, tag: u32, data: *const u8, bytes: u64) -> RuntimeResult<Operation> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.lock().send(self.communicator, to, tag, data, bytes) }.map_err(|failure| error(failure, Some(to)))
    }

    unsafe fn receive(&self, from: usize, tag: u32, data: *mut u8, bytes: u64) -> RuntimeResult<Operation> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.lock().receive(self.communicator, from, tag, data, bytes) }
            .map_err(|failure| error(failure, Some(from)))
    }

    fn test(&self, operation: Operation) -> RuntimeResult<Option<Envelope>> {
        self.lock().test(operation).map_err(|failure| error(failure, None))
    }

    fn probe(&self, tag: Option<u32>) -> RuntimeResult<Option<Envelope>> {
        self.lock().probe(self.communicator, tag).map_err(|failure| error(failure, None))
    }

    fn all_gather(&self, own: &[u8]) -> RuntimeResult<Vec<Vec<u8>>> {
        let mut all = vec![0; own.len() * self.size()];
        let started = self.lock().all_gather(self.communicator, own, &mut all);
        match started.and_then(|started| self.wait(&started)) {
            Ok(_) => Ok(all.chunks(own.len().max(1)).map(<[u8]>::to_vec).collect()),
            Err(failure) => {
                // MPI may still access the bytes.
                std::mem::forget(all);
                Err(error(failure, None))
            }
        }
    }

    fn can_recover(&self) -> bool {
        self.can_recover
    }

    fn revoke(&self) -> RuntimeResult<()> {
        self.lock().revoke(self.communicator).map_err(|failure| error(failure, None))
    }

    fn agree(&self, flags: u32) -> RuntimeResult<u32> {
        let started = self.lock().agree(self.communicator, flags);
        let agreed = started.and_then(|started| self.wait(&started)).map_err(|failure| error(failure, None))?;
        Ok(agreed.bytes as u32)
    }

    fn survivors(&self) -> RuntimeResult<Arc<dyn Communicator>> {
        let shrunk = self.lock().shrink(self.communicator);
        let survivors = shrunk.and_then(|communicator| Self::of(self.binding.clone(), communicator));
        Ok(Arc::new(survivors.map_err(|failure| error(failure, None))?))
    }

    fn original_rank(&self, rank: usize) -> usize {
        self.original_ranks[rank]
    }

    fn finalize(&self) -> RuntimeResult<()> {
        self.lock().finalize(self.communicator).map_err(|failure| error(failure, None))
    }
}
