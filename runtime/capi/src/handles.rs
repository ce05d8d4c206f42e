//! Handles by which C programs refer to runtimes and requests.
//!
//! A handle has a pointer type but is a number that is never reused. A handle that was freed, belongs to another kind of object
//! or was never valid is therefore detected, even if other threads free it concurrently.

use std::{
    collections::BTreeMap,
    ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Table of the handles of one kind of object.
pub(crate) struct Handles<T> {
    /// Tag in the low bits of every handle, which distinguishes kinds.
    kind: usize,
    live: Mutex<Live<T>>,
}

struct Live<T> {
    count: usize,
    objects: BTreeMap<usize, Arc<T>>,
}

/// Number of tag bits.
const KIND_BITS: u32 = 4;

impl<T> Handles<T> {
    /// Builds an empty table. `kind` is between 1 and 15.
    pub(crate) const fn new(kind: usize) -> Self {
        Self { kind, live: Mutex::new(Live { count: 0, objects: BTreeMap::new() }) }
    }

    fn live(&self) -> MutexGuard<'_, Live<T>> {
        // The table is consistent between any two statements.
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an object and returns its handle.
    pub(crate) fn insert(&self, object: T) -> *mut T {
        let mut live = self.live();
        live.count += 1;
        let key = live.count << KIND_BITS | self.kind;
        live.objects.insert(key, Arc::new(object));
        ptr::without_provenance_mut(key)
    }

    /// Returns the object of a handle; `None` if the handle is invalid.
    pub(crate) fn get(&self, handle: *const T) -> Option<Arc<T>> {
        self.live().objects.get(&handle.addr()).cloned()
    }

    /// Removes a handle. Concurrent calls that already hold its object keep it alive until they return.
    pub(crate) fn remove(&self, handle: *const T) -> Option<Arc<T>> {
        self.live().objects.remove(&handle.addr())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_never_reused() {
        let handles = Handles::new(1);
        let first = handles.insert("a");
        assert_eq!(handles.remove(first).as_deref(), Some(&"a"));
        let second = handles.insert("b");
        assert!(first != second && handles.get(first).is_none() && handles.remove(first).is_none());
        assert_eq!(handles.get(second).as_deref(), Some(&"b"));
        assert!(handles.get(ptr::null()).is_none());
        assert!(Handles::<&str>::new(2).get(second).is_none());
    }
}
