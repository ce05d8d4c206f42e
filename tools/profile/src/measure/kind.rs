//! Groups of equal devices, which are measured once.

use divi_cost::{
    device::{self, MemorySpace},
    system::{Device, System},
};
use divi_runtime::hal::DeviceInfo;

/// A group of equal devices.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kind {
    pub(crate) processor: Processor,
    /// Product name.
    pub(crate) product: String,
    /// Indices in the system.
    pub(crate) devices: Vec<usize>,
    /// Bytes available to a model. Devices in host memory share their total, since one runs at a time.
    pub(crate) memory: u64,
    /// True if it uses host memory, and other devices of the system have their own memory.
    pub(crate) is_beside_accelerators: bool,
}

/// Properties that devices must share to be measured together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Processor {
    pub(crate) kind: device::Kind,
    pub(crate) variant: Variant,
}

/// Property that distinguishes devices of one kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Variant {
    /// Number of threads, for kinds that compute with threads of the host.
    Threads(u32),
    /// Architecture, for other kinds.
    Arch(String),
}

/// The groups of a system in their order, and the devices that cannot be measured here, with reasons.
#[derive(Debug, PartialEq)]
pub(crate) struct Kinds {
    pub(crate) kinds: Vec<Kind>,
    pub(crate) left_out: Vec<String>,
}

impl Kinds {
    /// Groups the devices of a system; `found` returns this machine's devices of a kind, or the reason why there are none.
    pub(crate) fn of(
        system: &System,
        found: impl Fn(device::Kind) -> Result<Vec<DeviceInfo>, String>,
    ) -> Result<Self, String> {
        let is_on_host = |device: &Device| device.kind.memory() == MemorySpace::Host;
        let on_host = system.devices.iter().filter(|device| is_on_host(device));
        let host_memory = on_host.fold(0, |sum: u64, device| sum.saturating_add(device.memory.0)).min(1 << 60);
        let has_accelerators = !system.devices.iter().all(is_on_host);
        let mut kinds = Self { kinds: vec![], left_out: vec![] };
        for (index, device) in system.devices.iter().enumerate() {
            let memory = if is_on_host(device) { host_memory } else { device.memory.0 };
            let threads = if device.kind.uses_threads() { Some(threads_of(device)?) } else { None };
            let (variant, product) = match first_device(device, threads, &found) {
                Ok(first) => first,
                Err(reason) => {
                    kinds.left_out.push(format!("{} is not measured: {reason}", device.id));
                    continue;
                }
            };
            let processor = Processor { kind: device.kind, variant };
            match kinds.kinds.iter_mut().find(|kind| kind.processor == processor) {
                Some(kind) => {
                    kind.devices.push(index);
                    kind.memory = kind.memory.min(memory);
                }
                None => {
                    let is_beside_accelerators = is_on_host(device) && has_accelerators;
                    kinds.kinds.push(Kind { processor, product, devices: vec![index], memory, is_beside_accelerators });
                }
            }
        }
        match kinds.kinds.is_empty() {
            true => {
                let reasons = kinds.left_out.join("; ");
                Err(format!("system '{}' has no device that can be measured on this machine: {reasons}", system.name))
            }
            false => Ok(kinds),
        }
    }
}

fn threads_of(device: &Device) -> Result<u32, String> {
    let cores = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    let threads = device.threads.unwrap_or(cores);
    if threads > cores {
        return Err(format!(
            "device '{}' has {threads} threads, but this machine has {cores} cores; measure it on a larger machine",
            device.id
        ));
    }
    Ok(threads)
}

/// Returns the variant and product of the device that runs a bundle with one device of a kind: the machine's first. Without
/// threads, its architecture must match the description.
fn first_device(
    device: &Device,
    threads: Option<u32>,
    found: impl Fn(device::Kind) -> Result<Vec<DeviceInfo>, String>,
) -> Result<(Variant, String), String> {
    let kind = device.kind;
    let first = found(kind)?.into_iter().next().ok_or_else(|| format!("this machine has no {kind} device"))?;
    if let Some(threads) = threads {
        return Ok((Variant::Threads(threads), first.name));
    }
    let arch = device.arch.clone().unwrap_or_default();
    if kind.runs_on(&arch, &first.arch) {
        return Ok((Variant::Arch(arch), first.name));
    }
    let select = |variable: &str| format!("; select another one with {variable}");
    Err(format!(
        "it is {arch}, but this machine's first {kind} device ({}) is {}{}",
        first.name,
        first.arch,
        kind.visibility_variable().map_or_else(String::new, select)
    ))
}

impl Kind {
    /// Returns the device name in profiles.
    pub(crate) fn name(&self) -> String {
        self.processor.kind.profile_name(&self.text(), Some(&self.product))
    }

    /// Returns the variant: `4 threads`, or `sm_90`.
    pub(crate) fn text(&self) -> String {
        match &self.processor.variant {
            Variant::Threads(1) => "1 thread".to_owned(),
            Variant::Threads(threads) => format!("{threads} threads"),
            Variant::Arch(arch) => arch.clone(),
        }
    }
}

impl Processor {
    /// Returns true if tensors and weights are in host memory.
    pub(crate) fn is_on_host(&self) -> bool {
        self.kind.memory() == MemorySpace::Host
    }

    /// Returns the ratio of a whole run to the sum of its tasks. Threads of the host wait for each other, longer on average than at
    /// best; accelerators measure tasks so that they add up.
    pub(crate) fn scale(&self, tasks: f64, run: f64) -> f64 {
        match self.variant {
            Variant::Threads(_) if tasks > 0.0 => (run / tasks).max(1.0),
            _ => 1.0,
        }
    }

    /// Returns a system description of one such device.
    pub(crate) fn described(&self, memory: u64) -> String {
        let kind = self.kind;
        let rest = match &self.variant {
            Variant::Threads(threads) => format!("threads = {threads}"),
            Variant::Arch(arch) => format!("arch = \"{arch}\""),
        };
        format!("[[device]]\nid = \"{kind}0\"\nkind = \"{kind}\"\nmemory = {memory}\n{rest}\n")
    }

    /// Returns the declaration of one such device in a plan.
    pub(crate) fn declared(&self, name: &str) -> String {
        let rest = match &self.variant {
            Variant::Threads(threads) => format!("threads = {threads} : i64"),
            Variant::Arch(arch) => format!("arch = \"{arch}\""),
        };
        format!("divi.device @{name} {{kind = \"{}\", {rest}, memory = {} : i64}}", self.kind, 1_u64 << 40)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use divi_cost::device::CPU;

    fn system(devices: &[(&str, &str)]) -> System {
        let device = |(index, (kind, rest)): (usize, &(&str, &str))| {
            format!("[[device]]\nid = \"d{index}\"\nkind = \"{kind}\"\nmemory = \"1 GiB\"\n{rest}\n")
        };
        let text: String = devices.iter().enumerate().map(device).collect();
        System::parse("s.toml", &text).unwrap()
    }

    fn cpu(kind: device::Kind) -> Option<Result<Vec<DeviceInfo>, String>> {
        (kind == CPU).then(|| Ok(vec![DeviceInfo { name: "Xeon".into(), arch: "x86_64".into() }]))
    }

    /// A machine with a CPU and a GPU.
    fn h200(kind: device::Kind) -> Result<Vec<DeviceInfo>, String> {
        cpu(kind).unwrap_or_else(|| Ok(vec![DeviceInfo { name: "NVIDIA H200".into(), arch: "sm_90".into() }]))
    }

    /// A machine with a CPU only.
    fn none(kind: device::Kind) -> Result<Vec<DeviceInfo>, String> {
        cpu(kind).unwrap_or_else(|| Err("this machine has no CUDA driver".to_owned()))
    }

    #[test]
    fn equal_devices_are_one_kind() {
        let cpu = ("cpu", "threads = 1");
        let found = Kinds::of(&system(&[cpu, ("cuda", "arch = \"sm_90a\""), cpu]), h200).unwrap();
        let [cpus, gpus] = &found.kinds[..] else { panic!("{found:?}") };
        assert_eq!((&cpus.devices[..], cpus.memory, cpus.text()), (&[0, 2][..], 2 << 30, "1 thread".to_owned()));
        assert_eq!((&gpus.devices[..], gpus.memory, gpus.text()), (&[1][..], 1 << 30, "sm_90a".to_owned()));
        assert_eq!((&cpus.name()[..], &gpus.name()[..]), ("CPU, 1 thread: Xeon", "NVIDIA H200"));
        assert!(found.left_out.is_empty() && cpus.is_beside_accelerators && !gpus.is_beside_accelerators);
        for kind in &found.kinds {
            let again = System::parse("again.toml", &kind.processor.described(kind.memory)).unwrap();
            assert_eq!(Kinds::of(&again, h200).unwrap().kinds[0].processor, kind.processor);
        }
    }

    #[test]
    fn unmeasurable_devices_are_reported() {
        let a100 = ("cuda", "arch = \"sm_80\"");
        let found = Kinds::of(&system(&[("cpu", "threads = 1"), a100]), none).unwrap();
        assert_eq!(found.left_out, ["d1 is not measured: this machine has no CUDA driver"]);
        assert_eq!(
            Kinds::of(&system(&[a100]), h200).unwrap_err(),
            "system 's.toml' has no device that can be measured on this machine: d0 is not measured: it is sm_80, but this \
             machine's first cuda device (NVIDIA H200) is sm_90; select another one with CUDA_VISIBLE_DEVICES"
        );
        let message = Kinds::of(&system(&[("cpu", "threads = 60000")]), none).unwrap_err();
        assert!(message.starts_with("device 'd0' has 60000 threads, but this machine has "), "{message}");
    }
}
