//! Who does what: threads for devices and links, on which cores.

use crate::{
    bundle::{Bundle, Device, Lanes},
    cpu, cuda,
    error::Result,
    program::Program,
    runtime::Options,
    station::Station,
    team::Team,
};
use std::time::Duration;

/// How long threads look for work before they sleep, if there is a core for each: longer than what lies between two
/// kernels, shorter than anyone would mind.
const PATIENCE: Duration = Duration::from_micros(100);
/// The same for threads of CPUs beside GPUs: between two of their steps lies what a GPU does meanwhile.
const PATIENCE_BESIDE_GPUS: Duration = Duration::from_millis(1);

/// The threads of all devices and links, and their cores.
pub(crate) struct Crew {
    names: Vec<String>,
    threads: Vec<usize>,
    cores: Vec<Vec<usize>>,
    /// Stations of links' own follow those of the devices.
    links: Vec<(usize, usize)>,
    has_link_threads: bool,
    patience: Duration,
    /// Devices that have nothing to do leave their cores to those who bring them something.
    idle_patience: Duration,
}

/// Where things are done.
pub(crate) struct Places {
    pub(crate) stations: Vec<Station>,
    /// By lane: its station, and which of the station's lanes it is.
    pub(crate) lanes: Vec<(usize, usize)>,
    /// The station where requests end that have outputs on GPUs, if there are such outputs.
    pub(crate) completions: Option<usize>,
}

impl Crew {
    pub(crate) fn new(bundle: &Bundle, lanes: &Lanes, options: &Options) -> Self {
        let available = cpu::core_count();
        let is_gpu = |device: &Device| device.kind == cuda::KIND;
        let gpus = bundle.devices.iter().filter(|device| is_gpu(device)).count();
        let is_idle = |index: usize| bundle.stages.iter().all(|stage| stage.device != index);
        let threads = |(index, device): (usize, &Device)| match options.threads.unwrap_or(device.threads as usize) {
            // A GPU takes one that tells it what to do, and where there is nothing to compute, one moves values.
            _ if is_gpu(device) || is_idle(index) => 1,
            0 => available.saturating_sub(gpus).max(1),
            threads => threads.min(available.max(1) * 16),
        };
        let threads: Vec<usize> = bundle.devices.iter().enumerate().map(threads).collect();
        let total: usize = threads.iter().sum();
        let has_link_threads = options.link_threads.unwrap_or(total + lanes.links.len() <= available);
        let own_links = if has_link_threads { lanes.links.len() } else { 0 };
        let mut free = cpu::cores().into_iter();
        // One device's threads find their cores by themselves, together with the caller's.
        let is_pinned = bundle.devices.len() > 1 && total <= available.min(free.len());
        let cores = threads.iter().map(|&count| if is_pinned { free.by_ref().take(count).collect() } else { vec![] });
        let cores = cores.collect();
        let patience = |is_enough: bool| if options.spin.unwrap_or(is_enough) { PATIENCE } else { Duration::ZERO };
        // Names of threads cannot have NULs.
        let names =
            (0..bundle.devices.len() + lanes.links.len()).map(|lane| bundle.lane_name(lanes, lane).replace('\0', "?"));
        Self {
            names: names.collect(),
            threads,
            cores,
            links: lanes.links.clone(),
            has_link_threads,
            patience: patience(total <= available),
            idle_patience: patience(total + own_links < available),
        }
    }

    pub(crate) fn places(&self, program: &Program, in_flight: usize) -> Result<Places> {
        let devices = self.threads.len();
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
        let completions = program.has_gpu_outputs().then_some(counts.len());
        counts.extend(completions.map(|_| 1));
        let most_ready = program.steps.len() * in_flight;
        let has_gpus = program.gpus.iter().any(Option::is_some);
        let make = |(index, &count): (usize, &usize)| {
            let is_beside_gpus = has_gpus && matches!(program.gpus.get(index), Some(None));
            let patience = |usual: Duration| match is_beside_gpus && !usual.is_zero() {
                true => PATIENCE_BESIDE_GPUS,
                false => usual,
            };
            let of_team = patience(self.patience);
            let team = self
                .threads
                .get(index)
                .map(|&threads| Team::new(&self.names[index], threads, &self.cores[index], of_team));
            Ok(Station::new(count, most_ready, team.transpose()?, patience(self.idle_patience)))
        };
        let stations = counts.iter().enumerate().map(make).collect::<Result<_>>()?;
        Ok(Places { stations, lanes, completions })
    }

    pub(crate) fn name(&self, station: usize) -> String {
        let links = if self.has_link_threads { self.links.len() } else { 0 };
        if station < self.threads.len() + links { self.names[station].clone() } else { "outputs".to_owned() }
    }

    pub(crate) fn core(&self, station: usize) -> Option<usize> {
        self.cores.get(station)?.first().copied()
    }
}
