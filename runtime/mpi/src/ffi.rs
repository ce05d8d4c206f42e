//! Bindings to implementations of MPI: shared libraries with the interface of `binding/divi_mpi.h`.

use divi_runtime::communicator::{Envelope, Operation};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::{
    error::Error as _,
    ffi::{c_char, c_void},
    path::Path,
    ptr,
};

/// Version of the interface.
const VERSION: u64 = 2;
/// Status of an operation with a rank that has failed.
pub(super) const PEER_FAILED: i64 = -2;
/// Status of a receive operation that has met a longer message.
pub(super) const TOO_LONG: i64 = -3;
/// Status of an operation on a revoked communicator.
pub(super) const REVOKED: i64 = -4;
/// Maximum length of texts.
const MOST_TEXT: usize = 1024;

/// `struct divi_mpi_envelope`.
#[repr(C)]
struct RawEnvelope {
    rank: i64,
    tag: i64,
    bytes: u64,
}

/// `struct divi_mpi_communicator`.
#[derive(Clone, Copy)]
pub(super) struct Handle(*mut c_void);

// SAFETY: a communicator may be used by any thread, one at a time, as the callers of this crate do.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

/// `struct divi_mpi`. The first argument of most functions is a communicator.
#[repr(C)]
struct Functions {
    version: u64,
    initialize: unsafe extern "C" fn(*mut *mut c_void) -> i64,
    rank: unsafe extern "C" fn(*mut c_void) -> i64,
    size: unsafe extern "C" fn(*mut c_void) -> i64,
    max_tag: unsafe extern "C" fn(*mut c_void) -> i64,
    can_recover: unsafe extern "C" fn() -> i64,
    library: unsafe extern "C" fn(*mut c_char, usize) -> i64,
    send: unsafe extern "C" fn(*mut c_void, i64, i64, *const c_void, u64, *mut *mut c_void) -> i64,
    receive: unsafe extern "C" fn(*mut c_void, i64, i64, *mut c_void, u64, *mut *mut c_void) -> i64,
    test: unsafe extern "C" fn(*mut c_void, *mut RawEnvelope) -> i64,
    probe: unsafe extern "C" fn(*mut c_void, i64, *mut RawEnvelope) -> i64,
    all_gather: unsafe extern "C" fn(*mut c_void, *const c_void, *mut c_void, u64, *mut *mut c_void) -> i64,
    revoke: unsafe extern "C" fn(*mut c_void) -> i64,
    agree: unsafe extern "C" fn(*mut c_void, i64, *mut *mut c_void) -> i64,
    shrink: unsafe extern "C" fn(*mut c_void, *mut *mut c_void) -> i64,
    original_ranks: unsafe extern "C" fn(*mut c_void, *mut i64) -> i64,
    finalize: unsafe extern "C" fn(*mut c_void) -> i64,
    message: unsafe extern "C" fn(*mut c_char, usize) -> i64,
}

/// Failure of an operation.
pub(super) struct Failure {
    pub(super) status: i64,
    /// Rank that the operation failed with, if it is known.
    pub(super) rank: Option<usize>,
    pub(super) problem: String,
}

type Result<T> = std::result::Result<T, Failure>;

/// Loaded binding. It is never unloaded: MPI has threads and exit handlers.
pub(super) struct Binding(&'static Functions);

/// Operation of all ranks in progress.
pub(super) struct Collective(Operation);

impl Binding {
    pub(super) fn load(path: &Path) -> std::result::Result<Self, String> {
        // SAFETY: the library is trusted like this program, whose user names it or has installed it beside it. Components of
        // implementations of MPI need its symbols (`RTLD_GLOBAL`).
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }.map_err(|error| {
            // The loader's message is the source of the error.
            error.source().map_or_else(|| error.to_string(), |source| source.to_string())
        })?;
        type Entry = unsafe extern "C" fn() -> *const Functions;
        // SAFETY: the symbol has this type in all versions.
        let entry = unsafe { library.get::<Entry>(b"divi_mpi_binding\0") }
            .map_err(|_| "it has no function divi_mpi_binding".to_owned())?;
        // SAFETY: as above.
        let functions = unsafe { entry() };
        // SAFETY: the version comes first in all versions, and the functions are static.
        let version = unsafe { *functions.cast::<u64>() };
        std::mem::forget(library);
        if version != VERSION {
            return Err(format!("its interface has version {version}, and version {VERSION} is needed"));
        }
        // SAFETY: the version has been checked, and the library stays loaded.
        Ok(Self(unsafe { &*functions }))
    }

    /// Returns a nonnegative result, or the failure.
    fn check(&self, result: i64, rank: i64) -> Result<u64> {
        u64::try_from(result).map_err(|_| {
            let problem = self.text(self.0.message);
            Failure { status: result, rank: usize::try_from(rank).ok(), problem }
        })
    }

    fn text(&self, write: unsafe extern "C" fn(*mut c_char, usize) -> i64) -> String {
        let mut text = [0_u8; MOST_TEXT];
        // SAFETY: the buffer has the given size.
        unsafe { write(text.as_mut_ptr().cast(), text.len()) };
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(0);
        String::from_utf8_lossy(&text[..end]).into_owned()
    }

    /// Returns the communicator of all ranks.
    pub(super) fn initialize(&self) -> Result<Handle> {
        let mut communicator = ptr::null_mut();
        // SAFETY: called once, before all other functions.
        self.check(unsafe { (self.0.initialize)(&mut communicator) }, -1).map(|_| Handle(communicator))
    }

    pub(super) fn rank(&self, of: Handle) -> Result<usize> {
        // SAFETY: MPI is initialized, and communicators are not freed before MPI is left.
        self.check(unsafe { (self.0.rank)(of.0) }, -1).map(|rank| rank as usize)
    }

    pub(super) fn size(&self, of: Handle) -> Result<usize> {
        // SAFETY: as above.
        self.check(unsafe { (self.0.size)(of.0) }, -1).map(|size| size as usize)
    }

    pub(super) fn max_tag(&self, of: Handle) -> Result<u32> {
        // SAFETY: as above.
        let tag = self.check(unsafe { (self.0.max_tag)(of.0) }, -1)?;
        Ok(u32::try_from(tag).unwrap_or(u32::MAX).min(i32::MAX as u32))
    }

    pub(super) fn can_recover(&self) -> bool {
        // SAFETY: as above.
        unsafe { (self.0.can_recover)() == 1 }
    }

    pub(super) fn library(&self) -> String {
        self.text(self.0.library)
    }

    /// # Safety
    /// As for [`Communicator::send`](divi_runtime::communicator::Communicator::send).
    pub(super) unsafe fn send(
        &self,
        on: Handle,
        to: usize,
        tag: u32,
        data: *const u8,
        bytes: u64,
    ) -> Result<Operation> {
        let mut operation = ptr::null_mut();
        // SAFETY: guaranteed by the caller.
        let result = unsafe { (self.0.send)(on.0, to as i64, i64::from(tag), data.cast(), bytes, &mut operation) };
        self.check(result, to as i64).map(|_| Operation(operation.expose_provenance() as u64))
    }

    /// # Safety
    /// As for [`Communicator::receive`](divi_runtime::communicator::Communicator::receive).
    pub(super) unsafe fn receive(
        &self,
        on: Handle,
        from: usize,
        tag: u32,
        data: *mut u8,
        bytes: u64,
    ) -> Result<Operation> {
        let mut operation = ptr::null_mut();
        // SAFETY: guaranteed by the caller.
        let result = unsafe { (self.0.receive)(on.0, from as i64, i64::from(tag), data.cast(), bytes, &mut operation) };
        self.check(result, from as i64).map(|_| Operation(operation.expose_provenance() as u64))
    }

    pub(super) fn test(&self, Operation(operation): Operation) -> Result<Option<Envelope>> {
        let mut envelope = RawEnvelope { rank: -1, tag: 0, bytes: 0 };
        let operation = ptr::with_exposed_provenance_mut(operation as usize);
        // SAFETY: the operation is in progress: it is not tested again after it was complete or has failed.
        let result = unsafe { (self.0.test)(operation, &mut envelope) };
        Ok((self.check(result, envelope.rank)? == 1).then(|| described(&envelope)))
    }

    pub(super) fn probe(&self, on: Handle, tag: Option<u32>) -> Result<Option<Envelope>> {
        let mut envelope = RawEnvelope { rank: -1, tag: 0, bytes: 0 };
        // SAFETY: the envelope outlives the call.
        let result = unsafe { (self.0.probe)(on.0, tag.map_or(-1, i64::from), &mut envelope) };
        Ok((self.check(result, envelope.rank)? == 1).then(|| described(&envelope)))
    }

    /// Starts to gather the bytes of all ranks. `all` must neither move nor be freed until [`Binding::test_collective`] has
    /// returned an envelope.
    pub(super) fn all_gather(&self, on: Handle, own: &[u8], all: &mut [u8]) -> Result<Collective> {
        let mut operation = ptr::null_mut();
        let (own, bytes) = (own.as_ptr().cast(), own.len() as u64);
        // SAFETY: the buffers have the sizes, and the callers of this crate keep both until the operation is complete.
        let result = unsafe { (self.0.all_gather)(on.0, own, all.as_mut_ptr().cast(), bytes, &mut operation) };
        self.check(result, -1).map(|_| Collective(Operation(operation.expose_provenance() as u64)))
    }

    /// Starts an agreement. The bytes of its envelope are the flags.
    pub(super) fn agree(&self, on: Handle, flags: u32) -> Result<Collective> {
        let mut operation = ptr::null_mut();
        // SAFETY: the binding keeps the flags.
        let result = unsafe { (self.0.agree)(on.0, i64::from(flags), &mut operation) };
        self.check(result, -1).map(|_| Collective(Operation(operation.expose_provenance() as u64)))
    }

    /// Returns the envelope of the operation if it is complete.
    pub(super) fn test_collective(&self, Collective(operation): &Collective) -> Result<Option<Envelope>> {
        self.test(*operation)
    }

    pub(super) fn revoke(&self, communicator: Handle) -> Result<()> {
        // SAFETY: as for `rank`.
        self.check(unsafe { (self.0.revoke)(communicator.0) }, -1).map(drop)
    }

    /// Returns the communicator of the ranks that have not failed.
    pub(super) fn shrink(&self, communicator: Handle) -> Result<Handle> {
        let mut survivors = ptr::null_mut();
        // SAFETY: as for `rank`.
        self.check(unsafe { (self.0.shrink)(communicator.0, &mut survivors) }, -1).map(|_| Handle(survivors))
    }

    /// Returns the numbers of the ranks of a communicator in the communicator of [`Binding::initialize`].
    pub(super) fn original_ranks(&self, of: Handle, size: usize) -> Result<Vec<usize>> {
        let mut ranks = vec![-1; size];
        // SAFETY: the list has an element per rank.
        self.check(unsafe { (self.0.original_ranks)(of.0, ranks.as_mut_ptr()) }, -1)?;
        Ok(ranks.into_iter().map(|rank| usize::try_from(rank).unwrap_or(usize::MAX)).collect())
    }

    pub(super) fn finalize(&self, communicator: Handle) -> Result<()> {
        // SAFETY: no operation is in progress, and the functions are not called afterwards.
        self.check(unsafe { (self.0.finalize)(communicator.0) }, -1).map(drop)
    }
}

fn described(&RawEnvelope { rank, tag, bytes }: &RawEnvelope) -> Envelope {
    Envelope { rank: usize::try_from(rank).unwrap_or(0), tag: u32::try_from(tag).unwrap_or(0), bytes }
}
