//! Threads of devices and links, and their cores.

use crate::{
    agreement::CoreShare,
    bundle::{Bundle, Lanes},
    hal::{Execution, Properties, Threads},
    options::Options,
    span::Spans,
};
use divi_threads::Executor;
use std::time::Duration;

/// Spin timeout if there is a core for each thread: longer than the gap between two kernels, and short enough not to matter
/// otherwise.
pub const SPIN_TIMEOUT: Duration = Duration::from_micros(100);
/// Spin timeout of CPU devices in a program that also uses devices with queues: the gaps between their steps are longer.
const SPIN_TIMEOUT_BESIDE_QUEUES: Duration = Duration::from_millis(1);

/// Number of threads that copy as fast as memory allows.
const COPY_THREADS: usize = 4;

/// Threads of all devices and links.
pub(crate) struct Workers {
    names: Vec<String>,
    pub(crate) of_devices: Vec<Threads>,
    /// Links, whose executors (if they have their own) follow those of the devices.
    links: Vec<(usize, usize)>,
    has_link_threads: bool,
    /// Spin timeout of idle executors, zero if the cores are needed by other threads.
    idle_spin_timeout: Duration,
    /// By device: true if it computes on the host and other devices of the program have queues.
    has_queued_peers: Vec<bool>,
}

/// Executors of the devices, then of the links, then for completions.
pub(crate) struct Executors {
    pub(crate) executors: Vec<Executor<Spans>>,
    /// By lane: the index of its executor, and its index among the executor's lanes.
    pub(crate) lanes: Vec<(usize, usize)>,
    /// Executor that completes requests; `Some` if outputs are in device memory.
    pub(crate) completions: Option<usize>,
}

impl Workers {
    pub(crate) fn new(
        bundle: &Bundle,
        lanes: &Lanes,
        properties: &[Properties],
        options: &Options,
        share: &CoreShare,
    ) -> Self {
        let available = share.count;
        let is_queued = |device: usize| properties[device].execution == Execution::Queued;
        let devices = 0..bundle.devices.len();
        let queues = devices.clone().filter(|&device| is_queued(device)).count();
        // A device without stages only moves its values: parts of them by several threads.
        let has_parts = |device: usize| {
            let mut steps = bundle.steps.iter().zip(&lanes.of_step);
            steps.any(|(step, &lane)| lane == device && step.action.is_part())
        };
        let copies = |device: usize| {
            if has_parts(device) { COPY_THREADS.min(available.saturating_sub(queues)).max(1) } else { 1 }
        };
        let count = |device: usize| match options.threads.unwrap_or(bundle.devices[device].threads as usize) {
            // One thread enqueues work on a device with a queue.
            _ if is_queued(device) => 1,
            _ if !bundle.has_stages(device) => copies(device),
            0 => available.saturating_sub(queues).max(1),
            threads => threads.min(available.max(1) * 16),
        };
        let counts: Vec<usize> = devices.clone().map(count).collect();
        let total: usize = counts.iter().sum();
        let has_link_threads = options.link_threads.unwrap_or(total + lanes.links.len() <= available);
        let own_links = if has_link_threads { lanes.links.len() } else { 0 };
        let mut free = share.cores.iter().copied();
        // With one device, the scheduler places its threads and the caller's, unless ranks divide the cores of a host.
        let is_pinned = (bundle.devices.len() > 1 || share.is_shared) && total <= available.min(free.len());
        let timeout = |is_enough: bool| if options.spin.unwrap_or(is_enough) { SPIN_TIMEOUT } else { Duration::ZERO };
        // Thread names must not contain NULs.
        let names: Vec<String> = (0..bundle.devices.len() + lanes.links.len())
            .map(|lane| bundle.lane_name(lanes, lane).replace('\0', "?"))
            .collect();
        let has_queued_peers: Vec<bool> = devices.clone().map(|device| queues > 0 && !is_queued(device)).collect();
        let threads = |device: usize| Threads {
            name: names[device].clone(),
            count: counts[device],
            cores: if is_pinned { free.by_ref().take(counts[device]).collect() } else { vec![] },
            spin_timeout: extended_spin_timeout(timeout(total <= available), has_queued_peers[device]),
        };
        let of_devices = devices.map(threads).collect();
        // With several ranks, a thread passes messages.
        let own_threads = total + own_links + usize::from(options.communicator.is_some());
        let idle_spin_timeout = timeout(own_threads < available);
        let links = lanes.links.clone();
        Self { names, of_devices, links, has_link_threads, idle_spin_timeout, has_queued_peers }
    }

    /// Builds the executors; at most `most_ready` steps are ready at a time.
    pub(crate) fn executors(&self, most_ready: usize, has_device_outputs: bool) -> Executors {
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
            let has_queued_peers = self.has_queued_peers.get(index).copied().unwrap_or(false);
            Executor::new(count, most_ready, extended_spin_timeout(self.idle_spin_timeout, has_queued_peers))
        };
        Executors { executors: counts.iter().enumerate().map(make).collect(), lanes, completions }
    }

    /// Returns the time that an idle thread polls before it sleeps.
    pub(crate) fn idle_spin_timeout(&self) -> Duration {
        self.idle_spin_timeout
    }

    /// Returns the name of an executor's thread.
    pub(crate) fn name(&self, executor: usize) -> String {
        let links = if self.has_link_threads { self.links.len() } else { 0 };
        if executor < self.of_devices.len() + links { self.names[executor].clone() } else { "outputs".to_owned() }
    }

    /// Returns the core to which an executor's thread is pinned.
    pub(crate) fn core(&self, executor: usize) -> Option<usize> {
        self.of_devices.get(executor)?.cores.first().copied()
    }
}

/// Extends a nonzero spin timeout for CPU devices in a program that also uses devices with queues.
fn extended_spin_timeout(timeout: Duration, has_queued_peers: bool) -> Duration {
    if has_queued_peers && !timeout.is_zero() { SPIN_TIMEOUT_BESIDE_QUEUES } else { timeout }
}
