//! Streaming of constants that do not fit into GPU memory all at once: each launch copies them to a window of GPU memory as its
//! calls need them, overlapped with calls whose constants have arrived.

use super::{
    driver::{Address, CudaResult, Gpu, Stream},
    memory::{DeviceMemory, Pinned},
    upload::{PackedConstants, fill},
};
use crate::{
    bundle::{self, Buffer, Bundle},
    constants::Constants,
    error::{Error, Result},
};
use std::{ops::Range, sync::Arc};

/// Window of GPU memory through which constants are streamed.
pub(crate) struct Window {
    memory: DeviceMemory,
    bytes: u64,
    /// Pinned copy of all streamed constants.
    image: Pinned,
    places: PackedConstants,
}

/// Copies that precede a call, and the locations of its constants in the window.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Prefetch {
    arrivals: Vec<Arrival>,
    /// Constant buffers of the call: their positions among its buffers, and offsets in the window.
    buffers: Vec<(usize, u64)>,
    /// Last call that reads a constant which the arrivals overwrite.
    pub(crate) after: Option<usize>,
}

/// Copy of a constant into the window.
#[derive(Debug, PartialEq, Eq)]
struct Arrival {
    /// Offset in the image.
    from: u64,
    /// Offset in the window.
    to: u64,
    bytes: u64,
}

impl Window {
    /// Returns the total size of the constants of a device's calls.
    pub(crate) fn wanted(bundle: &Bundle, device: usize) -> u64 {
        places(bundle, device).bytes
    }

    /// Allocates a window of `bytes` for the constants of a device's calls.
    pub(crate) fn new(
        gpu: &Arc<dyn Gpu>,
        bundle: &Bundle,
        device: usize,
        constants: &Constants,
        bytes: u64,
    ) -> Result<Self> {
        let id = &bundle.devices[device].id;
        let places = places(bundle, device);
        let image = Pinned::new(gpu, places.bytes, &format!("weights that pass through device '{id}'"))?;
        fill(&places.order, &image, constants);
        let memory = DeviceMemory::new(gpu, bytes, &format!("a window for the weights of device '{id}'"))?;
        Ok(Self { memory, bytes, image, places })
    }

    /// Returns the prefetch of each call of a stage. Every launch starts with an empty window.
    pub(crate) fn prefetches(&self, stage: &bundle::Stage) -> Result<Vec<Prefetch>> {
        let mut ring = RingAllocator { bytes: self.bytes, next: 0, residents: vec![] };
        let place = |constant: usize| self.places.order.iter().find(|place| place.constant == constant);
        let bytes = |constant: usize| place(constant).map_or(0, |place| place.bytes);
        let prefetch = |(index, call): (usize, &bundle::Call)| {
            let needed: Vec<usize> = constants_of(stage, call).collect();
            let mut prefetch = Prefetch::default();
            for &constant in &needed {
                let Some(place) = place(constant) else { continue };
                if ring.find(constant).is_some() {
                    continue;
                }
                let (to, after) = ring.take(constant, place.bytes, &needed).ok_or_else(|| Error::Memory {
                    what: format!(
                        "the weights of a call of stage '{}' in a window of {} bytes, which is what the plan leaves",
                        stage.name, self.bytes
                    ),
                    bytes: needed.iter().map(|&it| bytes(it)).sum(),
                })?;
                prefetch.arrivals.push(Arrival { from: place.offset, to, bytes: place.bytes });
                prefetch.after = prefetch.after.max(after);
            }
            for (position, buffer) in call.buffers.iter().enumerate() {
                if let Buffer::Constant(constant) = buffer
                    && needed.contains(constant)
                    && let Some(resident) = ring.find(*constant)
                {
                    resident.last_reader = index;
                    prefetch.buffers.push((position, resident.range.start));
                }
            }
            Ok(prefetch)
        };
        stage.calls.iter().enumerate().map(prefetch).collect()
    }

    /// Enqueues the copies that precede a call. Returns true if there are any.
    ///
    /// # Safety
    /// The overwritten constants are not read any more, and the window is not dropped before the stream has finished.
    pub(crate) unsafe fn issue_prefetch(&self, gpu: &dyn Gpu, prefetch: &Prefetch, stream: Stream) -> CudaResult<bool> {
        for arrival in &prefetch.arrivals {
            let source = self.image.pointer().wrapping_add(arrival.from as usize);
            // SAFETY: the ranges are within the image and the window.
            unsafe { gpu.copy_to_device(self.memory.address + arrival.to, source, arrival.bytes, stream) }?;
        }
        Ok(!prefetch.arrivals.is_empty())
    }

    /// Returns the buffers of a call with the addresses of its constants in the window.
    pub(crate) fn buffers(&self, buffers: &[Address], prefetch: &Prefetch) -> Vec<Address> {
        let mut buffers = buffers.to_vec();
        prefetch.buffers.iter().for_each(|&(position, offset)| buffers[position] = self.memory.address + offset);
        buffers
    }
}

fn places(bundle: &Bundle, device: usize) -> PackedConstants {
    let stages = bundle.stages.iter().filter(|stage| stage.device == device);
    let constants = stages.flat_map(|stage| stage.calls.iter().flat_map(move |call| constants_of(stage, call)));
    PackedConstants::of(constants, |constant| bundle.constants[constant].bytes)
}

/// Returns the constants of a call, unless they stay in host memory.
fn constants_of(stage: &bundle::Stage, call: &bundle::Call) -> impl Iterator<Item = usize> {
    let is_on_host = stage.reads_on_host(call);
    call.constants().filter(move |_| !is_on_host)
}

/// Ring allocator.
struct RingAllocator {
    bytes: u64,
    next: u64,
    residents: Vec<Resident>,
}

struct Resident {
    constant: usize,
    range: Range<u64>,
    last_reader: usize,
}

impl RingAllocator {
    fn find(&mut self, constant: usize) -> Option<&mut Resident> {
        self.residents.iter_mut().find(|resident| resident.constant == constant)
    }

    /// Allocates space for a constant, evicting others but none of `needed`. Returns its offset and the last reader of the
    /// evicted constants; `None` if it does not fit beside those that are needed.
    fn take(&mut self, constant: usize, bytes: u64, needed: &[usize]) -> Option<(u64, Option<usize>)> {
        let bytes = bytes.next_multiple_of(super::upload::ALIGNMENT);
        let mut wraps = 0;
        loop {
            if self.next + bytes > self.bytes {
                wraps += 1;
                self.next = 0;
            }
            if wraps > 1 || bytes > self.bytes {
                return None;
            }
            let range = self.next..self.next + bytes;
            let overlaps = |resident: &Resident| resident.range.start < range.end && range.start < resident.range.end;
            let blocking =
                self.residents.iter().filter(|resident| overlaps(resident) && needed.contains(&resident.constant));
            if let Some(end) = blocking.map(|resident| resident.range.end).max() {
                self.next = end;
                continue;
            }
            let after =
                self.residents.iter().filter(|resident| overlaps(resident)).map(|resident| resident.last_reader).max();
            self.residents.retain(|resident| !overlaps(resident));
            self.next = range.end;
            let start = range.start;
            self.residents.push(Resident { constant, range, last_reader: 0 });
            return Some((start, after));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All constants of a call are resident, and a constant is overwritten only after its last reader.
    #[test]
    fn rings_keep_needed_constants() {
        let mut seed = 1_u64;
        let mut next = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % most
        };
        for _ in 0..200 {
            let sizes: Vec<u64> = (0..8).map(|_| 1 + next(1500)).collect();
            let calls: Vec<Vec<usize>> =
                (0..30).map(|_| (0..1 + next(3)).map(|_| next(8) as usize).collect()).collect();
            let mut ring = RingAllocator { bytes: 8192, next: 0, residents: vec![] };
            // Reference model: resident constants, their ranges and last readers.
            let mut resident: Vec<(usize, Range<u64>, usize)> = vec![];
            for (index, needed) in calls.iter().enumerate() {
                for &constant in needed {
                    if ring.find(constant).is_none() {
                        let (start, after) = ring.take(constant, sizes[constant], needed).unwrap();
                        let range = start..start + sizes[constant];
                        assert!(range.end <= 8192);
                        let overlap =
                            |range: &Range<u64>, other: &Range<u64>| other.start < range.end && range.start < other.end;
                        for (other, place, reader) in &resident {
                            if overlap(&range, place) {
                                assert!(!needed.contains(other), "it is needed at the same time");
                                assert!(after >= Some(*reader), "call {reader} still reads it");
                            }
                        }
                        resident.retain(|(other, place, _)| *other != constant && !overlap(&range, place));
                        resident.push((constant, range, index));
                    }
                    ring.find(constant).unwrap().last_reader = index;
                }
                for &constant in needed {
                    let entry = resident.iter_mut().find(|(other, ..)| *other == constant).expect("it is resident");
                    entry.2 = index;
                }
            }
        }
        let mut ring = RingAllocator { bytes: 1024, next: 0, residents: vec![] };
        assert_eq!(ring.take(0, 600, &[0, 1]), Some((0, None)));
        assert_eq!(ring.take(1, 600, &[0, 1]), None, "both do not fit");
        assert_eq!(ring.take(1, 600, &[1]), Some((0, Some(0))));
        assert_eq!(ring.take(2, 2000, &[2]), None);
    }
}
