//! Report of measured and predicted times.

use crate::{
    arguments::Arguments,
    compare::{self, Difference},
    describe::{mode, size, time},
    measure::Measured,
};
use divi_runtime::{
    ColdStart, Runtime, Span,
    bundle::{Action, Bundle, Mode, Step},
    median,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::Duration,
};

pub(crate) fn report(
    runtime: &Runtime,
    measured: &Measured,
    differences: &[Difference],
    arguments: &Arguments,
    load_time: Duration,
) -> String {
    if arguments.is_json {
        let mut json = as_json(runtime, measured, load_time);
        if arguments.compare.is_some() {
            json["compared"] = compare::as_json(differences);
        }
        return format!("{json}\n");
    }
    let objective = &runtime.bundle().objective;
    let statistics = Statistics::of(&measured.latencies);
    let runs = measured.latencies.len();
    let mut text = format!(
        "latency   median {}, min {}, p90 {} of {runs} run{}",
        time(statistics.median),
        time(statistics.min),
        time(statistics.p90),
        if runs == 1 { "" } else { "s" }
    );
    let predicted = objective.predicted_us.filter(|&predicted| predicted > 0.0);
    if let (Some(predicted), Mode::Latency | Mode::Batch) = (predicted, objective.mode) {
        text += &format!("; predicted {} ({:+.1} %)", time(predicted), (statistics.median / predicted - 1.0) * 100.0);
    }
    text.push('\n');
    if let Some(cold) = measured.cold {
        text += &format!("cold      {} including copies of the weights", time(cold));
        if let Some(predicted) = ColdStart::predicted(runtime.bundle()) {
            let (overlap, first) = (time(predicted.overlap_us), time(predicted.copy_first_us));
            text += &format!("; predicted {overlap} with overlap, {first} if copied first");
        }
        text.push('\n');
    }
    if objective.mode != Mode::Latency || runtime.in_flight() > 1 {
        text += &format!("throughput {:.2} inputs/s", measured.throughput);
        if let Some(predicted) = predicted_throughput(runtime) {
            let difference = (measured.throughput / predicted - 1.0) * 100.0;
            text += &format!("; predicted {predicted:.2} inputs/s ({difference:+.1} %)");
        }
        text.push('\n');
    }
    if arguments.is_info {
        let peak = peak_memory().map_or_else(|| "unknown".to_owned(), size);
        text += &format!("memory    peak {peak}; loaded in {}\n", time(load_time.as_secs_f64() * 1e6));
    }
    text + &match arguments.by_task {
        true => compare::table_by_task(differences, runtime.bundle()),
        false => compare::table(differences),
    }
}

fn as_json(runtime: &Runtime, measured: &Measured, load_time: Duration) -> Value {
    let bundle = runtime.plan();
    let statistics = Statistics::of(&measured.latencies);
    let devices = bundle.devices.iter().zip(runtime.memory()).map(
        |(device, used)| json!({"id": device.id, "weights": used.weights, "arena": used.arena, "values": used.values}),
    );
    json!({
        "model": bundle.model,
        "mode": mode(bundle.objective.mode),
        "inputs": bundle.objective.inputs,
        "runs": measured.latencies.len(),
        "in_flight": runtime.in_flight(),
        "latency_us": {"median": statistics.median, "min": statistics.min, "p90": statistics.p90, "max": statistics.max},
        "throughput_per_s": measured.throughput,
        "predicted_us": bundle.objective.predicted_us,
        "bound_us": bundle.objective.bound_us,
        "predicted_throughput_per_s": predicted_throughput(runtime),
        "cold_us": measured.cold,
        "predicted_cold_us": ColdStart::predicted(bundle).map(|cold| {
            json!({"overlap": cold.overlap_us, "copy-first": cold.copy_first_us})
        }),
        "steps": steps(runtime, measured),
        "links": links(runtime.plan(), &measured.spans),
        "load_us": load_time.as_secs_f64() * 1e6,
        "peak_memory_bytes": peak_memory(),
        "devices": devices.collect::<Vec<_>>(),
    })
}

/// Returns the times of each step in the order of the plan: the median over all recorded runs, and the time in each of them. Runs
/// of a step are in the order of their requests, so that those of several steps are comparable.
fn steps(runtime: &Runtime, measured: &Measured) -> Vec<Value> {
    let bundle = runtime.plan();
    let device = |value: usize| &bundle.devices[bundle.values[value].device].id;
    let of_step = |(index, step): (usize, &Step)| {
        let spans = measured.spans.iter().filter(|span| span.step == index && span.task.is_none());
        let mut runs: Vec<(u64, f64)> =
            spans.map(|span| (span.request, (span.end_ns - span.begin_ns) as f64 / 1e3)).collect();
        runs.sort_by_key(|(request, _)| *request);
        let micros: Vec<f64> = runs.into_iter().map(|(_, micros)| micros).collect();
        let mut json = json!({"name": bundle.step_name(step), "us": median(&micros)});
        match &step.action {
            Action::Launch { stage, .. } => json["device"] = json!(bundle.devices[bundle.stages[*stage].device].id),
            Action::Transfer { input, output, .. } => {
                (json["from"], json["to"]) = (json!(device(*input)), json!(device(*output)));
            }
            _ => return json,
        }
        json["runs_us"] = json!(micros);
        json
    };
    bundle.steps.iter().enumerate().map(of_step).collect()
}

/// Returns the bytes that were transferred over each link in the recorded runs, and those that the plan transfers in as many.
fn links(bundle: &Bundle, spans: &[Span]) -> Vec<Value> {
    let requests: BTreeSet<u64> = spans.iter().map(|span| span.request).collect();
    let mut bytes: BTreeMap<(usize, usize), (u64, u64)> = BTreeMap::new();
    for (index, step) in bundle.steps.iter().enumerate() {
        let Action::Transfer { input, output } = step.action else { continue };
        let of_link = bytes.entry((bundle.values[input].device, bundle.values[output].device)).or_default();
        let of_transfer = bundle.values[input].tensor.bytes;
        let measured = spans.iter().filter(|span| span.step == index && span.task.is_none()).count();
        of_link.0 += measured as u64 * of_transfer;
        of_link.1 += requests.len() as u64 * of_transfer;
    }
    let id = |device: usize| &bundle.devices[device].id;
    bytes
        .into_iter()
        .map(|((from, to), (bytes, planned))| {
            json!({"from": id(from), "to": id(to), "bytes": bytes, "planned_bytes": planned})
        })
        .collect()
}

/// Returns the predicted inputs per second, if the plan has a prediction.
fn predicted_throughput(runtime: &Runtime) -> Option<f64> {
    let objective = &runtime.bundle().objective;
    let micros = objective.predicted_us.filter(|&micros| micros > 0.0 && objective.mode != Mode::Latency)?;
    Some(objective.inputs.max(1) as f64 / (micros / 1e6))
}

struct Statistics {
    median: f64,
    min: f64,
    p90: f64,
    max: f64,
}

impl Statistics {
    fn of(numbers: &[f64]) -> Self {
        let mut sorted = numbers.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at =
            |share: f64| sorted.get(((sorted.len() as f64 * share).ceil() as usize).max(1) - 1).copied().unwrap_or(0.0);
        Self { median: median(numbers), min: at(0.0), p90: at(0.9), max: at(1.0) }
    }
}

/// Returns the peak resident memory of this process, in bytes.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse::<u64>().ok());
    kib.map(|kib| kib << 10)
}
