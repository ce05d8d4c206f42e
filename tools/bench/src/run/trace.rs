//! Analysis of traces of `divi-run`.

use serde_json::Value;
use std::collections::BTreeMap;

/// Start and end, in microseconds.
type Span = (f64, f64);

/// Returns the fraction of time, between the first start and the last end of a stage, in which at least two devices ran stages.
pub(super) fn share_at_once(trace: &str) -> Result<f64, String> {
    let trace: Value = serde_json::from_str(trace).map_err(|error| format!("the trace is not JSON: {error}"))?;
    let events = trace["traceEvents"].as_array().ok_or("the trace has no events")?;
    let mut lanes: BTreeMap<u64, Vec<Span>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["cat"] == "stage" && event["pid"] == 1) {
        let number = |key: &str| event[key].as_f64().ok_or_else(|| format!("a stage of the trace has no {key}"));
        let (start, takes) = (number("ts")?, number("dur")?);
        lanes.entry(number("tid")? as u64).or_default().push((start, start + takes));
    }
    let lanes: Vec<Vec<Span>> = lanes.into_values().map(joined).collect();
    let spans = || lanes.iter().flatten();
    let begin = spans().fold(f64::INFINITY, |first, span| first.min(span.0));
    let end = spans().fold(f64::NEG_INFINITY, |last, span| last.max(span.1));
    let mut changes: Vec<(f64, i32)> = spans().flat_map(|&(start, end)| [(start, 1), (end, -1)]).collect();
    changes.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut busy, mut since, mut at_once) = (0, 0.0, 0.0);
    for (time, change) in changes {
        if busy >= 2 {
            at_once += time - since;
        }
        (busy, since) = (busy + change, time);
    }
    Ok(if end > begin { at_once / (end - begin) } else { 0.0 })
}

/// Merges the overlapping spans of a lane.
fn joined(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut merged: Vec<Span> = vec![];
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.0 <= last.1 => last.1 = last.1.max(span.1),
            _ => merged.push(span),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn share(spans: &[(u32, f64, f64)]) -> f64 {
        let stage = |&(lane, start, end): &(u32, f64, f64)| json!({"ph": "X", "cat": "stage", "pid": 1, "tid": lane, "ts": start, "dur": end - start});
        let mut events: Vec<Value> = spans.iter().map(stage).collect();
        // Tasks and predicted spans are not counted.
        events.push(json!({"ph": "X", "cat": "task", "pid": 1, "tid": 0, "ts": 0, "dur": 1000}));
        events.push(json!({"ph": "X", "cat": "stage", "pid": 2, "tid": 5, "ts": 0, "dur": 1000}));
        share_at_once(&json!({"traceEvents": events}).to_string()).unwrap()
    }

    #[test]
    fn overlap_needs_two_devices() {
        assert_eq!(share(&[]), 0.0);
        assert_eq!(share(&[(0, 0.0, 5.0), (1, 5.0, 10.0)]), 0.0);
        assert_eq!(share(&[(0, 10.0, 20.0), (1, 15.0, 30.0)]), 0.25);
        assert_eq!(share(&[(0, 0.0, 6.0), (0, 4.0, 8.0), (1, 2.0, 5.0), (1, 5.0, 6.0)]), 0.5);
        assert_eq!(share(&[(0, 0.0, 8.0), (1, 0.0, 4.0), (2, 2.0, 6.0)]), 0.75);
    }

    #[test]
    fn invalid_traces_are_reported() {
        assert!(share_at_once("{").unwrap_err().starts_with("the trace is not JSON: "));
        assert_eq!(share_at_once("{}"), Err("the trace has no events".to_owned()));
    }
}
