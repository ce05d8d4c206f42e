//! `divi-profile calibrate`: fits the cost model of CPUs to this machine.

mod workload;

use crate::{files, measure::Measure};
use divi_cost::{
    device::{CPU, calibrated_model},
    fit::{Sample, Target, fit},
    profile::{Entry, Profile},
    system::System,
};
use std::{fs, path::Path, time::Duration};

/// Fit the cost model of CPUs to this machine
///
/// Measures layers of common networks with one thread and with all of them, for about two minutes. The model is kept in the user's cache
/// directory ($XDG_CACHE_HOME/divi, or ~/.cache/divi), where the system 'host' finds it.
#[derive(clap::Args)]
pub(crate) struct Calibrate {
    /// File for the model, instead of the one that 'host' reads; a system description refers to it by 'cost_model'
    #[arg(short, value_name = "MODEL.json")]
    output: Option<String>,
    /// Time limit in seconds for each of the networks whose times do not become stable earlier
    #[arg(long, value_name = "S", default_value = "4", value_parser = crate::measure::seconds)]
    time_limit: Duration,
    /// Print errors only
    #[arg(short, overrides_with = "quiet")]
    quiet: bool,
}

impl Calibrate {
    pub(crate) fn run(self) -> Result<(), String> {
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
        let single = self.measure(1)?;
        let mut target = Target::of(CPU);
        target.rates.flops_per_s = cpu.rates.f32.0 / f64::from(threads);
        target.rates.bytes_per_s = cpu.rates.bandwidth.0 / f64::from(threads);
        if threads > 1 {
            let several = self.measure(threads)?;
            target.machine.fork = fork(single.entries(), several.entries(), threads).unwrap_or(target.machine.fork);
        }
        let samples = Sample::of_profile(&single);
        let model = fit(&target, &single.device, &single.runtime, &samples, &[]).map_err(|error| error.to_string())?;
        files::write(Some(&output), &model.to_json())?;
        if !self.quiet {
            eprintln!("{output}: {} times of {}", samples.len(), single.device);
        }
        Ok(())
    }

    /// Measures all networks on some threads.
    fn measure(&self, threads: u32) -> Result<Profile, String> {
        let fail = |error: std::io::Error| format!("temporary folder: {error}");
        let scratch = divi_files::Scratch::new("divi-profile").map_err(fail)?;
        let write = |name: &str, text: &str| {
            let path = scratch.path().join(name);
            fs::write(&path, text).map_err(fail)?;
            path.into_os_string().into_string().map_err(|path| format!("{}: is not UTF-8", path.display()))
        };
        let mut models = vec![];
        for network in workload::networks() {
            models.push(write(&format!("{}.mlir", network.name), &network.text)?);
        }
        let device = format!("[[device]]\nid = \"cpu0\"\nkind = \"cpu\"\nmemory = \"1 TiB\"\nthreads = {threads}\n");
        let system = write("system.toml", &device)?;
        let output = write("profile.json", "")?;
        fs::remove_file(&output).map_err(fail)?;
        Measure::of_tasks(models, system, output.clone(), self.time_limit, self.quiet).run()?;
        Profile::from_json(&files::read(&output)?).map_err(|error| error.to_string())
    }
}

/// Shortest and longest time in microseconds of tasks that show what the distribution to several threads takes.
const FORKED: std::ops::Range<f64> = 30.0..300.0;

/// Returns the median time in microseconds that tasks take on several threads beyond their share of the time on one.
fn fork(single: &[Entry], several: &[Entry], threads: u32) -> Option<f64> {
    let micros = |entry: &Entry| entry.micros.values().next().copied();
    let is_same = |a: &Entry, b: &Entry| {
        (&a.ops, &a.inputs, &a.weights, &a.outputs, a.dtype) == (&b.ops, &b.inputs, &b.weights, &b.outputs, b.dtype)
    };
    let mut overheads = vec![];
    for entry in single {
        let other = several.iter().find(|other| is_same(entry, other)).and_then(micros);
        if let Some((alone, shared)) = micros(entry).filter(|micros| FORKED.contains(micros)).zip(other) {
            overheads.push(shared - alone / f64::from(threads));
        }
    }
    overheads.sort_by(f64::total_cmp);
    let median = overheads.get(overheads.len() / 2)?;
    Some((median.max(0.0) * 100.0).round() / 100.0)
}
