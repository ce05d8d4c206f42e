//! Traces for Chrome and Perfetto with measured and predicted spans.

use crate::{
    ClockDifference,
    bundle::{Action, Bundle, Lanes, Step},
    span::Span,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const MEASURED: u32 = 1;
const PREDICTED: u32 = 2;

/// Returns the trace as JSON, one event per line. Each lane has a track for measured spans and one for predicted spans, which
/// are relative to the start of their request. Spans are on one clock; `clocks` are the differences of those of other ranks.
pub fn trace(bundle: &Bundle, spans: &[Span], clocks: &[ClockDifference]) -> String {
    let lanes = bundle.lanes();
    let mut events = Vec::new();
    for (process, name) in [(MEASURED, "measured"), (PREDICTED, "predicted")] {
        events.push(json!({"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}}));
        events.push(json!({"ph": "M", "name": "process_sort_index", "pid": process, "args": {"sort_index": process}}));
        for lane in 0..bundle.devices.len() + lanes.links.len() {
            let name = bundle.lane_name(&lanes, lane);
            let (named, sorted) = (json!({"name": name}), json!({"sort_index": lane}));
            events.push(json!({"ph": "M", "name": "thread_name", "pid": process, "tid": lane, "args": named}));
            events.push(json!({"ph": "M", "name": "thread_sort_index", "pid": process, "tid": lane, "args": sorted}));
        }
    }
    let mut begins: BTreeMap<u64, u64> = BTreeMap::new();
    for span in spans {
        events.push(measured(bundle, &lanes, span));
        let begin = begins.entry(span.request).or_insert(span.begin_ns);
        *begin = span.begin_ns.min(*begin);
    }
    for (request, begin_ns) in begins {
        predict(bundle, &lanes, request, begin_ns as f64 / 1e3, &mut events);
    }
    let lines: Vec<String> = events.iter().map(Value::to_string).collect();
    let clock = |clock: &ClockDifference| {
        let micros = |nanos: i64| nanos as f64 / 1e3;
        json!({"rank": clock.rank, "drift_us": micros(clock.drift_ns), "error_us": clock.error_ns as f64 / 1e3})
    };
    let clocks: Vec<Value> = clocks.iter().map(clock).collect();
    format!(
        "{{\"displayTimeUnit\": \"ms\", \"otherData\": {}, \"traceEvents\": [\n{}\n]}}\n",
        json!({"clocks": clocks}),
        lines.join(",\n")
    )
}

fn measured(bundle: &Bundle, lanes: &Lanes, span: &Span) -> Value {
    let step = &bundle.steps[span.step];
    let (name, kind, predicted) = match (&step.action, span.task) {
        (Action::Launch { stage, .. }, Some(task)) => {
            let task = bundle.stages[*stage].tasks.get(task);
            (task.map_or(String::new(), |task| task.name.clone()), "task", task.and_then(|task| task.predicted_us))
        }
        _ => (bundle.step_name(step), kind(&step.action), step.duration_us),
    };
    let mut details = details(span.request, step);
    if let Action::Transfer { input, .. } = step.action {
        details["bytes"] = json!(bundle.values[input].tensor.bytes);
    }
    if let Some(predicted) = predicted {
        details["predicted_us"] = json!(predicted);
    }
    let (begin, end) = (span.begin_ns as f64 / 1e3, span.end_ns as f64 / 1e3);
    event(MEASURED, lanes.of_step[span.step], &name, kind, (begin, end - begin), details)
}

/// Appends the predicted spans of a request: its steps with a planned start and duration, and their tasks.
fn predict(bundle: &Bundle, lanes: &Lanes, request: u64, begin: f64, events: &mut Vec<Value>) {
    for (step, &lane) in bundle.steps.iter().zip(&lanes.of_step) {
        let (Some(start), Some(takes)) = (step.start_us, step.duration_us) else { continue };
        let details = || details(request, step);
        let span = (begin + start, takes);
        events.push(event(PREDICTED, lane, &bundle.step_name(step), kind(&step.action), span, details()));
        let Action::Launch { stage, .. } = step.action else { continue };
        let mut at = begin + start;
        for task in &bundle.stages[stage].tasks {
            let Some(takes) = task.predicted_us else { continue };
            events.push(event(PREDICTED, lane, &task.name, "task", (at, takes), details()));
            at += takes;
        }
    }
}

/// Returns the details of a span: its request and, for a launch of a queue, its inputs.
fn details(request: u64, step: &Step) -> Value {
    let mut details = json!({"request": request});
    if !step.inputs.is_empty() {
        let ranges = step.inputs.chunk_by(|one, next| one + 1 == *next).map(|range| match range {
            [first, .., last] => format!("{first}-{last}"),
            _ => range[0].to_string(),
        });
        details["inputs"] = json!(ranges.collect::<Vec<_>>().join(", "));
    }
    details
}

fn kind(action: &Action) -> &'static str {
    match action {
        Action::Launch { .. } => "stage",
        Action::Transfer { .. } => "transfer",
        Action::Slice { .. } => "slice",
        Action::Gather { .. } => "gather",
        Action::Send { .. } => "send",
        Action::Receive { .. } => "receive",
    }
}

fn event(process: u32, lane: usize, name: &str, kind: &str, (start, takes): (f64, f64), details: Value) -> Value {
    json!({
        "ph": "X", "name": name, "cat": kind, "pid": process, "tid": lane, "ts": start, "dur": takes, "args": details
    })
}
