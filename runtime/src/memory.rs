//! Host memory for kernels: aligned and zeroed. Large blocks are mapped, and returned to the system when they are freed.

use crate::error::Error;
use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    ops::{Deref, DerefMut},
    ptr::NonNull,
    slice,
};

/// Alignment of constants, buffers and values in bytes.
pub const ALIGNMENT: u64 = 64;
/// Minimum size of a mapped block in bytes: its pages are allocated on first access and returned when it is freed.
const MAPPED: usize = 1 << 20;
/// Size of a huge page, which takes one TLB entry instead of 512.
const LARGE_PAGE: usize = 2 << 20;

/// Zeroed memory, aligned to [`ALIGNMENT`].
pub struct AlignedBuffer {
    start: NonNull<u8>,
    length: usize,
    mapping: Option<Mapping>,
}

struct Mapping {
    base: NonNull<libc::c_void>,
    length: usize,
}

// SAFETY: it owns its bytes, as a vector does.
unsafe impl Send for AlignedBuffer {}
// SAFETY: as above; bytes change only through `&mut` or through `pointer`, whose users are responsible for synchronization.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// Allocates zeroed memory. `what` is its description in errors.
    pub fn zeroed(bytes: u64, what: &str) -> Result<Self, Error> {
        let failed = || Error::Memory { what: what.to_owned(), bytes };
        let length =
            usize::try_from(bytes).ok().filter(|&length| length < isize::MAX as usize / 2).ok_or_else(failed)?;
        if length >= MAPPED {
            return Self::mapped(length).ok_or_else(failed);
        }
        let Some(layout) = layout(length) else { return Ok(Self { start: dangling(), length, mapping: None }) };
        // SAFETY: the layout's size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(failed)?;
        Ok(Self { start, length, mapping: None })
    }

    /// Allocates a copy of `source`. `what` is its description in errors.
    pub fn copied(source: &[u8], what: &str) -> Result<Self, Error> {
        let mut copy = Self::zeroed(source.len() as u64, what)?;
        copy.copy_from_slice(source);
        Ok(copy)
    }

    fn mapped(length: usize) -> Option<Self> {
        let is_large = length >= 2 * LARGE_PAGE;
        let total = if is_large { length.checked_next_multiple_of(LARGE_PAGE)? + LARGE_PAGE } else { length };
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new anonymous mapping at an address chosen by the kernel.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), total, protection, flags, -1, 0) };
        let base = NonNull::new(base).filter(|base| base.as_ptr() != libc::MAP_FAILED)?;
        let mapping = Some(Mapping { base, length: total });
        let start = base.cast::<u8>();
        if !is_large {
            return Some(Self { start, length, mapping });
        }
        let skipped = start.as_ptr().align_offset(LARGE_PAGE);
        // SAFETY: the mapping is larger than the buffer by a huge page, so the aligned start is within it.
        let start = unsafe { start.add(skipped) };
        // SAFETY: the range is within the mapping; the advice may be ignored.
        unsafe { libc::madvise(start.as_ptr().cast(), length, libc::MADV_HUGEPAGE) };
        Some(Self { start, length, mapping })
    }

    /// Returns the first address, for writes while the owner is shared.
    pub fn pointer(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

fn layout(length: usize) -> Option<Layout> {
    (length > 0).then(|| Layout::from_size_align(length, ALIGNMENT as usize).ok()).flatten()
}

/// Returns an aligned address for an empty allocation.
fn dangling() -> NonNull<u8> {
    NonNull::without_provenance(std::num::NonZero::new(ALIGNMENT as usize).expect("the alignment is not zero"))
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        if let Some(mapping) = &self.mapping {
            // SAFETY: it was mapped with this length, and this is its only owner.
            unsafe { libc::munmap(mapping.base.as_ptr(), mapping.length) };
        } else if let Some(layout) = layout(self.length) {
            // SAFETY: it was allocated with this layout.
            unsafe { dealloc(self.start.as_ptr(), layout) };
        }
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes are owned and initialized.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_zero() {
        for bytes in [0, 1, 63, 4096, 1 << 20, (5 << 20) + 3] {
            let mut memory = AlignedBuffer::zeroed(bytes, "a test").unwrap();
            assert!(memory.pointer().addr().is_multiple_of(64) && memory.len() as u64 == bytes);
            assert!(memory.iter().all(|&byte| byte == 0));
            memory.fill(1);
        }
    }

    #[test]
    fn errors_contain_the_description() {
        for bytes in [u64::MAX, u64::MAX / 8] {
            let error = AlignedBuffer::zeroed(bytes, "the arena").err().unwrap().to_string();
            assert_eq!(error, format!("there is not enough memory for the arena: it takes {bytes} bytes"));
        }
    }
}
