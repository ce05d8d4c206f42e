//! Networks of the workload, compiled and loaded.

use super::{
    interleave::{Burst, Times},
    workload::networks,
};
use crate::measure::{
    kind::Kind,
    loaded::{Load, Loaded, Model},
    model::Compilation,
    rounds::Rounds,
    tasks::times,
};
use divi_cost::profile::Profile;
use divi_runtime::Options;
use std::{
    fs,
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

/// Duration of the runs of a network in a round, with the times of tasks; those without take as long again.
const BURST: Duration = Duration::from_millis(50);

/// Network on a kind of CPU.
pub(super) struct Network<'a> {
    pub(super) kind: &'a Kind,
    pub(super) loaded: Loaded,
}

/// A network that is run repeatedly.
pub(super) struct Runs<'a> {
    network: &'a Network<'a>,
    rounds: Rounds<'a>,
}

/// Compiles all networks for the first kind, and those that show scaling for the others, and loads them. Compiles several at a time.
pub(super) fn load<'a>(kinds: &'a [Kind], compilation: &Compilation) -> Result<Vec<Network<'a>>, String> {
    let fail = |error: std::io::Error| format!("temporary folder: {error}");
    let scratch = divi_files::Scratch::new("divi-profile").map_err(fail)?;
    let mut jobs = vec![];
    for network in networks() {
        let path = scratch.path().join(format!("{}.mlir", network.name));
        fs::write(&path, &network.text).map_err(fail)?;
        let kinds = if network.shows_scaling { kinds } else { &kinds[..1] };
        jobs.extend(kinds.iter().map(|kind| (path.clone(), kind)));
    }
    let load = |(path, kind): &(PathBuf, &'a Kind)| {
        let profile = Profile::new(kind.name(), compilation.runtime(), vec![]);
        match (Model { path, batch: None, compilation }).load(kind, &profile, Options::default())? {
            Load::Loaded(loaded) => Ok(Network { kind, loaded }),
            Load::Known(_) => Err(format!("{}: has no tasks", path.display())),
        }
    };
    let (next, networks) = (AtomicUsize::new(0), Mutex::new(vec![]));
    let work = || {
        while let Some((index, job)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|it| Some((it, jobs.get(it)?)))
        {
            let network = load(job);
            networks.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((index, network));
        }
    };
    let workers = thread::available_parallelism().map_or(1, |count| count.get()).min(jobs.len());
    thread::scope(|scope| (0..workers).for_each(|_| _ = scope.spawn(work)));
    let mut networks = networks.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    networks.sort_by_key(|(index, _)| *index);
    networks.into_iter().map(|(_, network)| network).collect()
}

impl Network<'_> {
    /// Prepares runs of the network.
    pub(super) fn runs(&self) -> Result<Runs<'_>, String> {
        Ok(Runs { network: self, rounds: Rounds::new(&self.loaded.runtime)? })
    }
}

impl Burst for Runs<'_> {
    fn run(&mut self) -> Result<Times, String> {
        let (tasks, whole) = self.rounds.burst(BURST, |spans| times(&self.network.loaded.tasks, spans))?;
        Ok(Times { tasks, whole })
    }
}
