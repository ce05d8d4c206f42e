//! `divi-run`: loads a bundle, runs it, and reports its times.

mod arguments;
mod compare;
mod describe;
mod expected;
mod files;
mod inputs;
mod job;
mod measure;
mod numbers;
mod recovery;
mod report;
mod signals;

use arguments::Arguments;
use clap::CommandFactory;
use divi_runtime::{Error, Options, RecoveryObserver, ResilientRuntime, bundle::Bundle};
use job::Job;
use measure::Outputs;
use signals::Signals;
use std::{
    iter,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

const INTERRUPTED: u8 = 130;
/// Allocations above this size are returned to the system when freed. By default, the C library would retain the memory used
/// to prepare weights.
const MAPPED_BYTES: libc::c_int = 1 << 20;

fn main() -> ExitCode {
    // SAFETY: only sets a parameter of the allocator, before other threads exist.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES) };
    let arguments: Arguments = match divi_cli::parse(Arguments::command()) {
        Ok(arguments) => arguments,
        Err(status) => return status,
    };
    run(&arguments).unwrap_or_else(|message| {
        signals::print_error(&message);
        ExitCode::FAILURE
    })
}

fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    let folder = &arguments.bundle;
    if arguments.is_check {
        let bundle = Bundle::read(folder).map_err(|error| error.to_string())?;
        let losses = describe::losses(folder, &bundle).map_err(|error| error.to_string())?;
        for bundle in iter::once(&bundle).chain(losses.iter().filter_map(|(_, other)| other.as_ref().ok())) {
            bundle.check_allowing(folder, &arguments.allowed_paths).map_err(|error| error.to_string())?;
        }
        if !arguments.is_quiet {
            files::print(&describe::checked(folder, &bundle, arguments.in_flight))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.is_info && !arguments.has_inputs() {
        let bundle = Bundle::read(folder).map_err(|error| error.to_string())?;
        let losses = describe::losses(folder, &bundle).map_err(|error| error.to_string())?;
        files::print(&describe::bundle(&bundle, &losses, arguments.in_flight))?;
        return Ok(ExitCode::SUCCESS);
    }
    // Before other threads exist, also those of MPI.
    let signals = Signals::watch()?;
    match Job::join(&signals)? {
        Some(job) => job.run(arguments, &signals),
        None => {
            files::check_outputs(arguments, Bundle::read(folder).ok().as_ref())?;
            let start = Instant::now();
            let runtime = Arc::new(load(arguments, None).map_err(|error| error.to_string())?);
            serve_user(arguments, &signals, &runtime, start.elapsed())
        }
    }
}

/// Loads the bundle, or the part of a rank.
fn load(arguments: &Arguments, job: Option<&Job>) -> Result<ResilientRuntime, Error> {
    let (&Arguments { threads, in_flight, stall_timeout, .. }, cold) = (arguments, arguments.cold());
    let choices = arguments.choices.clone();
    let (allowed_paths, map_weights) = (arguments.allowed_paths.clone(), arguments.maps_weights);
    let communicator = job.map(Job::communicator);
    let options = Options {
        threads,
        in_flight,
        stall_timeout,
        cold,
        choices,
        allowed_paths,
        map_weights,
        communicator,
        ..Options::default()
    };
    let observer: RecoveryObserver = Arc::new(recovery::report);
    ResilientRuntime::load(&arguments.bundle, options, (!arguments.is_quiet).then_some(observer))
}

/// Runs the requests of the user, and reports and writes their results.
fn serve_user(
    arguments: &Arguments,
    signals: &Signals,
    resilient: &Arc<ResilientRuntime>,
    load_time: Duration,
) -> Result<ExitCode, String> {
    let current = || resilient.current().map_err(|error| error.to_string());
    let runtime = current()?;
    if runtime.bundle().lacks_extents && !arguments.is_quiet {
        eprintln!(
            "divi-run: warning: '{}' has format divi-bundle/1, which does not state the bytes that its calls access; compile the model again",
            arguments.bundle.display()
        );
    }
    signals.close_on_signal(resilient);
    let inputs = inputs::gather(&runtime, arguments)?;
    let expected = expected::read(&runtime, arguments)?;
    let reference = compare::reference(&runtime, &inputs, arguments)?;
    if arguments.is_info && !arguments.is_json {
        let losses = describe::losses(&arguments.bundle, runtime.bundle()).map_err(|error| error.to_string())?;
        files::print(&describe::bundle(runtime.bundle(), &losses, arguments.in_flight))?;
    }
    // A recovery releases its memory.
    drop(runtime);
    let mut differing = None;
    let mut check = |outputs: &Outputs| {
        if differing.is_none() {
            differing = expected::compare(&expected, outputs, arguments.tolerance).err();
        }
    };
    let measured = match measure::measure(resilient, &inputs, arguments, &mut check) {
        Err(Error::Cancelled | Error::Closed) if signals.were_seen() => {
            eprintln!("divi-run: interrupted");
            return Ok(ExitCode::from(INTERRUPTED));
        }
        other => other.map_err(|error| error.to_string())?,
    };
    let runtime = current()?;
    files::write_outputs(arguments, &measured.outputs)?;
    files::write_measurements(arguments, &runtime, &measured)?;
    let differences = compare::compare(&reference, &measured.outputs)?;
    let differences = match arguments.by_task {
        true => compare::by_task(&runtime.bundle().task_results, &differences),
        false => differences.into_iter().flatten().collect(),
    };
    if !arguments.is_quiet || arguments.is_json {
        files::print(&report::report(&runtime, &measured, &differences, arguments, load_time))?;
    }
    if let Some(differing) = differing {
        return Err(differing);
    }
    let compared = expected::compare(&expected, &measured.outputs, arguments.tolerance)?;
    if !arguments.is_quiet && !arguments.is_json {
        files::print(&compared)?;
    }
    Ok(ExitCode::SUCCESS)
}
