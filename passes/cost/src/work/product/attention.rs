//! Work of attention.

use super::super::Geometry;
use super::super::elementwise::TANH;
use super::super::normalize::{SOFTMAX_EACH, SOFTMAX_ROW};
use super::super::operator::{Count, Operator, bytes, plus, times};
use divi_onnx::Error;

/// Returns batch, heads, length and head size of an operand. In rank 4 the heads have their own axis; in rank 3 they share the
/// last one with their elements.
fn by_heads(op: &Operator<'_>, operand: usize, attribute: &str) -> Result<[u64; 4], Error> {
    let dims = op.dims(operand)?;
    match (&dims[..], op.node.int_or(attribute, 0)?) {
        (&[batch, heads, length, size], _) => Ok([batch, heads, length, size]),
        (&[batch, length, hidden], heads @ 1..) => {
            let heads = heads.unsigned_abs();
            Ok([batch, heads, length, hidden / heads])
        }
        ([_, _, _], _) => {
            Err(Error::new(format!("needs the attribute '{attribute}' to split the last axis into heads")))
        }
        _ => Err(op.wrong(operand, "of rank 3 or 4")),
    }
}

/// Counts `Attention`: queries times keys, scaled and optionally capped and masked, a softmax, and its product with the values.
/// Elements that a causal mask hides are counted. The scores are scratch.
pub(in crate::work) fn attention(op: &Operator<'_>) -> Result<Count, Error> {
    let [batch, heads, rows, depth] = by_heads(op, 0, "q_num_heads")?;
    let [_, _, length, _] = by_heads(op, 1, "kv_num_heads")?;
    let [_, _, _, v_size] = by_heads(op, 2, "kv_num_heads")?;
    let past = match op.has(4) {
        true => op.dims(4)?.get(2).copied().ok_or_else(|| op.wrong(4, "of rank 4"))?,
        false => 0,
    };
    let columns = plus(&[length, past]);
    let capped = op.node.float("softcap")?.is_some_and(|cap| cap != 0.0);
    let masked = op.has(3) || op.node.flag("is_causal", false)?;
    // Per score, besides the products: scale, cap (quotient, tanh, product), mask, softmax.
    let each = plus(&[1, if capped { TANH + 2 } else { 0 }, u64::from(masked), SOFTMAX_EACH]);
    let count = times(&[batch, heads]);
    let scores = times(&[count, rows, columns]);
    let flops = plus(&[
        times(&[2, scores, depth]),
        times(&[scores, each]),
        times(&[SOFTMAX_ROW, count, rows]),
        times(&[2, scores, v_size]),
    ]);
    let scratch = bytes(op.node.dtype(0)?, scores);
    Ok(op.does(flops, Geometry::Product { count, rows, columns, depth }).scratch(scratch))
}

/// Counts `LinearAttention`. In each step, the state of each key/value head decays (`gated`), is corrected by its current
/// prediction for the key (`delta`), and is updated by the outer product of key and value; each query head reads it, scaled.
pub(in crate::work) fn linear_attention(op: &Operator<'_>) -> Result<Count, Error> {
    let [batch, heads, length, depth] = by_heads(op, 0, "q_num_heads")?;
    let [_, kv_heads, _, columns] = by_heads(op, 2, "kv_num_heads")?;
    let rule = op.node.str_or("update_rule", "gated_delta")?;
    let state = times(&[depth, columns]);
    let decay = if rule.starts_with("gated") { state } else { 0 };
    let correction = if rule.ends_with("delta") { plus(&[times(&[2, state]), times(&[2, columns])]) } else { 0 };
    let update = times(&[kv_heads, plus(&[decay, correction, times(&[2, state])])]);
    let reading = times(&[heads, plus(&[times(&[2, state]), columns])]);
    let steps = times(&[batch, length]);
    let flops = times(&[steps, plus(&[update, reading])]);
    Ok(op.does(flops, Geometry::Product { count: times(&[steps, heads]), rows: 1, columns, depth }))
}
