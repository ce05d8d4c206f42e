//! Tests of the model's error on networks that it was not fitted to.

use divi_cost::device::{CPU, CUDA, Kind};
use divi_cost::fit::Target;
use divi_cost::pytorch::Operators;
use divi_cost::validate::{ProfiledNetwork, Report, Summary, Total, leave_one_network_out, leave_one_out};
use std::{fs, path::Path};

/// Returns the networks that divi's kernels were measured on, with one thread and with two.
fn networks() -> Vec<ProfiledNetwork> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/profiles");
    ProfiledNetwork::read_all(&folder.join("cpu-1"), &folder.join("cpu-2")).expect("the profiles are right")
}

#[test]
fn folders_without_profiles_are_errors() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-profiles");
    fs::create_dir_all(&folder).expect("the folder is ours");
    let error = ProfiledNetwork::read_all(&folder, &folder).unwrap_err();
    let expected =
        format!("{}: contains no profiles; measure networks on one thread with 'divi-profile", folder.display());
    assert!(error.starts_with(&expected), "{error}");
    let error = ProfiledNetwork::read_all(&folder.join("none"), &folder).unwrap_err();
    assert!(error.ends_with("none: No such file or directory (os error 2)"), "{error}");
}

fn report(kind: Kind) -> Report {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/profiles/h200_xeon16_operators.json");
    let text = fs::read_to_string(path).expect("the table is in the repository");
    let table = Operators::read(&text, kind).expect("the table is right");
    leave_one_out(&table, &Target::of(kind)).expect("every operator's work is known")
}

/// Checks the median error of all operators, that of each network unless it is `excluded`, and the sum of each network.
fn check(kind: Kind, median: f64, excluded: &[&str]) {
    let report = report(kind);
    let all = Summary::of(&report.validated).expect("operators are validated");
    assert!(all.median <= median, "{all:?}");
    let mut models: Vec<&str> = report.validated.iter().map(|it| &it.model[..]).collect();
    models.dedup();
    assert_eq!(models.len(), 9);
    for model in models {
        let summary = Summary::of(report.validated.iter().filter(|it| it.model == model)).expect("it has operators");
        assert!((summary.ratio - 1.0).abs() <= 0.15, "{model}: {summary:?}");
        assert!(summary.median <= median || excluded.contains(&model), "{model}: {summary:?}");
    }
}

/// The measured launches of googlenet take one and a half times as long as those of the other networks.
#[test]
fn on_the_gpu() {
    check(CUDA, 0.20, &["googlenet"]);
}

#[test]
fn on_the_cpu() {
    let networks = networks();
    let totals = leave_one_network_out(&networks, &Target::of(CPU), 2).expect("there are samples");
    for (network, totals) in networks.iter().zip(totals) {
        for Total { measured, estimated } in totals {
            assert!((estimated / measured - 1.0).abs() <= 0.25, "{}: {estimated}, measured {measured}", network.name);
        }
    }
}
