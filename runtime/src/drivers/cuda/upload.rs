//! Constants of a GPU, in the order of their first use. They are copied once, at load or by the first request. Constants of
//! tasks with host weights stay in host memory.

use super::{
    driver::{Address, CudaError, CudaResult, Event, Gpu, Stream},
    memory::{DeviceMemory, Pinned},
};
use crate::{
    bundle::{Action, Bundle, Step},
    constants::Constants,
    error::{Error, Result},
    hal::ColdStartMode,
};
use std::{collections::HashSet, sync::Arc};

/// Alignment of constants in GPU memory in bytes, equal to that of separate allocations.
pub(super) const ALIGNMENT: u64 = 256;
/// Size in bytes of the pinned staging buffers for copying constants at load.
const PIECE: u64 = 8 << 20;
/// Minimum number of bytes between two events of a cold start: waiting for an event takes about as long as copying this much.
const MARKED_PIECE: u64 = 1 << 20;

/// Constants of a device.
pub(crate) struct DeviceConstants {
    memory: DeviceMemory,
    /// Constants in GPU memory, in the order of their first use.
    order: Vec<Location>,
    /// Number of constants at the start of `order` that are values of steps.
    value_count: usize,
    /// By constant of the bundle: its position in `order`.
    ranks: Vec<Option<usize>>,
    /// Events of a cold start, as numbers of constants that have arrived; ascending, the last one is all of them.
    marks: Vec<usize>,
    /// Constants that stay in pinned host memory, where the GPU reads them.
    host: Option<Pinned>,
    on_host: Vec<Location>,
}

/// Pinned copy of the constants for a cold start.
pub(crate) struct ColdStartImage {
    memory: Pinned,
    /// Number of constants that have arrived when the event occurs; ascending, the last one is all of them.
    marks: Vec<(usize, Event)>,
    mode: ColdStartMode,
    is_sent: bool,
    /// True if some work waits for the last event.
    is_awaited: bool,
}

/// Arrival of constants during a cold start.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) event: Event,
    /// Index of the event; later arrivals have a greater one.
    pub(crate) mark: usize,
    /// True if all constants have arrived.
    pub(crate) is_last: bool,
}

/// Location of a constant.
#[derive(Clone, Copy)]
pub(super) struct Location {
    pub(super) constant: usize,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// Locations of distinct constants, packed with alignment.
pub(super) struct PackedConstants {
    pub(super) order: Vec<Location>,
    pub(super) bytes: u64,
}

impl PackedConstants {
    pub(super) fn of(constants: impl Iterator<Item = usize>, bytes: impl Fn(usize) -> u64) -> Self {
        let mut locations = Self { order: vec![], bytes: 0 };
        let mut known = HashSet::new();
        for constant in constants.filter(|&constant| known.insert(constant)) {
            let bytes = bytes(constant);
            locations.order.push(Location { constant, offset: locations.bytes, bytes });
            locations.bytes += bytes.next_multiple_of(ALIGNMENT);
        }
        locations
    }
}

/// Chooses the events of a cold start. `newest` has for each call the last constant of the order that it needs, or `None`.
fn marks(order: &[Location], newest: impl Iterator<Item = Option<usize>>) -> Vec<usize> {
    let mut marks: Vec<usize> = vec![];
    let end = |count: usize| order.get(count).map_or(u64::MAX, |location| location.offset);
    for count in newest.flatten().map(|rank| rank + 1) {
        let last = marks.last().copied().unwrap_or(0);
        if count > last && end(count) - end(last) >= MARKED_PIECE {
            marks.push(count);
        }
    }
    if marks.last().copied().unwrap_or(0) < order.len() {
        marks.push(order.len());
    }
    marks
}

/// Copies constants to their locations in pinned memory.
pub(super) fn fill(locations: &[Location], memory: &Pinned, constants: &Constants) {
    for location in locations {
        let source = constants.constants[location.constant].pointer();
        let target = memory.pointer().wrapping_add(location.offset as usize);
        // SAFETY: the source is the whole constant, and the memory has room for all of them.
        unsafe { std::ptr::copy_nonoverlapping(source, target, location.bytes as usize) };
    }
}

impl ColdStartImage {
    /// Returns the event to wait for before the constants up to `newest` in the order are read; `None` if no wait is needed.
    pub(crate) fn arrival(&self, newest: Option<usize>) -> Option<Arrival> {
        let index = match (self.mode, newest) {
            (ColdStartMode::CopyFirst, _) => self.marks.len().checked_sub(1)?,
            (ColdStartMode::Overlap, Some(newest)) => self.marks.partition_point(|&(count, _)| count <= newest),
            (ColdStartMode::Overlap, None) => return None,
        };
        let &(_, event) = self.marks.get(index)?;
        Some(Arrival { event, mark: index, is_last: index + 1 == self.marks.len() })
    }

    /// Notes that some work waits for an event.
    pub(crate) fn expect(&mut self, is_last: bool) {
        self.is_awaited |= is_last;
    }

    /// Returns true if some work waits for the last event.
    pub(crate) fn is_awaited(&self) -> bool {
        self.is_awaited
    }
}

impl DeviceConstants {
    /// Allocates GPU memory for the constants of a device; if `is_streamed`, only for those that are values of steps. Copies
    /// the constants that stay on the host to pinned memory.
    pub(crate) fn new(
        gpu: &Arc<dyn Gpu>,
        bundle: &Bundle,
        device: usize,
        constants: &Constants,
        is_streamed: bool,
    ) -> Result<Self> {
        let launched = |step: &Step| match step.action {
            Action::Launch { stage, .. } => Some(&bundle.stages[stage]).filter(|stage| stage.device == device),
            _ => None,
        };
        let (mut on_host, mut needed): (Vec<usize>, Vec<Vec<usize>>) = (vec![], vec![]);
        for stage in bundle.steps.iter().filter_map(launched) {
            for call in &stage.calls {
                if stage.reads_on_host(call) {
                    on_host.extend(call.constants());
                } else if !is_streamed {
                    needed.push(call.constants().collect());
                }
            }
        }
        let bytes = |constant: usize| bundle.constants[constant].bytes;
        // Values come first: any step may need them, and they are small.
        let values = bundle.values.iter().filter(|value| value.device == device).filter_map(|value| value.constant);
        let values = PackedConstants::of(values, bytes);
        let value_count = values.order.len();
        let uploaded = values.order.iter().map(|location| location.constant).chain(needed.iter().flatten().copied());
        let uploaded = PackedConstants::of(uploaded, bytes);
        let mut ranks = vec![None; bundle.constants.len()];
        uploaded.order.iter().enumerate().for_each(|(rank, location)| ranks[location.constant] = Some(rank));
        let marks = marks(&uploaded.order, needed.iter().map(|call| call.iter().filter_map(|&it| ranks[it]).max()));
        // A constant that another call needs in GPU memory is read there.
        let on_host = on_host.into_iter().filter(|&constant| ranks[constant].is_none());
        let on_host = PackedConstants::of(on_host, bytes);
        let id = &bundle.devices[device].id;
        let memory = DeviceMemory::new(gpu, uploaded.bytes, &format!("the weights of device '{id}'"))?;
        let host = match on_host.bytes {
            0 => None,
            bytes => Some(Pinned::new(gpu, bytes, &format!("weights that device '{id}' reads on the host"))?),
        };
        host.iter().for_each(|host| fill(&on_host.order, host, constants));
        Ok(Self { memory, order: uploaded.order, value_count, ranks, marks, host, on_host: on_host.order })
    }

    /// Returns the address of a constant; `None` if the device does not hold it.
    pub(crate) fn address(&self, constant: usize) -> Option<Address> {
        if let Some(rank) = self.ranks[constant] {
            return Some(self.memory.address + self.order[rank].offset);
        }
        let location = self.on_host.iter().find(|location| location.constant == constant)?;
        // Pinned memory has the same address on the GPU (unified addressing).
        self.host.as_ref().map(|host| host.pointer().addr() as Address + location.offset)
    }

    /// Returns the position of a constant in the order.
    pub(crate) fn rank(&self, constant: usize) -> Option<usize> {
        self.ranks[constant]
    }

    /// Copies all constants to pinned memory, for a cold start.
    pub(crate) fn image(
        &self,
        gpu: &Arc<dyn Gpu>,
        constants: &Constants,
        mode: ColdStartMode,
    ) -> Result<ColdStartImage> {
        let memory = Pinned::new(gpu, self.end(self.order.len()), "weights that the first request copies")?;
        fill(&self.order, &memory, constants);
        let failed = |fault: CudaError| Error::Device { what: "a cold start".to_owned(), problem: fault.to_string() };
        let marks = self
            .marks
            .iter()
            .map(|&count| Ok((count, gpu.event()?)))
            .collect::<CudaResult<Vec<_>>>()
            .map_err(failed)?;
        let is_awaited = marks.is_empty();
        Ok(ColdStartImage { memory, marks, mode, is_sent: false, is_awaited })
    }

    /// Enqueues the copies of all constants of an image in their order, once. Enqueuing a call takes longer than enqueuing a
    /// copy, so all copies are enqueued before the calls.
    ///
    /// # Safety
    /// The image is not dropped before the stream has finished.
    pub(crate) unsafe fn send(&self, gpu: &dyn Gpu, image: &mut ColdStartImage, stream: Stream) -> CudaResult<()> {
        if std::mem::replace(&mut image.is_sent, true) {
            return Ok(());
        }
        let mut begin = 0;
        for &(count, event) in &image.marks {
            let end = self.end(count);
            let source = image.memory.pointer().wrapping_add(begin as usize);
            // SAFETY: the ranges are within the image and the GPU memory, which have the same size.
            unsafe { gpu.copy_to_device(self.memory.address + begin, source, end - begin, stream) }?;
            gpu.record(event, stream)?;
            begin = end;
        }
        Ok(())
    }

    /// Returns the last position in the order that is a value of steps.
    pub(crate) fn newest_value(&self) -> Option<usize> {
        self.value_count.checked_sub(1)
    }

    /// Returns the end offset of the first `count` constants of the order.
    fn end(&self, count: usize) -> u64 {
        let end = |location: &Location| location.offset + location.bytes.next_multiple_of(ALIGNMENT);
        count.checked_sub(1).map_or(0, |last| end(&self.order[last]))
    }

    /// Copies all constants and waits for them. Double-buffered: one stream copies while the other's staging buffer is filled.
    pub(crate) fn copy(&self, gpu: &Arc<dyn Gpu>, constants: &Constants, streams: [Stream; 2]) -> Result<()> {
        let total: u64 = self.order.iter().map(|location| location.bytes).sum();
        let size = PIECE.min(total);
        let what = "weights on their way to a GPU";
        let pieces = [Pinned::new(gpu, size, what)?, Pinned::new(gpu, size, what)?];
        let copy = || {
            let mut turn = 0;
            for location in &self.order {
                let mut done = 0;
                while done < location.bytes {
                    let (bytes, stream, piece) =
                        (size.min(location.bytes - done), streams[turn], pieces[turn].pointer());
                    gpu.synchronize(stream)?;
                    let source = constants.constants[location.constant].pointer().wrapping_add(done as usize);
                    // SAFETY: the source is within the constant, the piece is large enough, and the previous copy from it is
                    // complete.
                    unsafe { std::ptr::copy_nonoverlapping(source, piece, bytes as usize) };
                    let target = self.memory.address + location.offset + done;
                    // SAFETY: the target is within the constant, and the piece lives until the streams have finished.
                    unsafe { gpu.copy_to_device(target, piece, bytes, stream) }?;
                    done += bytes;
                    turn = 1 - turn;
                }
            }
            streams.iter().try_for_each(|&stream| gpu.synchronize(stream))
        };
        let copied: CudaResult<()> = copy();
        copied.map_err(|fault| Error::Device { what: what.to_owned(), problem: fault.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_at_least_a_piece_apart() {
        let order = |bytes: &[u64]| PackedConstants::of(0..bytes.len(), |constant| bytes[constant]).order;
        let large = MARKED_PIECE;
        let of = |bytes: &[u64], newest: &[Option<usize>]| marks(&order(bytes), newest.iter().copied());
        assert_eq!(of(&[large, large, large], &[Some(0), None, Some(1), Some(0), Some(2)]), [1, 2, 3]);
        assert_eq!(of(&[4, large, 4, 4, large], &[Some(0), Some(1), Some(2), Some(3), Some(4)]), [2, 5]);
        assert_eq!(of(&[large, 4, 4], &[Some(0), Some(2)]), [1, 3], "the last event is always needed");
        assert_eq!(of(&[4, 4], &[None]), [2], "a value of a step");
        assert!(of(&[], &[None]).is_empty());
    }
}
