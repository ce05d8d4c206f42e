//! Device kinds: all that the compiler knows of `cpu`, `cuda` and the kinds that a program adds.
//!
//! A kind implements [`DeviceKind`]. The registry is one for the process, as LLVM's registry of targets is: `cpu` and `cuda` are
//! always there, [`register`] adds others. Other code asks a kind for a capability and never compares its name.

mod cpu;
mod cuda;
mod detect;
mod form;
mod rates;

use crate::{Class, Model, model};
pub use cpu::CPU;
pub use cuda::{CUDA, driver_version};
pub use detect::{Detected, DetectedDevice, DetectedLink};
pub use form::Form;
pub use rates::{DefaultRates, Gains, Rates};
use std::{
    fmt,
    hash::{Hash, Hasher},
    ops::Deref,
    sync::{PoisonError, RwLock},
};

/// A kind of device, as the compiler sees it.
pub trait DeviceKind: Send + Sync {
    /// Name in machine descriptions, in IR and in bundles.
    fn name(&self) -> &str;

    /// Memory that holds operands and results of tasks.
    fn memory(&self) -> MemorySpace;

    /// True if tasks may have operators that divi does not know, control flow, and values other than tensors of numbers.
    fn runs_opaque_work(&self) -> bool {
        self.memory() == MemorySpace::Host
    }

    /// True if weights may stay in the host's memory and come whenever tasks need them (`weights = "streamed"`).
    fn streams_weights(&self) -> bool {
        self.memory() == MemorySpace::Device
    }

    /// True if devices compute with threads of the host, which a description counts (`threads`).
    fn uses_threads(&self) -> bool {
        false
    }

    /// Checks the `arch` of a description. The error follows "it": `must be a compute capability, as in "sm_90"`.
    fn check_arch(&self, arch: &str) -> Result<(), String> {
        let _ = arch;
        Ok(())
    }

    /// True if code for the `arch` of a description runs on a device whose driver says that it is a `device`.
    fn runs_on(&self, arch: &str, device: &str) -> bool {
        arch == device
    }

    /// Rates of a device whose description gives none.
    fn default_rates(&self, arch: Option<&str>, threads: Option<u32>) -> DefaultRates;

    /// Form of the estimate for a class of operators.
    fn form(&self, class: Class) -> Form {
        Form::roofline(class)
    }

    /// Machine that the model is fitted to: a profile's, unless `divi-profile fit` is given other rates.
    fn reference(&self) -> Reference;

    /// Model that gives times which no profile has. Without measurements, [`crate::fit::assumed`] makes one.
    fn model(&self) -> &'static Model;

    /// Finds the devices of this kind that this machine has. `has_accelerators` is true if others have memory of their own: the
    /// host's threads enqueue their work and copy for them.
    fn detect(&self, has_accelerators: bool) -> Detected {
        let _ = has_accelerators;
        Detected::default()
    }

    /// Environment variable that selects and orders the devices of this machine.
    fn visibility_variable(&self) -> Option<&str> {
        None
    }

    /// Field of a table of PyTorch's times that describes the device. The times are in the fields `<name>_us`.
    fn table_field(&self) -> TableField<'_> {
        TableField::Product(self.name())
    }

    /// Name of a device in profiles. `variant` is its number of threads (`4 threads`) or its `arch`.
    fn profile_name(&self, variant: &str, product: Option<&str>) -> String {
        product.unwrap_or(variant).to_owned()
    }

    /// True if a profile of a device with this name must be of this kind.
    fn owns_profile(&self, device: &str) -> bool {
        let _ = device;
        false
    }
}

/// Memory of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemorySpace {
    /// The host's. The first such device of a system has the model's inputs and outputs: see [`host`].
    Host,
    /// Its own: tensors and weights are copied there.
    Device,
}

/// The machine that a model is fitted to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reference {
    /// Peak rates in single precision.
    pub rates: model::Rates,
    pub machine: model::Machine,
}

/// Field of a table of PyTorch's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableField<'a> {
    /// Name of the product, a string.
    Product(&'a str),
    /// Number of threads, an integer.
    Threads(&'a str),
}

impl<'a> TableField<'a> {
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
    #[error("device kind '{name}' is already registered")]
    Duplicate { name: String },
    /// Names are words of letters, digits and `_`, as fields and attributes are.
    #[error("device kind '{name}': expected a lower-case letter, followed by such letters, digits or '_'")]
    InvalidName { name: String },
}

const BUILT_IN: [Kind; 2] = [CPU, CUDA];

/// Kinds that were added, in that order.
static REGISTERED: RwLock<Vec<Kind>> = RwLock::new(Vec::new());

/// Adds a kind for the rest of the process.
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

/// All kinds: `cpu`, `cuda`, then others in the order of their registration.
pub fn all() -> Vec<Kind> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    BUILT_IN.iter().chain(&*registered).copied().collect()
}

pub fn find(name: &str) -> Option<Kind> {
    all().into_iter().find(|kind| kind.name() == name)
}

/// Names of the kinds that have a property, for messages: `cpu, cuda`.
pub fn names(has: impl Fn(Kind) -> bool) -> String {
    let names: Vec<&str> = all().into_iter().filter(|kind| has(*kind)).map(Kind::name).collect();
    names.join(", ")
}

/// Index of the host among devices of these kinds: the first device whose memory is the host's, or the first of all if there is
/// none. It has the model's inputs, its outputs, and all weights that are not on a device yet.
pub fn host<'a>(kinds: impl IntoIterator<Item = &'a str>) -> usize {
    let is_host = |name: &str| find(name).is_some_and(|kind| kind.memory() == MemorySpace::Host);
    kinds.into_iter().position(is_host).unwrap_or(0)
}
