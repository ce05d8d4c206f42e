//! The baselines give the values that they are known to give, and what they give holds.

use std::fs;
use std::path::Path;

use divi_planner::{Objective, Options, Problem, solve};

fn problem(name: &str) -> Problem {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/problems").join(name);
    Problem::read(&fs::read_to_string(path).expect("a problem")).expect("a well-formed problem")
}

/// Makespans of one input in microseconds, from an implementation that shares nothing with this one.
const LATENCY: [(&str, [f64; 4]); 12] = [
    ("ER_N10_m1_c1_sdep_s1", [23528.0, 13496.0, 10704.0, 10704.0]),
    ("ER_N32_m1_c1_sdep_s1", [71914.0, 30446.0, 25030.0, 25943.0]),
    ("WS_N32_m1_c1_sdep_s1", [75358.0, 53475.0, 43689.0, 38716.0]),
    ("BA_N32_m1_c1_sdep_s1", [77277.0, 54493.0, 37065.0, 34954.0]),
    ("ER_N10_m5_c1_sdep_s1", [130298.0, 88501.0, 69751.0, 67756.0]),
    ("ER_N10_m5_c2_sdep_s1", [121933.0, 76169.0, 61484.0, 58309.0]),
    ("ER_N10_m5_c2_wdep_s1", [111819.0, 60992.0, 38241.0, 40240.0]),
    ("ER_N10_m10_c1_sdep_s1", [236977.0, 155643.0, 126281.0, 120341.0]),
    ("ER_N10_m10_c2_sdep_s1", [256715.0, 156397.0, 122245.0, 117726.0]),
    ("ER_N10_m10_c4_wdep_s1", [221943.0, 128582.0, 89287.0, 77128.0]),
    ("ER_N10_m20_c1_sdep_s1", [472417.0, 339427.0, 267221.0, 249617.0]),
    ("ER_N10_m20_c2_wdep_s1", [438803.0, 238928.0, 164809.0, 155567.0]),
];

#[test]
fn latencies_are_the_known_ones() {
    for (name, expected) in LATENCY {
        let problem = problem(&format!("rwnn/rwnn_{name}.json"));
        for (algorithm, expected) in ["single", "met", "greedy", "heft"].into_iter().zip(expected) {
            let plan = solve(&problem, Objective::Latency, algorithm, &Options::default())
                .unwrap_or_else(|error| panic!("{name} {algorithm}: {error}"));
            assert_eq!(plan.value.round(), expected, "{name} {algorithm}");
        }
    }
}
