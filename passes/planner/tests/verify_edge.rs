//! Invalid placements on edge networks are rejected with a message that names the object, the place and the amount.

#[path = "small/refusal.rs"]
mod refusal;

use divi_planner::plan::{Bound, Schedule};
use divi_planner::units::Micros;
use divi_planner::{Plan, Problem, Terms, verify, verify_under};
use refusal::refuses;

/// A diamond with a skip edge on three machines: no link leads from the last to the first.
const PROBLEM: &str = r#"{"format":"divi-problem/1","name":"diamond",
"devices":[{"id":0,"name":"cpu","batch_sizes":[1]}],"bandwidth":[[null]],
"nodes":[
{"id":0,"name":"in","time":{"1":[1]},"weight":0,"input":0,"output":1},
{"id":1,"name":"left","time":{"1":[1]},"weight":0,"input":0,"output":1},
{"id":2,"name":"right","time":{"1":[1]},"weight":0,"input":0,"output":1},
{"id":3,"name":"out","time":{"1":[1]},"weight":0,"input":0,"output":1}],
"edges":[[0,1],[0,2],[1,3],[2,3],[0,3]],
"edge":{"flops":[8,12,6,2],"rate":[2,1,4],"bandwidth":[[null,2,4],[1,null,null],[0,2,null]],"edge_bytes":[4,6,8,10,2]}}"#;

fn problem(replacements: &[(&str, &str)]) -> Problem {
    let text = replacements.iter().fold(PROBLEM.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old} is not there to be replaced");
        text.replacen(old, new, 1)
    });
    Problem::read(&text).expect("a problem")
}

fn plan(problem: &Problem, place: [usize; 4], period: f64) -> Plan {
    let schedule = Schedule::Edge { place: place.to_vec(), period: Micros(period) };
    Plan::new(problem, "by hand", schedule, Bound::new(Micros(1.0), "thinking"))
}

#[test]
fn valid_plans_are_accepted() {
    let problem = problem(&[]);
    // `in` and `right` on machine 0: 14 / 2; `left` on 1: 12; `out` on 2: 0.5. From 0 to 2: 10 + 2 bytes at 4, to 1: 4 at
    // 2.
    let plan_one = plan(&problem, [0, 1, 0, 2], 12.0);
    assert_eq!(verify(&problem, &plan_one), Ok(Micros(12.0)));
    assert_eq!(Plan::read(&plan_one.write()), Ok(plan_one));
    // `left` and `right` on 2: 18 / 4, `out` on 1: 2. From 0 to 2: 4 + 6 at 4, from 2 to 1: 8 + 10 at 2: the slowest.
    assert_eq!(verify(&problem, &plan(&problem, [0, 2, 2, 1], 9.0)), Ok(Micros(9.0)));
    // An unlimited link takes no time: `in` takes 8 on machine 1, and all else 20 / 4.
    assert_eq!(verify(&problem, &plan(&problem, [1, 2, 2, 2], 8.0)), Ok(Micros(8.0)));
}

#[test]
fn values_that_are_wrong() {
    let problem = problem(&[]);
    refuses(&problem, &plan(&problem, [0, 2, 2, 1], 8.0), "period: is 8, but the plan takes 9: off by 1");
    let mut above = plan(&problem, [0, 2, 2, 1], 9.0);
    above.bound = Micros(9.5);
    refuses(&problem, &above, "bound: 9.5 is above the plan's own value 9");
    let mut serial = plan(&problem, [0, 2, 2, 1], 9.0);
    serial.pipeline_cost = Some("serial".to_owned());
    refuses(&problem, &serial, "pipeline_cost: is serial, but machines of an edge network overlap");
}

#[test]
fn unknown_machines() {
    let problem = problem(&[]);
    refuses(&problem, &plan(&problem, [0, 3, 0, 7], 1.0), "node 1 (left): is on machine 3, but there are 3");
    let schedule = Schedule::Edge { place: vec![0, 0], period: Micros(14.0) };
    let short = Plan::new(&problem, "by hand", schedule, Bound::new(Micros(1.0), "thinking"));
    refuses(&problem, &short, "place: has 2 entries, but there are 4 nodes");
    let mut without = problem.clone();
    without.edge = None;
    refuses(
        &without,
        &plan(&without, [0, 0, 0, 0], 14.0),
        "place: is there, but the problem has no edge network (edge)",
    );
}

#[test]
fn links_that_are_missing() {
    let problem = problem(&[]);
    refuses(
        &problem,
        &plan(&problem, [0, 2, 0, 0], 1.0),
        "node 3 (out): is on machine 0 and reads what node 1 (left) computes on machine 2, but no link leads there",
    );
}

#[test]
fn split_points_and_threads() {
    let limited = problem(&[("\"edge_bytes\"", "\"splits\":2,\"edge_bytes\"")]);
    assert_eq!(verify(&limited, &plan(&limited, [0, 2, 2, 1], 9.0)), Ok(Micros(9.0)));
    refuses(&limited, &plan(&limited, [0, 1, 0, 2], 12.0), "place: has 3 split points, but at most 2 are allowed");
    let mut allowed = plan(&limited, [0, 1, 0, 2], 12.0);
    allowed.splits = Some(3);
    assert_eq!(verify_under(&limited, &allowed, &Terms::stated_by(&allowed)), Ok(Micros(12.0)));
    assert_eq!(Plan::read(&allowed.write()), Ok(allowed));
    let mut fewer = plan(&limited, [0, 2, 2, 1], 9.0);
    fewer.splits = Some(1);
    refuses(&limited, &fewer, "splits: is 1 in the plan, but 2 in the problem; verify it with --splits=1");
    let error = verify_under(&limited, &fewer, &Terms::stated_by(&fewer)).unwrap_err().to_string();
    assert!(error.contains("place: has 2 split points, but at most 1 are allowed"), "{error}");

    let threads = problem(&[("\"edge_bytes\"", "\"threads\":[1,1,1],\"edge_bytes\"")]);
    assert_eq!(verify(&threads, &plan(&threads, [0, 2, 2, 1], 9.0)), Ok(Micros(9.0)));
    refuses(&threads, &plan(&threads, [0, 1, 0, 2], 12.0), "machine 0: has 2 threads, but may have 1");

    // Split points are counted in topological order, not by number.
    let order = ("[[0,1],[0,2],[1,3],[2,3],[0,3]]", "[[2,0],[0,1],[2,1],[1,3],[2,3]]");
    let renumbered = problem(&[order, ("\"edge_bytes\"", "\"splits\":1,\"edge_bytes\"")]);
    assert_eq!(verify(&renumbered, &plan(&renumbered, [0, 1, 0, 1], 14.0)), Ok(Micros(14.0)));
    refuses(&renumbered, &plan(&renumbered, [0, 1, 1, 1], 1.0), "has 2 split points, but at most 1 are allowed");
}

#[test]
fn pins_and_colocation() {
    let pinned = problem(&[("\"edge_bytes\"", "\"pin\":[null,1,null,null],\"edge_bytes\"")]);
    assert_eq!(verify(&pinned, &plan(&pinned, [0, 1, 0, 2], 12.0)), Ok(Micros(12.0)));
    refuses(&pinned, &plan(&pinned, [0, 2, 2, 1], 9.0), "node 1 (left): is on machine 2, but is pinned to machine 1");
    let together = problem(&[("\"edges\"", "\"colocate\":[[1,2]],\"edges\"")]);
    assert_eq!(verify(&together, &plan(&together, [0, 2, 2, 1], 9.0)), Ok(Micros(9.0)));
    refuses(
        &together,
        &plan(&together, [0, 1, 0, 2], 12.0),
        "node 2 (right): is on machine 0, but shares one with node 1 (left), which is on machine 1",
    );
}

#[test]
fn split_points_of_other_plans() {
    let problem = problem(&[]);
    let schedule = Schedule::Latency {
        device: vec![0; 4],
        start: [0.0, 1.0, 2.0, 3.0].map(Micros).to_vec(),
        makespan: Micros(4.0),
    };
    let mut latency = Plan::new(&problem, "by hand", schedule, Bound::new(Micros(1.0), "thinking"));
    assert_eq!(verify(&problem, &latency), Ok(Micros(4.0)));
    latency.splits = Some(1);
    refuses(&problem, &latency, "splits: split points of anything but an edge network: not verified yet");
}
