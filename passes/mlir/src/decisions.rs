//! Fingerprints of a plan's decisions and of its problem, which reveal later edits.

use std::collections::BTreeMap;

use divi_dialect::{Operation, attr};
use divi_planner::{Plan, Problem, problem::Node, units::Micros};
use melior::ir::Attribute;
use rustc_hash::FxHashSet;
use sha2::{Digest, Sha256};

/// Returns 16 hexadecimal digits that identify the decisions of a plan: device, stage and batches of each task, in the
/// order of the IR. Starts are not included: they follow from the decisions, and are recomputed for an edited plan.
pub(crate) fn fingerprint(tasks: &[Operation<'_>]) -> String {
    let mut hash = Sha256::new();
    for &task in tasks {
        hash.update(decision(task));
        // Symbol names in MLIR's textual form contain no NUL byte.
        hash.update([0]);
    }
    short(&hash.finalize())
}

/// Returns 16 hexadecimal digits that identify the problem a bound is proven for: times, sizes, devices, links,
/// constraints and the rules for pipelines. If all tasks have unique names, their order does not matter.
pub(crate) fn problem(problem: &Problem, rules: &PipelineRules<'_>) -> String {
    let PipelineRules { pipeline_cost, shared_devices, max_batch, max_replicas } = *rules;
    let mut hash = Sha256::new();
    match names(problem) {
        Some(names) => hash.update(in_any_order(problem, &names)),
        None => hash.update(problem.hash()),
    }
    hash.update(format!(" {} {shared_devices}", pipeline_cost.unwrap_or("serial")));
    if max_batch.is_some() || max_replicas.is_some() {
        hash.update(format!(" {} {}", max_batch.unwrap_or(1), max_replicas.unwrap_or(1)));
    }
    short(&hash.finalize())
}

/// Rules that pipelines are planned under.
#[derive(Clone, Copy, Default)]
pub(crate) struct PipelineRules<'a> {
    /// Cost model of a stage; serial if unset.
    pub(crate) pipeline_cost: Option<&'a str>,
    /// True if a device may run several stages.
    pub(crate) shared_devices: bool,
    /// Maximum batch size of a stage; unset if stages take one input.
    pub(crate) max_batch: Option<u32>,
    /// Maximum number of devices that take turns at a stage; unset if it is one.
    pub(crate) max_replicas: Option<u32>,
}

impl<'a> PipelineRules<'a> {
    /// Returns the rules of a plan.
    pub(crate) fn of_plan(plan: &'a Plan) -> Self {
        Self {
            pipeline_cost: plan.pipeline_cost.as_deref(),
            shared_devices: plan.shared_devices,
            max_batch: plan.max_batch,
            max_replicas: plan.max_replicas,
        }
    }

    /// Returns the rules in a certificate (`divi.plan`).
    pub(crate) fn of_certificate(certificate: Attribute<'a>) -> Self {
        let entry = |name| attr::entry(certificate, name);
        let count = |name| entry(name).and_then(attr::as_integer).and_then(|count| u32::try_from(count).ok());
        Self {
            pipeline_cost: entry("pipeline_cost").and_then(attr::as_string),
            shared_devices: entry("shared_devices").is_some(),
            max_batch: count("max_batch"),
            max_replicas: count("max_replicas"),
        }
    }
}

/// Returns true if all tasks have unique names.
pub(crate) fn has_names(problem: &Problem) -> bool {
    names(problem).is_some()
}

fn names(problem: &Problem) -> Option<Vec<&str>> {
    let names: Option<Vec<&str>> = problem.nodes.iter().map(|node| node.name.as_deref()).collect();
    let mut own = FxHashSet::default();
    names.filter(|names| names.iter().all(|name| own.insert(*name)))
}

/// Serializes a problem with tasks identified by name, independent of their order.
fn in_any_order(problem: &Problem, names: &[&str]) -> String {
    let mut rest = problem.clone();
    (rest.nodes, rest.edges, rest.tensors, rest.colocate) = (vec![], None, None, None);
    if let Some(cold) = &mut rest.cold {
        (cold.resident, cold.direct) = (None, None);
    }
    let called = |tasks: &[usize]| {
        let mut called: Vec<&str> = tasks.iter().map(|&task| names[task]).collect();
        called.sort_unstable();
        called.join("\0")
    };
    let of_cold = |node: usize| {
        let cold = problem.cold.as_ref();
        let resident = cold.and_then(|cold| cold.resident.as_ref()?.get(node).copied());
        let direct = cold.and_then(|cold| cold.direct.as_ref()?.get(node));
        format!("({resident:?}, {:?})", direct.map(|times| times.as_deref().map(numbers)))
    };
    let nodes = problem.nodes.iter().map(|node| format!("{} {}", node_text(node, problem.inputs), of_cold(node.id)));
    let tensors = problem.all_tensors();
    let tensors =
        tensors.iter().map(|tensor| format!("{} {} {}", names[tensor.from], tensor.bytes, called(&tensor.to)));
    let groups = problem.colocate.iter().flatten().map(|group| called(group));
    let mut lines: Vec<String> = nodes.chain(tensors).chain(groups).collect();
    lines.sort_unstable();
    format!("{}{}", rest.write(), lines.join("\n"))
}

/// Serializes a node without its index. Modules store a hash of this text, so it stays as it is: an input or output of the
/// model, which takes the whole queue at once, has the time of that for all sizes.
fn node_text(node: &Node, inputs: u32) -> String {
    let Node { name, time, weight, input, output, scratch, pin, module, .. } = node;
    let takes_none = |times: &[Option<Micros>]| times.iter().flatten().all(|time| *time == Micros::ZERO);
    let is_whole = |(size, times): (&u32, &Vec<Option<Micros>>)| {
        takes_none(times) && (*size == inputs) == times.iter().any(Option::is_some)
    };
    let is_undivided = pin.is_some() && time.iter().all(is_whole);
    let at = |size: &u32| if is_undivided { &time[&inputs] } else { &time[size] };
    let time: BTreeMap<u32, Vec<Option<f64>>> = time.keys().map(|size| (*size, numbers(at(size)))).collect();
    format!(
        "Node {{ id: 0, name: {name:?}, time: {time:?}, weight: {:?}, input: {:?}, output: {:?}, scratch: {:?}, pin: {pin:?}, \
         module: {module:?} }}",
        weight.0,
        input.0,
        output.map(|bytes| bytes.0),
        scratch.0
    )
}

fn numbers(times: &[Option<Micros>]) -> Vec<Option<f64>> {
    times.iter().map(|time| time.map(|time| time.0)).collect()
}

/// Returns the first 64 bits of a digest in hexadecimal, as in plans.
pub(crate) fn short(digest: &[u8]) -> String {
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn decision(task: Operation<'_>) -> String {
    let device = task.get(attr::DEVICE).unwrap_or_default();
    let stage = task.get(attr::STAGE);
    let mut batches: Vec<(Vec<i64>, &str)> =
        task.get(attr::BATCHES).unwrap_or_default().into_iter().map(|batch| (batch.inputs(), batch.device())).collect();
    // Batches are written in order of start, which may change.
    batches.sort();
    format!("{device:?} {stage:?} {batches:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::new_context;
    use crate::tasks::{Tasks, entry};
    use melior::{
        Context,
        ir::{Attribute, Module},
    };

    const PLANNED: &str = r#"
        divi.device @cpu0 {kind = "cpu", memory = 1000 : i64}
        divi.device @gpu0 {kind = "cuda", memory = 1000 : i64}
        func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
          %0 = "onnx.Relu"(%x) {divi.device = @gpu0, divi.start = 1.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
          %1 = "onnx.Abs"(%0) {divi.batches = [#divi.batch<@cpu0, start = 2.0, inputs = [0]>,
                                               #divi.batch<@gpu0, start = 3.0, inputs = [1, 2]>]}
            : (tensor<4xf32>) -> tensor<4xf32>
          return %1 : tensor<4xf32>
        }"#;

    fn with<'c>(module: &Module<'c>, task: usize, name: &str, value: &str, context: &'c Context) -> String {
        let tasks = Tasks::of(entry(module.into()).expect("has a main")).expect("has tasks").operations;
        if !name.is_empty() {
            let value = Attribute::parse(context, value).expect("is an attribute");
            tasks[task].set_attribute(name, value);
        }
        fingerprint(&tasks)
    }

    #[test]
    fn fingerprint_depends_on_decisions_but_not_on_starts() {
        let context = new_context();
        let after = |task, name, value| {
            let module = Module::parse(&context, PLANNED).expect("is a module");
            with(&module, task, name, value, &context)
        };
        let before = after(0, "", "");
        assert_eq!(before.len(), 16);
        assert_eq!(before, after(0, attr::START.name(), "7.0 : f64"));
        let later = "[#divi.batch<@gpu0, start = 0.0, inputs = [1, 2]>, #divi.batch<@cpu0, start = 9.0, inputs = [0]>]";
        assert_eq!(before, after(1, attr::BATCHES.name(), later));
        let moved = "[#divi.batch<@cpu0, start = 2.0, inputs = [0, 1]>, #divi.batch<@gpu0, start = 3.0, inputs = [2]>]";
        let changed = [
            after(0, attr::DEVICE.name(), "@cpu0"),
            after(0, attr::STAGE.name(), "0 : i64"),
            after(1, attr::DEVICE.name(), "@gpu0"),
            after(1, attr::BATCHES.name(), moved),
        ];
        for (i, other) in changed.iter().enumerate() {
            assert_ne!(&before, other);
            assert!(!changed[..i].contains(other));
        }
    }

    #[test]
    fn fingerprint_is_stable() {
        let context = new_context();
        let module = Module::parse(&context, PLANNED).expect("is a module");
        assert_eq!(with(&module, 0, "", "", &context), "4e750319530f304f");
    }

    /// Returns a problem in which `b` and `c` read `a`, with tasks in this order.
    fn posed(order: [&str; 3], times: [f64; 3]) -> Problem {
        let place = |name: &str| order.iter().position(|other| *other == name).expect("is one of them");
        let node = |(id, name): (usize, &&str)| {
            let time = times[["a", "b", "c"].iter().position(|other| other == name).expect("is one of them")];
            format!(r#"{{"id":{id},"name":"{name}","time":{{"1":[{time}]}},"weight":0,"input":0,"output":{time}}}"#)
        };
        let nodes: Vec<String> = order.iter().enumerate().map(node).collect();
        let text = format!(
            r#"{{"format":"divi-problem/1","name":"x","devices":[{{"id":0,"name":"cpu"}}],"bandwidth":[[null]],
            "nodes":[{}],"edges":[[{},{}],[{},{}]],"colocate":[[{},{}]]}}"#,
            nodes.join(","),
            place("a"),
            place("b"),
            place("a"),
            place("c"),
            place("c"),
            place("b"),
        );
        Problem::read(&text).expect("is a problem")
    }

    #[test]
    fn problem_fingerprint_does_not_depend_on_task_order() {
        let mark = |of: &Problem| problem(of, &PipelineRules::default());
        let (first, second) = (posed(["a", "b", "c"], [1.0, 2.0, 3.0]), posed(["a", "c", "b"], [1.0, 2.0, 3.0]));
        // Modules of earlier versions contain such values.
        assert_eq!(mark(&first), "94fc65e53804c9a0");
        assert!(first.hash() != second.hash() && mark(&first) == mark(&second));
        assert_ne!(mark(&first), mark(&posed(["a", "b", "c"], [1.0, 3.0, 2.0])));
        let overlap = PipelineRules { pipeline_cost: Some("overlap"), ..PipelineRules::default() };
        assert_ne!(mark(&first), problem(&first, &overlap));
        let batched = PipelineRules { max_batch: Some(4), ..PipelineRules::default() };
        assert_ne!(mark(&first), problem(&first, &batched));
        let changed = |change: &dyn Fn(&mut Problem)| {
            let mut other = second.clone();
            change(&mut other);
            mark(&other)
        };
        let others = [
            changed(&|other| other.colocate = None),
            changed(&|other| other.edges = Some(vec![(0, 1), (1, 2)])),
            changed(&|other| other.devices[0].memory = Some(divi_planner::units::Bytes(1.0))),
            changed(&|other| other.nodes[1].pin = Some(0)),
            changed(&|other| *other = other.cold_start_from(0)),
        ];
        assert!(others.iter().all(|other| *other != mark(&first)));
        // Without unique names, the order matters.
        let unnamed = |mut of: Problem| {
            of.nodes[2].name = of.nodes[1].name.clone();
            mark(&of)
        };
        assert_ne!(unnamed(first), unnamed(second));
    }
}
