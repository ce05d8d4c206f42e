//! `divi-profile fit`.

use crate::{
    device::{kind_of_tables, kinds},
    files,
};
use divi_cost::device::{self, Kind};
use divi_cost::fit::{CapturedNetwork, Sample, Target, fit};
use divi_cost::profile::{Entry, Profile};
use divi_cost::pytorch::{NetworkTimes, Operators};

/// Fit the cost model of a device kind to profiles, or to tables of operators
#[derive(clap::Args)]
pub(crate) struct Fit {
    /// Profiles and tables, all of one device
    #[arg(value_name = "FILE.json", required = true)]
    files: Vec<String>,
    /// Device kind of the tables to fit; by default the profile's, or the GPU
    #[arg(long, value_name = "KIND", value_parser = kinds())]
    device: Option<Kind>,
    /// Times of whole models in captured graphs, to also fit the launch cost in a graph
    #[arg(long, value_name = "TABLE.json")]
    graphs: Option<String>,
    /// Models of the tables to leave out of the fit, for validation
    #[arg(long, value_name = "MODEL,...")]
    leave_out: Option<String>,
    /// Peak rate of the device; by default that of an H200, or of 16 Xeon cores
    #[arg(long, value_name = "N", value_parser = rate)]
    flops_per_s: Option<f64>,
    /// Peak memory bandwidth of the device; by default that of an H200, or of 16 Xeon cores
    #[arg(long, value_name = "N", value_parser = rate)]
    bytes_per_s: Option<f64>,
    /// File for the coefficients, instead of stdout
    #[arg(short, value_name = "MODEL.json")]
    output: Option<String>,
}

/// Contents of the files.
#[derive(Default)]
struct Measured {
    device: String,
    runtime: String,
    entries: Vec<(String, Entry)>,
    tables: Vec<(String, Operators)>,
}

impl Fit {
    pub(crate) fn run(self) -> Result<(), String> {
        let read = self.files.iter().chain(&self.graphs).map(String::as_str);
        files::check(read, &[("-o", self.output.as_deref())])?;
        let read = |name: &String| Ok((name.clone(), files::read(name)?));
        let texts: Vec<_> = self.files.iter().map(read).collect::<Result<_, String>>()?;
        let of_profile = || texts.iter().find_map(|(_, text)| kind_of_profile(text)).unwrap_or_else(kind_of_tables);
        let kind = self.device.unwrap_or_else(of_profile);
        let mut target = Target::of(kind);
        target.rates.flops_per_s = self.flops_per_s.unwrap_or(target.rates.flops_per_s);
        target.rates.bytes_per_s = self.bytes_per_s.unwrap_or(target.rates.bytes_per_s);
        let left_out: Vec<&str> = self.leave_out.as_deref().map_or(vec![], |names| names.split(',').collect());
        let measured = measured(&texts, kind, &left_out)?;
        let mut samples = vec![];
        for (file, entry) in &measured.entries {
            match Sample::of(entry) {
                Ok(counted) => samples.extend(counted),
                Err(error) => eprintln!("divi-profile: warning: {file}: left out, its work cannot be counted: {error}"),
            }
        }
        let replays = self.graphs.map_or(Ok(vec![]), |file| replays(&file, &measured.tables))?;
        let model = fit(&target, &measured.device, &measured.runtime, &samples, &replays);
        files::write(self.output.as_deref(), &model.map_err(|error| error.to_string())?.to_json())
    }
}

/// Parses a rate.
fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| *rate > 0.0 && rate.is_finite());
    rate.ok_or_else(|| "must be a positive number".to_owned())
}

/// Returns the device kind of a profile, if the device's name determines it; a table has several.
fn kind_of_profile(text: &str) -> Option<Kind> {
    let profile = Profile::from_json(text).ok()?;
    let owner = device::all().into_iter().find(|kind| kind.accepts_profile_of(&profile.device));
    Some(owner.unwrap_or_else(kind_of_tables))
}

/// Collects the measurements of profiles and tables, without the models that are left out. All must be of one device and
/// runtime.
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
                "{name}: measured on {device} with {runtime}, but {} on {} with {}; fit them separately",
                texts[0].0, measured.device, measured.runtime
            ));
        }
    }
    match unknown.first() {
        Some(unknown) => Err(format!("--leave-out: no table has a model '{unknown}'")),
        None => Ok(measured),
    }
}

fn replays(file: &str, tables: &[(String, Operators)]) -> Result<Vec<CapturedNetwork>, String> {
    let models = NetworkTimes::read(&files::read(file)?).map_err(|error| format!("{file}: {error}"))?;
    let mut replays = vec![];
    for (name, table) in tables {
        replays.extend(table.replays(&models).map_err(|error| format!("{name}: {error}"))?);
    }
    if replays.is_empty() {
        return Err(format!("{file}: none of its models is in the given tables of operators"));
    }
    Ok(replays)
}
