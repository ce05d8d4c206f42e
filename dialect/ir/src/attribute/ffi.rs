//! Raw attributes of the `divi` dialect.

use crate::{
    context::text,
    ffi::{call, *},
};
use melior::{
    StringRef,
    ir::{Attribute, AttributeLike, Location, Type, TypeLike},
};
use mlir_sys::MlirAttribute;

fn wrap<'c>(raw: MlirAttribute) -> Option<Attribute<'c>> {
    // SAFETY: attributes live as long as their context.
    unsafe { Attribute::from_option_raw(raw) }
}

/// `#divi.external`: the elements of a constant, as they lie in a file.
#[derive(Clone, Copy, Debug)]
pub struct ExternalAttribute<'c>(Attribute<'c>);

impl<'c> ExternalAttribute<'c> {
    /// `None`, with a diagnostic at `location`, if `length` is not what the type takes.
    pub fn new(location: Location<'c>, r#type: Type<'c>, path: &str, offset: u64, length: u64) -> Option<Self> {
        let path = StringRef::new(path);
        let raw = call!(diviExternalAttrGetChecked(location.to_raw(), r#type.to_raw(), path.to_raw(), offset, length,));
        wrap(raw).map(Self)
    }

    pub fn from_attribute(attribute: Attribute<'c>) -> Option<Self> {
        call!(diviAttrIsAExternal(attribute.to_raw())).then_some(Self(attribute))
    }

    /// Relative to the file that the IR is in.
    pub fn path(&self) -> &'c str {
        let value = call!(diviExternalAttrGetPath(self.0.to_raw()));
        call!(text(value))
    }

    pub fn offset(&self) -> u64 {
        call!(diviExternalAttrGetOffset(self.0.to_raw()))
    }

    pub fn length(&self) -> u64 {
        call!(diviExternalAttrGetLength(self.0.to_raw()))
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
        let raw = call!(diviCostAttrGetChecked(
            location.to_raw(),
            entries.len() as isize,
            devices.as_ptr(),
            batches.as_ptr(),
            micros.as_ptr(),
        ));
        wrap(raw).map(Self)
    }

    pub fn from_attribute(attribute: Attribute<'c>) -> Option<Self> {
        call!(diviAttrIsACost(attribute.to_raw())).then_some(Self(attribute))
    }

    pub fn entries(&self) -> Vec<BatchCost> {
        let raw = self.0.to_raw();
        let entry = |i| {
            let device = call!(diviCostAttrGetDevice(raw, i));
            BatchCost {
                device: call!(text(device)).to_owned(),
                batch: call!(diviCostAttrGetBatch(raw, i)),
                micros: call!(diviCostAttrGetMicros(raw, i)),
            }
        };
        (0..call!(diviCostAttrGetCount(raw))).map(entry).collect()
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
        let raw = call!(diviBatchAttrGetChecked(location.to_raw(), device.to_raw(), start, count, inputs.as_ptr(),));
        wrap(raw).map(Self)
    }

    pub fn from_attribute(attribute: Attribute<'c>) -> Option<Self> {
        call!(diviAttrIsABatch(attribute.to_raw())).then_some(Self(attribute))
    }

    pub fn device(&self) -> &'c str {
        let value = call!(diviBatchAttrGetDevice(self.0.to_raw()));
        call!(text(value))
    }

    pub fn start(&self) -> f64 {
        call!(diviBatchAttrGetStart(self.0.to_raw()))
    }

    pub fn inputs(&self) -> Vec<i64> {
        let raw = self.0.to_raw();
        (0..call!(diviBatchAttrGetCount(raw))).map(|i| call!(diviBatchAttrGetInput(raw, i))).collect()
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
        let raw = call!(diviMoveAttrGetChecked(location.to_raw(), index, from.to_raw(), to.to_raw(), start, end,));
        wrap(raw).map(Self)
    }

    pub fn from_attribute(attribute: Attribute<'c>) -> Option<Self> {
        call!(diviAttrIsAMove(attribute.to_raw())).then_some(Self(attribute))
    }

    /// Which result, or which argument.
    pub fn index(&self) -> usize {
        call!(diviMoveAttrGetIndex(self.0.to_raw())) as usize
    }

    pub fn from(&self) -> &'c str {
        let value = call!(diviMoveAttrGetFrom(self.0.to_raw()));
        call!(text(value))
    }

    pub fn to(&self) -> &'c str {
        let value = call!(diviMoveAttrGetTo(self.0.to_raw()));
        call!(text(value))
    }

    pub fn start(&self) -> f64 {
        call!(diviMoveAttrGetStart(self.0.to_raw()))
    }

    pub fn end(&self) -> f64 {
        call!(diviMoveAttrGetEnd(self.0.to_raw()))
    }

    pub fn as_attribute(&self) -> Attribute<'c> {
        self.0
    }
}
