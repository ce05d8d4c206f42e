//! `divi-profile fit`.

use crate::{USAGE, arguments::Arguments, files};
use divi_cost::fit::{Kind, Replay, Sample, Target, fit};
use divi_cost::profile::{Entry, Profile};
use divi_cost::pytorch::{Models, Operators};

/// What the files hold.
#[derive(Default)]
struct Measured {
    device: String,
    runtime: String,
    entries: Vec<(String, Entry)>,
    tables: Vec<(String, Operators)>,
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let arguments = Arguments::read(arguments, &["o", "device", "graphs", "flops-per-s", "bytes-per-s"])?;
    if arguments.is_help {
        return files::write(None, USAGE);
    }
    let mut target = Target::of(arguments.kind()?);
    target.rates.flops_per_s = arguments.rate("flops-per-s")?.unwrap_or(target.rates.flops_per_s);
    target.rates.bytes_per_s = arguments.rate("bytes-per-s")?.unwrap_or(target.rates.bytes_per_s);
    let measured = read(&arguments.files, target.kind)?;
    let mut samples = vec![];
    for (file, entry) in &measured.entries {
        match Sample::of(entry) {
            Ok(counted) => samples.extend(counted),
            Err(error) => eprintln!("divi-profile: warning: {file}: left out, its work cannot be counted: {error}"),
        }
    }
    let replays = match arguments.option("graphs") {
        Some(file) => replays(file, &measured.tables)?,
        None => vec![],
    };
    let model = fit(&target, &measured.device, &measured.runtime, &samples, &replays);
    files::write(arguments.option("o"), &model.map_err(|error| error.to_string())?.to_json())
}

/// Reads profiles and tables. All must be of one device: coefficients of two are those of neither.
fn read(names: &[String], kind: Kind) -> Result<Measured, String> {
    if names.is_empty() {
        return Err("fit needs at least one profile or table (see --help)".to_owned());
    }
    let mut measured = Measured::default();
    for name in names {
        let text = files::read(name)?;
        let wrong = |error: divi_cost::json::Error| format!("{name}: {error}");
        let (device, runtime) = if Operators::recognizes(&text) {
            let table = Operators::read(&text, kind).map_err(wrong)?;
            let entries = table.models.iter().flat_map(|model| model.entries.iter().cloned());
            measured.entries.extend(entries.map(|entry| (name.clone(), entry)));
            let of = (table.device.clone(), table.runtime.clone());
            measured.tables.push((name.clone(), table));
            of
        } else {
            let profile = Profile::from_json(&text).map_err(wrong)?;
            measured.entries.extend(profile.entries().iter().map(|entry| (name.clone(), entry.clone())));
            (profile.device, profile.runtime)
        };
        if measured.device.is_empty() {
            (measured.device, measured.runtime) = (device, runtime);
        } else if (&measured.device, &measured.runtime) != (&device, &runtime) {
            return Err(format!(
                "{name}: is of {device} with {runtime}, {} of {} with {}: fit each by itself",
                names[0], measured.device, measured.runtime
            ));
        }
    }
    Ok(measured)
}

fn replays(file: &str, tables: &[(String, Operators)]) -> Result<Vec<Replay>, String> {
    let models = Models::read(&files::read(file)?).map_err(|error| format!("{file}: {error}"))?;
    let mut replays = vec![];
    for (name, table) in tables {
        replays.extend(table.replays(&models).map_err(|error| format!("{name}: {error}"))?);
    }
    if replays.is_empty() {
        return Err(format!("{file}: none of its models is in a table of operators that is given"));
    }
    Ok(replays)
}
