//! How good the model is, on measurements that it was not fitted to.

use divi_cost::device::{CPU, CUDA, Kind};
use divi_cost::fit::Target;
use divi_cost::pytorch::Operators;
use divi_cost::validate::{Report, Summary, leave_one_out};
use std::{fs, path::Path};

fn report(kind: Kind) -> Report {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/profiles/h200_xeon16_operators.json");
    let text = fs::read_to_string(path).expect("the table is in the repository");
    let table = Operators::read(&text, kind).expect("the table is right");
    leave_one_out(&table, &Target::of(kind)).expect("every operator's work is known")
}

/// The median error of all operators, and of each model by itself unless it is `excused`; and every model's sum.
fn holds(kind: Kind, median: f64, excused: &[&str]) {
    let report = report(kind);
    let all = Summary::of(&report.judged).expect("operators are judged");
    assert!(all.median <= median, "{all:?}");
    let mut models: Vec<&str> = report.judged.iter().map(|it| &it.model[..]).collect();
    models.dedup();
    assert_eq!(models.len(), 9);
    for model in models {
        let summary = Summary::of(report.judged.iter().filter(|it| it.model == model)).expect("it has operators");
        assert!((summary.ratio - 1.0).abs() <= 0.15, "{model}: {summary:?}");
        assert!(summary.median <= median || excused.contains(&model), "{model}: {summary:?}");
    }
}

/// The launches of googlenet were measured at one and a half times those of the other models.
#[test]
fn on_the_gpu() {
    holds(CUDA, 0.20, &["googlenet"]);
}

#[test]
fn on_the_cpu() {
    holds(CPU, 0.25, &[]);
}
