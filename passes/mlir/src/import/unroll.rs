//! Unrolls loops with a known trip count.

use super::{
    apply::Outputs,
    functions::MAX_INLINED_NODES,
    proto::{GraphProto, NodeProto},
    translate::{Kind, Result, Translator, ValueId, display_name},
    types::ValueType,
};
use divi_onnx::{Attr, Attributes, DType, Op, Tensor};

/// Maximum number of unrolled iterations.
pub(crate) const MAX_ITERATIONS: usize = 1024;

/// Maximum number of nodes in all iterations of one loop, with nodes of nested subgraphs counted once.
pub(crate) const MAX_NODES: usize = 1 << 14;

/// Values at the end of an iteration.
struct Iteration {
    /// True if there is another iteration; `None` if that depends on data.
    goes_on: Option<bool>,
    /// States, then the element that the iteration adds to each scan output.
    values: Vec<ValueId>,
}

impl<'m> Translator<'_, 'm> {
    /// Replaces a Loop by its iterations. Returns `None`, with a warning that gives the reason, if the trip count is
    /// unknown or too large; the IR is unchanged then.
    pub(super) fn unroll(
        &mut self,
        node: &'m NodeProto,
        inputs: &[Option<ValueId>],
        body: &'m GraphProto,
        names: Outputs<'_>,
    ) -> Result<Option<Vec<ValueId>>> {
        let checkpoint = self.checkpoint();
        match self.iterations(node, inputs, body, names)? {
            Ok(results) => Ok(Some(results)),
            Err(reason) => {
                self.roll_back(checkpoint);
                self.enter_node(node);
                self.warn(format!("node '{}' (Loop) is not unrolled: {reason}", self.current.name));
                Ok(None)
            }
        }
    }

    /// Returns the results of a Loop, or the reason why it cannot be unrolled.
    fn iterations(
        &mut self,
        node: &'m NodeProto,
        inputs: &[Option<ValueId>],
        body: &'m GraphProto,
        names: Outputs<'_>,
    ) -> Result<std::result::Result<Vec<ValueId>, String>> {
        let mut states: Vec<_> = inputs.iter().skip(2).flatten().copied().collect();
        let state_count = states.len();
        if body.input.len() != 2 + state_count {
            return Err(format!("passes {} values to its body, which takes {}", 2 + state_count, body.input.len()));
        }
        let scan_count = body.output.len().checked_sub(1 + state_count);
        let scan_count = scan_count.filter(|scans| state_count + scans >= names.len()).ok_or_else(|| {
            format!("has {} results, but its body yields {}", names.len(), body.output.len().saturating_sub(1))
        })?;
        let limit = match inputs.first().copied().flatten() {
            None => i64::MAX,
            Some(id) => match self.known_integer(id) {
                Some(limit) => limit,
                None => {
                    return Ok(Err("its number of iterations depends on data, or on a dynamic dimension".into()));
                }
            },
        };
        let mut goes_on = match inputs.get(1).copied().flatten() {
            None => true,
            Some(id) => match self.known_integer(id) {
                Some(condition) => condition != 0,
                None => return Ok(Err("its condition depends on data".into())),
            },
        };
        let body_nodes = node_count(body);
        let mut scans = vec![vec![]; scan_count];
        let mut iteration: usize = 0;
        while goes_on && (iteration as i64) < limit {
            let nodes = body_nodes.saturating_mul(iteration + 1);
            // Not subtracted when unrolling fails: nested loops would take exponential time.
            self.unrolled_nodes = self.unrolled_nodes.saturating_add(body_nodes.max(1));
            if iteration == MAX_ITERATIONS || nodes > MAX_NODES || self.unrolled_nodes > MAX_INLINED_NODES {
                return Ok(Err(format!(
                    "it has more than {MAX_ITERATIONS} iterations, or more than {MAX_NODES} nodes in all of them"
                )));
            }
            let Iteration { goes_on: next, values } = self.iteration(node, body, iteration, &states)?;
            let Some(next) = next else { return Ok(Err("its condition depends on data".into())) };
            goes_on = next;
            states = values[..state_count].to_vec();
            scans.iter_mut().zip(&values[state_count..]).for_each(|(scan, &value)| scan.push(value));
            iteration += 1;
        }
        self.enter_node(node);
        let mut results = states;
        for (i, scan) in scans.into_iter().enumerate() {
            let output = &body.output[1 + state_count + i];
            let is_wanted = names.get(state_count + i).is_some_and(Option::is_some);
            match (&scan[..], is_wanted) {
                (&[first, ..], false) => results.push(first),
                ([], false) => results.push(self.constant("", Tensor::from_shape(&[]))),
                ([], true) => match self.no_iterations(output)? {
                    Some(empty) => results.push(empty),
                    None => {
                        return Ok(Err("it has no iterations, and its body declares no shapes of its outputs".into()));
                    }
                },
                (values, true) => {
                    if values.iter().any(|&id| matches!(self.slot(id).kind, Kind::Other(_))) {
                        return Ok(Err(format!("its output '{}' collects values that are not tensors", output.name())));
                    }
                    results.push(self.stack(values)?);
                }
            }
        }
        Ok(Ok(results))
    }

    /// Translates the body once.
    fn iteration(
        &mut self,
        node: &'m NodeProto,
        body: &'m GraphProto,
        index: usize,
        states: &[ValueId],
    ) -> Result<Iteration> {
        let outer_prefix = self.prefix.len();
        self.prefix.push_str(&format!("{}/{index}/", display_name(node)));
        self.unrolling += 1;
        self.push_scope(Some(body), true);
        let number = self.constant("iteration", Tensor::scalar_i64(index as i64));
        let condition = Tensor::from_ints(DType::Bool, vec![], &[1]).expect("a scalar has one element");
        let condition = self.constant("condition", condition);
        for (input, id) in body.input.iter().zip([number, condition].into_iter().chain(states.iter().copied())) {
            self.bind(input.name(), id)?;
        }
        self.graph_nodes(body)?;
        let mut values = self.graph_outputs(body)?;
        self.pop_scope();
        self.unrolling -= 1;
        self.prefix.truncate(outer_prefix);
        if values.is_empty() {
            return Err("has a body that yields no condition".into());
        }
        let condition = values.remove(0);
        Ok(Iteration { goes_on: self.known_integer(condition).map(|condition| condition != 0), values })
    }

    /// Returns the only element of an integer or boolean constant.
    fn known_integer(&self, id: ValueId) -> Option<i64> {
        let Kind::Tensor(value) = &self.slot(id).kind else { return None };
        match value.tensor()?.ints()?[..] {
            [element] => Some(element),
            _ => None,
        }
    }

    /// Returns a scan output of a loop without iterations.
    fn no_iterations(&mut self, output: &super::proto::ValueInfoProto) -> Result<Option<ValueId>> {
        let Some(ValueType::Tensor(ty)) = self.declared_type(output.r#type.as_ref())? else { return Ok(None) };
        let Some(dims) = ty.static_shape() else { return Ok(None) };
        let empty = Tensor::new(ty.dtype, [&[0], &dims[..]].concat(), Default::default());
        Ok(empty.map(|empty| self.constant(output.name(), empty)))
    }

    /// Stacks values along a new first axis.
    fn stack(&mut self, values: &[ValueId]) -> Result<ValueId> {
        let axes = self.constant("axes", Tensor::from_shape(&[0]));
        let mut rows = vec![];
        for &value in values {
            rows.push(Some(self.apply(Op::Unsqueeze.name(), &[Some(value), Some(axes)], Attributes::default())?));
        }
        let mut attributes = Attributes::default();
        attributes.push("axis", Attr::Int(0));
        self.apply(Op::Concat.name(), &rows, attributes)
    }
}

/// Returns the number of nodes of a graph and its subgraphs.
fn node_count(graph: &GraphProto) -> usize {
    let nested = graph.node.iter().flat_map(|node| &node.attribute).filter_map(|attribute| attribute.g.as_ref());
    graph.node.len() + nested.map(|graph| node_count(graph)).sum::<usize>()
}
