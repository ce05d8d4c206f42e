//! Description of a bundle as text.

use divi_runtime::{
    Drivers, Error, MemoryUse,
    bundle::{Action, Bundle, Device, Loss, Mode, Objective},
};
use std::{fmt::Write as _, path::Path};

pub(crate) fn checked(folder: &Path, bundle: &Bundle, in_flight: Option<usize>) -> String {
    let files = || bundle.files.iter().chain(&bundle.model_files);
    let bytes = files().map(|file| file.bytes).fold(0, u64::saturating_add);
    let (files, folder) = (files().count(), folder.display());
    format!("{folder}: valid, {files} files, {}\n{}", size(bytes), memory(bundle, in_flight))
}

/// Program without a node, or the reason why there is none.
pub(crate) type Replacement = (usize, Result<Bundle, String>);

/// Reads the programs for the loss of each node.
pub(crate) fn losses(folder: &Path, bundle: &Bundle) -> Result<Vec<Replacement>, Error> {
    let read = |Loss { node, reason, .. }: &Loss| {
        Ok((
            *node,
            match reason {
                Some(reason) => Err(reason.clone()),
                None => Ok(Bundle::read_without(folder, *node, &Drivers::default())?),
            },
        ))
    };
    bundle.losses.iter().map(read).collect()
}

pub(crate) fn bundle(bundle: &Bundle, losses: &[Replacement], in_flight: Option<usize>) -> String {
    let code: Vec<_> = bundle.executables.iter().map(|it| format!("{} ({})", it.file, it.format)).collect();
    let mut text = format!("model     {}\ncode      {}\n", bundle.model, code.join(", "));
    let objective = &bundle.objective;
    let _ = write!(text, "objective {}", mode(objective.mode));
    if objective.inputs != 1 {
        let _ = write!(text, " of {} inputs", objective.inputs);
    }
    text += &certificate(objective);
    text.push('\n');
    text.extend(losses.iter().map(loss));
    for (ports, kind) in [(&bundle.inputs, "input    "), (&bundle.outputs, "output   ")] {
        for port in ports {
            let _ = writeln!(text, "{kind} {}: {}", port.name, bundle.values[port.value].tensor);
        }
    }
    let transfers = bundle.steps.iter().filter(|step| matches!(step.action, Action::Transfer { .. })).count();
    let tasks: usize = bundle.stages.iter().map(|stage| stage.tasks.len()).sum();
    let calls: usize = bundle.stages.iter().map(|stage| stage.calls.len()).sum();
    let (stages, constants) = (bundle.stages.len(), bundle.constants.len());
    let _ = writeln!(
        text,
        "stages    {stages} with {tasks} tasks in {calls} calls; {transfers} transfers, {constants} constants"
    );
    text + &memory(bundle, in_flight)
}

/// Returns the predicted value and the bound of a plan.
fn certificate(objective: &Objective) -> String {
    let predicted = objective.predicted_us.map(|predicted| format!(", predicted {}", time(predicted)));
    let bound = objective.bound_us.map(|bound| format!(", bound {}", time(bound)));
    predicted.unwrap_or_default() + &bound.unwrap_or_default()
}

fn loss((node, replacement): &Replacement) -> String {
    match replacement {
        Ok(other) => format!("loss      of node {node}: continues{}\n", certificate(&other.objective)),
        Err(reason) => format!("loss      of node {node}: ends a job: {reason}\n"),
    }
}

fn memory(bundle: &Bundle, in_flight: Option<usize>) -> String {
    let line = |(device, used): (&Device, MemoryUse)| {
        format!(
            "device    {}: {} of {}: weights {}, arena {}, values {}\n",
            device.id,
            size(used.total()),
            size(device.memory),
            size(used.weights),
            size(used.arena),
            size(used.values)
        )
    };
    bundle.devices.iter().zip(MemoryUse::planned(bundle, in_flight)).map(line).collect()
}

pub(crate) fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Latency => "latency",
        Mode::Batch => "batch",
        Mode::Pipeline => "pipeline",
    }
}

pub(crate) fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let mut number = bytes as f64 / 1024.0;
    let mut unit = 0;
    while number >= 1024.0 && unit + 1 < units.len() {
        number /= 1024.0;
        unit += 1;
    }
    format!("{number:.2} {}", units[unit])
}

pub(crate) fn time(micros: f64) -> String {
    if micros < 1e4 { format!("{micros:.1} µs") } else { format!("{:.2} ms", micros / 1e3) }
}
