//! Device kinds: properties of `cpu`, `cuda` and kinds that a program registers.
//!
//! A kind implements [`DeviceKind`]. The registry is global, like LLVM's target registry: `cpu` and `cuda` are built in,
//! [`register`] adds others. Other code queries capabilities of a kind and never compares its name.

mod cpu;
mod cuda;
mod detect;
mod form;
mod rates;

use crate::{Class, Model, model};
pub use cpu::{CPU, calibrated_model};
pub use cuda::{CUDA, driver_version};
pub use detect::{Detected, DetectedDevice, DetectedLink};
pub use form::ModelForm;
pub use rates::{DefaultRates, Rates, TypeRatios};
use std::{
    fmt,
    hash::{Hash, Hasher},
    ops::Deref,
    sync::{PoisonError, RwLock},
};

/// Kind of device, with the properties that the compiler needs.
pub trait DeviceKind: Send + Sync {
    /// Returns the name in system descriptions, IR and bundles.
    fn name(&self) -> &str;

    /// Returns the memory of operands and results of tasks.
    fn memory(&self) -> MemorySpace;

    /// Returns true if tasks may contain unknown operators, control flow, and values other than numeric tensors.
    fn runs_opaque_work(&self) -> bool {
        self.memory() == MemorySpace::Host
    }

    /// Returns true if weights may stay in host memory and be copied whenever tasks need them (`weights = "streamed"`).
    fn streams_weights(&self) -> bool {
        self.memory() == MemorySpace::Device
    }

    /// Returns true if devices compute with threads of the host, whose number a description gives (`threads`).
    fn uses_threads(&self) -> bool {
        false
    }

    /// Checks the `arch` of a description. The error is a predicate: `must be a compute capability, as in "sm_90"`.
    fn check_arch(&self, arch: &str) -> Result<(), String> {
        let _ = arch;
        Ok(())
    }

    /// Returns true if code for the `arch` of a description runs on a device whose driver reports `device`.
    fn runs_on(&self, arch: &str, device: &str) -> bool {
        arch == device
    }

    /// Returns the rates of a device whose description has none.
    fn default_rates(&self, arch: Option<&str>, threads: Option<u32>) -> DefaultRates;

    /// Returns the form of the model for a class of operators.
    fn model_form(&self, class: Class) -> ModelForm {
        ModelForm::roofline(class)
    }

    /// Returns the machine that the model is fitted to, unless `divi-profile fit` is given other rates.
    fn reference(&self) -> Reference;

    /// Returns the model for tasks that no profile contains. Without measurements, [`crate::fit::prior_model`] creates one.
    fn model(&self) -> &'static Model;

    /// Returns the weight of prior coefficients in fits, relative to the mean error.
    fn prior_weight(&self) -> f64 {
        1e-4
    }

    /// Detects the devices of this kind on this machine. `has_accelerators` is true if there are devices of other kinds with
    /// their own memory, for which threads of the host enqueue work and copy.
    fn detect(&self, has_accelerators: bool) -> Detected {
        let _ = has_accelerators;
        Detected::default()
    }

    /// Returns the environment variable that selects and orders the devices of this machine.
    fn visibility_variable(&self) -> Option<&str> {
        None
    }

    /// Returns the field that identifies the device in a table of PyTorch's times. The times are in the fields `<name>_us`.
    fn device_field(&self) -> DeviceField<'_> {
        DeviceField::Product(self.name())
    }

    /// Returns the name of a device in profiles. `variant` is its number of threads (`4 threads`) or its `arch`.
    fn profile_name(&self, variant: &str, product: Option<&str>) -> String {
        product.unwrap_or(variant).to_owned()
    }

    /// Returns true if a profile of a device with this name is only valid for this kind.
    fn accepts_profile_of(&self, device: &str) -> bool {
        let _ = device;
        false
    }
}

/// Memory of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemorySpace {
    /// Host memory. The first such device of a system holds the model's inputs and outputs: see [`host`].
    Host,
    /// Device memory: tensors and weights are copied there.
    Device,
}

/// Machine that a model is fitted to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reference {
    /// Peak rates in single precision.
    pub rates: model::Rates,
    /// Properties that the model's terms depend on.
    pub machine: model::Machine,
}

/// Field of a table of PyTorch's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceField<'a> {
    /// Name of the product, a string.
    Product(&'a str),
    /// Number of threads, an integer.
    Threads(&'a str),
}

impl<'a> DeviceField<'a> {
    /// Returns the name of the field.
    pub fn name(self) -> &'a str {
        match self {
            Self::Product(name) | Self::Threads(name) => name,
        }
    }
}

/// Handle of a registered kind. Kinds are equal if their names are.
#[derive(Clone, Copy)]
pub struct Kind(&'static dyn DeviceKind);

impl Kind {
    /// Returns the name of the kind.
    pub fn name(self) -> &'static str {
        self.0.name()
    }
}

impl Deref for Kind {
    type Target = dyn DeviceKind;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Kind {}

impl Hash for Kind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kind").field(&self.name()).finish()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reasons why a kind cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Another kind has the same name.
    #[error("device kind '{name}' is already registered")]
    Duplicate {
        /// Name of the kind.
        name: String,
    },
    /// The name is not a lower-case identifier.
    #[error("device kind '{name}': expected a lower-case letter, followed by such letters, digits or '_'")]
    InvalidName {
        /// Name of the kind.
        name: String,
    },
}

const BUILT_IN: [Kind; 2] = [CPU, CUDA];

/// Kinds that were added, in the order of registration.
static REGISTERED: RwLock<Vec<Kind>> = RwLock::new(Vec::new());

/// Registers a kind for the rest of the process.
pub fn register(kind: Box<dyn DeviceKind>) -> Result<Kind, Error> {
    let name = kind.name();
    let is_valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(is_valid) {
        return Err(Error::InvalidName { name: name.to_owned() });
    }
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    if BUILT_IN.iter().chain(&*registered).any(|known| known.name() == name) {
        return Err(Error::Duplicate { name: name.to_owned() });
    }
    let kind = Kind(Box::leak(kind));
    registered.push(kind);
    Ok(kind)
}

/// Returns all kinds: `cpu`, `cuda`, then others in the order of registration.
pub fn all() -> Vec<Kind> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    BUILT_IN.iter().chain(&*registered).copied().collect()
}

/// Finds a kind by name.
pub fn find(name: &str) -> Option<Kind> {
    all().into_iter().find(|kind| kind.name() == name)
}

/// Returns the names of the kinds that have a property, for messages: `cpu, cuda`.
pub fn names(has: impl Fn(Kind) -> bool) -> String {
    let names: Vec<&str> = all().into_iter().filter(|kind| has(*kind)).map(Kind::name).collect();
    names.join(", ")
}

/// Returns the index of the host among devices of these kinds: the first device with host memory, or 0 if there is none. It
/// holds the model's inputs and outputs, and all weights that are not on a device yet.
pub fn host<'a>(kinds: impl IntoIterator<Item = &'a str>) -> usize {
    let is_host = |name: &str| find(name).is_some_and(|kind| kind.memory() == MemorySpace::Host);
    kinds.into_iter().position(is_host).unwrap_or(0)
}
