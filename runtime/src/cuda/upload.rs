//! Constants of a GPU: in the order in which they are needed, copied once, when the bundle is loaded or as the first request
//! needs them. Those of tasks that read them where they are stay in the host's memory.

use super::{
    driver::{Address, Gpu, Outcome, Stream},
    memory::{DeviceMemory, Pinned},
};
use crate::{
    bundle::{Action, Buffer, Bundle, Call, Stage, Step},
    constants::Constants,
    error::{Error, Result},
};
use std::{collections::HashSet, sync::Arc};

/// Where constants begin in a GPU's memory: at multiples of this, as what is allocated by itself does.
pub(super) const ALIGNMENT: u64 = 256;
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
    /// Those that stay on the host, where the GPU reads them by itself.
    host: Option<Pinned>,
    on_host: Vec<Place>,
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

/// Puts constants into memory of the host that is as long as all of them.
pub(super) fn fill(places: &[Place], memory: &Pinned, constants: &Constants) {
    for place in places {
        let source = constants.constants[place.constant].pointer();
        let target = memory.pointer().wrapping_add(place.offset as usize);
        // SAFETY: these bytes are the constant's, and the memory is as long as all of them.
        unsafe { std::ptr::copy_nonoverlapping(source, target, place.bytes as usize) };
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
        let read = |(stage, call): (&Stage, &Call)| {
            let is_on_host = stage.tasks.get(call.task).is_some_and(|task| task.has_host_weights);
            let constant = |buffer: &Buffer| if let Buffer::Constant(index) = buffer { Some(*index) } else { None };
            let constants: Vec<usize> = call.buffers.iter().filter_map(constant).collect();
            constants.into_iter().map(move |constant| (constant, is_on_host))
        };
        let calls = bundle
            .steps
            .iter()
            .filter_map(launched)
            .flat_map(|stage| stage.calls.iter().map(move |call| (stage, call)));
        let (on_host, mut needed): (Vec<_>, Vec<_>) = calls.flat_map(read).partition(|(_, is_on_host)| *is_on_host);
        if is_streamed {
            needed.clear();
        }
        let bytes = |constant: usize| bundle.constants[constant].bytes;
        // Values may be needed by any step, and are small.
        let values = bundle.values.iter().filter(|value| value.device == device).filter_map(|value| value.constant);
        let values = Places::of(values, bytes);
        let value_count = values.order.len();
        let uploaded = values.order.iter().map(|place| place.constant).chain(needed.into_iter().map(|(it, _)| it));
        let uploaded = Places::of(uploaded, bytes);
        let mut ranks = vec![None; bundle.constants.len()];
        uploaded.order.iter().enumerate().for_each(|(rank, place)| ranks[place.constant] = Some(rank));
        // What somebody else has copied is read there.
        let on_host = on_host.into_iter().map(|(constant, _)| constant).filter(|&constant| ranks[constant].is_none());
        let on_host = Places::of(on_host, bytes);
        let id = &bundle.devices[device].id;
        let memory = DeviceMemory::new(gpu, uploaded.bytes, &format!("the weights of device '{id}'"))?;
        let host = match on_host.bytes {
            0 => None,
            bytes => Some(Pinned::new(gpu, bytes, &format!("weights that device '{id}' reads on the host"))?),
        };
        host.iter().for_each(|host| fill(&on_host.order, host, constants));
        Ok(Self { memory, order: uploaded.order, value_count, ranks, host, on_host: on_host.order })
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
