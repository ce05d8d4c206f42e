//! Random functions with costs, as text: chains and branches of operators with one or two results, on two or three devices.

use divi_test::random::Random;
use std::fmt::Write;

/// Generates a module with a function of `size` tasks.
pub(crate) fn random_module(random: &mut Random, size: usize) -> String {
    let devices = ["cpu0", "gpu0", "gpu1"];
    let devices = &devices[..2 + random.below(2)];
    // Some devices are small, so that memory constrains plans.
    let memory = *random.choose(&[1_000_000, 1_000_000, 60_000]);
    let is_constrained = random.one_in(2);
    let mut text = String::new();
    for device in devices {
        let kind = if *device == "cpu0" { "cpu" } else { "cuda" };
        let memory = if *device == "cpu0" { 1_000_000 } else { memory };
        let _ = writeln!(
            text,
            "divi.device @{device} {{kind = \"{kind}\", memory = {memory} : i64, batch_sizes = [1, 2, 4]}}"
        );
    }
    for from in devices {
        for to in devices.iter().filter(|to| *to != from) {
            let bandwidth = random.between(1e8, 1e10);
            // Transfers to the GPUs share a bus, and so do transfers back; links between GPUs have no bus.
            let bus = match (*from, *to) {
                ("cpu0", _) => ", bus = \"down\"",
                (_, "cpu0") => ", bus = \"up\"",
                _ => "",
            };
            let _ = writeln!(
                text,
                "divi.link @{from} -> @{to} {{bandwidth = {bandwidth:e} : f64, latency = 1.0e-6 : f64{bus}}}"
            );
        }
    }
    let mut values: Vec<String> = (0..1 + random.below(3)).map(|i| format!("%x{i}")).collect();
    let arguments: Vec<_> = values.iter().map(|value| format!("{value}: {TENSOR}")).collect();
    let mut body = String::new();
    let mut used = vec![false; values.len()];
    for node in 0..size {
        let (first, second) = (pick(random, values.len()), pick(random, values.len()));
        let attributes = attributes(random, node, devices, is_constrained);
        let (x, y) = (&values[first], &values[second]);
        let results = match random.below(8) {
            0..=2 => {
                let op = *random.choose(&["Relu", "Abs", "Neg", "Exp"]);
                let _ = writeln!(body, "  %n{node} = \"onnx.{op}\"({x}) {{{attributes}}} : ({TENSOR}) -> {TENSOR}");
                1
            }
            3 => {
                let weight = format!("%w{node}");
                let _ = writeln!(body, "  {weight} = onnx.Constant dense<{node}.5> : tensor<64xf32>");
                let _ = writeln!(
                    body,
                    "  %n{node} = \"onnx.Mul\"({x}, {weight}) {{{attributes}}} : ({TENSOR}, tensor<64xf32>) -> {TENSOR}"
                );
                1
            }
            4 => {
                let _ = writeln!(
                    body,
                    "  %n{node}, %m{node} = divi.cluster \"pair\"({x} : {TENSOR}) -> ({TENSOR}, {TENSOR}) attributes {{{attributes}}} {{
  ^bb0(%a: {TENSOR}):
    %p = \"onnx.Relu\"(%a) {{tag = {node} : i64, onnx_node_name = \"p{node}\"}} : ({TENSOR}) -> {TENSOR}
    %q = \"onnx.Neg\"(%a) {{tag = {node} : i64, onnx_node_name = \"q{node}\"}} : ({TENSOR}) -> {TENSOR}
    divi.yield %p, %q : {TENSOR}, {TENSOR}
  }}"
                );
                2
            }
            _ => {
                let op = *random.choose(&["Add", "Sub", "Mul", "Max"]);
                let _ = writeln!(
                    body,
                    "  %n{node} = \"onnx.{op}\"({x}, {y}) {{{attributes}}} : ({TENSOR}, {TENSOR}) -> {TENSOR}"
                );
                used[second] = true;
                1
            }
        };
        used[first] = true;
        values.push(format!("%n{node}"));
        values.extend((results == 2).then(|| format!("%m{node}")));
        used.resize(values.len(), false);
    }
    // Nearly all unused values are returned.
    let unread: Vec<&String> = values.iter().zip(&used).filter(|(_, used)| !**used).map(|(value, _)| value).collect();
    let kept = unread.len() - usize::from(unread.len() > 1 && random.one_in(4));
    let returned: Vec<String> = unread[..kept].iter().map(|value| (*value).clone()).collect();
    let types = vec![TENSOR; returned.len()].join(", ");
    let returned = returned.join(", ");
    format!(
        "{text}func.func @main({}) -> ({types}) {{\n{body}  return {returned} : {types}\n}}\n",
        arguments.join(", ")
    )
}

const TENSOR: &str = "tensor<1x64xf32>";

/// Picks a recent value most of the time.
fn pick(random: &mut Random, count: usize) -> usize {
    count - 1 - random.below(count.min(4)).max(if random.one_in(6) { random.below(count) } else { 0 })
}

/// Returns the name of a task, its costs, and sometimes a constraint.
fn attributes(random: &mut Random, node: usize, devices: &[&str], is_constrained: bool) -> String {
    let missing = if is_constrained && random.one_in(10) { random.below(devices.len()) } else { devices.len() };
    let costs: Vec<String> = devices
        .iter()
        .enumerate()
        .filter(|(device, _)| *device != missing)
        .map(|(_, device)| {
            let one = random.between(1.0, 20.0);
            format!("@{device} = {{1 = {one:?}, 2 = {:?}, 4 = {:?}}}", one * 1.5, one * 2.5)
        })
        .collect();
    // No two tasks are equal: exchanging equal tasks would not be an error.
    let mut attributes =
        format!("tag = {node} : i64, onnx_node_name = \"n{node}\", divi.cost = #divi.cost<{}>", costs.join(", "));
    if random.one_in(8) {
        let _ = write!(attributes, ", divi.scratch_bytes = {} : i64", 256 * (1 + random.below(8)));
    }
    if !is_constrained {
        return attributes;
    }
    let allowed = |device: usize| device != missing;
    let device = random.below(devices.len());
    if random.one_in(20) && allowed(device) {
        let _ = write!(attributes, ", divi.pin = @{}", devices[device]);
    } else if random.one_in(20) && devices.len() == 3 && missing == devices.len() {
        let _ = write!(attributes, ", divi.exclude = [@{}]", devices[device]);
    } else if random.one_in(15) && missing == devices.len() {
        let _ = write!(attributes, ", divi.colocate = \"g{}\"", random.below(3));
    }
    attributes
}
