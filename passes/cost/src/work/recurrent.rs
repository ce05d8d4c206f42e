//! Recurrent layers.

use super::Geometry;
use super::elementwise::{SIGMOID, TANH, operations};
use super::operator::{Count, Operator, bytes, plus, times};
use divi_onnx::{Error, Op};

pub(super) fn rnn(op: &Operator<'_>) -> Result<Count, Error> {
    recurrent(op, &Layer { gates: 1, activations: &[(1, TANH)], state: 0 })
}

/// The state's part behind the reset gate (1), and the mean of old and new weighted by the update gate (4).
pub(super) fn gru(op: &Operator<'_>) -> Result<Count, Error> {
    recurrent(op, &Layer { gates: 3, activations: &[(2, SIGMOID), (1, TANH)], state: 5 })
}

/// The cell is the sum of two products (3), the output one more product (1).
pub(super) fn lstm(op: &Operator<'_>) -> Result<Count, Error> {
    recurrent(op, &Layer { gates: 4, activations: &[(3, SIGMOID), (1, TANH), (1, TANH)], state: 4 })
}

struct Layer {
    gates: u64,
    /// How often a step applies each activation to one unit, and what its default counts.
    activations: &'static [(u64, u64)],
    /// Operations of one unit that make the new state out of the gates.
    state: u64,
}

/// For each step, element of the batch, direction and gate: a row of the input's and of the state's weights times their
/// vectors, the sum of both, the bias (its halves are added beforehand), the activation. The products with the input are
/// made for all steps at once and lie in memory until their step comes. Weights are read once: small ones stay in a cache.
fn recurrent(op: &Operator<'_>, layer: &Layer) -> Result<Count, Error> {
    let (x, w, r) = (op.dims(0)?, op.dims(1)?, op.dims(2)?);
    let (&[first, second, inputs], &[directions, ..], &[_, _, hidden]) = (&x[..], &w[..], &r[..]) else {
        return Err(op.wrong(if x.len() != 3 { 0 } else { 2 }, "of rank 3"));
    };
    let (steps, batch) = if op.node.int_or("layout", 0)? == 1 { (second, first) } else { (first, second) };
    let columns = times(&[layer.gates, hidden]);
    let depth = plus(&[inputs, hidden]);
    // Peepholes, which LSTM alone has: a product and a sum for each of three gates.
    let peepholes = if op.node.op == Op::LSTM && op.has(7) { 6 } else { 0 };
    let bias = if op.has(3) { columns } else { 0 };
    let each = plus(&[times(&[2, columns, depth]), columns, bias, times(&[hidden, layer.state + peepholes])]);
    let cells = times(&[steps, batch]);
    let mut flops = times(&[cells, directions, each]);
    for direction in 0..directions.min(2) {
        let activations = activations(op, layer, direction as usize)?;
        flops = plus(&[flops, times(&[cells, hidden, activations])]);
    }
    let scratch = bytes(op.node.dtype(0)?, times(&[cells, directions, columns]));
    let geometry = Geometry::Product { count: times(&[steps, directions]), rows: batch, columns, depth };
    Ok(op.does(flops, geometry).scratch(scratch))
}

/// Operations of one unit's activations in a direction: the defaults, or those that the attribute names.
fn activations(op: &Operator<'_>, layer: &Layer, direction: usize) -> Result<u64, Error> {
    use divi_onnx::Attr;
    let names = match op.node.attributes.get("activations") {
        None => &[],
        Some(Attr::Strs(names)) => &names[..],
        // A list without elements does not say what of.
        Some(Attr::Ints(none)) if none.is_empty() => &[],
        Some(_) => return Err(Error::new("attribute 'activations' must be a list of strings")),
    };
    let kinds = layer.activations.iter().enumerate();
    let sum = kinds.map(|(kind, &(uses, default))| {
        let named = names.get(direction * layer.activations.len() + kind);
        uses * named.map_or(default, |name| match &name[..] {
            // A scale and a shift; a tangent with one scale inside and one outside.
            "Affine" => 2,
            "ScaledTanh" => TANH + 2,
            name => Op::from_name(name).and_then(Op::work_rule).and_then(operations).unwrap_or(default),
        })
    });
    Ok(sum.sum())
}
