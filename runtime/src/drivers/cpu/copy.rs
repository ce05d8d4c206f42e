//! Copies in host memory: large ones by the threads of the device, such as the inputs of a queue on their way to a GPU.

use super::CpuExecutable;
use crate::hal::{Copy, Event, Owner, Queue, QueueResult};
use divi_threads::KernelLaunch;
use std::{ptr, slice};

/// Least number of bytes that several threads copy: below, waking them takes longer.
const LARGE: u64 = 1 << 19;
/// Bytes that a thread copies at a time.
const BLOCK: u64 = 1 << 17;

impl CpuExecutable {
    /// Copies synchronously: on the calling thread, with the threads of the device if they are idle and the copies are large.
    ///
    /// # Safety
    /// As for [`Queue`].
    unsafe fn copy_all(&self, copies: &mut dyn Iterator<Item = Copy>) {
        let copies: Vec<Copy> = copies.collect();
        let is_large = copies.iter().map(|copy| copy.bytes).fold(0, u64::saturating_add) >= LARGE;
        if is_large && let Some(mut pool) = self.pool.try_lock() {
            let blocks: Vec<*mut u8> = copies.iter().flat_map(blocks).flatten().collect();
            let (kernel, extent) = (copy_blocks as divi_threads::Kernel, blocks.len() as i64 / 3);
            // SAFETY: blocks do not overlap, and each is copied once; the rest is guaranteed by the caller.
            unsafe { pool.run(KernelLaunch { kernel, buffers: blocks.as_ptr(), extent, grain: 1 }) };
            return;
        }
        for Copy { to, from, bytes } in copies {
            // SAFETY: guaranteed by the caller.
            unsafe { ptr::copy_nonoverlapping(from, to, bytes as usize) };
        }
    }
}

/// Divides a copy into blocks: the destination, the source and the number of bytes of each.
fn blocks(copy: &Copy) -> impl Iterator<Item = [*mut u8; 3]> {
    let Copy { to, from, bytes } = *copy;
    (0..bytes.div_ceil(BLOCK)).map(move |block| {
        let offset = block * BLOCK;
        let length = BLOCK.min(bytes - offset) as usize;
        let at = |address: *mut u8| address.wrapping_add(offset as usize);
        [at(to), at(from.cast_mut()), ptr::without_provenance_mut(length)]
    })
}

/// Kernel that copies blocks, which are in `buffers` as [`blocks`] lists them.
///
/// # Safety
/// `buffers` has `end` blocks that may be copied.
unsafe extern "C" fn copy_blocks(buffers: *const *mut u8, begin: i64, end: i64) -> i32 {
    // SAFETY: guaranteed by the caller.
    let blocks = unsafe { slice::from_raw_parts(buffers.cast::<[*mut u8; 3]>(), end as usize) };
    for &[to, from, length] in &blocks[begin as usize..] {
        // SAFETY: guaranteed by the caller.
        unsafe { ptr::copy_nonoverlapping(from.cast_const(), to, length.addr()) };
    }
    0
}

impl Queue for CpuExecutable {
    unsafe fn copy(&self, _: Owner, copies: &mut dyn Iterator<Item = Copy>, _: bool) -> QueueResult {
        // SAFETY: guaranteed by the caller.
        unsafe { self.copy_all(copies) };
        Ok(())
    }

    unsafe fn upload(&self, _: Owner, copies: &mut dyn Iterator<Item = Copy>) -> QueueResult {
        // SAFETY: guaranteed by the caller.
        unsafe { self.copy_all(copies) };
        Ok(())
    }

    unsafe fn download(
        &self,
        owner: Owner,
        copies: &mut dyn Iterator<Item = Copy>,
    ) -> std::result::Result<Event, String> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.copy_all(copies) };
        Ok(Event { slot: owner.slot, step: owner.step })
    }

    fn wait(&self, _: Event) -> QueueResult {
        Ok(())
    }

    fn synchronize(&self, _: usize) -> QueueResult {
        Ok(())
    }

    fn synchronize_all(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use divi_threads::{ThreadPool, sync::Mutex};
    use std::{
        collections::{BTreeMap, HashMap},
        time::Duration,
    };

    #[test]
    fn copies_of_all_sizes_are_complete() {
        let pool = ThreadPool::new("test", 3, &[], Duration::ZERO).expect("threads start");
        let executable = CpuExecutable {
            stages: HashMap::new(),
            constants: vec![],
            pool: Mutex::new(pool),
            _codes: BTreeMap::new(),
        };
        for sizes in [&[0, 1, 77][..], &[LARGE as usize], &[3 * BLOCK as usize + 5, 0, 1, LARGE as usize - 1]] {
            let total: usize = sizes.iter().sum();
            let source: Vec<u8> = (0..total).map(|byte| (byte * 31 % 251) as u8).collect();
            let mut target = vec![0; total];
            let (mut offset, to) = (0, target.as_mut_ptr());
            let mut copies = sizes.iter().map(|&size| {
                let begin = offset;
                offset += size;
                Copy { to: to.wrapping_add(begin), from: source[begin..].as_ptr(), bytes: size as u64 }
            });
            // SAFETY: the parts are disjoint and within both vectors.
            unsafe { executable.copy_all(&mut copies) };
            assert_eq!(target, source, "{sizes:?}");
        }
    }
}
