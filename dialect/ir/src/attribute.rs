//! The attributes of the `divi` dialect.

use crate::{ffi::*, text};
use melior::{
    StringRef,
    ir::{Attribute, AttributeLike, Location, Type, TypeLike},
};

/// `#divi.external`: the elements of a constant, as they lie in a file.
#[derive(Clone, Copy, Debug)]
pub struct ExternalAttribute<'c>(Attribute<'c>);

impl<'c> ExternalAttribute<'c> {
    /// `None`, with a diagnostic at `location`, if `length` is not what the type takes.
    pub fn new(location: Location<'c>, r#type: Type<'c>, path: &str, offset: u64, length: u64) -> Option<Self> {
        let path = StringRef::new(path);
        // SAFETY: location, type and path outlive the call.
        unsafe {
            Attribute::from_option_raw(diviExternalAttrGetChecked(
                location.to_raw(),
                r#type.to_raw(),
                path.to_raw(),
                offset,
                length,
            ))
        }
        .map(Self)
    }

    pub fn from_attribute(attribute: Attribute<'c>) -> Option<Self> {
        // SAFETY: the attribute is alive.
        unsafe { diviAttrIsAExternal(attribute.to_raw()) }.then_some(Self(attribute))
    }

    /// Relative to the file that the IR is in.
    pub fn path(&self) -> &'c str {
        // SAFETY: the attribute is of this kind, and its text lives as long as the context.
        unsafe { text(diviExternalAttrGetPath(self.0.to_raw())) }
    }

    pub fn offset(&self) -> u64 {
        // SAFETY: the attribute is of this kind.
        unsafe { diviExternalAttrGetOffset(self.0.to_raw()) }
    }

    pub fn length(&self) -> u64 {
        // SAFETY: the attribute is of this kind.
        unsafe { diviExternalAttrGetLength(self.0.to_raw()) }
    }

    pub fn as_attribute(&self) -> Attribute<'c> {
        self.0
    }
}

/// The time of a task at one batch size on one device.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchCost {
    pub device: String,
    pub batch: i64,
    pub micros: f64,
}

/// `#divi.cost`: how long a task takes on each device.
#[derive(Clone, Copy, Debug)]
pub struct CostAttribute<'c>(Attribute<'c>);

impl<'c> CostAttribute<'c> {
    /// Entries of one device must stand together. `None`, with a diagnostic at `location`, if they are not well-formed.
    pub fn new(location: Location<'c>, entries: &[BatchCost]) -> Option<Self> {
        let devices: Vec<_> = entries.iter().map(|entry| StringRef::new(&entry.device).to_raw()).collect();
        let batches: Vec<_> = entries.iter().map(|entry| entry.batch).collect();
        let micros: Vec<_> = entries.iter().map(|entry| entry.micros).collect();
        // SAFETY: the arrays have one element an entry and outlive the call.
        unsafe {
            Attribute::from_option_raw(diviCostAttrGetChecked(
                location.to_raw(),
                entries.len() as isize,
                devices.as_ptr(),
                batches.as_ptr(),
                micros.as_ptr(),
            ))
        }
        .map(Self)
    }

    pub fn from_attribute(attribute: Attribute<'c>) -> Option<Self> {
        // SAFETY: the attribute is alive.
        unsafe { diviAttrIsACost(attribute.to_raw()) }.then_some(Self(attribute))
    }

    pub fn entries(&self) -> Vec<BatchCost> {
        let raw = self.0.to_raw();
        // SAFETY: the attribute is of this kind, and the index is below the count.
        unsafe {
            (0..diviCostAttrGetCount(raw))
                .map(|i| BatchCost {
                    device: text(diviCostAttrGetDevice(raw, i)).to_owned(),
                    batch: diviCostAttrGetBatch(raw, i),
                    micros: diviCostAttrGetMicros(raw, i),
                })
                .collect()
        }
    }

    pub fn as_attribute(&self) -> Attribute<'c> {
        self.0
    }
}

/// `#divi.batch`: some of the queued inputs, and where and when a task runs for them at once.
#[derive(Clone, Copy, Debug)]
pub struct BatchAttribute<'c>(Attribute<'c>);

impl<'c> BatchAttribute<'c> {
    /// The start is in microseconds, inputs are in increasing order. `None`, with a diagnostic at `location`, if they are
    /// not.
    pub fn new(location: Location<'c>, device: &str, start: f64, inputs: &[i64]) -> Option<Self> {
        let device = StringRef::new(device);
        let count = inputs.len() as isize;
        // SAFETY: location, name and inputs outlive the call.
        unsafe {
            Attribute::from_option_raw(diviBatchAttrGetChecked(
                location.to_raw(),
                device.to_raw(),
                start,
                count,
                inputs.as_ptr(),
            ))
        }
        .map(Self)
    }

    pub fn from_attribute(attribute: Attribute<'c>) -> Option<Self> {
        // SAFETY: the attribute is alive.
        unsafe { diviAttrIsABatch(attribute.to_raw()) }.then_some(Self(attribute))
    }

    pub fn device(&self) -> &'c str {
        // SAFETY: the attribute is of this kind, and its text lives as long as the context.
        unsafe { text(diviBatchAttrGetDevice(self.0.to_raw())) }
    }

    pub fn start(&self) -> f64 {
        // SAFETY: the attribute is of this kind.
        unsafe { diviBatchAttrGetStart(self.0.to_raw()) }
    }

    pub fn inputs(&self) -> Vec<i64> {
        let raw = self.0.to_raw();
        // SAFETY: the attribute is of this kind, and the index is below the count.
        unsafe { (0..diviBatchAttrGetCount(raw)).map(|i| diviBatchAttrGetInput(raw, i)).collect() }
    }

    pub fn as_attribute(&self) -> Attribute<'c> {
        self.0
    }
}

/// `#divi.move`: when a tensor goes from one device to another.
#[derive(Clone, Copy, Debug)]
pub struct MoveAttribute<'c>(Attribute<'c>);

impl<'c> MoveAttribute<'c> {
    /// Of a result, or of a function's argument; times are in microseconds. `None`, with a diagnostic at `location`, if they
    /// are none.
    pub fn new(location: Location<'c>, index: usize, from: &str, to: &str, start: f64, end: f64) -> Option<Self> {
        let (from, to) = (StringRef::new(from), StringRef::new(to));
        let index = i64::try_from(index).ok()?;
        // SAFETY: location and names outlive the call.
        unsafe {
            Attribute::from_option_raw(diviMoveAttrGetChecked(
                location.to_raw(),
                index,
                from.to_raw(),
                to.to_raw(),
                start,
                end,
            ))
        }
        .map(Self)
    }

    pub fn from_attribute(attribute: Attribute<'c>) -> Option<Self> {
        // SAFETY: the attribute is alive.
        unsafe { diviAttrIsAMove(attribute.to_raw()) }.then_some(Self(attribute))
    }

    /// Which result, or which argument.
    pub fn index(&self) -> usize {
        // SAFETY: the attribute is of this kind, whose numbers are not negative.
        unsafe { diviMoveAttrGetIndex(self.0.to_raw()) as usize }
    }

    pub fn from(&self) -> &'c str {
        // SAFETY: the attribute is of this kind, and its text lives as long as the context.
        unsafe { text(diviMoveAttrGetFrom(self.0.to_raw())) }
    }

    pub fn to(&self) -> &'c str {
        // SAFETY: see above.
        unsafe { text(diviMoveAttrGetTo(self.0.to_raw())) }
    }

    pub fn start(&self) -> f64 {
        // SAFETY: the attribute is of this kind.
        unsafe { diviMoveAttrGetStart(self.0.to_raw()) }
    }

    pub fn end(&self) -> f64 {
        // SAFETY: the attribute is of this kind.
        unsafe { diviMoveAttrGetEnd(self.0.to_raw()) }
    }

    pub fn as_attribute(&self) -> Attribute<'c> {
        self.0
    }
}
