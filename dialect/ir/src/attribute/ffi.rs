//! Accessors and constructors of attributes of the `divi` dialect.

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

/// `#divi.external`: elements of a constant, stored in a file.
#[derive(Clone, Copy, Debug)]
pub struct ExternalAttribute<'c>(Attribute<'c>);

impl<'c> ExternalAttribute<'c> {
    /// Creates the attribute. Returns `None` and emits a diagnostic at `location` if `length` is not the size of the type.
    pub fn new(location: Location<'c>, r#type: Type<'c>, path: &str, offset: u64, length: u64) -> Option<Self> {
        let path = StringRef::new(path);
        let raw = call!(diviExternalAttrGetChecked(location.to_raw(), r#type.to_raw(), path.to_raw(), offset, length,));
        wrap(raw).map(Self)
    }

    /// Casts an attribute; `None` for attributes of other kinds.
    pub fn from_attribute(attribute: Attribute<'c>) -> Option<Self> {
        call!(diviAttrIsAExternal(attribute.to_raw())).then_some(Self(attribute))
    }

    /// Returns the path of the file, relative to the IR file.
    pub fn path(&self) -> &'c str {
        let value = call!(diviExternalAttrGetPath(self.0.to_raw()));
        call!(text(value))
    }

    /// Returns the offset of the first element, in bytes.
    pub fn offset(&self) -> u64 {
        call!(diviExternalAttrGetOffset(self.0.to_raw()))
    }

    /// Returns the size of the elements, in bytes.
    pub fn length(&self) -> u64 {
        call!(diviExternalAttrGetLength(self.0.to_raw()))
    }

    /// Returns the untyped attribute.
    pub fn as_attribute(&self) -> Attribute<'c> {
        self.0
    }
}

/// Time of a task on one device at one batch size.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchCost {
    /// Name of the device.
    pub device: String,
    /// Number of inputs.
    pub batch: i64,
    /// Time in microseconds.
    pub micros: f64,
}

/// `#divi.cost`: times of a task on each device.
#[derive(Clone, Copy, Debug)]
pub struct CostAttribute<'c>(Attribute<'c>);

impl<'c> CostAttribute<'c> {
    /// Creates the attribute. Entries of one device must be adjacent. Returns `None` and emits a diagnostic at `location` if
    /// verification fails.
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

    /// Casts an attribute; `None` for attributes of other kinds.
    pub fn from_attribute(attribute: Attribute<'c>) -> Option<Self> {
        call!(diviAttrIsACost(attribute.to_raw())).then_some(Self(attribute))
    }

    /// Returns all entries; those of one device are adjacent.
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

    /// Returns the untyped attribute.
    pub fn as_attribute(&self) -> Attribute<'c> {
        self.0
    }
}

/// `#divi.batch`: one launch of a task for a batch of queued inputs.
#[derive(Clone, Copy, Debug)]
pub struct BatchAttribute<'c>(Attribute<'c>);

impl<'c> BatchAttribute<'c> {
    /// Creates the attribute. The start is in microseconds; inputs must be strictly increasing. Returns `None` and emits a
    /// diagnostic at `location` if verification fails.
    pub fn new(location: Location<'c>, device: &str, start: f64, inputs: &[i64]) -> Option<Self> {
        let device = StringRef::new(device);
        let count = inputs.len() as isize;
        let raw = call!(diviBatchAttrGetChecked(location.to_raw(), device.to_raw(), start, count, inputs.as_ptr(),));
        wrap(raw).map(Self)
    }

    /// Casts an attribute; `None` for attributes of other kinds.
    pub fn from_attribute(attribute: Attribute<'c>) -> Option<Self> {
        call!(diviAttrIsABatch(attribute.to_raw())).then_some(Self(attribute))
    }

    /// Returns the name of the device.
    pub fn device(&self) -> &'c str {
        let value = call!(diviBatchAttrGetDevice(self.0.to_raw()));
        call!(text(value))
    }

    /// Returns the start in microseconds.
    pub fn start(&self) -> f64 {
        call!(diviBatchAttrGetStart(self.0.to_raw()))
    }

    /// Returns the indices of the queued inputs, strictly increasing.
    pub fn inputs(&self) -> Vec<i64> {
        let raw = self.0.to_raw();
        (0..call!(diviBatchAttrGetCount(raw))).map(|i| call!(diviBatchAttrGetInput(raw, i))).collect()
    }

    /// Returns the untyped attribute.
    pub fn as_attribute(&self) -> Attribute<'c> {
        self.0
    }
}

/// `#divi.move`: start and end of a transfer of a tensor between two devices.
#[derive(Clone, Copy, Debug)]
pub struct MoveAttribute<'c>(Attribute<'c>);

impl<'c> MoveAttribute<'c> {
    /// Creates the attribute for a result, or for a function's argument. `route` are source and destination, `times` start
    /// and end in microseconds. `inputs` are strictly increasing, or empty for all inputs of the only launch on the source.
    /// Returns `None` and emits a diagnostic at `location` if verification fails.
    pub fn new(
        location: Location<'c>,
        index: usize,
        route: [&str; 2],
        times: [f64; 2],
        inputs: &[i64],
    ) -> Option<Self> {
        let [from, to] = route.map(StringRef::new);
        let ([start, end], count) = (times, inputs.len() as isize);
        let (location, index) = (location.to_raw(), i64::try_from(index).ok()?);
        let (from, to, inputs) = (from.to_raw(), to.to_raw(), inputs.as_ptr());
        let raw = call!(diviMoveAttrGetChecked(location, index, from, to, start, end, count, inputs,));
        wrap(raw).map(Self)
    }

    /// Casts an attribute; `None` for attributes of other kinds.
    pub fn from_attribute(attribute: Attribute<'c>) -> Option<Self> {
        call!(diviAttrIsAMove(attribute.to_raw())).then_some(Self(attribute))
    }

    /// Returns the index of the result or argument.
    pub fn index(&self) -> usize {
        call!(diviMoveAttrGetIndex(self.0.to_raw())) as usize
    }

    /// Returns the name of the source device.
    pub fn from(&self) -> &'c str {
        let value = call!(diviMoveAttrGetFrom(self.0.to_raw()));
        call!(text(value))
    }

    /// Returns the name of the destination device.
    pub fn to(&self) -> &'c str {
        let value = call!(diviMoveAttrGetTo(self.0.to_raw()));
        call!(text(value))
    }

    /// Returns the start in microseconds.
    pub fn start(&self) -> f64 {
        call!(diviMoveAttrGetStart(self.0.to_raw()))
    }

    /// Returns the end in microseconds.
    pub fn end(&self) -> f64 {
        call!(diviMoveAttrGetEnd(self.0.to_raw()))
    }

    /// Returns the indices of the queued inputs, strictly increasing; empty if they are not listed.
    pub fn inputs(&self) -> Vec<i64> {
        let raw = self.0.to_raw();
        (0..call!(diviMoveAttrGetCount(raw))).map(|i| call!(diviMoveAttrGetInput(raw, i))).collect()
    }

    /// Returns the untyped attribute.
    pub fn as_attribute(&self) -> Attribute<'c> {
        self.0
    }
}
