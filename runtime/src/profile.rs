//! Measured task times as profiles (`divi-profile/1`) for the planner.

use crate::{bundle::Action, runtime::Runtime, span::Span};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};

const FORMAT: &str = "divi-profile/1";

/// Returns a profile per device kind as (kind, text). An entry has the median time of the tasks with the same profile key;
/// tasks without a key are left out.
pub fn profiles(runtime: &Runtime, spans: &[Span]) -> Vec<(String, String)> {
    let bundle = runtime.plan();
    let mut kinds: Vec<(String, Vec<Measured>)> = Vec::new();
    for ((step, task), micros) in times(spans) {
        let Action::Launch { stage, .. } = bundle.steps[step].action else { continue };
        let stage = &bundle.stages[stage];
        let Some(profile) = stage.tasks.get(task).and_then(|task| task.profile.as_ref()) else { continue };
        let kind = &bundle.devices[stage.device].kind;
        let index = kinds.iter().position(|(known, _)| known == kind).unwrap_or_else(|| {
            kinds.push((kind.clone(), vec![]));
            kinds.len() - 1
        });
        let measured = &mut kinds[index].1;
        let known = measured.iter().position(|known| known.entry == profile.entry).unwrap_or_else(|| {
            measured.push(Measured { entry: profile.entry.clone(), micros: BTreeMap::new(), count: 0 });
            measured.len() - 1
        });
        measured[known].micros.entry(profile.batch).or_default().extend(micros);
        measured[known].count += 1;
    }
    kinds
        .into_iter()
        .map(|(kind, measured)| {
            let text = text(&runtime.processor(&kind), &measured);
            (kind, text)
        })
        .collect()
}

struct Measured {
    entry: Value,
    /// By batch size.
    micros: BTreeMap<u64, Vec<f64>>,
    count: u64,
}

/// Returns the times of each task in µs, one per request, by step and task. A task may have several spans in a request.
fn times(spans: &[Span]) -> BTreeMap<(usize, usize), Vec<f64>> {
    let mut sums: HashMap<(usize, usize, u64), f64> = HashMap::new();
    for span in spans {
        if let Some(task) = span.task {
            *sums.entry((span.step, task, span.request)).or_default() += (span.end_ns - span.begin_ns) as f64 / 1e3;
        }
    }
    let mut times: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for ((step, task, _), micros) in sums {
        times.entry((step, task)).or_default().push(micros);
    }
    times
}

fn text(processor: &str, measured: &[Measured]) -> String {
    let entries: Vec<Value> = measured.iter().map(entry).collect();
    let runtime = concat!("divi-run ", env!("CARGO_PKG_VERSION"));
    let file = json!({"format": FORMAT, "device": processor, "runtime": runtime, "entries": entries});
    divi_json::write(&file, 2, &[])
}

fn entry(measured: &Measured) -> Value {
    let mut fields = measured.entry.as_object().cloned().unwrap_or_default();
    let rounded = |micros: f64| (micros * 1e3).round() / 1e3;
    let medians = measured.micros.iter().map(|(batch, micros)| (batch.to_string(), json!(rounded(median(micros)))));
    fields.insert("us".to_owned(), Value::Object(medians.collect::<Map<_, _>>()));
    if measured.count != 1 {
        fields.insert("count".to_owned(), json!(measured.count));
    }
    Value::Object(fields)
}

/// Returns the median; 0 for an empty slice.
pub fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted[..] {
        [] => 0.0,
        _ => (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0,
    }
}
