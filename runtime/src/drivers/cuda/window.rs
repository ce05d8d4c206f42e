//! Constants that are not all on a GPU at once, because they do not fit: each launch copies them, as its calls need them, to a
//! window of the GPU's memory, while calls run that have theirs.

use super::{
    driver::{Address, Gpu, Outcome, Stream},
    memory::{DeviceMemory, Pinned},
    upload::{Places, fill},
};
use crate::{
    bundle::{self, Buffer, Bundle},
    constants::Constants,
    error::{Error, Result},
};
use std::{ops::Range, sync::Arc};

pub(crate) struct Window {
    memory: DeviceMemory,
    bytes: u64,
    /// All constants that pass through it, where the GPU copies from by itself.
    image: Pinned,
    places: Places,
}

/// What a call needs, and does not find in the window.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Visit {
    arrivals: Vec<Arrival>,
    /// Where the call's buffers are that are constants: their positions, and offsets in the window.
    buffers: Vec<(usize, u64)>,
    /// The last of the calls that read what the arrivals take the place of.
    pub(crate) after: Option<usize>,
}

#[derive(Debug, PartialEq, Eq)]
struct Arrival {
    /// Offsets in the image, and in the window.
    from: u64,
    to: u64,
    bytes: u64,
}

impl Window {
    /// Bytes that all constants of a device's calls take.
    pub(crate) fn wanted(bundle: &Bundle, device: usize) -> u64 {
        places(bundle, device).bytes
    }

    /// For the constants of a device's calls.
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

    /// What comes before each call of a stage, whose launches begin with an empty window.
    pub(crate) fn visits(&self, stage: &bundle::Stage) -> Result<Vec<Visit>> {
        let mut ring = Ring { bytes: self.bytes, next: 0, guests: vec![] };
        let place = |constant: usize| self.places.order.iter().find(|place| place.constant == constant);
        let bytes = |constant: usize| place(constant).map_or(0, |place| place.bytes);
        let visit = |(index, call): (usize, &bundle::Call)| {
            let needed: Vec<usize> = constants_of(stage, call).collect();
            let mut visit = Visit::default();
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
                visit.arrivals.push(Arrival { from: place.offset, to, bytes: place.bytes });
                visit.after = visit.after.max(after);
            }
            for (position, buffer) in call.buffers.iter().enumerate() {
                if let Buffer::Constant(constant) = buffer
                    && needed.contains(constant)
                    && let Some(guest) = ring.find(*constant)
                {
                    guest.last_reader = index;
                    visit.buffers.push((position, guest.range.start));
                }
            }
            Ok(visit)
        };
        stage.calls.iter().enumerate().map(visit).collect()
    }

    /// Copies what arrives before a call.
    ///
    /// # Safety
    /// What it takes the place of is not read any more, and the window stays until the stream has finished.
    pub(crate) unsafe fn bring(&self, gpu: &dyn Gpu, visit: &Visit, stream: Stream) -> Outcome<bool> {
        for arrival in &visit.arrivals {
            let source = self.image.pointer().wrapping_add(arrival.from as usize);
            // SAFETY: the image has the constant there, and the window room for it.
            unsafe { gpu.copy_in(self.memory.address + arrival.to, source, arrival.bytes, stream) }?;
        }
        Ok(!visit.arrivals.is_empty())
    }

    /// Buffers of a call, with those that are in the window where they are.
    pub(crate) fn buffers(&self, buffers: &[Address], visit: &Visit) -> Vec<Address> {
        let mut buffers = buffers.to_vec();
        visit.buffers.iter().for_each(|&(position, offset)| buffers[position] = self.memory.address + offset);
        buffers
    }
}

fn places(bundle: &Bundle, device: usize) -> Places {
    let stages = bundle.stages.iter().filter(|stage| stage.device == device);
    let constants = stages.flat_map(|stage| stage.calls.iter().flat_map(move |call| constants_of(stage, call)));
    Places::of(constants, |constant| bundle.constants[constant].bytes)
}

/// Those that do not stay on the host.
fn constants_of(stage: &bundle::Stage, call: &bundle::Call) -> impl Iterator<Item = usize> {
    let stay = stage.reads_on_host(call);
    call.constants().filter(move |_| !stay)
}

/// Room that is given out from its beginning to its end, and again.
struct Ring {
    bytes: u64,
    next: u64,
    guests: Vec<Guest>,
}

struct Guest {
    constant: usize,
    range: Range<u64>,
    last_reader: usize,
}

impl Ring {
    fn find(&mut self, constant: usize) -> Option<&mut Guest> {
        self.guests.iter_mut().find(|guest| guest.constant == constant)
    }

    /// Room for a constant, and the last call that read what was there; `None` if there is none beside what is needed.
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
            let overlaps = |guest: &Guest| guest.range.start < range.end && range.start < guest.range.end;
            let in_the_way = self.guests.iter().filter(|guest| overlaps(guest) && needed.contains(&guest.constant));
            if let Some(end) = in_the_way.map(|guest| guest.range.end).max() {
                self.next = end;
                continue;
            }
            let after = self.guests.iter().filter(|guest| overlaps(guest)).map(|guest| guest.last_reader).max();
            self.guests.retain(|guest| !overlaps(guest));
            self.next = range.end;
            let start = range.start;
            self.guests.push(Guest { constant, range, last_reader: 0 });
            return Some((start, after));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever a call needs is there, and was not there before those were done that it took the place of.
    #[test]
    fn rings_keep_what_is_needed() {
        let mut seed = 1_u64;
        let mut next = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % most
        };
        for _ in 0..200 {
            let sizes: Vec<u64> = (0..8).map(|_| 1 + next(1500)).collect();
            let calls: Vec<Vec<usize>> =
                (0..30).map(|_| (0..1 + next(3)).map(|_| next(8) as usize).collect()).collect();
            let mut ring = Ring { bytes: 8192, next: 0, guests: vec![] };
            // Who is where, and the last call that reads it, as one sees it who only sees what is taken.
            let mut there: Vec<(usize, Range<u64>, usize)> = vec![];
            for (index, needed) in calls.iter().enumerate() {
                for &constant in needed {
                    if ring.find(constant).is_none() {
                        let (start, after) = ring.take(constant, sizes[constant], needed).unwrap();
                        let range = start..start + sizes[constant];
                        assert!(range.end <= 8192);
                        let gone =
                            |range: &Range<u64>, other: &Range<u64>| other.start < range.end && range.start < other.end;
                        for (other, place, reader) in &there {
                            if gone(&range, place) {
                                assert!(!needed.contains(other), "it is needed at the same time");
                                assert!(after >= Some(*reader), "call {reader} still reads it");
                            }
                        }
                        there.retain(|(other, place, _)| *other != constant && !gone(&range, place));
                        there.push((constant, range, index));
                    }
                    ring.find(constant).unwrap().last_reader = index;
                }
                for &constant in needed {
                    let known = there.iter_mut().find(|(other, ..)| *other == constant).expect("it is there");
                    known.2 = index;
                }
            }
        }
        let mut ring = Ring { bytes: 1024, next: 0, guests: vec![] };
        assert_eq!(ring.take(0, 600, &[0, 1]), Some((0, None)));
        assert_eq!(ring.take(1, 600, &[0, 1]), None, "both do not fit");
        assert_eq!(ring.take(1, 600, &[1]), Some((0, Some(0))));
        assert_eq!(ring.take(2, 2000, &[2]), None);
    }
}
