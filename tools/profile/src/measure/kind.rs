//! Devices that are alike: what one takes, the others take.

use divi_cost::system::{Device, DeviceKind, System};
use divi_runtime::{cpu, hal::DeviceInfo};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kind {
    pub(super) processor: Processor,
    /// Indices in the system.
    pub(super) devices: Vec<usize>,
    /// What a model may take in bytes. Of CPUs, what all of them have, since one of them has the machine for itself.
    pub(super) memory: u64,
    /// Whether it is of CPUs in a system that has GPUs, too.
    pub(super) is_beside_gpus: bool,
}

/// What devices have to have in common.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Processor {
    Cpu { threads: u32 },
    Gpu { arch: String, name: String },
}

/// The kinds of a system, in the order in which it has them, and what cannot be measured here, with the reason.
#[derive(Debug, PartialEq)]
pub(super) struct Kinds {
    pub(super) kinds: Vec<Kind>,
    pub(super) left_out: Vec<String>,
}

impl Kinds {
    /// For a machine that has these GPUs, or why it has none.
    pub(super) fn of(system: &System, gpus: &Result<Vec<DeviceInfo>, String>) -> Result<Self, String> {
        let cpus = system.devices.iter().filter(|device| device.kind == DeviceKind::Cpu);
        let cpu_memory = cpus.fold(0, |sum: u64, device| sum.saturating_add(device.memory.0)).min(1 << 60);
        let mut found = Self { kinds: vec![], left_out: vec![] };
        for (index, device) in system.devices.iter().enumerate() {
            let (processor, memory) = match device.kind {
                DeviceKind::Cpu => (cpu_of(device)?, cpu_memory),
                DeviceKind::Cuda => match gpu_of(device, gpus) {
                    Ok(processor) => (processor, device.memory.0),
                    Err(reason) => {
                        found.left_out.push(format!("{} is left as described: {reason}", device.id));
                        continue;
                    }
                },
            };
            match found.kinds.iter_mut().find(|kind| kind.processor == processor) {
                Some(kind) => {
                    kind.devices.push(index);
                    kind.memory = kind.memory.min(memory);
                }
                None => {
                    let is_beside_gpus = device.kind == DeviceKind::Cpu
                        && system.devices.iter().any(|device| device.kind == DeviceKind::Cuda);
                    found.kinds.push(Kind { processor, devices: vec![index], memory, is_beside_gpus });
                }
            }
        }
        match found.kinds.is_empty() {
            true => {
                let reasons = found.left_out.join("; ");
                Err(format!("system '{}' has nothing that can be measured here: {reasons}", system.name))
            }
            false => Ok(found),
        }
    }
}

fn cpu_of(device: &Device) -> Result<Processor, String> {
    let cores = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    let threads = device.threads.unwrap_or(cores);
    if threads > cores {
        return Err(format!(
            "device '{}' has {threads} threads, this machine {cores}: measure it on a machine that has as many",
            device.id
        ));
    }
    Ok(Processor::Cpu { threads })
}

/// A bundle with one GPU has the machine's first.
fn gpu_of(device: &Device, gpus: &Result<Vec<DeviceInfo>, String>) -> Result<Processor, String> {
    let gpus = gpus.as_ref().map_err(Clone::clone)?;
    let first = gpus.first().ok_or("this machine has no GPU")?;
    let arch = device.arch.clone().unwrap_or_default();
    match arch.trim_end_matches(|letter: char| letter.is_ascii_lowercase()) == first.arch {
        true => Ok(Processor::Gpu { arch, name: first.name.clone() }),
        false => Err(format!(
            "it is {arch}, but this machine's first GPU ({}) is {}; CUDA_VISIBLE_DEVICES can make another one the first",
            first.name, first.arch
        )),
    }
}

impl Kind {
    /// What profiles call it. `divi-profile fit` knows CPUs by the first word.
    pub(super) fn name(&self) -> String {
        match &self.processor {
            Processor::Cpu { .. } => format!("CPU, {}: {}", self.text(), cpu::name()),
            Processor::Gpu { name, .. } => name.clone(),
        }
    }

    /// What tells it from others: `4 threads`, or `sm_90`.
    pub(super) fn text(&self) -> String {
        match &self.processor {
            Processor::Cpu { threads: 1 } => "1 thread".to_owned(),
            Processor::Cpu { threads } => format!("{threads} threads"),
            Processor::Gpu { arch, .. } => arch.clone(),
        }
    }
}

impl Processor {
    /// How many times longer tasks take than they were measured to, one by one, where all of a run takes so long. Threads of a CPU
    /// wait for each other, which is longer in the mean than at best; GPUs measure tasks so that they add up.
    pub(super) fn scale(&self, tasks: f64, run: f64) -> f64 {
        match self {
            Self::Cpu { .. } if tasks > 0.0 => (run / tasks).max(1.0),
            _ => 1.0,
        }
    }

    /// One device of its own in a system description.
    pub(super) fn described(&self, memory: u64) -> String {
        let (kind, rest) = match self {
            Self::Cpu { threads } => ("cpu", format!("threads = {threads}")),
            Self::Gpu { arch, .. } => ("cuda", format!("arch = \"{arch}\"")),
        };
        format!("[[device]]\nid = \"{kind}0\"\nkind = \"{kind}\"\nmemory = {memory}\n{rest}\n")
    }

    /// One device of its own in a plan.
    pub(super) fn declared(&self, name: &str) -> String {
        let rest = match self {
            Self::Cpu { threads } => format!("kind = \"cpu\", threads = {threads} : i64"),
            Self::Gpu { arch, .. } => format!("kind = \"cuda\", arch = \"{arch}\""),
        };
        format!("divi.device @{name} {{{rest}, memory = {} : i64}}", 1_u64 << 40)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(devices: &[(&str, &str)]) -> System {
        let device = |(index, (kind, rest)): (usize, &(&str, &str))| {
            format!("[[device]]\nid = \"d{index}\"\nkind = \"{kind}\"\nmemory = \"1 GiB\"\n{rest}\n")
        };
        let text: String = devices.iter().enumerate().map(device).collect();
        System::parse("s.toml", &text).unwrap()
    }

    fn h200() -> Result<Vec<DeviceInfo>, String> {
        Ok(vec![DeviceInfo { name: "NVIDIA H200".into(), arch: "sm_90".into() }])
    }

    #[test]
    fn devices_that_are_alike_are_one_kind() {
        let cpu = ("cpu", "threads = 1");
        let found = Kinds::of(&system(&[cpu, ("cuda", "arch = \"sm_90a\""), cpu]), &h200()).unwrap();
        let [cpus, gpus] = &found.kinds[..] else { panic!("{found:?}") };
        assert_eq!((&cpus.devices[..], cpus.memory, cpus.text()), (&[0, 2][..], 2 << 30, "1 thread".to_owned()));
        assert_eq!((&gpus.devices[..], gpus.memory, gpus.text()), (&[1][..], 1 << 30, "sm_90a".to_owned()));
        assert_eq!(gpus.name(), "NVIDIA H200");
        assert!(found.left_out.is_empty() && cpus.is_beside_gpus && !gpus.is_beside_gpus);
        for kind in &found.kinds {
            let again = System::parse("again.toml", &kind.processor.described(kind.memory)).unwrap();
            assert_eq!(Kinds::of(&again, &h200()).unwrap().kinds[0].processor, kind.processor);
        }
    }

    #[test]
    fn what_cannot_be_measured_is_said() {
        let (a100, none) = (("cuda", "arch = \"sm_80\""), Err("this machine has no CUDA driver".to_owned()));
        let found = Kinds::of(&system(&[("cpu", "threads = 1"), a100]), &none).unwrap();
        assert_eq!(found.left_out, ["d1 is left as described: this machine has no CUDA driver"]);
        assert_eq!(
            Kinds::of(&system(&[a100]), &h200()).unwrap_err(),
            "system 's.toml' has nothing that can be measured here: d0 is left as described: it is sm_80, but this \
             machine's first GPU (NVIDIA H200) is sm_90; CUDA_VISIBLE_DEVICES can make another one the first"
        );
        let message = Kinds::of(&system(&[("cpu", "threads = 60000")]), &none).unwrap_err();
        assert!(message.starts_with("device 'd0' has 60000 threads, this machine "), "{message}");
    }
}
