//! Half precision: tasks on `f16` and `bf16` values compute in `f32`.
//!
//! Values are widened where a task reads them and rounded where its results leave the task. Intermediate results of a task keep `f32`
//! precision, as in runtimes that insert conversions around `f32` kernels, so the fast kernels serve half precision as well. Rounded values
//! that only kernels for `f32` read are stored in `f32`.

use crate::graph::{Constant, Graph, Id, Node, Value};
use divi_onnx::{Attr, Attributes, DType, Op, Tensor, operators::HalfPrecision};
use divi_runtime::{prepare::Expression, random_weights::Element};
use rustc_hash::{FxHashMap, FxHashSet};

/// Type of the rounded results of tasks in memory.
#[derive(Clone, Copy)]
pub(crate) enum ResultStorage<'a> {
    /// Half precision. The predicate returns true for nodes whose first two operands a kernel reads in half precision.
    Half(&'a dyn Fn(&Node, &[Value]) -> bool),
    /// `f32`; half precision for outputs of the stage and for nodes that do not compute in `f32`.
    F32,
}

/// Rewrites the half-precision tasks of a graph to compute in `f32`.
pub(crate) fn widen(graph: &mut Graph, storage: ResultStorage<'_>) {
    if !graph.values.iter().any(|value| is_half(value.dtype)) {
        return;
    }
    let nodes = std::mem::take(&mut graph.nodes);
    let mut reads: FxHashMap<Id, usize> = FxHashMap::default();
    nodes.iter().flat_map(|node| node.inputs.iter().flatten()).for_each(|&id| *reads.entry(id).or_default() += 1);
    let mut stage = Stage {
        outputs: graph.outputs.iter().copied().collect(),
        graph,
        storage,
        reads: &reads,
        constants: FxHashMap::default(),
        wide: FxHashMap::default(),
        unrounded: vec![],
        only_wide: FxHashSet::default(),
        body: vec![],
    };
    for task in nodes.chunk_by(|a, b| a.task == b.task) {
        stage.rewrite(task);
        stage.graph.nodes.append(&mut stage.body);
        stage.unrounded.clear();
        if matches!(storage, ResultStorage::Half(_)) {
            stage.wide.clear();
            stage.only_wide.clear();
        }
    }
}

/// Returns true if a graph has values of `bf16`, which tile registers multiply.
pub(crate) fn has_bf16(graph: &Graph) -> bool {
    graph.values.iter().any(|value| value.dtype == DType::BF16)
}

/// Returns true for a type whose elements are computed in `f32`.
pub(crate) fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

/// Returns the half-precision type that a node rounds `f32` elements to, whose result is stored in `f32`; `None` for other nodes.
pub(crate) fn rounds_to(node: &Node, operand: DType, result: DType) -> Option<DType> {
    let is_f32 = (operand, result) == (DType::F32, DType::F32);
    cast_type(node).filter(|&to| is_f32 && is_half(to))
}

/// Returns the type that a conversion of the model has as its attribute; `None` for conversions that [`widen`] inserted, and other nodes.
pub(crate) fn cast_type(node: &Node) -> Option<DType> {
    match node.attributes.get("to").filter(|_| node.op == Op::Cast)? {
        Attr::Int(code) => DType::from_code(*code),
        Attr::DType(dtype) => Some(*dtype),
        _ => None,
    }
}

/// Rewrite of the tasks of a stage.
struct Stage<'a> {
    graph: &'a mut Graph,
    storage: ResultStorage<'a>,
    outputs: FxHashSet<Id>,
    /// Number of operands that a value is.
    reads: &'a FxHashMap<Id, usize>,
    /// Widened constants, shared by all tasks.
    constants: FxHashMap<Id, Id>,
    /// `f32` counterparts of half-precision values; with [`ResultStorage::Half`], of those that this task reads or computes.
    wide: FxHashMap<Id, Id>,
    /// Results of this task whose `f32` counterparts are not rounded.
    unrounded: Vec<Id>,
    /// Values that have only an `f32` counterpart so far.
    only_wide: FxHashSet<Id>,
    /// Rewritten nodes of this task.
    body: Vec<Node>,
}

impl Stage<'_> {
    /// Appends the nodes of a task to the body: conversions of its operands, its nodes, conversions of its results.
    fn rewrite(&mut self, nodes: &[Node]) {
        let has_half = |node: &&Node| node.inputs.iter().chain(&node.outputs).flatten().any(|&id| self.is_half(id));
        let computing = nodes.iter().filter(has_half);
        let summing = computing.clone().filter(|node| node.op.half_precision() == Some(HalfPrecision::Sum)).count();
        let elementwise = computing.filter(|node| node.op.half_precision() == Some(HalfPrecision::Elementwise)).count();
        let mut operands = nodes.iter().flat_map(|node| node.inputs.iter().flatten());
        let is_computed = |id: Id| nodes.iter().any(|node| node.outputs.contains(&Some(id)));
        let converts = |node: &Node| {
            cast_type(node) == Some(DType::F32)
                && node.optional(0).is_some_and(|id| self.is_half(id) && is_computed(id))
        };
        let steps = elementwise + usize::from(nodes.iter().any(converts));
        // A single element-wise operator rounds once anyway: conversions would only add loops. If its result is converted to `f32`, it does
        // not round.
        if summing == 0 && steps < 2 && !operands.any(|id| self.wide.contains_key(id)) {
            self.body.extend_from_slice(nodes);
            return;
        }
        let mut inside: FxHashMap<Id, usize> = FxHashMap::default();
        nodes.iter().flat_map(|node| node.inputs.iter().flatten()).for_each(|&id| *inside.entry(id).or_default() += 1);
        let is_trailing = |node: &&Node| node.op.is_view() || !has_half(node);
        let end = nodes.len() - nodes.iter().rev().take_while(is_trailing).count();
        let (computing, trailing) = nodes.split_at(end);
        for node in computing {
            match self.is_widened(node) {
                true => self.widen(node),
                false => self.keep(node),
            }
        }
        // Results are rounded before views at the end, so that the kernel that computes them rounds them.
        let stores_half = self.stores_half(nodes);
        self.round_results(computing, if stores_half { &[] } else { trailing }, &inside);
        for node in trailing {
            match !stores_half && self.is_widened(node) {
                true => self.widen(node),
                false => self.keep(node),
            }
        }
    }

    /// Appends a node that reads and writes half precision.
    fn keep(&mut self, node: &Node) {
        for &id in node.inputs.iter().flatten() {
            if self.only_wide.contains(&id) {
                self.store_half(id, node.task);
            }
        }
        self.body.push(node.clone());
    }

    /// Appends a node with the `f32` counterparts of its operands and results.
    fn widen(&mut self, node: &Node) {
        let reads_half = match self.storage {
            ResultStorage::Half(reads_half) => {
                let is_stored = |id: &Id| !self.only_wide.contains(id);
                reads_half(node, &self.graph.values) && node.inputs.iter().take(2).flatten().all(is_stored)
            }
            ResultStorage::F32 => false,
        };
        let is_rounded = node.op.half_precision() == Some(HalfPrecision::Move)
            && !node.inputs.iter().flatten().any(|id| self.unrounded.contains(id));
        let wide = |(index, input): (usize, &Option<Id>)| match input {
            Some(id) if !(reads_half && index < 2) => Some(self.widened(*id, node.task)),
            other => *other,
        };
        let inputs = node.inputs.iter().enumerate().map(wide).collect();
        let mut outputs = vec![];
        for &output in &node.outputs {
            outputs.push(match output {
                Some(id) if self.is_half(id) => {
                    self.only_wide.insert(id);
                    self.unrounded.extend((!is_rounded).then_some(id));
                    Some(self.f32_counterpart(id))
                }
                other => other,
            });
        }
        self.body.push(Node { inputs, outputs, ..node.clone() });
    }

    /// Rounds the results of nodes that other tasks, the outputs of the stage or the `widened` nodes of the same task read. `inside` has the
    /// number of operands in the task that a value is.
    fn round_results(&mut self, nodes: &[Node], widened: &[Node], inside: &FxHashMap<Id, usize>) {
        for (id, task) in nodes.iter().flat_map(|node| node.outputs.iter().flatten().map(|&id| (id, node.task))) {
            let is_output = self.outputs.contains(&id);
            let is_read_outside = self.reads.get(&id) > inside.get(&id);
            let is_stored = match self.storage {
                ResultStorage::Half(_) => is_output || is_read_outside,
                ResultStorage::F32 => {
                    let is_read_later = is_read_outside || widened.iter().any(|node| node.inputs.contains(&Some(id)));
                    if is_read_later && self.unrounded.contains(&id) {
                        self.round(id, task);
                    }
                    is_output
                }
            };
            if is_stored && self.only_wide.contains(&id) {
                self.store_half(id, task);
            }
        }
    }

    /// Returns true if results of a task are stored in half precision.
    fn stores_half(&self, nodes: &[Node]) -> bool {
        let mut results = nodes.iter().flat_map(|node| node.outputs.iter().flatten());
        matches!(self.storage, ResultStorage::Half(_)) || results.any(|id| self.outputs.contains(id))
    }

    fn is_half(&self, id: Id) -> bool {
        is_half(self.graph.values[id.0].dtype)
    }

    /// Returns true if a node computes in `f32`.
    fn is_widened(&self, node: &Node) -> bool {
        let mut values = node.inputs.iter().chain(&node.outputs).flatten();
        match node.op.half_precision() {
            Some(HalfPrecision::Sum | HalfPrecision::Elementwise) => values.any(|&id| self.is_half(id)),
            Some(HalfPrecision::Move) => node.inputs.iter().flatten().any(|id| self.wide.contains_key(id)),
            // A result that is widened in its task is not rounded.
            None if node.op == Op::Cast => {
                let is_f32 = |id: Id| self.graph.values[id.0].dtype == DType::F32;
                node.result(0).is_some_and(is_f32) && node.optional(0).is_some_and(|id| self.unrounded.contains(&id))
            }
            None => false,
        }
    }

    /// Returns the `f32` counterpart of an operand. Inserts a conversion if there is none: before the task's first node, or after the node
    /// of this task that computes it in half precision.
    fn widened(&mut self, id: Id, task: usize) -> Id {
        if !self.is_half(id) {
            return id;
        }
        if let Some(&wide) = self.wide.get(&id).or_else(|| self.constants.get(&id)) {
            return wide;
        }
        let Value { dtype, shape, constant } = self.graph.values[id.0].clone();
        if let Some(Constant { source, tensor }) = constant {
            let source = widened(&source, dtype).expect("the value has half precision");
            let tensor = tensor.and_then(|tensor| Tensor::from_floats(DType::F32, shape.clone(), &tensor.floats()?));
            let constant = Constant { source, tensor };
            let wide = self.value(Value { dtype: DType::F32, shape, constant: Some(constant) });
            self.constants.insert(id, wide);
            return wide;
        }
        let wide = self.f32_counterpart(id);
        let is_computed_here = self.body.iter().any(|node| node.outputs.contains(&Some(id)));
        let nodes = if is_computed_here { &mut self.body } else { &mut self.graph.nodes };
        nodes.push(cast(id, wide, task));
        wide
    }

    /// Adds the `f32` counterpart of a half-precision value.
    fn f32_counterpart(&mut self, id: Id) -> Id {
        let shape = self.graph.values[id.0].shape.clone();
        let wide = self.value(Value { dtype: DType::F32, shape, constant: None });
        self.wide.insert(id, wide);
        wide
    }

    /// Appends a conversion of a result to its type in the model.
    fn store_half(&mut self, id: Id, task: usize) {
        self.only_wide.remove(&id);
        self.body.push(cast(self.wide[&id], id, task));
    }

    /// Appends the rounding of a result that is stored in `f32`.
    fn round(&mut self, id: Id, task: usize) {
        self.unrounded.retain(|&other| other != id);
        let from = self.wide[&id];
        let to = self.f32_counterpart(id);
        let half = self.graph.values[id.0].dtype;
        let attributes = [("to", Attr::Int(half.code()))].into_iter().collect();
        self.body.push(Node { attributes, ..cast(from, to, task) });
    }

    fn value(&mut self, value: Value) -> Id {
        self.graph.values.push(value);
        Id(self.graph.values.len() - 1)
    }
}

/// Returns a constant of a floating-point type of at most 32 bits as `f32`; without rounding if it was only rounded to that type.
pub(crate) fn widened(source: &Expression, dtype: DType) -> Option<Expression> {
    match source {
        _ if dtype == DType::F32 => Some(source.clone()),
        Expression::Narrow { source, .. } => Some((**source).clone()),
        _ => Some(Expression::Widen { source: Box::new(source.clone()), element: element(dtype)? }),
    }
}

/// Returns a half-precision type as in expressions of constants.
pub(crate) fn element(dtype: DType) -> Option<Element> {
    match dtype {
        DType::F16 => Some(Element::F16),
        DType::BF16 => Some(Element::BF16),
        _ => None,
    }
}

fn cast(from: Id, to: Id, task: usize) -> Node {
    Node {
        op: Op::Cast,
        name: String::new(),
        attributes: Attributes::default(),
        inputs: vec![Some(from)],
        outputs: vec![Some(to)],
        task,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::floats;

    fn half(shape: &[i64], values: &[f64]) -> Tensor {
        Tensor::from_floats(DType::F16, shape.to_vec(), values).unwrap()
    }

    /// MatMul, bias and activation are rounded once, at the end of the task.
    #[test]
    fn tasks_round_their_results_once() {
        let (rows, depth, columns) = (4, 96, 8);
        let noise = |count: i64, seed: i64| -> Vec<f64> {
            let tensor = half(&[count], &(0..count).map(|i| ((i * seed) % 97) as f64 / 97.0 - 0.4).collect::<Vec<_>>());
            tensor.floats().unwrap()
        };
        let (x, w, bias) = (noise(rows * depth, 31), noise(depth * columns, 17), noise(columns, 5));
        let mut graph = Graph::default();
        let input = graph.input(DType::F16, &[rows, depth]);
        let (weights, shift) = (graph.constant(half(&[depth, columns], &w)), graph.constant(half(&[columns], &bias)));
        let product = graph.apply("MatMul", &[input, weights], &[], DType::F16, &[rows, columns]);
        let sum = graph.apply("Add", &[product, shift], &[], DType::F16, &[rows, columns]);
        let result = graph.apply("Sigmoid", &[sum], &[], DType::F16, &[rows, columns]);
        graph.outputs = vec![result];
        let outputs = graph.run("native", &[half(&[rows, depth], &x)]).unwrap();
        let found = outputs[0].floats().unwrap();
        for row in 0..rows as usize {
            for column in 0..columns as usize {
                let terms = (0..depth as usize).map(|k| x[row * depth as usize + k] * w[k * columns as usize + column]);
                let exact = 1.0 / (1.0 + (-(terms.sum::<f64>() + bias[column])).exp());
                let nearest = half(&[1], &[exact]).floats().unwrap()[0];
                // The sum is exact to 1e-6, so only ties may round the other way.
                assert!((found[row * columns as usize + column] - nearest).abs() <= exact * 2_f64.powi(-11));
            }
        }
    }

    /// Results that are stored in `f32` are rounded to the same bits.
    #[test]
    fn storage_does_not_change_results() {
        for dtype in [DType::F16, DType::BF16] {
            let tensor = |shape: &[i64], seed: i64| {
                let values = (0..shape.iter().product()).map(|i: i64| ((i * seed) % 89) as f64 / 89.0 - 0.4);
                Tensor::from_floats(dtype, shape.to_vec(), &values.collect::<Vec<_>>()).unwrap()
            };
            let mut graph = Graph::default();
            let image = [1, 16, 6, 6];
            let input = graph.input(dtype, &image);
            let weights = [7, 11].map(|seed| graph.constant(tensor(&[16, 16, 1, 1], seed)));
            let first = graph.apply("Conv", &[input, weights[0]], &[], dtype, &image);
            let relu = graph.apply("Relu", &[first], &[], dtype, &image);
            let pooled =
                graph.apply("MaxPool", &[relu], &[("kernel_shape", Attr::Ints(vec![3, 3]))], dtype, &[1, 16, 4, 4]);
            graph.nodes.last_mut().unwrap().task = 1;
            let second = graph.apply("Conv", &[pooled, weights[1]], &[], dtype, &[1, 16, 4, 4]);
            let sigmoid = graph.apply("Sigmoid", &[second], &[], dtype, &[1, 16, 4, 4]);
            let flat = graph.apply("Flatten", &[sigmoid], &[], dtype, &[1, 256]);
            graph.nodes.iter_mut().skip(3).for_each(|node| node.task = 2);
            let sign = graph.apply("Sign", &[flat], &[], dtype, &[1, 256]);
            graph.nodes.last_mut().unwrap().task = 3;
            let double = graph.apply("Add", &[flat, sign], &[], dtype, &[1, 256]);
            graph.nodes.last_mut().unwrap().task = 4;
            graph.outputs = vec![relu, double];
            let inputs = [tensor(&image, 13)];
            let wide = graph.run("native", &inputs).unwrap();
            let half = graph.run_without_spare_memory("native", &inputs).unwrap();
            for (wide, half) in wide.iter().zip(&half) {
                assert_eq!(wide.floats(), half.floats(), "{dtype}");
            }
            let mut rewritten = graph.clone();
            widen(&mut rewritten, ResultStorage::F32);
            let count =
                |is_counted: &dyn Fn(&Node) -> bool| rewritten.nodes.iter().filter(|node| is_counted(node)).count();
            let types = |node: &Node| [node.inputs[0], node.outputs[0]].map(|id| rewritten.values[id.unwrap().0].dtype);
            // Results of tasks 0 and 2; MaxPool selects rounded elements.
            assert_eq!(count(&|node| rounds_to(node, types(node)[0], types(node)[1]) == Some(dtype)), 2);
            // Both outputs, and the operand of Sign.
            assert_eq!(count(&|node| node.op == Op::Cast && types(node) == [DType::F32, dtype]), 3);
        }
    }

    /// A result that leaves its task in `f32` is not rounded.
    #[test]
    fn conversions_to_f32_are_exact() {
        let mut graph = Graph::default();
        let input = graph.input(DType::F16, &[1, 2]);
        let weights = graph.constant(half(&[2, 1], &[1.0, 1.0]));
        let product = graph.apply("MatMul", &[input, weights], &[], DType::F16, &[1, 1]);
        let sum = graph.apply("Cast", &[product], &[("to", Attr::Int(DType::F32.code()))], DType::F32, &[1, 1]);
        graph.outputs = vec![sum];
        let input_values = [half(&[1, 2], &[2048.0, 1.0])];
        assert_eq!(graph.run("native", &input_values).unwrap()[0].floats().unwrap(), [2049.0]);
        graph.nodes.last_mut().unwrap().task = 1;
        assert_eq!(graph.run("native", &input_values).unwrap()[0].floats().unwrap(), [2048.0]);
    }

    /// Nodes that are not widened, other tasks and outputs use the rounded value.
    #[test]
    fn readers_outside_of_a_task_get_half_precision() {
        let mut graph = Graph::default();
        let input = graph.input(DType::F16, &[2, 3]);
        let mean = graph.apply("ReduceMean", &[input], &[], DType::F16, &[1, 1]);
        let centered = graph.apply("Sub", &[input, mean], &[], DType::F16, &[2, 3]);
        let is_positive = graph.apply("Greater", &[centered, mean], &[], DType::Bool, &[2, 3]);
        let other = graph.apply("Relu", &[centered], &[], DType::F16, &[2, 3]);
        graph.nodes.last_mut().unwrap().task = 1;
        graph.outputs = vec![is_positive, other];
        let mut wide = graph.clone();
        widen(&mut wide, ResultStorage::Half(&|_, _| false));
        let ops: Vec<_> = wide.nodes.iter().map(|node| (node.op.name(), node.task)).collect();
        let expected =
            [("Cast", 0), ("ReduceMean", 0), ("Sub", 0), ("Cast", 0), ("Cast", 0), ("Greater", 0), ("Relu", 1)];
        assert_eq!(ops, expected);
        let outputs = graph.run("native", &[half(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 9.0])]).unwrap();
        assert_eq!(outputs[0].ints().unwrap(), [0, 0, 0, 0, 0, 1]);
        assert_eq!(outputs[1].floats().unwrap(), [0.0, 0.0, 0.0, 0.0, 1.0, 5.0]);
    }

    /// Conversions follow the node that defines their operand.
    #[test]
    fn results_of_nodes_that_are_not_widened_are_converted_in_place() {
        let mut graph = Graph::default();
        let input = graph.input(DType::F16, &[3]);
        let divisor = graph.constant(half(&[3], &[0.5, 1.0, 2.0]));
        let cosine = graph.apply("Cos", &[input], &[], DType::F16, &[3]);
        let negative = graph.apply("Neg", &[cosine], &[], DType::F16, &[3]);
        graph.outputs = vec![graph.apply("Div", &[negative, divisor], &[], DType::F16, &[3])];
        let mut wide = graph.clone();
        widen(&mut wide, ResultStorage::Half(&|_, _| false));
        let ops: Vec<_> = wide.nodes.iter().map(|node| node.op.name()).collect();
        assert_eq!(ops, ["Cos", "Cast", "Neg", "Div", "Cast"]);
        let outputs = graph.run("native", &[half(&[3], &[0.0, 0.0, 0.0])]).unwrap();
        assert_eq!(outputs[0].floats().unwrap(), [-2.0, -1.0, -0.5]);
    }

    #[test]
    fn other_types_are_left_alone() {
        let mut graph = Graph::default();
        let input = graph.input(DType::F32, &[2]);
        let bias = graph.constant(floats(&[2], &[1.0, 2.0]));
        let sum = graph.apply("Add", &[input, bias], &[], DType::F32, &[2]);
        graph.outputs = vec![graph.apply("Relu", &[sum], &[], DType::F32, &[2])];
        let mut wide = graph.clone();
        widen(&mut wide, ResultStorage::Half(&|_, _| false));
        assert_eq!((wide.nodes.len(), wide.values.len()), (graph.nodes.len(), graph.values.len()));
    }
}
