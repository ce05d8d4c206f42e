//! `divi-profile measure`: models are compiled for the CPUs of a system and run here; what their tasks take becomes a profile,
//! and what copies take the links of a system description.

mod describe;
mod inputs;
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
use job::Job;
use kind::Kind;
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
    let kinds = Kind::all(&system)?;
    let mut records = vec![];
    for (index, kind) in kinds.iter().enumerate() {
        records.push(Record::open(settings.profile(index, kind), &kind.name(), &settings.runtime())?);
    }
    let pairs = link::pairs(&system, &kinds);
    let progress = Progress::new(settings.is_quiet, kinds.len() * settings.models.len() + pairs.len());
    warn(&system, &kinds, &progress);
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

/// Says what is not measured, and what detection had to leave out.
fn warn(system: &System, kinds: &[Kind], progress: &Progress) {
    for warning in &system.warnings {
        progress.say(&format!("warning: {warning}"));
    }
    let is_measured = |index: &usize| kinds.iter().any(|kind| kind.devices.contains(index));
    let others: Vec<&str> = (0..system.devices.len())
        .filter(|index| !is_measured(index))
        .map(|index| &system.devices[index].id[..])
        .collect();
    if !others.is_empty() {
        progress.say(&format!("warning: {} left as described: only CPUs can be measured yet", others.join(", ")));
    }
}

fn report(system: &System, pair: &link::Pair, measured: Option<Measured>, progress: &Progress) {
    let name = |&link: &usize| {
        let link = &system.links[link];
        format!("{} to {}", system.devices[link.from].id, system.devices[link.to].id)
    };
    let names: Vec<String> = pair.links.iter().map(name).collect();
    progress.say(&match measured {
        Some(Measured { latency, bandwidth }) => {
            format!("{}: {:.2} GB/s after {:.1} µs", names.join(", "), bandwidth.0 / 1e9, latency.micros())
        }
        None => format!("warning: {}: larger copies did not take longer, left as described", names.join(", ")),
    });
}

/// A message of somebody who says himself that it is an error.
fn plain(message: &str) -> String {
    message.replacen("error: ", "", 1)
}
