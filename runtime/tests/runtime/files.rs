//! Traces, profiles and descriptions.

use crate::kit::{floats, full, options, two_devices};
use divi_runtime::{
    Recording, Runtime,
    bundle::{Mode, Profile},
    profiles, trace,
};
use serde_json::{Value, json};

#[test]
fn spans_become_traces_and_profiles() {
    let mut builder = two_devices(Mode::Latency, false);
    for (index, step) in builder.bundle.steps.iter_mut().enumerate() {
        (step.start_us, step.duration_us) = (Some(10.0 * index as f64), Some(8.0));
    }
    let entry = json!({"ops": ["Mul"], "in": [[64]], "out": [64], "dtype": "f32"});
    for stage in &mut builder.bundle.stages {
        stage.tasks[0].profile = Some(Profile { batch: 1, entry: entry.clone() });
    }
    assert_eq!(builder.bundle.values[0].tensor, floats(&[64]));
    let folder = builder.write();
    let runtime = Runtime::load(folder.path(), options()).unwrap();
    runtime.run(&[("x", full(1.0).view())]).unwrap();
    runtime.record(Recording::Tasks);
    (0..3).for_each(|_| drop(runtime.run(&[("x", full(1.0).view())]).unwrap()));
    runtime.record(Recording::Off);
    let (spans, dropped) = runtime.take_spans();
    // Per request: four steps, two of which have a task.
    assert_eq!((spans.len(), dropped), (18, 0));
    assert!(spans.iter().all(|span| span.begin_ns <= span.end_ns && (1..=3).contains(&span.request)));
    assert!(runtime.take_spans().0.is_empty());

    let text = trace(runtime.bundle(), &spans, &[]);
    let events = serde_json::from_str::<Value>(&text).unwrap()["traceEvents"].as_array().unwrap().clone();
    let named = |process: u64, name: &str| {
        events.iter().filter(|event| event["ph"] == "X" && event["pid"] == process && event["name"] == name).count()
    };
    for name in ["first", "second", "first task", "second task", "transfer of half", "transfer of whole"] {
        assert_eq!((named(1, name), named(2, name)), (3, 3), "{name}");
    }
    let tracks: Vec<_> = events.iter().filter(|event| event["name"] == "thread_name" && event["pid"] == 1).collect();
    let tracks: Vec<_> = tracks.iter().map(|event| event["args"]["name"].as_str().unwrap()).collect();
    assert_eq!(tracks, ["cpu0", "cpu1", "cpu0>cpu1", "cpu1>cpu0"]);

    let profiles = profiles(&runtime, &spans);
    let [(kind, text)] = &profiles[..] else { panic!("{profiles:?}") };
    let profile: Value = serde_json::from_str(text).unwrap();
    assert_eq!((&kind[..], &profile["format"]), ("cpu", &json!("divi-profile/1")));
    let [entry] = &profile["entries"].as_array().unwrap()[..] else { panic!("{text}") };
    assert_eq!((&entry["ops"], &entry["count"]), (&json!(["Mul"]), &json!(2)));
    assert!(entry["us"]["1"].as_f64().is_some());
}

#[test]
fn descriptions_round_trip_and_are_readable() {
    let builder = two_devices(Mode::Pipeline, true);
    let folder = builder.write();
    let bundle = divi_runtime::bundle::Bundle::read(folder.path()).unwrap();
    assert_eq!((bundle.steps.len(), bundle.sha256.len()), (4, 64));
    let text = std::fs::read_to_string(folder.join("bundle.json")).unwrap();
    assert!(text.lines().any(|line| line.trim_start().starts_with("{\"name\":\"half\"")), "{text}");
    assert!(text.lines().all(|line| line.len() < 200), "{text}");
}
