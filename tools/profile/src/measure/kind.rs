//! Devices that are alike: what one takes, the others take.

use divi_cost::system::{DeviceKind, System};
use divi_runtime::cpu;

/// CPUs with as many threads.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kind {
    pub(super) threads: u32,
    /// Indices in the system.
    pub(super) devices: Vec<usize>,
    /// What a model may take in bytes: what all CPUs have, since one of them has the machine for itself.
    pub(super) memory: u64,
}

impl Kind {
    /// The kinds of a system, in the order in which it has them.
    pub(super) fn all(system: &System) -> Result<Vec<Self>, String> {
        let cores = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
        let cpus = || system.devices.iter().enumerate().filter(|(_, device)| device.kind == DeviceKind::Cpu);
        let memory = cpus().fold(0, |sum: u64, (_, device)| sum.saturating_add(device.memory.0)).min(1 << 60);
        let mut kinds: Vec<Self> = vec![];
        for (index, device) in cpus() {
            let threads = device.threads.unwrap_or(cores);
            if threads > cores {
                return Err(format!(
                    "device '{}' has {threads} threads, this machine {cores}: measure it on a machine that has as many",
                    device.id
                ));
            }
            match kinds.iter_mut().find(|kind| kind.threads == threads) {
                Some(kind) => kind.devices.push(index),
                None => kinds.push(Self { threads, devices: vec![index], memory }),
            }
        }
        match kinds.is_empty() {
            true => Err(format!("system '{}' has no CPU, and only CPUs can be measured yet", system.name)),
            false => Ok(kinds),
        }
    }

    /// What profiles call it. `divi-profile fit` knows CPUs by the first word.
    pub(super) fn name(&self) -> String {
        format!("CPU, {}: {}", self.threads_text(), cpu::name())
    }

    pub(super) fn threads_text(&self) -> String {
        if self.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", self.threads) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(threads: &[u32], kind: &str) -> Result<Vec<Kind>, String> {
        let device = |(index, threads): (usize, &u32)| {
            let rates = if kind == "cpu" { format!("threads = {threads}") } else { "arch = \"sm_90\"".to_owned() };
            format!("[[device]]\nid = \"d{index}\"\nkind = \"{kind}\"\nmemory = \"1 GiB\"\n{rates}\n")
        };
        let text: String = threads.iter().enumerate().map(device).collect();
        Kind::all(&System::parse("s.toml", &text).unwrap())
    }

    #[test]
    fn devices_with_as_many_threads_are_one_kind() {
        let kind = Kind { threads: 1, devices: vec![0, 1], memory: 2 << 30 };
        assert_eq!(kind.threads_text(), "1 thread");
        assert_eq!(kinds(&[1, 1], "cpu"), Ok(vec![kind]));
    }

    #[test]
    fn what_cannot_be_measured_is_said() {
        assert_eq!(kinds(&[1], "cuda").unwrap_err(), "system 's.toml' has no CPU, and only CPUs can be measured yet");
        let message = kinds(&[60000], "cpu").unwrap_err();
        assert!(message.starts_with("device 'd0' has 60000 threads, this machine "), "{message}");
    }
}
