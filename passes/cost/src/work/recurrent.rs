//! Work of recurrent layers.

use super::Geometry;
use super::elementwise::{SIGMOID, TANH, operations};
use super::operator::{Count, Operator, bytes, plus, times};
use divi_onnx::{Error, Op};

pub(super) fn rnn(op: &Operator<'_>) -> Result<Count, Error> {
    recurrent(op, &Layer { gates: 1, activations: &[(1, TANH)], state: 0 })
}

/// Counts `GRU`. State operations: product with the reset gate (1), and interpolation of old and new state by the update gate (4).
pub(super) fn gru(op: &Operator<'_>) -> Result<Count, Error> {
    recurrent(op, &Layer { gates: 3, activations: &[(2, SIGMOID), (1, TANH)], state: 5 })
}

/// Counts `LSTM`. State operations: sum of two products for the cell (3), one product for the output (1).
pub(super) fn lstm(op: &Operator<'_>) -> Result<Count, Error> {
    recurrent(op, &Layer { gates: 4, activations: &[(3, SIGMOID), (1, TANH), (1, TANH)], state: 4 })
}

/// Properties of a kind of layer.
struct Layer {
    gates: u64,
    /// Number of uses of each activation per unit and step, and operations of the default function.
    activations: &'static [(u64, u64)],
    /// Operations per unit that compute the new state from the gates.
    state: u64,
}

/// Counts for each step, batch element, direction and gate: the products of input and state with their weights, the sum of
/// both, the bias (its halves are added in advance) and the activation. The products with the input are computed for all steps
/// at once and are scratch. Weights are read once, assuming that they stay in a cache.
fn recurrent(op: &Operator<'_>, layer: &Layer) -> Result<Count, Error> {
    let (x, w, r) = (op.dims(0)?, op.dims(1)?, op.dims(2)?);
    let (&[first, second, inputs], &[directions, ..], &[_, _, hidden]) = (&x[..], &w[..], &r[..]) else {
        return Err(op.wrong(if x.len() != 3 { 0 } else { 2 }, "of rank 3"));
    };
    let (steps, batch) = if op.node.int_or("layout", 0)? == 1 { (second, first) } else { (first, second) };
    let columns = times(&[layer.gates, hidden]);
    let depth = plus(&[inputs, hidden]);
    // Peepholes of LSTM: a product and a sum for each of three gates.
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

/// Returns the operations of a unit's activations in a direction: the defaults, or those of the attribute.
fn activations(op: &Operator<'_>, layer: &Layer, direction: usize) -> Result<u64, Error> {
    use divi_onnx::Attr;
    let names = match op.node.attributes.get("activations") {
        None => &[],
        Some(Attr::Strs(names)) => &names[..],
        // An empty list has no element type.
        Some(Attr::Ints(none)) if none.is_empty() => &[],
        Some(_) => return Err(Error::new("attribute 'activations' must be a list of strings")),
    };
    let kinds = layer.activations.iter().enumerate();
    let sum = kinds.map(|(kind, &(uses, default))| {
        let named = names.get(direction * layer.activations.len() + kind);
        uses * named.map_or(default, |name| match &name[..] {
            // A scale and a shift; a tanh with an inner and an outer scale.
            "Affine" => 2,
            "ScaledTanh" => TANH + 2,
            name => Op::from_name(name).and_then(Op::work_rule).and_then(operations).unwrap_or(default),
        })
    });
    Ok(sum.sum())
}
