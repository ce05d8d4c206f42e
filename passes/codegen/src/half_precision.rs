//! Half precision: tasks on `f16` and `bf16` values compute in `f32`.
//!
//! Values are widened where a task reads them and rounded where its results leave the task. Intermediate results of a task keep `f32`
//! precision, as in runtimes that insert conversions around `f32` kernels, so the fast kernels serve half precision as well.

use crate::graph::{Constant, Graph, Id, Node, Value};
use divi_onnx::{Attributes, DType, Op, Tensor, operators::HalfPrecision};
use divi_runtime::{prepare::Expression, random_weights::Element};
use rustc_hash::FxHashMap;

/// Rewrites the half-precision tasks of a graph to compute in `f32`. `reads_half` is true for nodes whose first two operands a kernel reads in
/// half precision.
pub(crate) fn widen(graph: &mut Graph, reads_half: &dyn Fn(&Node, &[Value]) -> bool) {
    if !graph.values.iter().any(|value| is_half(value.dtype)) {
        return;
    }
    let nodes = std::mem::take(&mut graph.nodes);
    let mut reads: FxHashMap<Id, usize> = FxHashMap::default();
    let operands = nodes.iter().flat_map(|node| node.inputs.iter().flatten());
    operands.chain(&graph.outputs).for_each(|&id| *reads.entry(id).or_default() += 1);
    let mut constants = FxHashMap::default();
    for task in nodes.chunk_by(|a, b| a.task == b.task) {
        Task { graph, reads_half, reads: &reads, constants: &mut constants, wide: FxHashMap::default(), body: vec![] }
            .rewrite(task);
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

/// Rewrite of one task.
struct Task<'a> {
    graph: &'a mut Graph,
    reads_half: &'a dyn Fn(&Node, &[Value]) -> bool,
    /// Number of uses of each value, including outputs of the stage.
    reads: &'a FxHashMap<Id, usize>,
    /// Widened constants, shared by all tasks.
    constants: &'a mut FxHashMap<Id, Id>,
    /// `f32` counterparts of the half-precision values that this task reads or computes.
    wide: FxHashMap<Id, Id>,
    /// Rewritten nodes.
    body: Vec<Node>,
}

impl Task<'_> {
    /// Appends the nodes of a task to the graph: conversions of its operands, its nodes, conversions of its results.
    fn rewrite(mut self, nodes: &[Node]) {
        let has_half = |node: &&Node| node.inputs.iter().chain(&node.outputs).flatten().any(|&id| self.is_half(id));
        let computing = nodes.iter().filter(has_half);
        let summing = computing.clone().filter(|node| node.op.half_precision() == Some(HalfPrecision::Sum)).count();
        let elementwise = computing.filter(|node| node.op.half_precision() == Some(HalfPrecision::Elementwise)).count();
        // A single element-wise operator rounds once anyway: conversions would only add loops.
        if summing == 0 && elementwise < 2 {
            self.graph.nodes.extend_from_slice(nodes);
            return;
        }
        // Half-precision results that are computed in `f32` and not rounded yet.
        let mut unrounded: Vec<(Id, usize)> = vec![];
        // Results are rounded before views at the end, so that the kernel that computes them rounds them.
        let is_trailing = |node: &&Node| node.op.is_view() || !has_half(node);
        let end = nodes.len() - nodes.iter().rev().take_while(is_trailing).count();
        for (position, node) in nodes.iter().enumerate() {
            if position >= end || !self.is_widened(node) {
                for &id in node.inputs.iter().flatten() {
                    if let Some(position) = unrounded.iter().position(|&(half, _)| half == id) {
                        unrounded.remove(position);
                        self.round(id, node.task);
                    }
                }
                self.body.push(node.clone());
                continue;
            }
            let is_unrounded = |id: &Id| unrounded.iter().any(|(half, _)| half == id);
            let reads_half =
                (self.reads_half)(node, &self.graph.values) && !node.inputs.iter().take(2).flatten().any(is_unrounded);
            let wide = |(index, input): (usize, &Option<Id>)| match input {
                Some(id) if !(reads_half && index < 2) => Some(self.widened(*id, node.task)),
                other => *other,
            };
            let inputs = node.inputs.iter().enumerate().map(wide).collect();
            let mut outputs = vec![];
            for &output in &node.outputs {
                outputs.push(match output {
                    Some(id) if self.is_half(id) => {
                        unrounded.push((id, node.task));
                        Some(self.f32_counterpart(id))
                    }
                    other => other,
                });
            }
            self.body.push(Node { inputs, outputs, ..node.clone() });
        }
        let mut inside: FxHashMap<Id, usize> = FxHashMap::default();
        nodes.iter().flat_map(|node| node.inputs.iter().flatten()).for_each(|&id| *inside.entry(id).or_default() += 1);
        for (id, task) in unrounded {
            if self.reads.get(&id) > inside.get(&id) {
                self.round(id, task);
            }
        }
        self.graph.nodes.append(&mut self.body);
    }

    fn is_half(&self, id: Id) -> bool {
        is_half(self.graph.values[id.0].dtype)
    }

    /// Returns true if a node of this task computes in `f32`.
    fn is_widened(&self, node: &Node) -> bool {
        let mut values = node.inputs.iter().chain(&node.outputs).flatten();
        match node.op.half_precision() {
            Some(HalfPrecision::Sum | HalfPrecision::Elementwise) => values.any(|&id| self.is_half(id)),
            Some(HalfPrecision::Move) => node.inputs.iter().flatten().any(|id| self.wide.contains_key(id)),
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
    fn round(&mut self, id: Id, task: usize) {
        self.body.push(cast(self.wide[&id], id, task));
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
        widen(&mut wide, &|_, _| false);
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
        widen(&mut wide, &|_, _| false);
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
        widen(&mut wide, &|_, _| false);
        assert_eq!((wide.nodes.len(), wide.values.len()), (graph.nodes.len(), graph.values.len()));
    }
}
