//! Constants of a GPU: in the order in which they are needed, copied once, when the bundle is loaded or as the first request
//! needs them.

use super::{
    driver::{Address, Gpu, Outcome, Stream},
    memory::{DeviceMemory, Pinned},
};
use crate::{
    bundle::{Action, Buffer, Bundle, Step},
    constants::Constants,
    error::{Error, Result},
};
use std::sync::Arc;

/// Where constants begin in a GPU's memory: at multiples of this, as what is allocated by itself does.
const ALIGNMENT: u64 = 256;
/// Constants are copied piece by piece, through memory of this size that the GPU can copy from by itself.
const PIECE: u64 = 8 << 20;

/// The constants that a device has.
pub(crate) struct Upload {
    memory: DeviceMemory,
    /// In the order of their first use.
    order: Vec<Place>,
    /// How many of them, the first ones, are values of steps.
    value_count: usize,
    /// Where each constant of the bundle is in the order, if it is there.
    ranks: Vec<Option<usize>>,
}

/// What the first request does about constants that are not on the GPU yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cold {
    /// They are copied in the order of their first use, while calls that have theirs run.
    Overlap,
    /// All of them are copied before the first call.
    CopyFirst,
}

/// Constants that are still to be copied.
pub(crate) struct Image {
    memory: Pinned,
    /// How many are on their way.
    sent: usize,
    mode: Cold,
}

#[derive(Clone, Copy)]
struct Place {
    constant: usize,
    offset: u64,
    bytes: u64,
}

impl Upload {
    /// Makes room for the constants of a device.
    pub(crate) fn new(gpu: &Arc<dyn Gpu>, bundle: &Bundle, device: usize) -> Result<Self> {
        let launched = |step: &Step| match step.action {
            Action::Launch { stage, .. } => Some(&bundle.stages[stage]).filter(|stage| stage.device == device),
            _ => None,
        };
        let buffers =
            bundle.steps.iter().filter_map(launched).flat_map(|stage| &stage.calls).flat_map(|call| &call.buffers);
        let constant = |buffer: &Buffer| if let Buffer::Constant(index) = buffer { Some(*index) } else { None };
        let mut ranks = vec![None; bundle.constants.len()];
        let (mut order, mut total) = (Vec::new(), 0);
        let mut add = |constant: usize| {
            if ranks[constant].is_none() {
                let bytes = bundle.constants[constant].bytes;
                ranks[constant] = Some(order.len());
                order.push(Place { constant, offset: total, bytes });
                total += bytes.next_multiple_of(ALIGNMENT);
            }
            order.len()
        };
        // Values may be needed by any step, and are small.
        let values = bundle.values.iter().filter(|value| value.device == device).filter_map(|value| value.constant);
        let value_count = values.map(&mut add).last().unwrap_or(0);
        buffers.filter_map(constant).for_each(|constant| _ = add(constant));
        let memory = DeviceMemory::new(gpu, total, &format!("the weights of device '{}'", bundle.devices[device].id))?;
        Ok(Self { memory, order, value_count, ranks })
    }

    /// Where a constant is, if the device has it.
    pub(crate) fn address(&self, constant: usize) -> Option<Address> {
        self.ranks[constant].map(|rank| self.memory.address + self.order[rank].offset)
    }

    /// Where a constant is in the order, if it is there.
    pub(crate) fn rank(&self, constant: usize) -> Option<usize> {
        self.ranks[constant]
    }

    /// Puts all constants where the GPU copies from by itself, for a cold start.
    pub(crate) fn image(&self, gpu: &Arc<dyn Gpu>, constants: &Constants, mode: Cold) -> Result<Image> {
        let memory = Pinned::new(gpu, self.end(self.order.len()), "weights that the first request copies")?;
        for place in &self.order {
            let source = constants.constants[place.constant].pointer();
            let target = memory.pointer().wrapping_add(place.offset as usize);
            // SAFETY: these bytes are the constant's, and the image is as long as all of them.
            unsafe { std::ptr::copy_nonoverlapping(source, target, place.bytes as usize) };
        }
        Ok(Image { memory, sent: 0, mode })
    }

    /// Copies constants of an image up to the one that is needed, in their order, unless they were copied. Those that are to
    /// come first do, before any other.
    ///
    /// # Safety
    /// The image stays until the stream has finished.
    pub(crate) unsafe fn send(
        &self,
        gpu: &dyn Gpu,
        image: &mut Image,
        needed: Option<usize>,
        stream: Stream,
    ) -> Outcome<bool> {
        let end = match (image.mode, needed) {
            (Cold::CopyFirst, _) => self.order.len(),
            (Cold::Overlap, needed) => needed.map_or(0, |rank| rank + 1),
        };
        if end <= image.sent {
            return Ok(false);
        }
        let (begin, end_byte) = (self.end(image.sent), self.end(end));
        let source = image.memory.pointer().wrapping_add(begin as usize);
        // SAFETY: the image is as long as what is copied of it, as is the room on the GPU.
        unsafe { gpu.copy_in(self.memory.address + begin, source, end_byte - begin, stream) }?;
        image.sent = end;
        Ok(true)
    }

    /// Whether all constants of an image are on their way.
    pub(crate) fn are_all_sent(&self, image: &Image) -> bool {
        image.sent == self.order.len()
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
        copied.map_err(|fault| Error::Gpu { what: what.to_owned(), problem: fault.to_string() })
    }
}
