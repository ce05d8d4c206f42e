//! `divi-profile measure`: compiles models for the devices of a system and runs them here. Times of tasks become a profile,
//! times of copies become the links of a system description.

pub(crate) mod describe;
mod job;
pub(crate) mod kind;
pub(crate) mod link;
pub(crate) mod loaded;
pub(crate) mod model;
pub(crate) mod progress;
pub(crate) mod record;
pub(crate) mod rounds;
mod scratch;
mod settings;
pub(crate) mod tasks;

use crate::{cluster::Cluster, files};
use divi_cost::system::System;
use divi_runtime::Drivers;
use job::Job;
use kind::Kinds;
use link::Line;
use progress::Progress;
use record::Record;
pub(crate) use settings::seconds;
use settings::{Batches, Settings};
use std::{path::PathBuf, time::Duration};

/// Measure the tasks of models and the links of a system on this machine, and write a profile
///
/// Compiles the models for the devices of the system, writes a profile for each number of threads and each kind
/// of GPU, then measures the links between the devices.
/// Times that the profile already has are kept, and models without new tasks are skipped; use a new file to
/// measure again.
///
/// Under a launcher, measures the links between the hosts of the ranks instead, and writes the hosts and their network.
#[derive(clap::Parser)]
#[command(
    verbatim_doc_comment,
    override_usage = "divi-profile measure [OPTIONS] -o <PROFILE.json> [MODEL.onnx|MODEL.mlir]...\n       \
                      mpirun -n <N> divi-profile measure [OPTIONS] --system-out <FILE.toml>"
)]
pub(crate) struct Measure {
    /// Models to measure; none with --system-out to measure links only
    #[arg(value_name = "MODEL.onnx|MODEL.mlir")]
    pub(crate) models: Vec<String>,
    /// Profile to extend; required without a launcher
    #[arg(short, value_name = "PROFILE.json")]
    pub(crate) output: Option<String>,
    /// Preset or description; host is this machine, including its GPUs
    #[arg(long, value_name = "NAME|FILE.toml", default_value = "host")]
    pub(crate) system: String,
    /// Batch sizes to measure; by default the model's own, or 1 if it is dynamic
    #[arg(long, value_name = "N,...", value_parser = settings::batches)]
    pub(crate) batch: Option<Batches>,
    /// Generate missing weights
    #[arg(long, value_name = "random:SEED", value_parser = settings::seed)]
    pub(crate) weights: Option<u64>,
    /// Folder of the weights, if not the model's
    #[arg(long, value_name = "FOLDER")]
    pub(crate) weights_dir: Option<PathBuf>,
    /// Target processor of the generated code: native, x86-64-v3, x86-64-v4 or sapphirerapids
    #[arg(long, value_name = "NAME", default_value = "native")]
    cpu: String,
    /// Time limit in seconds for each model and batch size, or for a network, whose times do not become stable earlier
    #[arg(long, value_name = "S", default_value = "20", value_parser = settings::seconds)]
    pub(crate) time_limit: Duration,
    /// Measure the links, or keep them as the system describes them
    #[arg(long, value_name = "NAME", default_value = "measure", value_parser = ["measure", "keep"])]
    pub(crate) links: String,
    /// File of the fastest algorithms of libraries and kernels on a GPU
    ///
    /// Missing ones are measured and added. Bundles that run with this file (divi-run --choices) use the same
    /// algorithms.
    #[arg(long, value_name = "FILE", verbatim_doc_comment)]
    pub(crate) choices: Option<String>,
    /// Write the system with the measured profiles and links, for planning (divi-opt --system=FILE)
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) system_out: Option<String>,
    /// Print errors only
    #[arg(short, overrides_with = "quiet")]
    pub(crate) quiet: bool,
}

impl Measure {
    pub(crate) fn run(self) -> Result<(), String> {
        match Cluster::join()? {
            Some(cluster) => cluster.run(&self),
            None => self.run_alone()?,
        }
        Ok(())
    }

    /// Measures this machine.
    fn run_alone(self) -> Result<(), String> {
        let settings = Settings::of(self)?;
        let mut system = System::load(&settings.system).map_err(|error| plain(&error.to_string()))?;
        let drivers = Drivers::default();
        let Kinds { kinds, left_out } = Kinds::of(&system, |kind| drivers.devices(kind.name()))?;
        let mut records = vec![];
        for (index, kind) in kinds.iter().enumerate() {
            records.push(Record::open(settings.profile(index, kind), &kind.name(), &settings.compilation.runtime())?);
        }
        let pairs = if settings.keeps_links { vec![] } else { link::pairs(&system, &kinds) };
        let progress = Progress::new(settings.is_quiet, kinds.len() * settings.models.len() + pairs.len());
        for warning in system.warnings.iter().chain(&left_out) {
            progress.say(&format!("warning: {warning}"));
        }
        for (kind, record) in kinds.iter().zip(&mut records) {
            for model in &settings.models {
                Job { model, kind, settings: &settings, progress: &progress }.measure(record)?;
                progress.next();
            }
        }
        for pair in pairs {
            let measured = link::measure(&pair, &settings, &progress)?;
            report(&system, &pair, measured, &progress);
            if let Some(measured) = measured {
                pair.links.iter().for_each(|&link| {
                    (system.links[link].latency, system.links[link].bandwidth) = (measured.latency, measured.bandwidth);
                });
            }
            progress.next();
        }
        let Some(output) = &settings.system_output else { return Ok(()) };
        for (kind, record) in kinds.iter().zip(&records).filter(|(_, record)| record.path().is_file()) {
            for &device in &kind.devices {
                system.devices[device].profile = Some(record.path().to_owned());
                system.devices[device].batch_sizes = settings.factors();
            }
        }
        files::write(Some(output), &describe::toml(&system, output))
    }
}

fn report(system: &System, pair: &link::Pair, measured: Option<Line>, progress: &Progress) {
    let name = |&link: &usize| {
        let link = &system.links[link];
        format!("{} to {}", system.devices[link.from].id, system.devices[link.to].id)
    };
    let names: Vec<String> = pair.links.iter().map(name).collect();
    progress.say(&match measured {
        Some(Line { latency, bandwidth, farthest: (bytes, times) }) => {
            let rates = format!("{:.2} GB/s after {:.1} µs", bandwidth.0 / 1e9, latency.micros());
            format!(
                "{}: {rates}; largest deviation: copies of {:.0} KiB take {times:.2} times the fitted time",
                names.join(", "),
                bytes / 1024.0
            )
        }
        None => format!("warning: {}: larger copies did not take longer; the description is kept", names.join(", ")),
    });
}

/// Removes the "error: " prefix of a message.
fn plain(message: &str) -> String {
    message.replacen("error: ", "", 1)
}
