//! Invariants of fusion on random functions. `DIVI_SEED=7` selects others, `DIVI_GRAPHS=10000` more.

use super::{
    inspect::{body, canonical, is_task, kind, members, node_name, operands, operations_below, producer, string},
    random_graph::random_module,
};
use divi_dialect::Operation;
use divi_passes::{
    declared::FuseStatistics,
    fuse::{Level, Options, fuse},
    inline_clusters::inline_clusters,
};
use divi_test::random::Random;
use melior::ir::Module;
use std::collections::{BTreeMap, BTreeSet, HashMap};

const GRAPHS: u64 = 300;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("it is a number"))
}

#[test]
fn random_graphs() {
    let context = divi_test::context();
    context.set_allow_unregistered_dialects(true);
    let first = number("DIVI_SEED", 1) << 32;
    let mut kinds = BTreeMap::<String, usize>::new();
    for seed in first..first + number("DIVI_GRAPHS", GRAPHS) {
        let mut random = Random(seed);
        let size = 1 + random.below(60);
        let text = random_module(&mut random, size);
        let options = Options {
            level: *random.choose(&[Level::Full, Level::Full, Level::Full, Level::Conv, Level::None]),
            max_cluster_ops: *random.choose(&[None, None, None, Some(1), Some(2), Some(4)]),
        };
        let module = divi_test::parse(&context, text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let failure = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&context, &module, &options)));
        if let Err(panic) = failure {
            eprintln!("seed {seed}, {options:?}:\n{text}");
            std::panic::resume_unwind(panic);
        }
        let module = divi_test::parse(&context, text.as_bytes()).unwrap();
        fuse((&module).into(), &options);
        for cluster in clusters(&module) {
            *kinds.entry(kind(cluster).to_owned()).or_default() += 1;
        }
    }
    for expected in [
        "conv_bn_relu",
        "conv_bn_add_relu",
        "conv_bn_relu_add",
        "bn_relu",
        "matmul_bias",
        "gelu",
        "rms_norm",
        "scale_softmax",
        "elementwise",
    ] {
        assert!(kinds.contains_key(expected), "no graph has a cluster {expected}: {kinds:?}");
    }
}

fn clusters<'m>(module: &'m Module<'_>) -> Vec<Operation<'m>> {
    body(module).into_iter().filter(|&operation| divi_test::operation_name(operation) == "divi.cluster").collect()
}

/// Returns the operators of a cluster.
fn inside(cluster: Operation<'_>) -> Vec<Operation<'_>> {
    operations_below(cluster).into_iter().filter(|&operation| is_task(operation)).collect()
}

fn is_view(operation: Operation<'_>) -> bool {
    matches!(divi_test::operation_name(operation), "onnx.Reshape" | "onnx.Identity")
}

fn check(context: &melior::Context, module: &Module<'_>, options: &Options) {
    let root = Operation::from(module);
    let before = canonical(module);
    let graph = Graph::of(module);
    let counts = fuse(root, options);
    divi_test::verify(context, module).unwrap_or_else(|messages| panic!("{messages}"));

    check_members(module, &graph);
    for cluster in clusters(module) {
        graph.check_convex(&members(cluster).into_iter().collect());
        check_options(cluster, options);
        check_pins(cluster);
    }
    check_levels(module);
    let tasks = body(module).into_iter().filter(|&operation| is_task(operation)).count() as u64;
    assert_eq!((counts.num_tasks_before, counts.num_tasks_after), (graph.order.len() as u64, tasks));

    let printed = divi_test::print(module);
    let again = fuse(root, options);
    assert_eq!(again, FuseStatistics { num_tasks_before: tasks, num_tasks_after: tasks, ..FuseStatistics::default() });
    assert_eq!(divi_test::print(module), printed, "a second run changes something");

    assert_eq!(inline_clusters(root), counts.clusters());
    divi_test::verify(context, module).unwrap_or_else(|messages| panic!("{messages}"));
    assert_eq!(canonical(module), before, "inlining does not restore the function");
}

/// Checks that every operator occurs exactly once, alone or in a cluster, and that clusters list their members.
fn check_members(module: &Module<'_>, graph: &Graph<'_>) {
    let mut names = vec![];
    for task in body(module).into_iter().filter(|&operation| is_task(operation)) {
        if divi_test::operation_name(task) == "divi.cluster" {
            let inner: Vec<_> = inside(task).into_iter().map(node_name).collect();
            assert_eq!(members(task), inner);
            names.extend(inner);
        } else {
            names.push(node_name(task));
        }
    }
    let (mut names, mut expected) = (names, graph.order.clone());
    names.sort_unstable();
    expected.sort_unstable();
    assert_eq!(names, expected);
}

fn check_options(cluster: Operation<'_>, options: &Options) {
    let work = inside(cluster).into_iter().filter(|&operation| !is_view(operation)).count();
    assert!(options.max_cluster_ops.is_none_or(|max| work <= max), "{} has {work} operators", kind(cluster));
    let anchored = ["conv", "gemm", "matmul"].iter().any(|anchor| kind(cluster).starts_with(anchor));
    match options.level {
        Level::None => panic!("unexpected cluster"),
        Level::Conv => assert!(anchored, "unexpected cluster {}", kind(cluster)),
        Level::Full => {}
    }
}

/// Checks that a cluster has the pin of all its members, except views.
fn check_pins(cluster: Operation<'_>) {
    let pin = |operation| divi_test::attribute(operation, "divi.pin");
    for member in inside(cluster) {
        let agrees = pin(member) == pin(cluster) || is_view(member) && pin(member).is_none();
        assert!(agrees, "{} in {} has another pin", node_name(member), kind(cluster));
    }
}

/// Checks that fusion delays no task: the longest path, in tasks, to any operand of a cluster is at most the one to the
/// operands of its first member.
fn check_levels(module: &Module<'_>) {
    let mut levels = HashMap::<Operation<'_>, u32>::new();
    for task in body(module).into_iter().filter(|&operation| is_task(operation)) {
        let level_of = |value| producer(value).and_then(|owner| levels.get(&owner).copied()).unwrap_or(0);
        let outer: Vec<u32> = operands(task).into_iter().map(level_of).collect();
        let latest = outer.iter().copied().max().unwrap_or(0);
        let mut views_only = is_view(task);
        if divi_test::operation_name(task) == "divi.cluster" {
            let working = inside(task).into_iter().find(|&member| !is_view(member));
            views_only = working.is_none();
            if let Some(first) = working {
                let start = read_before(first, &outer);
                assert!(latest <= start, "{} waits until {latest}, but could start at {start}", kind(task));
            }
        }
        levels.insert(task, latest + u32::from(!views_only));
    }
}

/// Returns the highest level of the cluster's operands that a member reads, directly or through views.
fn read_before(member: Operation<'_>, outer: &[u32]) -> u32 {
    operands(member)
        .into_iter()
        .map(|value| match producer(value) {
            Some(owner) if is_task(owner) => read_before(owner, outer),
            Some(_) => 0,
            None => outer[value.argument_number().expect("a value is a result or an argument")],
        })
        .max()
        .unwrap_or(0)
}

/// Dependences between nodes, by name.
struct Graph<'a> {
    order: Vec<&'a str>,
    operands: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'m> Graph<'m> {
    fn of(module: &'m Module<'_>) -> Self {
        let tasks: Vec<_> = body(module).into_iter().filter(|&operation| is_task(operation)).collect();
        let computed = |value| producer(value).filter(|&owner| is_task(owner)).map(node_name);
        let reads =
            |&task: &Operation<'m>| (node_name(task), operands(task).into_iter().filter_map(computed).collect());
        assert!(tasks.iter().all(|&task| string(task, "onnx_node_name").is_some()));
        Self { order: tasks.iter().map(|&task| node_name(task)).collect(), operands: tasks.iter().map(reads).collect() }
    }

    /// Checks that no path leaves the members and enters them again.
    fn check_convex(&self, members: &BTreeSet<&str>) {
        let mut behind = BTreeSet::new();
        for &node in &self.order {
            let mut reads = self.operands[node].iter();
            if members.contains(node) {
                assert!(
                    !reads.any(|operand| behind.contains(operand)),
                    "{node} depends on its own cluster from outside"
                );
            } else if reads.any(|operand| members.contains(operand) || behind.contains(operand)) {
                behind.insert(node);
            }
        }
    }
}
