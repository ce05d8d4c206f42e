//! Report of compute-bound operators that have no fast kernel.

use crate::graph::Node;
use divi_onnx::DType;
use std::{collections::BTreeMap, fmt};

/// A compute-bound node that was lowered to plain loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlowNode {
    /// Operator and element type, such as `Conv of float16`.
    kind: String,
    pub(crate) task: usize,
}

impl SlowNode {
    /// Describes a node without a fast kernel; `None` if it is not compute-bound.
    pub(crate) fn of(node: &Node, dtype: DType) -> Option<Self> {
        node.op.is_compute_bound().then(|| Self { kind: format!("{} of {dtype}", node.op), task: node.task })
    }
}

/// Operators of a bundle that have no fast kernel, and their share of the predicted time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlowOperators {
    /// Number of nodes of each kind.
    kinds: BTreeMap<String, usize>,
    /// Predicted time of tasks with such nodes.
    slow_us: f64,
    /// Predicted time of all tasks.
    total_us: f64,
}

impl SlowOperators {
    /// Adds a stage with its slow nodes and the predicted time of each task.
    pub(crate) fn add_stage(&mut self, nodes: &[SlowNode], predicted_us: &[Option<f64>]) {
        let mut is_slow = vec![false; predicted_us.len()];
        for node in nodes {
            *self.kinds.entry(node.kind.clone()).or_default() += 1;
            if let Some(is_slow) = is_slow.get_mut(node.task) {
                *is_slow = true;
            }
        }
        for (us, is_slow) in predicted_us.iter().zip(is_slow) {
            self.total_us += us.unwrap_or(0.0);
            self.slow_us += us.filter(|_| is_slow).unwrap_or(0.0);
        }
    }

    /// Returns the share of the predicted time, 0 to 1; `None` if there is no prediction.
    fn share(&self) -> Option<f64> {
        (self.total_us > 0.0).then(|| self.slow_us / self.total_us)
    }

    /// Returns true if the operators deserve a warning: they take at least 1 % of the predicted time, or there is no prediction.
    pub fn is_notable(&self) -> bool {
        !self.kinds.is_empty() && self.share().is_none_or(|share| share >= 0.01)
    }
}

impl fmt::Display for SlowOperators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        match self.kinds.len() {
            1 => write!(f, "a kind of operator has no fast kernel: ")?,
            count => write!(f, "{count} kinds of operators have no fast kernel: ")?,
        }
        let mut kinds: Vec<_> = self.kinds.iter().collect();
        kinds.sort_by_key(|&(_, &count)| std::cmp::Reverse(count));
        for (i, (kind, &count)) in kinds.into_iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{kind} ({count} node{})", plural(count))?;
        }
        match self.share() {
            Some(share) => write!(f, ": {:.0} % of the predicted time", share * 100.0),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(op: &str, task: usize) -> Node {
        let (name, attributes) = (String::new(), divi_onnx::Attributes::default());
        Node { op: divi_onnx::Op::from_name(op).unwrap(), name, attributes, inputs: vec![], outputs: vec![], task }
    }

    #[test]
    fn one_line_names_all_kinds() {
        let of = |op, dtype, task| SlowNode::of(&node(op, task), dtype);
        let nodes = [("ConvInteger", DType::U8, 0), ("Gemm", DType::F16, 2), ("ConvInteger", DType::U8, 1)];
        let nodes: Vec<_> = nodes.into_iter().filter_map(|(op, dtype, task)| of(op, dtype, task)).collect();
        assert_eq!(of("Relu", DType::F16, 0), None);
        let mut slow = SlowOperators::default();
        slow.add_stage(&nodes, &[Some(40.0), Some(20.0), Some(23.0), Some(17.0)]);
        let expected = "2 kinds of operators have no fast kernel: ConvInteger of uint8 (2 nodes), Gemm of float16 (1 node): \
                        83 % of the predicted time";
        assert_eq!((slow.to_string(), slow.is_notable()), (expected.into(), true));
        let mut little = SlowOperators::default();
        little.add_stage(&nodes[..1], &[Some(1.0), Some(999.0)]);
        assert!(!little.is_notable());
    }
}
