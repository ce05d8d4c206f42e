//! Tests of all output formats.

use divi_planner::plan::{Bound, Plan, Proof, Schedule};
use divi_planner::problem::Device;
use divi_planner::units::{Bytes, Micros};
use divi_planner::{Objective, Options, Problem, solve};
use divi_report::{About, Event, Found, Report};
use serde_json::json;

use crate::{hand, queue};

/// Names that would end strings, elements or scripts if they were not escaped.
pub(crate) const NASTY: [&str; 6] = [
    "</script><script>window.broken = 1</script>",
    "<!-- <script>",
    "\"quoted\" 'twice' \\N \\",
    "two\nlines\tand\u{0}more",
    "größe → 卷积 🚀 \u{2028}\u{202e}",
    "<img src=x onerror='window.broken = 1'>&amp;",
];

/// Returns a problem whose tasks, devices, buses and title have these names.
pub(crate) fn nasty() -> (Problem, About) {
    let mut problem = hand::problem();
    for (node, name) in problem.nodes.iter_mut().zip(NASTY) {
        node.name = Some(name.to_owned());
    }
    problem.name = NASTY[0].to_owned();
    problem.devices[1].name = NASTY[0].to_owned();
    problem.bus = Some(vec![vec![None, Some(NASTY[5].to_owned())], vec![Some(NASTY[2].to_owned()), None]]);
    let task_kinds = NASTY.map(str::to_owned).to_vec();
    (problem, About { task_kinds, device_kinds: vec![NASTY[5].to_owned()], ..About::default() })
}

/// Returns an empty problem with one device.
pub(crate) fn nothing() -> Problem {
    let device = Device { id: 0, name: "cpu0".to_owned(), memory: Some(Bytes::ZERO), batch_sizes: vec![1] };
    Problem::new("nothing", vec![device], vec![vec![None]])
}

pub(crate) fn no_plan(problem: &Problem) -> Plan {
    let schedule = Schedule::Latency { device: Vec::new(), start: Vec::new(), makespan: Micros::ZERO };
    Plan::new(problem, "none", schedule, Bound::none())
}

/// A bound that only the solver reports is marked as such, and the plan is not shown as optimal.
#[test]
fn an_unverified_bound_is_not_called_proven() {
    let problem = hand::problem();
    let mut plan = hand::plan(&problem);
    plan.prove(Bound::by(Micros(61.0), "milp", Proof::Solver).or(Bound::new(Micros(40.0), "load")));
    let report = Report::new(&problem, &plan).unwrap();
    let words =
        "latency 61.0 µs, bound 61.0 µs by milp (claimed by the solver, not verified; verified: 40.0 µs), gap 0.00 %";
    assert!(report.summary(false).contains(words), "{}", report.summary(false));
    assert!(report.svg().contains(&words.replace('\'', "&#39;")), "{}", report.svg());
    assert!(
        report.dot().contains("bound 61.0 µs (claimed by the solver, not verified; verified: 40.0 µs), gap 0.00 %")
    );
    let json = report.summary_json();
    assert_eq!((&json["proof"], &json["verified_bound"]), (&json!("solver"), &json!(40.0)));
    // Color of a closed gap.
    let green = "\x1b[32mgap";
    assert!(!report.summary(true).contains(green));
    plan.prove(Bound::by(Micros(61.0), "milp", Proof::SafeDual));
    let report = Report::new(&problem, &plan).unwrap();
    assert!(report.summary(true).contains(green), "{:?}", report.summary(true));
    assert!(report.summary(false).contains("bound 61.0 µs by milp, gap 0.00 %"), "{}", report.summary(false));
}

#[test]
fn the_summary_has_one_line_per_device() {
    let problem = hand::problem();
    let plan = hand::plan(&problem);
    let report = Report::new(&problem, &plan).unwrap();
    let expected = "\
device  tasks             busy            idle    memory
cpu0        1  25.0 %  20.0 µs  32.8 %  67.2 %  1.04 KiB  of 97.66 KiB (1.1 %)
gpu0        3  75.0 %  19.0 µs  31.1 %  68.9 %  6.25 KiB
latency 61.0 µs, bound 58.0 µs by hand, gap 4.92 %
4 transfers, 1.76 KiB (pcie: 2, 1.27 KiB; pcie.reverse: 2, 500 bytes)
";
    assert_eq!(report.summary(false), expected);
    let coloured = report.summary(true);
    let mut plain = String::new();
    for (index, part) in coloured.split('\x1b').enumerate() {
        plain.push_str(if index == 0 { part } else { part.split_once('m').unwrap().1 });
    }
    assert_eq!(plain, expected);
    assert!(coloured.contains("\x1b[38;2;39;114;181mcpu0\x1b[0m"));
}

#[test]
fn the_summary_names_operators_stages_and_bottlenecks() {
    let problem = hand::problem();
    let plan = hand::pipeline(&problem, "serial", 48.0);
    let about = About { operators: vec![0, 3, 1, 2, 2, 0], ..About::default() };
    let report = Report::new(&problem, &plan).unwrap().about(about);
    let expected = "\
device  tasks          ops             busy             idle    memory
cpu0        2  50.0 %    4  50.0 %  48.0 µs  100.0 %   0.0 %  2.41 KiB  of 97.66 KiB (2.5 %)  stage 1, bottleneck
gpu0        2  50.0 %    4  50.0 %  36.0 µs   75.0 %  25.0 %  6.84 KiB                        stage 0
pipeline 48.0 µs, bound 20.0 µs by hand, gap 58.33 %
3 transfers, 1.56 KiB (pcie: 1, 1000 bytes; pcie.reverse: 2, 600 bytes)
";
    assert_eq!(report.summary(false), expected);
}

/// Zero values are printed without a sign.
#[test]
fn idle_devices_and_no_transfers() {
    let text = r#"{"format":"divi-problem/1","name":"one","L":1,"devices":[{"id":0,"name":"a"},{"id":1,"name":"b"}],
        "bandwidth":[[null,1],[1,null]],"edges":[],
        "nodes":[{"id":0,"time":{"1":[5,null]},"weight":0,"input":0,"output":0}]}"#;
    let problem = Problem::read(text).unwrap();
    let plan = solve(&problem, Objective::Latency, "single", &Options::default()).unwrap();
    let about = About { operators: vec![1], ..About::default() };
    let report = Report::new(&problem, &plan).unwrap().about(about);
    let (words, json) = (report.summary(false), report.summary_json().to_string());
    assert!(!words.contains("-0") && !json.contains("-0"), "{words}{json}");
}

#[test]
fn the_json_summary_matches_the_plan() {
    let problem = hand::problem();
    let plan = hand::plan(&problem);
    let about = About { title: Some("net".to_owned()), device_kinds: vec!["cpu".to_owned()], ..About::default() };
    let summary = Report::new(&problem, &plan).unwrap().about(about).summary_json();
    assert_eq!(summary["title"], "net");
    assert_eq!(summary["value"], 61.0);
    assert_eq!(summary["tasks"], 4);
    assert_eq!(summary["transfers"], json!({"count": 4, "bytes": 1800.0}));
    assert_eq!(summary["links"][0]["name"], "pcie");
    let cpu = json!({
        "name": "cpu0", "kind": "cpu", "tasks": 1, "share": 0.25, "operators": null, "busy": 20.0, "idle": 41.0,
        "memory": {"weights": 70.0, "peak": 1070.0, "counted": 1070.0, "capacity": 100_000.0},
        "stages": [], "bottleneck": false,
    });
    assert_eq!(summary["devices"][0], cpu);
}

#[test]
fn the_image_has_a_bar_for_every_launch_and_transfer() {
    let problem = hand::problem();
    let plan = hand::plan(&problem);
    let svg = Report::new(&problem, &plan).unwrap().svg();
    assert_eq!(svg.matches("<title>").count(), 6 + 4);
    assert!(svg.contains("latency 61.0 µs, bound 58.0 µs by hand, gap 4.92 %"));
    // conv runs from 12 to 22 of 61, on 1086 pixels with an offset of 170.
    let x = 170.0 + 12.0 / 61.0 * 1086.0;
    let conv = svg.lines().find(|line| line.contains("conv: 12.0 µs to 22.0 µs")).unwrap();
    assert!(conv.starts_with(&format!("<rect x=\"{x:.2}\"")), "{conv}");
}

#[test]
fn the_graph_has_colors_and_sizes() {
    let problem = hand::problem();
    let plan = hand::plan(&problem);
    let dot = Report::new(&problem, &plan).unwrap().dot();
    assert!(dot.contains("t0 -> t1 [label=\"1000 bytes\""), "{dot}");
    assert!(dot.contains("  t1 -> t2;\n"));
    assert!(dot.contains("t3 [label=\"right\", fillcolor=\"#2772b5\""));
    assert!(dot.contains("d1 [label=\"gpu0\", fillcolor=\"#e69f00\""));
    // Tasks split over several devices have the colors of all.
    let shared = queue::problem();
    let plan = queue::plan(&shared);
    let dot = Report::new(&shared, &plan).unwrap().dot();
    assert!(dot.contains("t0 [label=\"task 0\", style=striped, fillcolor=\"#2772b5:#e69f00\""), "{dot}");
    assert!(dot.contains("t0 -> t1 [label=\"300 bytes\""));
}

#[test]
fn an_empty_plan_is_shown() {
    let problem = nothing();
    let plan = no_plan(&problem);
    let report = Report::new(&problem, &plan).unwrap();
    let expected = "\
device  tasks           busy    idle   memory
cpu0        0  0.0 %  0.0 µs  0.0 µs  0 bytes
latency 0.0 µs, bound 0.0 µs by nothing, gap 0.00 %
0 transfers
";
    assert_eq!(report.summary(false), expected);
    assert!(report.svg().ends_with("</svg>\n"));
    assert!(report.dot().ends_with("}\n"));
    assert!(report.html().ends_with("</html>\n"));
}

#[test]
fn names_are_escaped() {
    let (problem, about) = nasty();
    let mut plan = hand::plan(&hand::problem());
    plan.names = None;
    let report = Report::new(&problem, &plan).unwrap().about(about);
    let html = report.html();
    assert!(!html.contains("window.broken = 1</script>"));
    assert!(!html.contains("<img"));
    let svg = report.svg();
    assert!(!svg.contains("<script") && !svg.contains("<img") && !svg.contains('\u{0}'));
    // Opening and closing tags match.
    assert_eq!(svg.matches("<title>").count(), svg.matches("</title></rect>").count());
    let dot = report.dot();
    for line in dot.lines() {
        let quotes = line.replace("\\\\", "").replace("\\\"", "").matches('"').count();
        assert_eq!(quotes % 2, 0, "{line}");
    }
}

#[test]
fn output_is_deterministic() {
    let problem = hand::problem();
    let plan = hand::plan(&problem);
    let history = vec![Event { seconds: 0.5, part: "heft".to_owned(), found: Found::Plan(Micros(61.0)) }];
    let show = || {
        let report = Report::new(&problem, &plan).unwrap().history(history.clone());
        [report.summary(true), report.summary_json().to_string(), report.svg(), report.dot(), report.html()]
    };
    assert_eq!(show(), show());
}

/// Returns the bounds in the page's history with their origins.
fn bounds(history: Vec<Event>) -> Vec<(String, f64)> {
    let problem = hand::problem();
    let html = Report::new(&problem, &hand::plan(&problem)).expect("the plan is valid").history(history).html();
    let (_, rest) = html.split_once("\"history\":").expect("the page has a history");
    let mut lists = serde_json::Deserializer::from_str(rest).into_iter::<Vec<serde_json::Value>>();
    let events = lists.next().expect("the history is a list").expect("the history is JSON");
    let bound = |event: &serde_json::Value| Some((event["part"].as_str()?.to_owned(), event["bound"].as_f64()?));
    events.iter().filter_map(bound).collect()
}

#[test]
fn the_search_ends_at_the_bound_of_the_certificate() {
    let event = |part: &str, found| Event { seconds: 0.5, part: part.to_owned(), found };
    let named = |all: &[(&str, f64)]| all.iter().map(|(by, bound)| ((*by).to_owned(), *bound)).collect::<Vec<_>>();
    let plan = || event("heft", Found::Plan(Micros(61.0)));
    // The plan's bound is 58, with the origin "hand".
    let low = bounds(vec![plan(), event("load", Found::Bound(Micros(40.0)))]);
    assert_eq!(low, named(&[("load", 40.0), ("hand", 58.0)]));
    assert_eq!(bounds(vec![plan(), event("exact", Found::Bound(Micros(58.0)))]), named(&[("exact", 58.0)]));
    let withdrawn =
        bounds(vec![event("load", Found::Bound(Micros(40.0))), event("milp", Found::Bound(Micros(60.0))), plan()]);
    assert_eq!(withdrawn, named(&[("load", 40.0), ("hand", 58.0)]));
    assert_eq!(bounds(Vec::new()), []);
}

#[test]
fn the_page_is_self_contained() {
    let problem = hand::problem();
    let plan = hand::plan(&problem);
    let html = Report::new(&problem, &plan).unwrap().html();
    // The SVG namespace is not fetched.
    let elsewhere = html.replace("http://www.w3.org/2000/svg", "");
    for address in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!elsewhere.contains(address), "{address}");
    }
}

#[test]
fn an_ill_formed_problem_is_an_error() {
    let good = hand::problem();
    let plan = hand::plan(&good);
    let mut bad = good.clone();
    bad.edges = Some(vec![(0, 9)]);
    assert!(Report::new(&bad, &plan).is_err());
    let mut bad = good;
    bad.nodes[0].time.insert(1, vec![Some(Micros(f64::NAN)); 2]);
    assert!(Report::new(&bad, &plan).is_err());
}
