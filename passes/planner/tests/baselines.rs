//! Baselines: known values, and valid plans.

use std::fs;
use std::path::Path;

use divi_planner::plan::Limit;
use divi_planner::units::Micros;
use divi_planner::{Error, Instance, Objective, Options, Problem, bounds, solve};

fn problem(name: &str) -> Problem {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/problems").join(name);
    Problem::read(&fs::read_to_string(path).expect("a problem")).expect("a well-formed problem")
}

/// Makespans of one input in microseconds, from an independent implementation.
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
            assert_eq!(plan.value.0.round(), expected, "{name} {algorithm}");
        }
    }
}

/// Makespans of the queues of the repository: a baseline splits a task's inputs if that ends earlier.
const QUEUES: [(&str, [f64; 4]); 10] = [
    ("ER_N10_m10_c1_sdep_s1_L16", [1125643.0, 1125643.0, 738790.0, 729037.0]),
    ("ER_N10_m10_c1_sdep_s6_L16_mem", [5635937.0, 5866955.0, 1540466.0, 1299325.0]),
    ("ER_N10_m10_c2_sdep_s1_L16", [1219392.0, 1219392.0, 781522.0, 762035.0]),
    ("ER_N10_m10_c3_wdep_s1_L16", [1032825.0, 1032825.0, 606550.0, 623202.0]),
    ("ER_N10_m1_c1_sdep_s1_L16", [111758.0, 111758.0, 70573.0, 72184.0]),
    ("ER_N10_m1_c1_sdep_s5_L4", [42105.0, 42105.0, 28688.0, 25381.0]),
    ("ER_N10_m5_c1_sdep_s1_L16", [618918.0, 618918.0, 401072.0, 403695.0]),
    ("ER_N32_m1_c1_sdep_s1_L16", [341590.0, 341590.0, 202644.0, 207011.0]),
    ("ER_N6_m1_c1_sdep_s5_L4", [21366.0, 21366.0, 16378.0, 16607.0]),
    ("WS_N32_m1_c1_sdep_s1_L16", [357953.0, 357953.0, 239353.0, 224489.0]),
];

#[test]
fn queues_take_no_longer_than_they_did() {
    for (name, expected) in QUEUES {
        let problem = problem(&format!("batch/rwnn_{name}.json"));
        for (algorithm, expected) in ["single", "met", "greedy", "heft"].into_iter().zip(expected) {
            let plan = solve(&problem, Objective::Batch, algorithm, &Options::default())
                .unwrap_or_else(|error| panic!("{name} {algorithm}: {error}"));
            assert_eq!(plan.value.0.round(), expected, "{name} {algorithm}");
        }
    }
}

/// Accelerators that together cannot hold the model, co-located operators, a CPU that is ten times slower.
#[test]
fn memory_and_colocation_are_respected() {
    for name in ["layer_bert24", "layer_gnmt", "op_bert_l-3"] {
        let problem = problem(&format!("msr/msr_lat_{name}_inference.json"));
        for algorithm in ["single", "met", "greedy", "heft"] {
            let plan = solve(&problem, Objective::Latency, algorithm, &Options::default())
                .unwrap_or_else(|error| panic!("{name} {algorithm}: {error}"));
            assert!(plan.bound > Micros::ZERO && plan.gap < 1.0, "{name} {algorithm}");
        }
    }
}

/// Three tasks of six bytes, two devices that hold ten: enough in total, but two tasks would have to share a device.
#[test]
fn corners_are_named() {
    let text = r#"{"format":"divi-problem/1","name":"corner","L":2,
        "devices":[{"id":0,"name":"a","memory":20,"batch_sizes":[2]},{"id":1,"name":"b","memory":20,"batch_sizes":[2]}],
        "bandwidth":[[null,1],[1,null]],
        "nodes":[{"id":0,"time":{"2":[1,1]},"weight":0,"input":2,"output":4},
        {"id":1,"time":{"2":[1,1]},"weight":0,"input":2,"output":4},
        {"id":2,"time":{"2":[1,1]},"weight":0,"input":2,"output":4}]}"#;
    let says = |text: &str, objective: Objective| {
        let problem = Problem::read(text).expect("a problem");
        solve(&problem, objective, "heft", &Options::default()).expect_err("no plan").to_string()
    };
    assert_eq!(
        says(text, Objective::Batch),
        "no placement found that fits memory and links, cutting queues task by task or with all 2 inputs in one batch: \
         the tasks need 36 bytes (a has 20 bytes, b has 20 bytes); this does not prove that there is no plan; \
         there is a plan with 24 bytes on a, 4 bytes more"
    );
    let one =
        text.replace("\"L\":2", "\"L\":1").replace("[2]", "[1]").replace("\"2\":", "\"1\":").replace(":20", ":10");
    assert_eq!(
        says(&one, Objective::Latency),
        "the problem has no plan: devices: no placement fits memory and links: the tasks need 18 bytes (a has 10 bytes, b \
         has 10 bytes); there is a plan with 12 bytes on a, 2 bytes more"
    );
}

/// Three large tasks after many small ones, which fill both devices to the last byte: list schedulers spread the small
/// ones, so only a search finds a placement.
#[test]
fn tasks_that_hardly_fit_are_packed() {
    let small = 300;
    let node = |id: usize| {
        let weight = if id < small { 1 } else { small / 3 };
        format!(r#"{{"id":{id},"time":{{"1":[1,1]}},"weight":{weight},"input":0,"output":0}}"#)
    };
    let nodes: Vec<String> = (0..small + 3).map(node).collect();
    let text = format!(
        r#"{{"format":"divi-problem/1","name":"full","nodes":[{}],"bandwidth":[[null,1],[1,null]],
        "devices":[{{"id":0,"name":"a","memory":{small}}},{{"id":1,"name":"b","memory":{small}}}]}}"#,
        nodes.join(",")
    );
    let problem = Problem::read(&text).expect("a problem");
    for algorithm in ["greedy", "met", "heft"] {
        let plan = solve(&problem, Objective::Latency, algorithm, &Options::default()).expect("a plan");
        // Two of the large tasks share a device with a third of the small ones.
        assert_eq!(plan.value, Micros(201.0), "{algorithm}");
    }
}

#[test]
fn no_bound_passes_the_best_known() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/problems/best-known.json");
    let known: serde_json::Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let latencies = known["latency"].as_object().unwrap();
    let mut shares = Vec::new();
    for (name, entry) in latencies {
        let folder = name.split('_').next().unwrap();
        let instance = Instance::new(&problem(&format!("{folder}/{name}.json")), Objective::Latency).unwrap();
        let best = Micros(entry["value"].as_f64().unwrap());
        let bounds = bounds::all(&instance);
        for bound in &bounds {
            assert!(bound.value <= best * (1.0 + 1e-9), "{name}: {} says {}", bound.by, bound.value);
        }
        shares.push(bounds.iter().map(|bound| bound.value).fold(Micros::ZERO, Micros::max) / best);
    }
    assert!(shares.len() > 20);
    let good = shares.iter().filter(|share| **share > 0.9).count();
    assert!(good >= 15, "{shares:?}");
}

/// Problems whose memory or links allow few plans, none of which a list scheduler finds.
#[test]
fn tight_problems_are_planned() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tight");
    for (name, best) in [("order_matters", 9.0), ("queue_alive", 22.0), ("queue_cut", 11.0), ("queue_links", 0.0005)] {
        let text = fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
        let problem = Problem::read(&text).unwrap();
        let objective = if problem.inputs > 1 { Objective::Batch } else { Objective::Latency };
        let heft = solve(&problem, objective, "heft", &Options::default());
        assert!(matches!(heft, Err(Error::NotFound(_))), "{name}: heft has a plan now");
        let briefly = Options { limit: Some(Limit::Iterations(2000)), ..Options::default() };
        let plan = solve(&problem, objective, "auto", &briefly).unwrap();
        assert!(plan.value <= Micros(best) * 1.01, "{name}: {} instead of {best}", plan.value);
    }
}
