//! Bindings of the CUDA driver, which is loaded dynamically if it exists. No queries create a context, which would keep a GPU
//! active.

use super::super::attributes::{Attributes, Gpu, Pcie, Peer};
use crate::{device::detect::text, system::units::Bytes};
use libloading::Library;
use std::{
    ffi::{CStr, c_char, c_int, c_uint},
    path::Path,
    sync::mpsc,
    time::Duration,
};

const LIBRARY: &str = "libcuda.so.1";

/// Timeout of queries. A machine with many idle GPUs takes seconds to respond.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of GPUs that is accepted from the driver.
const MAX_GPUS: c_int = 64;

/// Error of a driver that exists but cannot be used.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(in super::super) enum DriverError {
    #[error("the CUDA driver cannot be loaded: {0}")]
    Library(String),
    #[error("the CUDA driver has no '{name}': {reason}")]
    Function { name: &'static str, reason: String },
    #[error("'{function}' of the CUDA driver failed with error {result}")]
    Call { function: &'static str, result: c_int },
    #[error("the CUDA driver reports that {what} is {value}")]
    InvalidValue { what: &'static str, value: i64 },
    #[error("the CUDA driver did not respond within {} s", .timeout.as_secs())]
    Timeout { timeout: Duration },
    #[error("cannot query the CUDA driver: {0}")]
    Thread(String),
}

/// Returns the GPUs that the driver reports, after it applied `CUDA_VISIBLE_DEVICES`; none without a driver.
pub(in super::super) fn gpus() -> Result<Vec<Gpu>, DriverError> {
    with_timeout(TIMEOUT, || match Api::load(LIBRARY)? {
        Some(api) => api.gpus(),
        None => Ok(Vec::new()),
    })
}

/// Returns the newest version of CUDA that the driver supports, as "12.9"; `None` without a driver.
pub(in super::super) fn version() -> Result<Option<String>, DriverError> {
    with_timeout(TIMEOUT, || {
        let Some(api) = Api::load(LIBRARY)? else { return Ok(None) };
        let version = api.integer("cuDriverGetVersion", |value| {
            // SAFETY: the driver writes one integer, whether it is initialized or not.
            unsafe { (api.version)(value) }
        })?;
        Ok(Some(format!("{}.{}", version / 1000, version % 1000 / 10)))
    })
}

/// Runs a query on a separate thread, which is detached if it exceeds the timeout.
fn with_timeout<T: Send + 'static>(
    timeout: Duration,
    query: impl FnOnce() -> Result<T, DriverError> + Send + 'static,
) -> Result<T, DriverError> {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::Builder::new().name("cuda-detection".to_owned()).spawn(move || {
        // Sending fails if the timeout has expired.
        let _ = sender.send(query());
    });
    thread.map_err(|error| DriverError::Thread(error.to_string()))?;
    match receiver.recv_timeout(timeout) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => Err(DriverError::Timeout { timeout }),
        Err(mpsc::RecvTimeoutError::Disconnected) => Err(DriverError::Thread("its thread panicked".to_owned())),
    }
}

const SUCCESS: c_int = 0;
/// `CUDA_ERROR_NO_DEVICE`: treated like a missing driver.
const NO_DEVICE: c_int = 100;

/// Values of `CUdevice_attribute`, which are part of the driver's ABI.
mod attribute {
    use std::ffi::c_int;
    pub(super) const CLOCK_RATE: c_int = 13;
    pub(super) const MULTIPROCESSOR_COUNT: c_int = 16;
    pub(super) const PCI_BUS_ID: c_int = 33;
    pub(super) const PCI_DEVICE_ID: c_int = 34;
    pub(super) const MEMORY_CLOCK_RATE: c_int = 36;
    pub(super) const GLOBAL_MEMORY_BUS_WIDTH: c_int = 37;
    pub(super) const PCI_DOMAIN_ID: c_int = 50;
    pub(super) const COMPUTE_CAPABILITY_MAJOR: c_int = 75;
    pub(super) const COMPUTE_CAPABILITY_MINOR: c_int = 76;
    pub(super) const SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO: c_int = 87;
    /// Value of `CUdevice_P2PAttribute`: supported by NVLink, but not by PCI Express.
    pub(super) const P2P_NATIVE_ATOMIC_SUPPORTED: c_int = 3;
}

/// Functions of the driver. The library is never unloaded, because it may have started threads.
#[derive(Clone, Copy)]
struct Api {
    version: unsafe extern "C" fn(*mut c_int) -> c_int,
    init: unsafe extern "C" fn(c_uint) -> c_int,
    device_count: unsafe extern "C" fn(*mut c_int) -> c_int,
    device: unsafe extern "C" fn(*mut c_int, c_int) -> c_int,
    name: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int,
    total_memory: unsafe extern "C" fn(*mut usize, c_int) -> c_int,
    attribute: unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int,
    can_access_peer: unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int,
    peer_attribute: unsafe extern "C" fn(*mut c_int, c_int, c_int, c_int) -> c_int,
}

impl Api {
    /// Loads the driver. Returns `None` if it does not exist and an error if it cannot be loaded.
    fn load(name: &str) -> Result<Option<Self>, DriverError> {
        // SAFETY: loading runs the initializers of the driver, which may run in any process and on any thread.
        let library = match unsafe { Library::new(name) } {
            Ok(library) => library,
            Err(error) if is_absent(&reason(&error), name) => return Ok(None),
            Err(error) => return Err(DriverError::Library(reason(&error))),
        };
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the field has the function's type in the driver's interface, and the library is never unloaded (see
                // below).
                unsafe { function(&library, $name) }?
            };
        }
        let api = Self {
            init: function!("cuInit"),
            device_count: function!("cuDeviceGetCount"),
            device: function!("cuDeviceGet"),
            name: function!("cuDeviceGetName"),
            total_memory: function!("cuDeviceTotalMem_v2"),
            attribute: function!("cuDeviceGetAttribute"),
            can_access_peer: function!("cuDeviceCanAccessPeer"),
            peer_attribute: function!("cuDeviceGetP2PAttribute"),
            version: function!("cuDriverGetVersion"),
        };
        std::mem::forget(library);
        Ok(Some(api))
    }

    fn gpus(&self) -> Result<Vec<Gpu>, DriverError> {
        // SAFETY: the driver may be initialized repeatedly and on any thread; the flags must be zero.
        match unsafe { (self.init)(0) } {
            SUCCESS => {}
            NO_DEVICE => return Ok(Vec::new()),
            result => return Err(DriverError::Call { function: "cuInit", result }),
        }
        let count = self.integer("cuDeviceGetCount", |value| {
            // SAFETY: the driver is initialized and writes one integer.
            unsafe { (self.device_count)(value) }
        })?;
        if !(0..=MAX_GPUS).contains(&count) {
            return Err(DriverError::InvalidValue { what: "the number of GPUs", value: count.into() });
        }
        let devices = (0..count).map(|ordinal| {
            self.integer("cuDeviceGet", |value| {
                // SAFETY: the ordinal is less than the count, and the driver writes one handle.
                unsafe { (self.device)(value, ordinal) }
            })
        });
        let devices = devices.collect::<Result<Vec<_>, _>>()?;
        let gpu = |&device: &c_int| {
            let peers = devices.iter().map(|&other| self.peer(device, other)).collect();
            Ok(Gpu { attributes: self.attributes(device)?, peers })
        };
        devices.iter().map(gpu).collect()
    }

    fn attributes(&self, device: c_int) -> Result<Attributes, DriverError> {
        let attribute = |number| self.attribute(device, number);
        let mut memory = 0;
        // SAFETY: the handle comes from the driver, which writes one size.
        check("cuDeviceTotalMem_v2", unsafe { (self.total_memory)(&mut memory, device) })?;
        let (major, minor) =
            (attribute(attribute::COMPUTE_CAPABILITY_MAJOR), attribute(attribute::COMPUTE_CAPABILITY_MINOR));
        let capability = major.saturating_mul(10).saturating_add(minor);
        if !(10..1000).contains(&capability) {
            return Err(DriverError::InvalidValue {
                what: "a compute capability, times ten,",
                value: capability.into(),
            });
        }
        let memory = i64::try_from(memory).unwrap_or(i64::MAX);
        if memory == 0 {
            return Err(DriverError::InvalidValue { what: "a GPU's memory", value: 0 });
        }
        Ok(Attributes {
            name: self.name(device)?,
            memory: Bytes(memory.unsigned_abs()),
            capability,
            multiprocessors: attribute(attribute::MULTIPROCESSOR_COUNT),
            clock_khz: attribute(attribute::CLOCK_RATE),
            memory_clock_khz: attribute(attribute::MEMORY_CLOCK_RATE),
            memory_bus_bits: attribute(attribute::GLOBAL_MEMORY_BUS_WIDTH),
            f64_ratio: attribute(attribute::SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO),
            pcie: pcie(
                attribute(attribute::PCI_DOMAIN_ID),
                attribute(attribute::PCI_BUS_ID),
                attribute(attribute::PCI_DEVICE_ID),
            ),
        })
    }

    /// Returns an attribute, or zero if the driver does not support it.
    fn attribute(&self, device: c_int, number: c_int) -> u32 {
        let value = self.integer("cuDeviceGetAttribute", |value| {
            // SAFETY: the handle comes from the driver, which writes one integer or fails.
            unsafe { (self.attribute)(value, number, device) }
        });
        value.ok().and_then(|value| u32::try_from(value).ok()).unwrap_or(0)
    }

    fn name(&self, device: c_int) -> Result<String, DriverError> {
        let mut name = [0u8; 256];
        // The last byte stays zero, whether or not the driver terminates the name.
        let length = name.len() as c_int - 1;
        // SAFETY: the handle comes from the driver, which writes at most `length` bytes.
        check("cuDeviceGetName", unsafe { (self.name)(name.as_mut_ptr().cast(), length, device) })?;
        let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        Ok(name.to_string_lossy().into_owned())
    }

    fn peer(&self, device: c_int, other: c_int) -> Peer {
        if device == other {
            return Peer::None;
        }
        let can_access = self.integer("cuDeviceCanAccessPeer", |value| {
            // SAFETY: both handles come from the driver, which writes one integer or fails.
            unsafe { (self.can_access_peer)(value, device, other) }
        });
        let has_atomics = self.integer("cuDeviceGetP2PAttribute", |value| {
            // SAFETY: as above.
            unsafe { (self.peer_attribute)(value, attribute::P2P_NATIVE_ATOMIC_SUPPORTED, device, other) }
        });
        match (can_access, has_atomics) {
            (Ok(1..), Ok(1..)) => Peer::NvLink,
            (Ok(1..), _) => Peer::Pcie,
            _ => Peer::None,
        }
    }

    fn integer(&self, function: &'static str, call: impl FnOnce(*mut c_int) -> c_int) -> Result<c_int, DriverError> {
        let mut value = 0;
        check(function, call(&mut value))?;
        Ok(value)
    }
}

/// Returns a function of the library.
///
/// # Safety
/// `F` must be the function's type, and the function must not be called after the library was unloaded.
unsafe fn function<F: Copy>(library: &Library, name: &'static str) -> Result<F, DriverError> {
    // SAFETY: guaranteed by the caller.
    let symbol = unsafe { library.get::<F>(name) };
    symbol.map(|symbol| *symbol).map_err(|error| DriverError::Function { name, reason: reason(&error) })
}

/// Returns the message of the dynamic loader.
fn reason(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

fn check(function: &'static str, result: c_int) -> Result<(), DriverError> {
    if result == SUCCESS { Ok(()) } else { Err(DriverError::Call { function, result }) }
}

/// Returns true if the loader's message means that the library does not exist, rather than that it is invalid.
fn is_absent(message: &str, name: &str) -> bool {
    message.contains(&format!("{name}: cannot open shared object file: No such file"))
}

/// Returns the slower of the links of a card and of its slot, as the kernel reports them. Uses maximum rates, because idle
/// links run at reduced rates.
fn pcie(domain: u32, bus: u32, device: u32) -> Option<Pcie> {
    let card =
        Path::new("/sys/bus/pci/devices").join(format!("{domain:04x}:{bus:02x}:{device:02x}.0")).canonicalize().ok()?;
    let link = |folder: &Path| {
        let read = |file| text(folder.join(file));
        Pcie::parse(&read("max_link_speed")?, &read("max_link_width")?)
    };
    let own = link(&card)?;
    Some(card.parent().and_then(link).map_or(own, |slot| own.slower(slot)))
}

#[cfg(test)]
mod tests;
