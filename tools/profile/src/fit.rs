//! `divi-profile fit`.

use crate::{
    USAGE,
    arguments::{Arguments, kind_of_tables},
    files,
};
use divi_cost::device::{self, Kind};
use divi_cost::fit::{Replay, Sample, Target, fit};
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
    let allowed = ["o", "device", "graphs", "leave-out", "flops-per-s", "bytes-per-s"];
    let arguments = Arguments::read(arguments, &allowed)?;
    if arguments.is_help {
        return files::write(None, USAGE);
    }
    arguments.check_outputs(&["o"], &["graphs"])?;
    let texts = read(&arguments.files)?;
    let kind = match arguments.kind()? {
        Some(kind) => kind,
        None => texts.iter().find_map(|(_, text)| kind_of_profile(text)).unwrap_or_else(kind_of_tables),
    };
    let mut target = Target::of(kind);
    target.rates.flops_per_s = arguments.rate("flops-per-s")?.unwrap_or(target.rates.flops_per_s);
    target.rates.bytes_per_s = arguments.rate("bytes-per-s")?.unwrap_or(target.rates.bytes_per_s);
    let left_out: Vec<&str> = arguments.option("leave-out").map_or(vec![], |names| names.split(',').collect());
    let measured = measured(&texts, kind, &left_out)?;
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

/// The files, with their names.
fn read(names: &[String]) -> Result<Vec<(String, String)>, String> {
    if names.is_empty() {
        return Err("fit needs at least one profile or table (see --help)".to_owned());
    }
    names.iter().map(|name| Ok((name.clone(), files::read(name)?))).collect()
}

/// The kind of device that a profile is of, if the device's name says so; a table is of several.
fn kind_of_profile(text: &str) -> Option<Kind> {
    let profile = Profile::from_json(text).ok()?;
    let owner = device::all().into_iter().find(|kind| kind.owns_profile(&profile.device));
    Some(owner.unwrap_or_else(kind_of_tables))
}

/// What is in profiles and tables, but for the models that are left out of the latter. All must be of one device:
/// coefficients of two are those of neither.
fn measured(texts: &[(String, String)], kind: Kind, left_out: &[&str]) -> Result<Measured, String> {
    let mut measured = Measured::default();
    let mut unknown = left_out.to_vec();
    for (name, text) in texts {
        let wrong = |error: divi_cost::json::Error| format!("{name}: {error}");
        let (device, runtime) = if Operators::recognizes(text) {
            let mut table = Operators::read(text, kind).map_err(wrong)?;
            unknown.retain(|left_out| table.models.iter().all(|model| model.name != *left_out));
            table.models.retain(|model| !left_out.contains(&&model.name[..]));
            let entries = table.models.iter().flat_map(|model| model.entries.iter().cloned());
            measured.entries.extend(entries.map(|entry| (name.clone(), entry)));
            let of = (table.device.clone(), table.runtime.clone());
            measured.tables.push((name.clone(), table));
            of
        } else {
            let profile = Profile::from_json(text).map_err(wrong)?;
            measured.entries.extend(profile.entries().iter().map(|entry| (name.clone(), entry.clone())));
            (profile.device, profile.runtime)
        };
        if measured.device.is_empty() {
            (measured.device, measured.runtime) = (device, runtime);
        } else if (&measured.device, &measured.runtime) != (&device, &runtime) {
            return Err(format!(
                "{name}: is of {device} with {runtime}, {} of {} with {}: fit each by itself",
                texts[0].0, measured.device, measured.runtime
            ));
        }
    }
    match unknown.first() {
        Some(unknown) => Err(format!("--leave-out: no table has a model '{unknown}'")),
        None => Ok(measured),
    }
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
