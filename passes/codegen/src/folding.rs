//! Constant folding: subgraphs that read only constants are compiled and run at build time, so that their results can be packed like
//! other weights.
//!
//! Random weights are generated from a seed at load, so subgraphs that read them are not folded, but computed at load as well.

use crate::{
    backends,
    compile::compile,
    error::Error,
    graph::{Constant, Graph, Id, Node},
    program::{Options, Program, StageProgram, tensor},
    rearranged_constants,
    target::Target,
};
use divi_onnx::{DType, Tensor};
use divi_runtime::{
    Runtime,
    bundle::{Action, Device, Mode, Objective, Port, Step, Task, Value},
    prepare::Expression,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

/// Results of up to this many bytes are always folded.
const MAX_SMALL_BYTES: u64 = 16 << 20;
/// Larger results are folded if they have at most this many times the bytes of the constants that they are computed from.
const MAX_GROWTH: u64 = 4;

/// Folded constants of up to this many bytes, such as shapes and scales, keep a tensor that lowering can inspect.
const MAX_INSPECTED_BYTES: usize = 4096;

/// Temporary folder with the folded values; removed on drop, when the bundle is written.
pub(crate) struct Folded {
    folder: PathBuf,
}

impl Folded {
    /// Returns true if a path is in the temporary folder, so that a bundle must not refer to it.
    pub(crate) fn has(&self, path: &str) -> bool {
        Path::new(path).starts_with(&self.folder)
    }
}

impl Drop for Folded {
    fn drop(&mut self) {
        // On failure, leftovers stay inside the folder of the unfinished bundle.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Replaces constant subgraphs of the stages by their results. On an error the program is unchanged, and computes them at every load.
pub(crate) fn fold(program: &mut Program, folder: &Path, options: &Options<'_>) -> Result<Option<Folded>, Error> {
    let subgraphs: Vec<_> = program.stages.iter().map(|stage| ConstantSubgraph::of(&stage.graph)).collect();
    if subgraphs.iter().all(|subgraph| subgraph.results.is_empty()) {
        return Ok(None);
    }
    let cannot = |problem| Error::Write { path: folder.to_owned(), problem };
    // Programs that share a bundle have a folder each.
    let parent = fs::canonicalize(folder).map_err(cannot)?;
    let free = (0..).map(|index| parent.join(format!("folded-{index}"))).find(|path| !path.exists());
    let folded = Folded { folder: free.unwrap_or_else(|| parent.join("folded")) };
    fs::create_dir_all(&folded.folder).map_err(cannot)?;
    let values = evaluate(program, &subgraphs, &folded.folder, options)?;
    let mut values = values.into_iter();
    for (stage, subgraph) in program.stages.iter_mut().zip(&subgraphs) {
        for (&id, constant) in subgraph.results.iter().zip(values.by_ref()) {
            stage.graph.values[id.0].constant = Some(constant);
        }
        subgraph.remove_from(&mut stage.graph);
    }
    Ok(Some(folded))
}

/// Subgraph that reads only constants.
#[derive(Default)]
struct ConstantSubgraph {
    /// Positions of its nodes.
    nodes: FxHashSet<usize>,
    /// Results to fold: those that other nodes read.
    results: Vec<Id>,
}

/// A value that is computed from constants only.
struct Derived {
    /// False if its nodes only rearrange the elements of one constant.
    is_computed: bool,
    /// Total size in bytes of the constants that it is computed from.
    source_bytes: u64,
}

impl ConstantSubgraph {
    fn of(graph: &Graph) -> Self {
        let mut subgraph = Self::default();
        let mut derived: FxHashMap<Id, Derived> = FxHashMap::default();
        for (position, node) in graph.nodes.iter().enumerate() {
            let operands: Vec<_> = node.inputs.iter().flatten().copied().collect();
            let is_ready = |id: &Id| derived.contains_key(id) || is_stored(graph, *id);
            if operands.is_empty() || !operands.iter().all(is_ready) {
                continue;
            }
            let dtype = |id: Id| graph.values[id.0].dtype;
            let to = node.outputs.iter().flatten().next().map_or(DType::F32, |&id| dtype(id));
            let is_computed = !rearranged_constants::is_rearrangement(node.op, dtype(operands[0]), to)
                || operands.iter().filter_map(|id| derived.get(id)).any(|it| it.is_computed);
            let bytes = |id: &Id| derived.get(id).map_or_else(|| graph.values[id.0].bytes(), |it| it.source_bytes);
            let source_bytes = operands.iter().map(bytes).fold(0, u64::saturating_add);
            subgraph.nodes.insert(position);
            for &output in node.outputs.iter().flatten() {
                derived.insert(output, Derived { is_computed, source_bytes });
            }
        }
        let is_wanted = |id: &Id| {
            let fits = |it: &Derived| {
                graph.values[id.0].bytes() <= MAX_SMALL_BYTES.max(it.source_bytes.saturating_mul(MAX_GROWTH))
            };
            derived.get(id).is_some_and(|it| it.is_computed && fits(it)) && graph.values[id.0].count() > 0
        };
        let others = graph.nodes.iter().enumerate().filter(|(position, _)| !subgraph.nodes.contains(position));
        let mut seen = FxHashSet::default();
        for id in others.flat_map(|(_, node)| node.inputs.iter().flatten().copied()) {
            if is_wanted(&id) && seen.insert(id) {
                subgraph.results.push(id);
            }
        }
        subgraph
    }

    /// Returns a graph of the nodes that the results to fold depend on.
    fn graph(&self, graph: &Graph) -> Graph {
        let mut needed: FxHashSet<Id> = self.results.iter().copied().collect();
        let mut nodes: Vec<Node> = vec![];
        for (position, node) in graph.nodes.iter().enumerate().rev() {
            if self.nodes.contains(&position) && node.outputs.iter().flatten().any(|id| needed.contains(id)) {
                needed.extend(node.inputs.iter().flatten());
                nodes.push(Node { task: 0, ..node.clone() });
            }
        }
        nodes.reverse();
        Graph { values: graph.values.clone(), nodes, inputs: vec![], outputs: self.results.clone() }
    }

    /// Removes the nodes that are dead after folding.
    fn remove_from(&self, graph: &mut Graph) {
        let mut needed: FxHashSet<Id> = graph.outputs.iter().copied().collect();
        let stored: FxHashSet<Id> = self.results.iter().copied().collect();
        let mut kept = vec![true; graph.nodes.len()];
        for (position, node) in graph.nodes.iter().enumerate().rev() {
            let is_read = |id: &Id| needed.contains(id) && !stored.contains(id);
            kept[position] = !self.nodes.contains(&position) || node.outputs.iter().flatten().any(is_read);
            if kept[position] {
                needed.extend(node.inputs.iter().flatten());
            }
        }
        let mut kept = kept.into_iter();
        graph.nodes.retain(|_| kept.next().unwrap_or(true));
    }
}

/// Returns true if a value is a constant whose bytes are available at build time.
fn is_stored(graph: &Graph, id: Id) -> bool {
    let constant = graph.values[id.0].constant.as_ref();
    constant.is_some_and(|constant| !constant.source.any(&|part| matches!(part, Expression::Random { .. })))
}

/// Compiles the constant subgraphs into a temporary bundle, runs it, and returns the results to fold, stage by stage.
fn evaluate(
    program: &Program,
    subgraphs: &[ConstantSubgraph],
    folder: &Path,
    options: &Options<'_>,
) -> Result<Vec<Constant>, Error> {
    let (mut values, mut stages, mut steps) = (vec![], vec![], vec![]);
    for (stage, subgraph) in program.stages.iter().zip(subgraphs).filter(|(_, subgraph)| !subgraph.results.is_empty()) {
        let graph = subgraph.graph(&stage.graph);
        let outputs = (values.len()..values.len() + subgraph.results.len()).collect();
        for id in &subgraph.results {
            let name = format!("value{}", values.len());
            values.push(Value { name, device: 0, tensor: tensor(&graph.values[id.0]), constant: None });
        }
        let action = Action::Launch { stage: stages.len(), inputs: vec![], outputs };
        steps.push(Step::from(action));
        let task = Task { name: "constants".into(), predicted_us: None, profile: None, has_host_weights: false };
        stages.push(StageProgram { name: stage.name.clone(), device: 0, tasks: vec![task], graph });
    }
    let outputs = values.iter().enumerate().map(|(value, it)| Port { name: it.name.clone(), value }).collect();
    let host = backends::host().kind().name().to_owned();
    let device = Device { id: "host".into(), kind: host, memory: u64::MAX / 2, ..Device::default() };
    let constants = Program {
        model: "constants".into(),
        objective: Objective { mode: Mode::Latency, inputs: 1, predicted_us: None, bound_us: None },
        devices: vec![device],
        values,
        inputs: vec![],
        outputs,
        task_results: vec![],
        stages,
        steps,
        constants: vec![],
    };
    // A fixed target: the results must depend neither on the bundle's target nor on this machine.
    let settings = Options {
        target: Target::named("x86-64-v3")?,
        weights_folder: options.weights_folder,
        refer: &|_| None,
        model_folder: String::new(),
    };
    compile(constants, vec![], folder, &settings)?;
    let runtime = Runtime::load(folder, divi_runtime::Options::default())?;
    let results = runtime.run(&[])?;
    let path = folder.join("values.bin");
    let cannot = |problem| Error::Write { path: path.clone(), problem };
    let mut file = BufWriter::new(File::create(&path).map_err(cannot)?);
    let wanted = program
        .stages
        .iter()
        .zip(subgraphs)
        .flat_map(|(stage, subgraph)| subgraph.results.iter().map(|id| &stage.graph.values[id.0]));
    let mut folded = vec![];
    let mut offset = 0;
    for (value, (_, data)) in wanted.zip(results) {
        let bytes = data.bytes();
        file.write_all(bytes).map_err(cannot)?;
        let length = bytes.len() as u64;
        let source = Expression::File { path: path.to_string_lossy().into_owned(), offset, length };
        let tensor = (bytes.len() <= MAX_INSPECTED_BYTES)
            .then(|| Tensor::new(value.dtype, value.shape.clone(), bytes.to_vec().into()))
            .flatten();
        folded.push(Constant { source, tensor });
        offset += length;
    }
    file.flush().map_err(cannot)?;
    Ok(folded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph;
    use divi_onnx::{Attributes, Op};

    fn value(shape: &[i64], constant: Option<&[f32]>) -> graph::Value {
        let source = |numbers: &[f32]| {
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            Constant { source: Expression::bytes(&bytes), tensor: None }
        };
        graph::Value { dtype: DType::F32, shape: shape.to_vec(), constant: constant.map(source) }
    }

    fn node(op: &str, inputs: &[usize], output: usize) -> Node {
        let inputs = inputs.iter().map(|&id| Some(Id(id))).collect();
        Node {
            op: Op::from_name(op).unwrap(),
            name: op.to_lowercase(),
            attributes: Attributes::default(),
            inputs,
            outputs: vec![Some(Id(output))],
            task: 0,
        }
    }

    /// Returns a program that computes `x + exp(a * b)`, where a and b are constants.
    fn program() -> Program {
        let values = vec![
            value(&[2], None),
            value(&[2], Some(&[1.0, 0.0])),
            value(&[2], Some(&[0.0, 3.0])),
            value(&[2], None),
            value(&[2], None),
            value(&[2], None),
        ];
        let nodes = vec![node("Mul", &[1, 2], 3), node("Exp", &[3], 4), node("Add", &[0, 4], 5)];
        let graph = Graph { values, nodes, inputs: vec![Id(0)], outputs: vec![Id(5)] };
        let task = Task { name: "add".into(), predicted_us: None, profile: None, has_host_weights: false };
        let device = Device { id: "cpu0".into(), kind: "cpu".into(), threads: 1, memory: 1 << 30, ..Device::default() };
        let port = |name: &str, value| Port { name: name.into(), value };
        let end =
            |name: &str| Value { name: name.into(), device: 0, tensor: tensor(&value(&[2], None)), constant: None };
        let action = Action::Launch { stage: 0, inputs: vec![0], outputs: vec![1] };
        Program {
            model: "folding".into(),
            objective: Objective { mode: Mode::Latency, inputs: 1, predicted_us: None, bound_us: None },
            devices: vec![device],
            values: vec![end("x"), end("y")],
            inputs: vec![port("x", 0)],
            outputs: vec![port("y", 1)],
            task_results: vec![],
            stages: vec![StageProgram { name: "main".into(), device: 0, graph, tasks: vec![task] }],
            steps: vec![Step::from(action)],
            constants: vec![],
        }
    }

    #[test]
    fn constant_subgraphs_are_folded() {
        let folder = std::env::temp_dir().join(format!("divi-folding-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let options = Options {
            target: Target::named("native").unwrap(),
            weights_folder: Path::new(""),
            refer: &|_| None,
            model_folder: String::new(),
        };
        let mut program = program();
        let folded = fold(&mut program, &folder, &options).unwrap().unwrap();
        let graph = &program.stages[0].graph;
        assert_eq!(graph.nodes.iter().map(|node| node.op).collect::<Vec<_>>(), [Op::Add]);
        let constant = graph.values[4].constant.as_ref().unwrap();
        assert_eq!(constant.tensor.as_ref().unwrap().floats().unwrap(), [1.0, 1.0]);
        assert!(folded.has(&folder.canonicalize().unwrap().join("folded-0/values.bin").to_string_lossy()));
        drop(folded);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn random_weights_are_not_folded() {
        let mut program = program();
        let made = Expression::Random {
            seed: 1,
            key: "w".into(),
            element: divi_runtime::random_weights::Element::F32,
            count: 2,
            low: 0.0,
            high: 1.0,
        };
        program.stages[0].graph.values[1].constant = Some(Constant { source: made, tensor: None });
        assert!(ConstantSubgraph::of(&program.stages[0].graph).results.is_empty());
    }
}
