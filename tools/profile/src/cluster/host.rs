//! Description of a rank's host, and the division of a host among the ranks that it has.

use crate::measure::describe;
use divi_cost::{
    device::MemorySpace,
    system::{
        Device, System,
        units::{Bytes, BytesPerSecond, FlopsPerSecond},
    },
};
use serde::{Deserialize, Serialize};
use std::fs;

/// Largest ratio of the memories of equal hosts: what the kernel reserves differs a little.
const MEMORY_RATIO: f64 = 1.02;

/// Host of a rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Host {
    /// Name of the host.
    pub(super) name: String,
    /// Identifier of the running operating system.
    pub(super) id: String,
    /// Cores that the rank may use.
    pub(super) cores: Vec<usize>,
    /// Description of its devices, with absolute paths.
    devices: String,
}

/// Folder that paths in the descriptions of hosts are relative to.
const ROOT: &str = "/host.toml";

impl Host {
    /// Detects the devices of this rank's host, as the system `host` does.
    pub(super) fn of_this_rank() -> Result<Self, String> {
        let system = System::load("host").map_err(|error| error.to_string())?;
        Ok(Self {
            name: line("/proc/sys/kernel/hostname"),
            id: line("/proc/sys/kernel/random/boot_id"),
            cores: divi_threads::cores(),
            devices: describe::toml(&system, ROOT),
        })
    }

    /// Returns the devices and the links between them.
    fn system(&self) -> Result<System, String> {
        System::parse(ROOT, &self.devices).map_err(|errors| format!("{}: {errors}", self.name))
    }

    /// Returns true if two ranks may use the same core.
    pub(super) fn shares_cores(&self, other: &Self) -> bool {
        self.id == other.id && self.cores.iter().any(|core| other.cores.contains(core))
    }
}

/// Returns the devices of each rank: those of its host, divided among the ranks on it.
pub(super) fn systems(hosts: &[Host]) -> Result<Vec<System>, String> {
    let divided = |host: &Host| {
        let mut system = host.system()?;
        let count = |is_sharing: &dyn Fn(&Host) -> bool| hosts.iter().filter(|other| is_sharing(other)).count() as u32;
        let of_memory = count(&|other| other.id == host.id);
        let of_cores = count(&|other| other.shares_cores(host)).max(1);
        let is_on_host = |device: &&mut Device| device.kind.memory() == MemorySpace::Host;
        system.devices.iter_mut().filter(is_on_host).for_each(|device| divide(device, of_cores, of_memory));
        Ok(system)
    };
    hosts.iter().map(divided).collect()
}

/// Divides a device in host memory: its cores and its memory.
fn divide(device: &mut Device, of_cores: u32, of_memory: u32) {
    device.memory = Bytes(device.memory.0 / u64::from(of_memory.max(1)));
    let Some(threads) = device.threads else { return };
    let own = (threads / of_cores).max(1);
    let share = f64::from(own) / f64::from(threads.max(1));
    let rates = &mut device.rates;
    for rate in [&mut rates.f32, &mut rates.f64, &mut rates.f16, &mut rates.bf16, &mut rates.i8] {
        *rate = FlopsPerSecond(rate.0 * share);
    }
    rates.bandwidth = BytesPerSecond(rates.bandwidth.0 * share);
    device.threads = Some(own);
}

/// Returns true if two ranks have equal devices and links. Paths are not compared, because each is of one host.
pub(super) fn are_equal(a: &System, b: &System) -> bool {
    let is_close = |a: Bytes, b: Bytes| {
        let (low, high) = (a.0.min(b.0) as f64, a.0.max(b.0) as f64);
        high <= low * MEMORY_RATIO
    };
    let without = |device: &Device| Device { memory: Bytes(0), cost_model: None, profile: None, ..device.clone() };
    a.devices.len() == b.devices.len()
        && a.links == b.links
        && a.devices.iter().zip(&b.devices).all(|(a, b)| is_close(a.memory, b.memory) && without(a) == without(b))
}

/// Returns the first line of a file of the system; empty if it cannot be read.
fn line(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns a host with one CPU device.
    pub(in crate::cluster) fn host(id: &str, cores: &[usize], threads: u32, memory: u64) -> Host {
        let devices = format!(
            "[[device]]\nid = \"cpu0\"\nkind = \"cpu\"\nmemory = {memory}\nthreads = {threads}\nflops = \"{threads} TFLOP/s\"\n"
        );
        Host { name: format!("host-{id}"), id: id.to_owned(), cores: cores.to_vec(), devices }
    }

    #[test]
    fn ranks_on_one_host_divide_it() {
        let hosts =
            [host("a", &[0, 1, 2, 3], 4, 1 << 30), host("a", &[0, 1, 2, 3], 4, 1 << 30), host("b", &[0], 4, 1 << 30)];
        let systems = systems(&hosts).unwrap();
        let of = |rank: usize| {
            let device = &systems[rank].devices[0];
            (device.threads, device.memory.0 >> 20, device.rates.f32.0)
        };
        assert_eq!((of(0), of(1), of(2)), ((Some(2), 512, 2e12), (Some(2), 512, 2e12), (Some(4), 1024, 4e12)));
        // Ranks that the launcher has bound to different cores.
        let bound = systems_of(&[host("a", &[0], 1, 1 << 30), host("a", &[1], 1, 1 << 30)]);
        assert_eq!((bound[1].devices[0].threads, bound[1].devices[0].memory), (Some(1), Bytes(1 << 29)));
    }

    fn systems_of(hosts: &[Host]) -> Vec<System> {
        systems(hosts).unwrap()
    }

    #[test]
    fn hosts_with_about_the_same_memory_are_equal() {
        let systems = systems_of(&[host("a", &[0], 1, 1000), host("b", &[0], 1, 1010), host("c", &[0], 1, 1100)]);
        assert!(are_equal(&systems[0], &systems[1]) && !are_equal(&systems[0], &systems[2]));
    }
}
