//! `divi-profile calibrate`: fits the cost model of CPUs to this machine.

mod interleave;
mod network;
mod scaling;
mod workload;

use crate::{
    files,
    measure::{
        kind::{Kind, Kinds},
        model::Compilation,
        progress::Progress,
        record::merge,
        tasks::entries,
    },
};
use divi_codegen::Target as CodeTarget;
use divi_cost::{
    device::{CPU, calibrated_model},
    fit::{Sample, Target, fit},
    profile::Profile,
    system::System,
};
use divi_runtime::Drivers;
use interleave::{Measured, Times, interleave};
use network::{Network, load};
use scaling::Scaling;
use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

/// Seed of the weights.
const SEED: u64 = 1;

/// Fit the cost model of CPUs to this machine
///
/// Measures layers of common networks with one thread and with all of them, in rounds that alternate between them, and fits the model
/// to the minimum time of each layer. A note reports that other load disturbed the rounds. The model is kept in the user's cache directory
/// ($XDG_CACHE_HOME/divi, or ~/.cache/divi), where the system 'host' finds it.
#[derive(clap::Args)]
pub(crate) struct Calibrate {
    /// File for the model, instead of the one that 'host' reads; a system description refers to it by 'cost_model'
    #[arg(short, value_name = "MODEL.json")]
    output: Option<String>,
    /// Time limit in seconds for everything, compilation included; at least three rounds are measured
    #[arg(long, value_name = "S", default_value = "60", value_parser = crate::measure::seconds)]
    time_limit: Duration,
    /// Print errors only
    #[arg(short, overrides_with = "quiet")]
    quiet: bool,
}

impl Calibrate {
    pub(crate) fn run(self) -> Result<(), String> {
        let start = Instant::now();
        let output = match &self.output {
            Some(output) => output.clone(),
            None => {
                let path = calibrated_model()
                    .ok_or("neither $XDG_CACHE_HOME nor $HOME is an absolute path; name a file with -o")?;
                let folder = path.parent().unwrap_or(Path::new("/"));
                fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
                path.into_os_string().into_string().map_err(|path| format!("{}: is not UTF-8", path.display()))?
            }
        };
        files::check(std::iter::empty(), &[("-o", Some(&output))])?;
        let host = System::load("host").map_err(|error| error.to_string())?;
        let cpu = host.devices.iter().find(|device| device.kind == CPU).ok_or("this machine has no CPU")?;
        let threads = cpu.threads.unwrap_or(1);
        let progress = Progress::new(self.quiet, 1);
        let target = CodeTarget::named("native").map_err(|error| error.to_string())?;
        let compilation = Compilation { seed: Some(SEED), weights_dir: None, target };
        let kinds = kinds(threads)?;
        progress.show(0.0, "compiling");
        let networks = load(&kinds, &compilation)?;
        let compiled = start.elapsed();
        let profiles = {
            let mut runs = networks.iter().map(Network::runs).collect::<Result<Vec<_>, _>>()?;
            let show = |elapsed: Duration| progress.show(elapsed.div_duration_f64(self.time_limit), "measuring");
            let measured = interleave(&mut runs, self.time_limit, || start.elapsed(), show)?;
            let spread = measured.spread();
            progress.say(&format!(
                "{} layers in {} rounds, {:.0} s, of which compilation took {:.0} s",
                measured.minima.iter().map(|times| times.tasks.len()).sum::<usize>(),
                spread.rounds,
                start.elapsed().as_secs_f64(),
                compiled.as_secs_f64()
            ));
            spread.note().iter().for_each(|note| progress.say(note));
            profiles(&kinds, &networks, &measured, &compilation)
        };
        let mut target = Target::of(CPU);
        target.rates.flops_per_s = cpu.rates.f32.0 / f64::from(threads);
        target.rates.bytes_per_s = cpu.rates.bandwidth.0 / f64::from(threads);
        let single = profiles.first().ok_or("this machine has no CPU")?;
        if let Some(several) = profiles.get(1) {
            let scaling = Scaling::of(single.entries(), several.entries(), threads);
            target.machine.fork = scaling.fork.unwrap_or(target.machine.fork);
            target.machine.scaling = scaling.scaling.unwrap_or(target.machine.scaling);
            scaling.note.iter().for_each(|note| progress.say(note));
        }
        let samples = Sample::of_profile(single);
        let model = fit(&target, &single.device, &single.runtime, &samples, &[]).map_err(|error| error.to_string())?;
        files::write(Some(&output), &model.to_json())?;
        progress.say(&format!("{output}: {} times of {}", samples.len(), single.device));
        Ok(())
    }
}

/// Returns this machine's CPU with one thread and, if that is more, with a number of threads.
fn kinds(threads: u32) -> Result<Vec<Kind>, String> {
    let device = |threads: &u32| {
        format!("[[device]]\nid = \"cpu{threads}\"\nkind = \"cpu\"\nmemory = \"1 TiB\"\nthreads = {threads}\n")
    };
    let text: String = [1, threads].iter().map(device).collect();
    let text = if threads > 1 { text } else { device(&1) };
    let system = System::parse("calibration", &text).map_err(|error| error.to_string())?;
    let drivers = Drivers::default();
    Ok(Kinds::of(&system, |kind| drivers.devices(kind.name()))?.kinds)
}

/// Returns a profile of each kind. Times of tasks are scaled by the median ratio of whole runs to the sums of their tasks: that of a
/// single network depends on the allocation of its results, and on load while the longest runs were measured.
fn profiles(kinds: &[Kind], networks: &[Network<'_>], measured: &Measured, compilation: &Compilation) -> Vec<Profile> {
    let profile = |kind: &Kind| {
        let own = || networks.iter().zip(&measured.minima).filter(|(network, _)| network.kind == kind);
        let scales = own().map(|(_, times)| kind.processor.scale(times.tasks.iter().sum(), times.whole));
        let scale = median(scales.collect()).unwrap_or(1.0);
        let of_network = |(network, times): (&Network<'_>, &Times)| {
            entries(&network.loaded.tasks, &times.tasks, scale, network.loaded.batch)
        };
        Profile::new(kind.name(), compilation.runtime(), merge(own().flat_map(of_network)))
    };
    kinds.iter().map(profile).collect()
}

/// Returns the median; of an even number, the greater one in the middle.
fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied()
}
