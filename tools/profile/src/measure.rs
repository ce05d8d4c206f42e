//! `divi-profile measure`: models are compiled for the devices of a system and run here; what their tasks take becomes a profile,
//! and what copies take the links of a system description.

mod describe;
mod job;
mod kind;
mod link;
mod model;
mod progress;
mod record;
mod rounds;
mod scratch;
mod settings;

use crate::{USAGE, arguments::Arguments, files};
use divi_cost::system::System;
use divi_runtime::Drivers;
use job::Job;
use kind::Kinds;
use link::Measured;
use progress::Progress;
use record::Record;
use settings::Settings;

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let arguments = Arguments::read(arguments, settings::OPTIONS)?;
    if arguments.is_help {
        return files::write(None, USAGE);
    }
    let settings = Settings::of(&arguments)?;
    let mut system = System::load(&settings.system).map_err(|error| plain(&error.to_string()))?;
    let drivers = Drivers::default();
    let Kinds { kinds, left_out } = Kinds::of(&system, |kind| drivers.devices(kind.name()))?;
    let mut records = vec![];
    for (index, kind) in kinds.iter().enumerate() {
        records.push(Record::open(settings.profile(index, kind), &kind.name(), &settings.runtime())?);
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

fn report(system: &System, pair: &link::Pair, measured: Option<Measured>, progress: &Progress) {
    let name = |&link: &usize| {
        let link = &system.links[link];
        format!("{} to {}", system.devices[link.from].id, system.devices[link.to].id)
    };
    let names: Vec<String> = pair.links.iter().map(name).collect();
    progress.say(&match measured {
        Some(Measured { latency, bandwidth, farthest: (bytes, times) }) => {
            let rates = format!("{:.2} GB/s after {:.1} µs", bandwidth.0 / 1e9, latency.micros());
            format!(
                "{}: {rates}; copies of {:.0} KiB take {times:.2} times as long as that",
                names.join(", "),
                bytes / 1024.0
            )
        }
        None => format!("warning: {}: larger copies did not take longer, left as described", names.join(", ")),
    });
}

/// A message of somebody who says himself that it is an error.
fn plain(message: &str) -> String {
    message.replacen("error: ", "", 1)
}
