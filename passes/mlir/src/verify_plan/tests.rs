//! Compares this verifier with the planner's: both must agree on plans of random graphs, valid and invalid.

use super::verify_plan;
use crate::new_context;
use crate::{
    cost::ModuleProblem,
    partition::{Options, partition, planned_inputs, read_plan},
};
use divi_dialect::{Operation, attr};
use divi_planner::{Objective, Terms, plan::Limit, problem::Contention, random::Random, verify_under};
use melior::{Context, ir::Module};
use std::{cell::RefCell, fmt::Write, rc::Rc};

const DEVICES: [&str; 3] = ["cpu0", "gpu0", "gpu1"];

/// Returns a function of random tasks on three devices, the first of them the host; the last two have no link to each
/// other.
fn graph(random: &mut Random) -> String {
    let mut text = String::new();
    for device in DEVICES {
        let kind = if device == "cpu0" { "cpu" } else { "cuda" };
        let _ =
            writeln!(text, "divi.device @{device} {{kind = \"{kind}\", memory = 90000 : i64, batch_sizes = [1, 2]}}");
    }
    for device in &DEVICES[1..] {
        for (from, to, bus) in [("cpu0", *device, "down"), (*device, "cpu0", "up")] {
            let link = format!("bandwidth = 5.0e8 : f64, latency = 5.0e-7 : f64, bus = \"{bus}\"");
            let _ = writeln!(text, "divi.link @{from} -> @{to} {{{link}}}");
        }
    }
    text += "func.func @main(%x: tensor<1x64xf32>) -> (tensor<1x64xf32>, tensor<1x64xf32>) {\n";
    let mut values = vec!["%x".to_owned()];
    let count = 4 + random.below(12);
    for node in 0..count {
        let mut value = || values[values.len() - 1 - random.below(values.len().min(3))].clone();
        let (x, y) = (value(), value());
        let mut cost = |_: &str| 1.0 + random.below(9) as f64;
        let costs: Vec<String> = DEVICES
            .iter()
            .map(|device| {
                let one = cost(device);
                format!("@{device} = {{1 = {one:?}, 2 = {:?}}}", 1.5 * one)
            })
            .collect();
        let scratch = 128 * random.below(4);
        let group = if random.chance(0.1) { ", divi.colocate = \"g\"" } else { "" };
        let pin = if random.chance(0.05) { ", divi.pin = @gpu0" } else { "" };
        let _ = writeln!(
            text,
            "%n{node} = \"onnx.Add\"({x}, {y}) {{onnx_node_name = \"n{node}\", divi.cost = #divi.cost<{}>, \
             divi.scratch_bytes = {scratch} : i64, divi.weight_bytes = {} : i64{group}{pin}}} \
             : (tensor<1x64xf32>, tensor<1x64xf32>) -> tensor<1x64xf32>",
            costs.join(", "),
            64 * random.below(9)
        );
        values.push(format!("%n{node}"));
    }
    let (last, before) = (&values[count], &values[count - 1]);
    text + &format!("return {last}, {before} : tensor<1x64xf32>, tensor<1x64xf32>\n}}\n")
}

/// Runs `body` and returns its diagnostics.
fn diagnosed<T>(context: &Context, body: impl FnOnce() -> T) -> (T, Vec<String>) {
    let diagnostics = Rc::new(RefCell::new(vec![]));
    let sink = diagnostics.clone();
    let handler = context.attach_diagnostic_handler(move |diagnostic| {
        sink.borrow_mut().push(diagnostic.to_string());
        true
    });
    let value = body();
    context.detach_diagnostic_handler(handler);
    (value, diagnostics.take())
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    let rest = &text[text.find(from)? + from.len()..];
    Some(&rest[..rest.find(to)?])
}

/// Changes something in a plan: a device, a start, the time of a transfer, or the memory of a device. Removes the
/// fingerprints that would reveal the change.
fn changed(random: &mut Random, planned: &str) -> String {
    let mut lines: Vec<String> = planned.lines().map(str::to_owned).collect();
    for mark in ["decisions", "model", "problem"] {
        if let Some(value) = between(planned, &format!("{mark} = \""), "\"") {
            lines[0] = lines[0].replace(&format!("{mark} = \"{value}\", "), "");
        }
    }
    let moves: Vec<usize> = (0..lines.len()).filter(|&at| lines[at].contains("#divi.move<")).collect();
    match random.below(if moves.is_empty() { 4 } else { 6 }) {
        0 => {}
        4.. => {
            let line = &mut lines[moves[random.below(moves.len())]];
            // Of results, or of parameters.
            let all: Vec<usize> = line.match_indices("#divi.move<").map(|(at, _)| at).collect();
            let at = all[random.below(all.len())];
            let value = between(&line[at..], "start = ", ">").expect("a move has times").to_owned();
            let (start, end) = value.split_once(", end = ").expect("a move has an end");
            let mut moved = |time: &str| (time.parse::<f64>().expect("is a time") + random.between(-2.0, 2.0)).max(0.0);
            let (start, end) = (moved(start), moved(end));
            let other = format!("{start:?}, end = {:?}", end.max(start));
            let rest = line.split_off(at);
            *line += &rest.replacen(&value, &other, 1);
        }
        1 => {
            let device = DEVICES[random.below(3)];
            let memory = 1500 + random.below(8000);
            for line in lines.iter_mut().filter(|line| line.contains(&format!("divi.device @{device} "))) {
                *line = line.replace("memory = 90000", &format!("memory = {memory}"));
            }
        }
        kind => {
            let tasks: Vec<usize> = (0..lines.len()).filter(|&at| lines[at].contains("\"onnx.Add\"")).collect();
            let line = &mut lines[tasks[random.below(tasks.len())]];
            let (key, end) = if kind == 2 { ("divi.start = ", " :") } else { ("divi.device = @", ",") };
            let (key, end) = if line.contains(attr::BATCHES.name()) {
                if kind == 2 { (", start = ", ",") } else { ("#divi.batch<@", ",") }
            } else {
                (key, end)
            };
            let value = between(line, key, end).expect("tasks are planned").to_owned();
            let other = if kind == 2 {
                format!(
                    "{:?}",
                    (value.parse::<f64>().expect("starts are numbers") + random.between(-3.0, 3.0)).max(0.0)
                )
            } else {
                DEVICES[random.below(3)].to_owned()
            };
            *line = line.replacen(&format!("{key}{value}"), &format!("{key}{other}"), 1);
        }
    }
    lines.join("\n")
}

#[test]
fn both_verifiers_agree() {
    let context = new_context();
    let (mut valid, mut invalid) = (0, 0);
    // The same counts for cold starts.
    let mut cold = (0, 0);
    for seed in 0..600 {
        let mut random = Random::new(seed);
        let text = graph(&mut random);
        let module = Module::parse(&context, &text).expect("is a module");
        let mut options = Options { algorithm: "heft".to_owned(), ..Options::default() };
        options.contention = [None, Some(Contention::Exclusive), Some(Contention::Shared)][seed as usize / 3 % 3];
        match seed % 3 {
            0 => {
                options.cold = seed % 2 == 1;
                options.resident = (seed % 4 == 3).then_some(0.5);
            }
            1 => options.planner.inputs = Some(4),
            _ => {
                options.algorithm = "slicegraph".to_owned();
                options.objective = Some(Objective::Pipeline);
                options.planner.limit = Some(Limit::Iterations(10));
                if seed % 4 == 1 {
                    options.algorithm = "auto".to_owned();
                    (options.planner.max_batch, options.planner.max_replicas) = (Some(2), Some(2));
                }
            }
        }
        let (planned, _) = diagnosed(&context, || partition((&module).into(), &options, None));
        if planned.is_err() {
            continue;
        }
        let text = changed(&mut random, &module.as_operation().to_string());
        let (Some(module), _) = diagnosed(&context, || Module::parse(&context, &text)) else { continue };
        let parsed = Operation::from(&module);
        let (verified, diagnostics) = diagnosed(&context, || verify_plan(parsed));
        // The certificate of a changed plan does not match its value; and plans of the planner have no starts within
        // stages.
        let mut only_here = vec!["has a divi.plan whose", " of its stage, but "];
        if options.planner.max_batch.is_some() {
            only_here.extend([" arrives at ", " runs until "]);
        }
        let findings: Vec<&String> =
            diagnostics.iter().filter(|message| !only_here.iter().any(|part| message.contains(part))).collect();
        assert_eq!(verified.is_err(), !diagnostics.is_empty());
        let (reference, _) = diagnosed(&context, || {
            let module_problem =
                ModuleProblem::build(parsed, planned_inputs(parsed).expect("has a plan")).expect("poses a problem");
            let plan = read_plan(parsed, &module_problem)?;
            Ok::<_, crate::Failure>(
                verify_under(&module_problem.problem, &plan, &Terms::stated_by(&plan))
                    .map_err(|error| error.to_string()),
            )
        });
        // The planner's outputs wait until the host is idle, although they take no time, which outlining corrects. The
        // value of a pipeline is read from the certificate.
        let only_there = ["(output 0): starts", "(output 1): starts", "value: ", "bottleneck: ", "gap: ", "bound: "];
        let reference = match reference {
            Ok(Err(message))
                if message
                    .lines()
                    .filter(|line| !line.ends_with("does not hold:"))
                    .all(|line| only_there.iter().any(|part| line.contains(part))) =>
            {
                Ok(())
            }
            Ok(outcome) => outcome.map(|_| ()),
            Err(_) => Err("the plan cannot be read".to_owned()),
        };
        assert_eq!(reference.is_ok(), findings.is_empty(), "seed {seed}: {reference:?} and {findings:?} of\n{text}");
        if reference.is_ok() {
            valid += 1
        } else {
            invalid += 1
        }
        if options.cold {
            if reference.is_ok() { cold.0 += 1 } else { cold.1 += 1 }
        }
    }
    assert!(valid > 100 && invalid > 100, "{valid} valid, {invalid} invalid");
    assert!(cold.0 > 20 && cold.1 > 20, "{cold:?}");
}
