//! Handles: what C programs hold of runtimes and requests.
//!
//! A handle looks like a pointer but is a number that is never used twice, so a handle that was freed, belongs to another kind
//! of object or was never valid is detected, whatever other threads do at the same time.

use std::{
    collections::BTreeMap,
    ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Handles of one kind of object.
pub(crate) struct Handles<T> {
    /// In the low bits of every handle, so that kinds are told apart.
    kind: usize,
    live: Mutex<Live<T>>,
}

struct Live<T> {
    count: usize,
    objects: BTreeMap<usize, Arc<T>>,
}

/// Bits that the kind of a handle takes.
const KIND_BITS: u32 = 4;

impl<T> Handles<T> {
    /// `kind` is between 1 and 15.
    pub(crate) const fn new(kind: usize) -> Self {
        Self { kind, live: Mutex::new(Live { count: 0, objects: BTreeMap::new() }) }
    }

    fn live(&self) -> MutexGuard<'_, Live<T>> {
        // The table is consistent between any two statements.
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a handle of a new object.
    pub(crate) fn insert(&self, object: T) -> *mut T {
        let mut live = self.live();
        live.count += 1;
        let key = live.count << KIND_BITS | self.kind;
        live.objects.insert(key, Arc::new(object));
        ptr::without_provenance_mut(key)
    }

    /// Returns the object of a handle; `None` if there is none.
    pub(crate) fn get(&self, handle: *const T) -> Option<Arc<T>> {
        self.live().objects.get(&handle.addr()).cloned()
    }

    /// Ends a handle. Calls that have its object already keep it until they return.
    pub(crate) fn remove(&self, handle: *const T) -> Option<Arc<T>> {
        self.live().objects.remove(&handle.addr())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_never_used_twice() {
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
