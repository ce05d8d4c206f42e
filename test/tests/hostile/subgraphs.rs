//! Invalid, nested and recursive branches, loops and functions.

use super::suite::*;
use divi_onnx::{Attr, DType};
use divi_passes::import::proto::{GraphProto, ModelProto, NodeProto};
use divi_test::model::{call, function, graph, initializer, model, node, value, with, with_graph};

#[test]
fn subgraphs_and_functions() {
    let mut suite = Suite::new("subgraphs");
    let condition = || vec![value("x", DType::F32, &[2, 3]), value("c", DType::Bool, &[])];
    let branch = |nodes: Vec<NodeProto>, output: &str| graph(vec![], vec![], nodes, &[output]);
    let choice = |then_graph: GraphProto, else_graph: GraphProto, output: &str| {
        with_graph(with_graph(node("If", &["c"], &[output]), "then_branch", then_graph), "else_branch", else_graph)
    };
    for (depth, expected) in [(20, Imported), (60, Refused(&["not an ONNX model"]))] {
        let mut inner = branch(vec![relu("x", "leaf")], "leaf");
        for level in 0..depth {
            let output = format!("o{level}");
            let other = branch(vec![relu("x", "other")], "other");
            inner = branch(vec![choice(inner, other, &output)], &output);
        }
        suite.graph("nested branches", graph(condition(), vec![], inner.node, &[&format!("o{}", depth - 1)]), expected);
    }
    let in_branch = |nodes: Vec<NodeProto>, output: &str| {
        let other = branch(vec![relu("x", "other")], "other");
        graph(condition(), vec![], vec![choice(branch(nodes, output), other, "y")], &["y"])
    };
    let fails = in_branch(vec![node("Add", &["x", "nowhere"], &["a"])], "a");
    suite.graph("a branch that reads an undefined value", fails, Refused(&["'nowhere'"]));
    let inner_cycle = vec![node("Add", &["x", "b"], &["a"]), relu("a", "b")];
    suite.graph("a cycle in a branch", in_branch(inner_cycle, "b"), Refused(&["cycle"]));
    suite.graph(
        "a branch that reads its own node's result",
        in_branch(vec![relu("y", "a")], "a"),
        Refused(&["node_y"]),
    );
    suite.graph("a branch without its output", in_branch(vec![], "a"), Refused(&["'a'"]));
    let cast = with(node("Cast", &["x"], &["a"]), "to", Attr::Int(7));
    suite.graph("branches of different types", in_branch(vec![cast], "a"), Refused(&["node_y", "branches"]));
    let bare = node("If", &["c"], &["y"]);
    suite.graph("an If without branches", graph(condition(), vec![], vec![bare], &["y"]), Refused(&["then_branch"]));
    let stray = with_graph(relu("x", "y"), "body", GraphProto::default());
    suite.graph("a subgraph on a Relu", graph(x(), vec![], vec![stray], &["y"]), Refused(&["node_y", "subgraph"]));

    let looped = |body: GraphProto| {
        let node = with_graph(node("Loop", &["n", "", "x"], &["y"]), "body", body);
        let trips = initializer("n", DType::I64, &[], i64::MAX.to_le_bytes().into());
        graph(x(), vec![trips], vec![node], &["y"])
    };
    let body_inputs =
        || vec![value("i", DType::I64, &[]), value("go", DType::Bool, &[]), value("s", DType::F32, &[2, 3])];
    let body = graph(body_inputs(), vec![], vec![node("Identity", &["go"], &["g"]), relu("s", "t")], &["g", "t"]);
    suite.graph("an endless loop", looped(body), Imported);
    suite.graph("a body without inputs", looped(graph(vec![], vec![], vec![], &[])), Refused(&["node_y", "body"]));
    suite.graph("a body without outputs", looped(graph(body_inputs(), vec![], vec![], &[])), Refused(&["node_y"]));
    for count in [i64::MIN, -1, 0, 2, i64::MAX] {
        let body = graph(vec![value("s", DType::F32, &[3])], vec![], vec![relu("s", "t")], &["t"]);
        let scan = with_graph(with(node("Scan", &["x"], &["y"]), "num_scan_inputs", Attr::Int(count)), "body", body);
        suite.graph("a Scan of an odd count", graph(x(), vec![], vec![scan], &["y"]), Either);
    }

    let with_functions =
        |functions: Vec<_>, nodes: Vec<NodeProto>| ModelProto { functions, ..model(graph(x(), vec![], nodes, &["y"])) };
    let start = || vec![call("F", &["x"], &["y"])];
    let own = function("F", &["a"], &["b"], vec![call("F", &["a"], &["b"])]);
    suite.model("a function that calls itself", &with_functions(vec![own], start()), Refused(&["'F'", "itself"]));
    let f = function("F", &["a"], &["b"], vec![call("G", &["a"], &["b"])]);
    let g = function("G", &["a"], &["b"], vec![call("F", &["a"], &["b"])]);
    suite.model("functions that call each other", &with_functions(vec![f, g], start()), Refused(&["itself"]));
    let doubling: Vec<_> = (0..40)
        .map(|i| {
            let next = format!("F{}", i + 1);
            let nodes = vec![call(&next, &["a"], &["m"]), call(&next, &["m"], &["b"])];
            function(&format!("F{i}"), &["a"], &["b"], nodes)
        })
        .collect();
    let exponential = with_functions(doubling, vec![call("F0", &["x"], &["y"])]);
    suite.model("functions that double", &exponential, Either);
    let mut doubling = exponential.functions;
    doubling.truncate(30);
    doubling.push(function("F30", &["a"], &["b"], vec![relu("a", "b")]));
    let exponential = with_functions(doubling, vec![call("F0", &["x"], &["y"])]);
    suite.model("functions that double, with a base case", &exponential, Refused(&["grow"]));
    let deep: Vec<_> = (0..1000)
        .map(|i| function(&format!("F{i}"), &["a"], &["b"], vec![call(&format!("F{}", i + 1), &["a"], &["b"])]))
        .collect();
    suite.model("a thousand calls deep", &with_functions(deep, vec![call("F0", &["x"], &["y"])]), Refused(&["F"]));
    let f = || function("F", &["a"], &["b"], vec![relu("a", "b")]);
    suite.model("a function twice", &with_functions(vec![f(), f()], start()), Refused(&["'F'", "twice"]));
    let extra = vec![call("F", &["x", "x"], &["y"])];
    suite.model("too many operands", &with_functions(vec![f()], extra), Refused(&["node_y", "operands"]));
    let many = vec![call("F", &["x"], &["y", "z"])];
    suite.model("too many results", &with_functions(vec![f()], many), Refused(&["node_y", "results"]));
    let hollow = function("F", &["a"], &["b"], vec![]);
    suite.model("a function without its output", &with_functions(vec![hollow], start()), Refused(&["'b'"]));
    let outer = function("F", &["a"], &["b"], vec![node("Add", &["a", "x"], &["b"])]);
    suite.model("a function that reads an outer value", &with_functions(vec![outer], start()), Refused(&["'x'"]));
    suite.finish();
}
