//! Malformed problems are rejected with a message that names the place and the reason.

use divi_planner::{Error, Problem};

/// Two devices, three tasks in a chain; each test replaces a part of it.
const PROBLEM: &str = r#"{"format":"divi-problem/1","name":"row","L":1,
"devices":[{"id":0,"name":"cpu","memory":null,"batch_sizes":[1]},{"id":1,"name":"gpu","memory":1000,"batch_sizes":[1]}],
"bandwidth":[[null,10],[20,null]],
"nodes":[
{"id":0,"name":"in","time":{"1":[5,null]},"weight":1,"input":2,"output":3},
{"id":1,"name":"work","time":{"1":[9,4]},"weight":4,"input":3,"output":5},
{"id":2,"time":{"1":[7,6]},"weight":7,"input":5,"output":8}],
"edges":[[0,1],[1,2]]}"#;

fn message(replacements: &[(&str, &str)]) -> String {
    let mut text = PROBLEM.to_owned();
    for (old, new) in replacements {
        assert!(text.contains(old), "{old} is not there to be replaced");
        text = text.replacen(old, new, 1);
    }
    match Problem::read(&text).and_then(|problem| divi_planner::check(&problem)) {
        Ok(()) => "nothing is wrong".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[track_caller]
fn refuses(replacements: &[(&str, &str)], expected: &str) {
    let message = message(replacements);
    assert!(message.contains(expected), "says\n{message}\ninstead of\n{expected}");
}

#[test]
fn the_problem_itself_is_fine() {
    assert_eq!(message(&[]), "nothing is wrong");
}

#[test]
fn the_host_is_a_device() {
    let host = |host: &str| ("\"bandwidth\":[", format!("\"host\":{host},\"bandwidth\":["));
    let (place, text) = host("2");
    refuses(&[(place, &text)], "host: is device 2, but there are 2");
    let (place, text) = host("1");
    assert_eq!(message(&[(place, &text)]), "nothing is wrong");
}

/// The text of a problem with the default host stays the same.
#[test]
fn the_host_is_written_where_names_do_not_say_it() {
    let mut problem = Problem::read(PROBLEM).unwrap();
    assert_eq!(problem.host(), 0);
    let text = problem.write();
    problem.set_host(0);
    assert_eq!(problem.write(), text);
    problem.set_host(1);
    let again = Problem::read(&problem.write()).unwrap();
    assert_eq!((again.host(), again.cold_start().cold.map(|cold| cold.host)), (1, Some(1)));
    assert_eq!(again, problem);
    problem.devices.swap(0, 1);
    problem.set_host(1);
    assert!(!problem.write().contains("\"host\""), "the first that is called a cpu");
}

#[test]
fn malformed_text() {
    refuses(&[("divi-problem/1", "divi-problem/9")], "not divi-problem/1: format: unknown variant `divi-problem/9`");
    let newer = ("\"format\":\"divi-problem/1\"", "\"fleet\":[],\"format\":\"divi-problem/2\"");
    refuses(&[newer], "not divi-problem/1: format: unknown variant `divi-problem/2`, expected `divi-problem/1`");
    refuses(&[newer, ("divi-problem/2", "divi-problem/1")], "fleet: unknown field `fleet`");
    refuses(&[("\"weight\":4", "\"weight\":\"4\"")], "not divi-problem/1: nodes[1].weight: invalid type: string \"4\"");
    refuses(&[("\"weight\":4", "\"weihgt\":4")], "nodes[1].weihgt: unknown field `weihgt`");
    refuses(&[("\"weight\":4,", "")], "nodes[1]: missing field `weight`");
    refuses(&[("\"weight\":4", "\"weight\":4,\"weight\":5")], "duplicate field `weight`");
    refuses(&[("[[0,1],[1,2]]}", "[[0,1],[1,2]]} x")], "trailing characters");
    refuses(&[("[[0,1],[1,2]]}", "[[0,1],")], "EOF");
    refuses(
        &[(",\"input\":5,\"output\":8}],\n\"edges\":[[0,1],[1,2]]}", ",\"inp")],
        "not divi-problem/1: nodes[2]: EOF",
    );
    refuses(
        &[("\"weight\":4", "\"weight\":[]")],
        "nodes[1].weight: invalid type: sequence, expected a number at line 6",
    );
    refuses(
        &[("[[0,1],[1,2]]}", "[[0,-1]]}")],
        "edges[0][1]: invalid value: integer `-1`, expected a whole number from 0 on",
    );
    refuses(&[("\"L\":1", "\"mtpp\":3")], "mtpp: invalid type: integer `3`, expected an object");
    let deep = format!("\"meta\":{}", "[".repeat(500));
    let shown = message(&[("\"L\":1", &deep)]);
    assert!(shown.contains("recursion limit") && shown.len() < 250, "{shown}");
    refuses(&[("{\"1\":[9,4]}", "{\"one\":[9,4]}")], "nodes[1].time: batch size \"one\" is not a positive integer");
    refuses(&[("{\"1\":[9,4]}", "{\"1\":[9,4],\"1\":[9,4]}")], "nodes[1].time: duplicate batch size 1");
    refuses(&[("\"L\":1", "\"L\":-1")], "L: invalid value: integer `-1`");
    refuses(&[("\"L\":1", "\"contention\":\"some\"")], "contention: unknown variant `some`");
    assert!(matches!(Problem::read(""), Err(Error::Format { .. })));
}

#[test]
fn devices_and_links() {
    refuses(
        &[("{\"id\":1,\"name\":\"gpu\"", "{\"id\":7,\"name\":\"gpu\"")],
        "device 1 (gpu): id is 7, but its position is 1",
    );
    refuses(&[("\"gpu\"", "\"cpu\"")], "device 1 (cpu): has the name of device 0");
    refuses(&[("\"memory\":1000", "\"memory\":-5")], "device 1 (gpu): memory -5 is negative");
    refuses(&[("\"batch_sizes\":[1]", "\"batch_sizes\":[]")], "device 0 (cpu): batch_sizes is empty");
    refuses(&[("\"batch_sizes\":[1]", "\"batch_sizes\":[1,1]")], "device 0 (cpu): batch_sizes has 1 twice");
    refuses(&[("[[null,10],[20,null]]", "[[null,10]]")], "bandwidth: has 1 rows, but there are 2 devices");
    refuses(&[("[[null,10],[20,null]]", "[[null,10,1],[20,null]]")], "bandwidth[0]: has 3 entries, but there are 2");
    refuses(&[("[[null,10],[20,null]]", "[[null,-10],[20,null]]")], "bandwidth[0][1]: -10 is negative");
    refuses(&[("\"L\":1", "\"link_latency\":[[0,1],[1]]")], "link_latency[1]: has 1 entries, but there are 2 devices");
    refuses(&[("\"L\":1", "\"bus\":[[null,\"p\"]]")], "bus: has 1 rows, but there are 2 devices");
    refuses(
        &[("[[null,10],[20,null]]", "[[null,1e-30],[20,null]]")],
        "bandwidth[0][1]: 1e-30 is too small; 0 means that",
    );
    refuses(&[("\"L\":1", "\"L\":0")], "L: 0 queued inputs; at least 1");
}

#[test]
fn nodes() {
    refuses(&[("{\"id\":2", "{\"id\":1")], "node 2: id is 1, but its position is 2");
    refuses(&[("[9,4]", "[9,-4]")], "node 1 (work): time[\"1\"][1] -4 is negative");
    refuses(&[("[9,4]", "[9,4,4]")], "node 1 (work): time[\"1\"] has 3 entries, but there are 2 devices");
    refuses(&[("[9,4]", "[1e999,4]")], "number out of range");
    refuses(&[("[9,4]", "[9,1e200]")], "node 1 (work): time[\"1\"][1] 1e200 is too large");
    refuses(&[("\"weight\":4", "\"weight\":-4")], "node 1 (work): weight -4 is negative");
    refuses(&[("{\"1\":[9,4]}", "{\"2\":[9,4]}")], "node 1 (work): has no times for batches of 1, which cpu takes");
    refuses(&[("[9,4]", "[null,null]")], "node 1 (work): no device supports it");
    refuses(
        &[("\"name\":\"in\"", "\"name\":\"in\",\"pin\":1")],
        "node 0 (in): is pinned to device 1 (gpu), which does not",
    );
    refuses(
        &[("\"name\":\"in\"", "\"name\":\"in\",\"pin\":2")],
        "node 0 (in): is pinned to device 2, but there are 2 devices",
    );
    refuses(&[(",\"output\":5", "")], "node 1 (work): output is missing");
    let empty = PROBLEM.find("\"nodes\"").map(|start| format!("{}\"nodes\":[],\"edges\":[]}}", &PROBLEM[..start]));
    Problem::read(&empty.unwrap()).unwrap().check().unwrap();
}

#[test]
fn edges() {
    refuses(&[("[1,2]]", "[1,9]]")], "edges[1]: [1, 9]: there is no node 9; there are 3");
    refuses(&[("[1,2]]", "[0,1]]")], "edges[1]: [0, 1]: duplicate edge");
    refuses(&[("[1,2]]", "[1,1]]")], "edges[1]: [1, 1]: a node cannot wait for itself");
    refuses(
        &[("[1,2]]", "[1,2],[2,0]]")],
        "the task graph has a cycle: node 0 (in) -> node 1 (work) -> node 2 -> node 0 (in)",
    );
    refuses(&[("[1,2]]", "[1,2],[2,1]]")], "the task graph has a cycle: node 1 (work) -> node 2 -> node 1 (work)");
    refuses(&[("\"edges\"", "\"tensors\":[],\"edges\"")], "tensors: replaces edges, but both are there");
    let tensors = |list: &str| -> Vec<(&'static str, String)> {
        vec![("\"edges\":[[0,1],[1,2]]", format!("\"tensors\":{list}"))]
    };
    let refuses_tensors = |list: &str, expected: &str| {
        let replaced = tensors(list);
        refuses(&[(replaced[0].0, &replaced[0].1)], expected);
    };
    refuses_tensors("[{\"from\":0,\"bytes\":-1,\"to\":[1]}]", "tensors[0]: bytes -1 is negative");
    refuses_tensors("[{\"from\":0,\"bytes\":1,\"to\":[1,1]}]", "tensors[0]: goes to node 1 twice");
    refuses_tensors("[{\"from\":0,\"bytes\":1,\"to\":[0]}]", "tensors[0]: goes to node 0, which computes it");
    refuses_tensors("[{\"from\":8,\"bytes\":1,\"to\":[0]}]", "tensors[0]: there is no node 8; there are 3");
}

#[test]
fn infeasible_placements() {
    refuses(
        &[("[[null,10],[20,null]]", "[[null,0],[20,null]]"), ("[9,4]", "[null,4]")],
        "edge [0, 1]: no link leads from where node 0 (in) may run (cpu) to where node 1 (work) may run (gpu)",
    );
    refuses(
        &[("\"edges\"", "\"colocate\":[[0,1]],\"edges\""), ("[9,4]", "[null,4]")],
        "colocate: tasks that share a device have none in common: node 0 (in) on cpu; node 1 (work) on gpu",
    );
    refuses(&[("\"edges\"", "\"colocate\":[[0,5]],\"edges\"")], "colocate[0]: there is no node 5; there are 3");
    refuses(&[("\"edges\"", "\"colocate\":[[0,1,0]],\"edges\"")], "colocate[0]: duplicate node 0");
}

#[test]
fn insufficient_memory() {
    refuses(
        &[("\"memory\":null", "\"memory\":5")],
        "device 0 (cpu): tasks that can run nowhere else need 6 bytes, it has 5 bytes: 1 byte short; node 0 (in) alone needs 6 bytes of it",
    );
    refuses(
        &[("\"memory\":null", "\"memory\":6"), ("\"memory\":1000", "\"memory\":12")],
        "node 2: needs 20 bytes, the roomiest device that it may run on has 12 bytes: 8 bytes short",
    );
    refuses(
        &[("\"memory\":null", "\"memory\":6"), ("\"memory\":1000", "\"memory\":20")],
        "devices: the tasks need 38 bytes, all devices together have 26 bytes: 12 bytes short",
    );
    // With liveness, operands and results are not resident all the time.
    let liveness = ("\"L\":1", "\"memory_model\":\"liveness\"");
    assert_eq!(
        message(&[liveness, ("\"memory\":null", "\"memory\":6"), ("\"memory\":1000", "\"memory\":20")]),
        "nothing is wrong"
    );
}

#[test]
fn queues_that_cannot_be_split() {
    let sizes = ("\"batch_sizes\":[1]", "\"batch_sizes\":[1,2]");
    let queue = ("\"L\":1", "\"L\":3");
    refuses(&[queue, sizes, sizes], "node 0 (in): has no times for batches of 2, which cpu takes");
    refuses(&[queue], "node 0 (in): 3 inputs cannot be cut into one batch a device: cpu takes [1] (batch_sizes)");
    // Unsupported sizes do not count: the first task only runs on the cpu, the last only in batches of one.
    let times = [("[5,null]}", "[5,null],\"2\":[6,null]}"), ("[9,4]}", "[9,4],\"2\":[9,null]}")];
    let last = ("[7,6]}", "[7,6],\"2\":[null,null]}");
    refuses(
        &[queue, sizes, sizes, times[0], times[1], last],
        "the problem has no plan:\n  node 0 (in): 3 inputs cannot be cut into one batch a device: cpu takes [1, 2] \
         (batch_sizes)\n  node 2: 3 inputs cannot be cut into one batch a device: cpu takes [1], gpu takes [1] (batch_sizes)",
    );
}

#[test]
fn views() {
    let view = |text: &'static str| ("\"edges\"", text);
    refuses(
        &[view("\"mtpp\":{\"work\":[1],\"k\":[2],\"bandwidth\":1},\"edges\"")],
        "mtpp.work: has 1 entries, but there are 3 nodes",
    );
    refuses(
        &[view("\"mtpp\":{\"work\":[1,2,-3],\"k\":[2],\"bandwidth\":1},\"edges\"")],
        "mtpp.work[2]: -3 is negative",
    );
    refuses(
        &[view("\"mtpp\":{\"work\":[1,2,3],\"k\":[0],\"bandwidth\":0},\"edges\"")],
        "mtpp.bandwidth: 0 is not positive",
    );
    refuses(
        &[view("\"edge\":{\"flops\":[1,2,3],\"rate\":[0],\"bandwidth\":[[null]],\"edge_bytes\":[1]},\"edges\"")],
        "edge.rate[0]: 0 is not a positive rate",
    );
}

#[test]
fn edge_networks() {
    let view = |text: &'static str| -> (&'static str, String) {
        let whole =
            r#""edge":{"flops":[1,2,3],"rate":[1,2],"bandwidth":[[null,1],[1,null]],"edge_bytes":[4,5]},"edges""#;
        let (old, new) = text.split_once(" -> ").unwrap_or(("", ""));
        assert!(whole.contains(old), "{old}");
        ("\"edges\"", if old.is_empty() { whole.to_owned() } else { whole.replacen(old, new, 1) })
    };
    let refuses_view = |text: &'static str, expected: &str| {
        let (old, new) = view(text);
        refuses(&[(old, &new)], expected);
    };
    refuses_view("", "nothing is wrong");
    refuses_view("[1,2,3] -> [1,2]", "edge.flops: has 2 entries, but there are 3 nodes");
    refuses_view("[1,2,3] -> [1,-2,3]", "edge.flops[1]: -2 is negative");
    refuses_view(
        "\"rate\":[1,2] -> \"rate\":[1,1e-300]",
        "edge.rate[1]: 1e-300 is not a positive rate from 1e-9 to 1e18",
    );
    refuses_view("\"rate\":[1,2] -> \"rate\":[]", "edge.rate: is empty, so nothing can run");
    refuses_view("[1,null] -> [1]", "edge.bandwidth: is not 2 by 2, though there are 2 rates");
    refuses_view("[1,null] -> [-1,null]", "edge.bandwidth[1][0]: -1 is negative");
    refuses_view("[1,null] -> [1e-30,null]", "edge.bandwidth[1][0]: 1e-30 is too small; 0 means that there is no link");
    refuses_view("[4,5] -> [4]", "edge.edge_bytes: has 1 entries, but there are 2 edges");
    refuses_view("[4,5] -> [4,5],\"threads\":[1]", "edge.threads: has 1 entries, but there are 2 rates");
    refuses_view("[4,5] -> [4,5],\"threads\":[1,0]", "edge.threads[1]: 0 threads run nothing; leave the machine out");
    refuses_view("[4,5] -> [4,5],\"pin\":[1]", "edge.pin: has 1 entries, but there are 3 nodes");
    refuses_view("[4,5] -> [4,5],\"pin\":[1,null,2]", "edge.pin[2]: there is no machine 2; there are 2");
    refuses_view("[4,5] -> [4,5],\"split\":1", "edge.split: unknown field `split`");
    let (old, new) = view("[4,5] -> []");
    refuses(
        &[(old, &new), ("\"edges\":[[0,1],[1,2]]", "\"tensors\":[]")],
        "edge.edge_bytes: is what edges move, but the problem has tensors; write them as edges",
    );
    // All keys are written, read and hashed.
    let (old, new) = view("[4,5] -> [4,5],\"splits\":3,\"threads\":[1,2],\"pin\":[null,1,0]");
    let problem = Problem::read(&PROBLEM.replacen(old, &new, 1)).unwrap();
    assert_eq!(Problem::read(&problem.write()).as_ref(), Ok(&problem));
    let (old, new) = view("[4,5] -> [4,5],\"splits\":2,\"threads\":[1,2],\"pin\":[null,1,0]");
    assert_ne!(Problem::read(&PROBLEM.replacen(old, &new, 1)).unwrap().hash(), problem.hash());
}

#[test]
fn all_findings_are_listed() {
    let message = message(&[("\"weight\":4", "\"weight\":-4"), ("[7,6]", "[7,-6]"), ("[1,2]]", "[1,9]]")]);
    assert_eq!(message.lines().count(), 4, "{message}");
}
