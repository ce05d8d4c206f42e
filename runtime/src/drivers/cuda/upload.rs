//! Constants of a GPU: in the order in which they are needed, copied once, when the bundle is loaded or as the first request
//! needs them. Those of tasks that read them where they are stay in the host's memory.

use super::{
    driver::{Address, Event, Fault, Gpu, Outcome, Stream},
    memory::{DeviceMemory, Pinned},
};
use crate::{
    bundle::{Action, Bundle, Step},
    constants::Constants,
    error::{Error, Result},
    hal::Cold,
};
use std::{collections::HashSet, sync::Arc};

/// Where constants begin in a GPU's memory: at multiples of this, as what is allocated by itself does.
pub(super) const ALIGNMENT: u64 = 256;
/// Constants are copied piece by piece, through memory of this size that the GPU can copy from by itself.
const PIECE: u64 = 8 << 20;
/// At a cold start, calls wait for pieces of at least this size: to wait takes about as long as to copy one.
const MARKED_PIECE: u64 = 1 << 20;

/// The constants that a device has.
pub(crate) struct Upload {
    memory: DeviceMemory,
    /// In the order of their first use.
    order: Vec<Place>,
    /// How many of them, the first ones, are values of steps.
    value_count: usize,
    /// Where each constant of the bundle is in the order, if it is there.
    ranks: Vec<Option<usize>>,
    /// How many of the order calls of a cold start wait for, ascending; the last is all of them.
    marks: Vec<usize>,
    /// Those that stay on the host, where the GPU reads them by itself.
    host: Option<Pinned>,
    on_host: Vec<Place>,
}

/// Constants that are still to be copied.
pub(crate) struct Image {
    memory: Pinned,
    /// How many are there when an event happens, ascending; the last is all of them.
    marks: Vec<(usize, Event)>,
    mode: Cold,
    is_sent: bool,
    /// Whether something waits for the last of them.
    is_awaited: bool,
}

/// When constants are there.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) event: Event,
    /// Those that come later have a greater one.
    pub(crate) mark: usize,
    /// All of them are.
    pub(crate) is_last: bool,
}

#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) constant: usize,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// Constants one behind the other, each once.
pub(super) struct Places {
    pub(super) order: Vec<Place>,
    pub(super) bytes: u64,
}

impl Places {
    pub(super) fn of(constants: impl Iterator<Item = usize>, bytes: impl Fn(usize) -> u64) -> Self {
        let mut places = Self { order: vec![], bytes: 0 };
        let mut known = HashSet::new();
        for constant in constants.filter(|&constant| known.insert(constant)) {
            let bytes = bytes(constant);
            places.order.push(Place { constant, offset: places.bytes, bytes });
            places.bytes += bytes.next_multiple_of(ALIGNMENT);
        }
        places
    }
}

/// Where to part constants for calls that need them up to one of the order, or none, one call after the other.
fn marks(order: &[Place], newest: impl Iterator<Item = Option<usize>>) -> Vec<usize> {
    let mut marks: Vec<usize> = vec![];
    let end = |count: usize| order.get(count).map_or(u64::MAX, |place| place.offset);
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

/// Puts constants into memory of the host that is as long as all of them.
pub(super) fn fill(places: &[Place], memory: &Pinned, constants: &Constants) {
    for place in places {
        let source = constants.constants[place.constant].pointer();
        let target = memory.pointer().wrapping_add(place.offset as usize);
        // SAFETY: these bytes are the constant's, and the memory is as long as all of them.
        unsafe { std::ptr::copy_nonoverlapping(source, target, place.bytes as usize) };
    }
}

impl Image {
    /// What to wait for before constants up to one of the order are read.
    pub(crate) fn arrival(&self, newest: Option<usize>) -> Option<Arrival> {
        let index = match (self.mode, newest) {
            (Cold::CopyFirst, _) => self.marks.len().checked_sub(1)?,
            (Cold::Overlap, Some(newest)) => self.marks.partition_point(|&(count, _)| count <= newest),
            (Cold::Overlap, None) => return None,
        };
        let &(_, event) = self.marks.get(index)?;
        Some(Arrival { event, mark: index, is_last: index + 1 == self.marks.len() })
    }

    /// Something waits for them.
    pub(crate) fn expect(&mut self, is_last: bool) {
        self.is_awaited |= is_last;
    }

    /// Whether something waits for the last of them.
    pub(crate) fn is_awaited(&self) -> bool {
        self.is_awaited
    }
}

impl Upload {
    /// Makes room for the constants of a device, or if they are `streamed` for those alone that are values of steps. Those that
    /// stay on the host are there.
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
        // Values may be needed by any step, and are small.
        let values = bundle.values.iter().filter(|value| value.device == device).filter_map(|value| value.constant);
        let values = Places::of(values, bytes);
        let value_count = values.order.len();
        let uploaded = values.order.iter().map(|place| place.constant).chain(needed.iter().flatten().copied());
        let uploaded = Places::of(uploaded, bytes);
        let mut ranks = vec![None; bundle.constants.len()];
        uploaded.order.iter().enumerate().for_each(|(rank, place)| ranks[place.constant] = Some(rank));
        let marks = marks(&uploaded.order, needed.iter().map(|call| call.iter().filter_map(|&it| ranks[it]).max()));
        // What somebody else has copied is read there.
        let on_host = on_host.into_iter().filter(|&constant| ranks[constant].is_none());
        let on_host = Places::of(on_host, bytes);
        let id = &bundle.devices[device].id;
        let memory = DeviceMemory::new(gpu, uploaded.bytes, &format!("the weights of device '{id}'"))?;
        let host = match on_host.bytes {
            0 => None,
            bytes => Some(Pinned::new(gpu, bytes, &format!("weights that device '{id}' reads on the host"))?),
        };
        host.iter().for_each(|host| fill(&on_host.order, host, constants));
        Ok(Self { memory, order: uploaded.order, value_count, ranks, marks, host, on_host: on_host.order })
    }

    /// Where a constant is, if the device has it.
    pub(crate) fn address(&self, constant: usize) -> Option<Address> {
        if let Some(rank) = self.ranks[constant] {
            return Some(self.memory.address + self.order[rank].offset);
        }
        let place = self.on_host.iter().find(|place| place.constant == constant)?;
        // A GPU knows pinned memory by the host's addresses.
        self.host.as_ref().map(|host| host.pointer().addr() as Address + place.offset)
    }

    /// Where a constant is in the order, if it is there.
    pub(crate) fn rank(&self, constant: usize) -> Option<usize> {
        self.ranks[constant]
    }

    /// Puts all constants where the GPU copies from by itself, for a cold start.
    pub(crate) fn image(&self, gpu: &Arc<dyn Gpu>, constants: &Constants, mode: Cold) -> Result<Image> {
        let memory = Pinned::new(gpu, self.end(self.order.len()), "weights that the first request copies")?;
        fill(&self.order, &memory, constants);
        let failed = |fault: Fault| Error::Device { what: "a cold start".to_owned(), problem: fault.to_string() };
        let marks =
            self.marks.iter().map(|&count| Ok((count, gpu.event()?))).collect::<Outcome<Vec<_>>>().map_err(failed)?;
        let is_awaited = marks.is_empty();
        Ok(Image { memory, marks, mode, is_sent: false, is_awaited })
    }

    /// Has all constants of an image copied in their order, unless they are on their way. To tell a GPU of a call takes longer than
    /// to tell it of a copy, so copies wait for no call.
    ///
    /// # Safety
    /// The image stays until the stream has finished.
    pub(crate) unsafe fn send(&self, gpu: &dyn Gpu, image: &mut Image, stream: Stream) -> Outcome<()> {
        if std::mem::replace(&mut image.is_sent, true) {
            return Ok(());
        }
        let mut begin = 0;
        for &(count, event) in &image.marks {
            let end = self.end(count);
            let source = image.memory.pointer().wrapping_add(begin as usize);
            // SAFETY: the image is as long as what is copied of it, as is the room on the GPU.
            unsafe { gpu.copy_in(self.memory.address + begin, source, end - begin, stream) }?;
            gpu.record(event, stream)?;
            begin = end;
        }
        Ok(())
    }

    /// The last of the order that is a value by itself.
    pub(crate) fn newest_value(&self) -> Option<usize> {
        self.value_count.checked_sub(1)
    }

    /// Where the first so many constants of the order end.
    fn end(&self, count: usize) -> u64 {
        let end = |place: &Place| place.offset + place.bytes.next_multiple_of(ALIGNMENT);
        count.checked_sub(1).map_or(0, |last| end(&self.order[last]))
    }

    /// Copies all constants; they are there when this returns. Two streams take turns: one copies while the other's piece is
    /// being put together.
    pub(crate) fn copy(&self, gpu: &Arc<dyn Gpu>, constants: &Constants, streams: [Stream; 2]) -> Result<()> {
        let total: u64 = self.order.iter().map(|place| place.bytes).sum();
        let size = PIECE.min(total);
        let what = "weights on their way to a GPU";
        let pieces = [Pinned::new(gpu, size, what)?, Pinned::new(gpu, size, what)?];
        let copy = || {
            let mut turn = 0;
            for place in &self.order {
                let mut done = 0;
                while done < place.bytes {
                    let (bytes, stream, piece) = (size.min(place.bytes - done), streams[turn], pieces[turn].pointer());
                    gpu.finish(stream)?;
                    let source = constants.constants[place.constant].pointer().wrapping_add(done as usize);
                    // SAFETY: these bytes are the constant's, the piece is as long, and what was copied from it is done.
                    unsafe { std::ptr::copy_nonoverlapping(source, piece, bytes as usize) };
                    let target = self.memory.address + place.offset + done;
                    // SAFETY: there is room for the constant, and the piece stays until the streams have finished.
                    unsafe { gpu.copy_in(target, piece, bytes, stream) }?;
                    done += bytes;
                    turn = 1 - turn;
                }
            }
            streams.iter().try_for_each(|&stream| gpu.finish(stream))
        };
        let copied: Outcome<()> = copy();
        copied.map_err(|fault| Error::Device { what: what.to_owned(), problem: fault.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_wait_for_pieces() {
        let order = |bytes: &[u64]| Places::of(0..bytes.len(), |constant| bytes[constant]).order;
        let large = MARKED_PIECE;
        let of = |bytes: &[u64], newest: &[Option<usize>]| marks(&order(bytes), newest.iter().copied());
        assert_eq!(of(&[large, large, large], &[Some(0), None, Some(1), Some(0), Some(2)]), [1, 2, 3]);
        assert_eq!(of(&[4, large, 4, 4, large], &[Some(0), Some(1), Some(2), Some(3), Some(4)]), [2, 5]);
        assert_eq!(of(&[large, 4, 4], &[Some(0), Some(2)]), [1, 3], "the last are waited for, as small as they are");
        assert_eq!(of(&[4, 4], &[None]), [2], "a value by itself");
        assert!(of(&[], &[None]).is_empty());
    }
}
