//! Tests of the page in Chromium: a script moves the pointer and records the results.

mod chromium;

use std::collections::BTreeMap;

use divi_papers::generate::{Rwnn, rwnn};
use divi_planner::plan::{Bound, Plan, Proof, Schedule};
use divi_planner::problem::Device;
use divi_planner::units::Micros;
use divi_planner::{Objective, Options, Problem, solve};
use divi_report::{About, Event, Found, Report};
use serde_json::{Value, json};

use crate::{hand, queue, shown};
use chromium::visit;

fn names(value: &Value) -> Vec<&str> {
    let all = value.as_array().expect("a list");
    all.iter().map(|name| name.as_str().expect("a name")).collect()
}

/// Opens a report and checks what holds for every page.
fn open(name: &str, report: &Report<'_>, script: &str) -> Value {
    let seen = visit(name, &report.html(), script);
    assert_eq!(seen["errors"], json!([]), "{name}");
    assert_eq!(seen["fetched"], 0, "{name} fetches something");
    let timeline = report.timeline();
    let devices = timeline.devices.iter().map(|device| device.name.as_str());
    let lanes: Vec<&str> = devices.chain(timeline.links.iter().map(|link| link.name.as_str())).collect();
    assert_eq!(names(&seen["lanes"]), lanes, "{name}");
    assert_eq!(seen["rows"], timeline.transfers.len(), "{name}");
    seen
}

#[test]
fn pages_for_every_kind_of_plan_load() {
    let problem = hand::problem();
    let waiting = queue::problem();
    let empty = shown::nothing();
    let alone = Device { id: 0, name: "cpu0".to_owned(), memory: None, batch_sizes: vec![1] };
    let mut single = Problem::new("one device", vec![alone], vec![vec![None]]);
    single.nodes = problem.nodes.clone();
    single.nodes.iter_mut().for_each(|node| node.time = BTreeMap::from([(1, vec![Some(Micros::ZERO)])]));
    single.edges = problem.edges.clone();
    let zero = Schedule::Latency { device: vec![0; 6], start: vec![Micros::ZERO; 6], makespan: Micros::ZERO };
    let pages = [
        ("latency", &problem, hand::plan(&problem)),
        ("serial", &problem, hand::pipeline(&problem, "serial", 48.0)),
        ("overlap", &problem, hand::pipeline(&problem, "overlap", 26.0)),
        ("queue", &waiting, queue::plan(&waiting)),
        ("empty", &empty, shown::no_plan(&empty)),
        ("single", &single, Plan::new(&single, "hand", zero, Bound::new(Micros::ZERO, ""))),
    ];
    for (name, problem, plan) in &pages {
        let seen = open(name, &Report::new(problem, plan).unwrap(), "");
        // Repainting after a resize draws the same picture.
        assert_eq!(seen["repainted"], true, "{name}");
    }
}

#[test]
fn only_a_verified_bound_is_called_optimal() {
    let problem = hand::problem();
    let script = "results.overview = document.getElementById('overview').textContent;";
    let mut plan = hand::plan(&problem);
    for proof in Proof::ALL {
        let weaker = Bound::new(Micros(40.0), "load");
        plan.prove(Bound::by(plan.value, "milp", proof).or(weaker));
        let seen = open(proof.name(), &Report::new(&problem, &plan).unwrap(), script);
        let text = seen["overview"].as_str().unwrap();
        let is_verified = proof != Proof::Solver;
        assert_eq!(text.contains("optimal") && text.contains("proven"), is_verified, "{text}");
        assert_eq!(text.contains("reported by the solver, not verified, verified: 40.0 µs"), !is_verified, "{text}");
    }
}

#[test]
fn the_tooltip_describes_the_item_under_the_pointer() {
    let problem = hand::problem();
    let plan = hand::plan(&problem);
    let about =
        About { task_kinds: ["", "conv_bn", "relu", "mul", "add", ""].map(str::to_owned).to_vec(), ..About::default() };
    let report = Report::new(&problem, &plan).unwrap().about(about);
    // The visible range is the whole plan plus one percent.
    let script = "
        const seen = (lane, time) => {
          const canvas = document.querySelector(`[data-lane=\"${lane}\"] canvas`);
          const box = canvas.getBoundingClientRect();
          hover(canvas, time / (61 * 1.01) * box.width, box.height / 2);
          return tip();
        };
        results.conv = seen('gpu0', 17);
        results.right = seen('cpu0', 30);
        results.idle = seen('gpu0', 40);
        results.moved = seen('pcie.reverse', 25);
        const inGraph = (task) => {
          hover(document.getElementById('graph-canvas'), ...graph.place(task));
          return tip();
        };
        results.graph = data.tasks.name.map((_, task) => inGraph(task).name);
        results.beside = (hover(document.getElementById('graph-canvas'), 1, 1), tip());
    ";
    let seen = open("tooltip", &report, script);
    let conv = json!({
        "name": "conv",
        "facts": {
            "kind": "conv_bn", "device": "gpu0", "start": "12.0 µs", "end": "22.0 µs", "duration": "10.0 µs",
            "result": "400 bytes", "weights": "4.88 KiB",
        },
    });
    assert_eq!(seen["conv"], conv);
    assert_eq!(seen["right"]["name"], "right");
    assert_eq!(seen["idle"], Value::Null);
    let moved = json!({
        "name": "conv",
        "facts": {
            "from": "gpu0", "to": "cpu0", "link": "pcie.reverse", "bytes": "400 bytes", "start": "22.0 µs",
            "end": "28.0 µs", "duration": "6.00 µs",
        },
    });
    assert_eq!(seen["moved"], moved);
    assert_eq!(names(&seen["graph"]), ["in", "conv", "left", "right", "add", "out"]);
    assert_eq!(seen["beside"], Value::Null);
}

#[test]
fn the_wheel_zooms_and_dragging_pans() {
    let problem = hand::problem();
    let plan = hand::plan(&problem);
    let script = "
        const {view} = timeline;
        const canvas = document.querySelector('[data-lane=\"gpu0\"] canvas');
        const box = canvas.getBoundingClientRect();
        const at = {clientX: box.left + 300, clientY: box.top + 10, bubbles: true, cancelable: true};
        const state = () => ({under: view.time(300), length: view.until - view.from});
        results.before = state();
        canvas.dispatchEvent(new WheelEvent('wheel', {...at, deltaY: -400}));
        results.after = state();
        const drag = (type, x) => canvas.dispatchEvent(
          new PointerEvent(type, {...at, clientX: at.clientX + x, pointerId: 1, button: 0, buttons: 1}));
        drag('pointerdown', 0);
        drag('pointermove', 100);
        drag('pointerup', 100);
        results.moved = {under: view.time(400), length: view.until - view.from};
        results.selected = selection.task;
        const middle = view.x(17);
        drag('pointerdown', middle - 300);
        drag('pointerup', middle - 300);
        results.clicked = selection.task;
        document.getElementById('schedule-all').click();
        results.all = state();
        const scale = graph.view.scale;
        document.getElementById('graph-in').click();
        results.graph = graph.view.scale / scale;
    ";
    let seen = open("zoom", &Report::new(&problem, &plan).unwrap(), script);
    let close = |a: &Value, b: &Value| (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 1e-6;
    assert!(close(&seen["before"]["under"], &seen["after"]["under"]), "{seen}");
    assert!(seen["after"]["length"].as_f64().unwrap() < 0.6 * seen["before"]["length"].as_f64().unwrap());
    assert!(close(&seen["moved"]["under"], &seen["after"]["under"]), "{seen}");
    assert!(close(&seen["moved"]["length"], &seen["after"]["length"]), "{seen}");
    assert_eq!((&seen["selected"], &seen["clicked"]), (&Value::Null, &json!(1)));
    assert!(close(&seen["all"]["length"], &seen["before"]["length"]));
    assert!(close(&seen["graph"], &json!(1.5)));
}

#[test]
fn transfers_are_sorted_and_filtered() {
    let problem = hand::problem();
    let plan = hand::plan(&problem);
    let script = "
        const column = (place) => [...document.querySelectorAll('#transfers tbody tr[data-row]')]
          .map((row) => row.children[place].textContent);
        const head = (name) => [...document.querySelectorAll('#transfers th button')]
          .find((button) => button.textContent.startsWith(name));
        results.byStart = column(0);
        head('Size').click();
        results.bySize = column(4);
        results.sort = document.querySelector('#transfers th[aria-sort]').getAttribute('aria-sort');
        head('Tensor').click();
        results.byName = column(0);
        const filter = document.getElementById('transfers-filter');
        const type = (text) => { filter.value = text; filter.dispatchEvent(new Event('input')); };
        type('reverse');
        results.filtered = column(0);
        type('nowhere');
        results.none = column(0);
        type('');
        const find = document.getElementById('find');
        find.value = 'co';
        find.dispatchEvent(new Event('input'));
        results.found = document.getElementById('found').textContent;
    ";
    let seen = open("table", &Report::new(&problem, &plan).unwrap(), script);
    assert_eq!(names(&seen["byStart"]), ["in", "conv", "right", "add"]);
    assert_eq!(names(&seen["bySize"]), ["1,000 bytes", "400 bytes", "300 bytes", "100 bytes"]);
    assert_eq!(seen["sort"], "descending");
    assert_eq!(names(&seen["byName"]), ["add", "conv", "in", "right"]);
    assert_eq!(names(&seen["filtered"]), ["add", "conv"]);
    assert_eq!(seen["none"], json!([]));
    assert_eq!(seen["found"], "1 of 6");
}

#[test]
fn names_are_escaped() {
    let (problem, about) = shown::nasty();
    let mut plan = hand::plan(&hand::problem());
    plan.names = None;
    let history = vec![
        Event { seconds: 0.0, part: shown::NASTY[0].to_owned(), found: Found::Plan(Micros(61.0)) },
        Event { seconds: 2.0, part: shown::NASTY[5].to_owned(), found: Found::Bound(Micros(58.0)) },
    ];
    let report = Report::new(&problem, &plan).unwrap().about(about).history(history);
    let script = "
        results.names = data.tasks.name.map((_, task) => {
          hover(document.getElementById('graph-canvas'), ...graph.place(task));
          return tip().name;
        });
        results.title = document.getElementById('title').textContent;
        results.parts = [...document.querySelectorAll('[data-part]')].map((row) => row.dataset.part);
        results.broken = window.broken ?? null;
        results.strangers = document.querySelectorAll('img').length;
    ";
    let seen = open("nasty", &report, script);
    assert_eq!(names(&seen["names"]), shown::NASTY);
    assert_eq!(seen["title"], shown::NASTY[0]);
    assert_eq!(names(&seen["parts"]), [shown::NASTY[0], shown::NASTY[5]]);
    assert_eq!((&seen["broken"], &seen["strangers"]), (&Value::Null, &json!(0)));
}

#[test]
fn the_search_is_shown() {
    let problem = hand::problem();
    let plan = hand::plan(&problem);
    let event = |seconds, part: &str, found| Event { seconds, part: part.to_owned(), found };
    let history = vec![
        event(0.001, "single", Found::Plan(Micros(70.0))),
        event(0.002, "load", Found::Bound(Micros(40.0))),
        event(0.01, "heft", Found::Plan(Micros(61.0))),
        event(1.5, "exact", Found::Bound(Micros(58.0))),
    ];
    let script = "
        results.shown = !document.getElementById('history-section').hidden;
        results.dots = document.querySelectorAll('#history circle').length;
        results.best = [...document.querySelectorAll('[data-part]')]
          .filter((row) => row.querySelector('.badge')).map((row) => row.dataset.part);
        results.cells = [...document.querySelector('[data-part=\"exact\"]').children].map((cell) => cell.textContent.trim());
    ";
    let seen = open("history", &Report::new(&problem, &plan).unwrap().history(history), script);
    assert_eq!((&seen["shown"], &seen["dots"]), (&json!(true), &json!(4)));
    assert_eq!(names(&seen["best"]), ["heft"]);
    assert_eq!(names(&seen["cells"]), ["exact", "", "", "58.0 µs", "after 1.50 s"]);
}

#[test]
fn five_thousand_tasks_are_displayed() {
    let problem = rwnn(&Rwnn { nodes: 50, modules: 100, channels: 3, ..Rwnn::default() }).unwrap();
    assert!(problem.nodes.len() >= 5000);
    let plan = solve(&problem, Objective::Latency, "heft", &Options::default()).unwrap();
    let report = Report::new(&problem, &plan).unwrap();
    let script = "
        const canvas = document.querySelector('[data-lane=\"a100\"] canvas');
        const bar = timeline.lanes[2].rows[0][1000];
        timeline.show(bar.start, bar.end);
        const box = canvas.getBoundingClientRect();
        hover(canvas, timeline.view.x((bar.start + bar.end) / 2), box.height / 2);
        results.hovered = [tip().name, bar.name];
        results.inDocument = document.querySelectorAll('#transfers tr').length;
        const pixels = document.getElementById('graph-canvas');
        const drawn = pixels.getContext('2d').getImageData(0, 0, pixels.width, pixels.height).data;
        results.ink = drawn.reduce((sum, value, index) => sum + (index % 4 === 3 && value > 0), 0) / (drawn.length / 4);
    ";
    let seen = open("large", &report, script);
    assert_eq!(seen["hovered"][0], seen["hovered"][1]);
    assert!(seen["inDocument"].as_u64().unwrap() < 100, "only the rows in view are in the document");
    assert!(seen["ink"].as_f64().unwrap() > 0.05, "the graph is drawn");
}

#[test]
fn light_and_dark_differ() {
    let problem = hand::problem();
    let plan = hand::plan(&problem);
    let script = "
        const looks = () => [document.documentElement.dataset.theme ?? 'system', colours.panel];
        const press = () => (document.getElementById('theme').click(), looks());
        results.themes = [looks(), press(), press(), press()];
    ";
    let seen = open("themes", &Report::new(&problem, &plan).unwrap(), script);
    let themes: Vec<&str> = seen["themes"].as_array().unwrap().iter().map(|theme| theme[0].as_str().unwrap()).collect();
    assert_eq!(themes, ["system", "light", "dark", "system"]);
    assert_eq!(seen["themes"][1][1], "rgb(255, 255, 255)");
    assert_eq!(seen["themes"][2][1], "rgb(23, 30, 39)");
}
