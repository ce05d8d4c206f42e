//! Threads of devices and links, and their cores.

use crate::{
    bundle::{Bundle, Lanes},
    hal::{Execution, Properties, Threads},
    options::Options,
    span::Spans,
};
use divi_threads::{Executor, core_count, cores};
use std::time::Duration;

/// Spin timeout if there is a core for each thread: longer than the time between two kernels, too short to matter else.
const SPIN_TIMEOUT: Duration = Duration::from_micros(100);
/// Spin timeout of threads that compute beside devices with queues: between two of their steps, those devices compute.
const SPIN_TIMEOUT_BESIDE_QUEUES: Duration = Duration::from_millis(1);

/// The threads of all devices and links.
pub(crate) struct Workers {
    names: Vec<String>,
    pub(crate) of_devices: Vec<Threads>,
    /// Executors of links' own follow those of the devices.
    links: Vec<(usize, usize)>,
    has_link_threads: bool,
    /// Spin timeout of idle devices, which leave their cores to those that send them something.
    idle_spin_timeout: Duration,
    /// By device: whether it computes on the host beside devices with queues.
    are_beside_queues: Vec<bool>,
}

/// Executors, by device, and behind them by link.
pub(crate) struct Places {
    pub(crate) executors: Vec<Executor<Spans>>,
    /// By lane: its executor, and which of the executor's lanes it is.
    pub(crate) lanes: Vec<(usize, usize)>,
    /// The executor where requests end that have outputs in other memory than the host's, if there are such outputs.
    pub(crate) completions: Option<usize>,
}

impl Workers {
    pub(crate) fn new(bundle: &Bundle, lanes: &Lanes, properties: &[Properties], options: &Options) -> Self {
        let available = core_count();
        let is_queued = |device: usize| properties[device].execution == Execution::Queued;
        let devices = 0..bundle.devices.len();
        let queues = devices.clone().filter(|&device| is_queued(device)).count();
        let is_idle = |device: usize| bundle.stages.iter().all(|stage| stage.device != device);
        let count = |device: usize| match options.threads.unwrap_or(bundle.devices[device].threads as usize) {
            // A device with a queue takes one that enqueues, and where there is nothing to compute, one moves values.
            _ if is_queued(device) || is_idle(device) => 1,
            0 => available.saturating_sub(queues).max(1),
            threads => threads.min(available.max(1) * 16),
        };
        let counts: Vec<usize> = devices.clone().map(count).collect();
        let total: usize = counts.iter().sum();
        let has_link_threads = options.link_threads.unwrap_or(total + lanes.links.len() <= available);
        let own_links = if has_link_threads { lanes.links.len() } else { 0 };
        let mut free = cores().into_iter();
        // One device's threads find their cores by themselves, together with the caller's.
        let is_pinned = bundle.devices.len() > 1 && total <= available.min(free.len());
        let timeout = |is_enough: bool| if options.spin.unwrap_or(is_enough) { SPIN_TIMEOUT } else { Duration::ZERO };
        // Names of threads cannot have NULs.
        let names: Vec<String> = (0..bundle.devices.len() + lanes.links.len())
            .map(|lane| bundle.lane_name(lanes, lane).replace('\0', "?"))
            .collect();
        let are_beside_queues: Vec<bool> = devices.clone().map(|device| queues > 0 && !is_queued(device)).collect();
        let threads = |device: usize| Threads {
            name: names[device].clone(),
            count: counts[device],
            cores: if is_pinned { free.by_ref().take(counts[device]).collect() } else { vec![] },
            spin_timeout: longer(timeout(total <= available), are_beside_queues[device]),
        };
        let of_devices = devices.map(threads).collect();
        let idle_spin_timeout = timeout(total + own_links < available);
        let links = lanes.links.clone();
        Self { names, of_devices, links, has_link_threads, idle_spin_timeout, are_beside_queues }
    }

    /// Makes executors for at most `most_ready` steps that are ready at once.
    pub(crate) fn places(&self, most_ready: usize, has_device_outputs: bool) -> Places {
        let devices = self.of_devices.len();
        let mut lanes: Vec<(usize, usize)> = (0..devices).map(|device| (device, 0)).collect();
        let mut counts = vec![1; devices];
        for &(_, to) in &self.links {
            if self.has_link_threads {
                lanes.push((counts.len(), 0));
                counts.push(1);
            } else {
                lanes.push((to, counts[to]));
                counts[to] += 1;
            }
        }
        let completions = has_device_outputs.then_some(counts.len());
        counts.extend(completions.map(|_| 1));
        let make = |(index, &count): (usize, &usize)| {
            let is_beside_queues = self.are_beside_queues.get(index).copied().unwrap_or(false);
            Executor::new(count, most_ready, longer(self.idle_spin_timeout, is_beside_queues))
        };
        Places { executors: counts.iter().enumerate().map(make).collect(), lanes, completions }
    }

    pub(crate) fn name(&self, executor: usize) -> String {
        let links = if self.has_link_threads { self.links.len() } else { 0 };
        if executor < self.of_devices.len() + links { self.names[executor].clone() } else { "outputs".to_owned() }
    }

    pub(crate) fn core(&self, executor: usize) -> Option<usize> {
        self.of_devices.get(executor)?.cores.first().copied()
    }
}

/// The spin timeout of a device that may compute beside devices with queues.
fn longer(timeout: Duration, is_beside_queues: bool) -> Duration {
    if is_beside_queues && !timeout.is_zero() { SPIN_TIMEOUT_BESIDE_QUEUES } else { timeout }
}
