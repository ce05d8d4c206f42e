//! Attention and related operators. Scores and probabilities are materialized as temporaries.

mod linear;
mod rotary;
mod scores;

use super::{
    Lower,
    blocks::{ContractionOperand, accumulator, contract, grain},
    elementwise::map,
};
use crate::{
    error::{Result, unsupported},
    graph::{Id, Node, strides},
    lowering::Lowering,
};
use divi_onnx::Op;
use scores::Scores;

pub(super) fn find(op: Op) -> Option<Lower> {
    Some(match op {
        Op::Attention => attention,
        Op::LinearAttention => linear::linear_attention,
        Op::RotaryEmbedding => rotary::rotary_embedding,
        Op::SwiGLU => swiglu,
        _ => return None,
    })
}

/// Lowers `x * sigmoid(alpha * x) * y`.
fn swiglu(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let alpha = node.attributes().float("alpha")?.unwrap_or(1.0);
    map(cx, &[node.input(0)?, node.input(1)?], node.output()?, |b, values| {
        let scaled = b.mul(values[0], b.float(alpha.into(), b.type_of(values[0])));
        b.mul(b.mul(values[0], b.sigmoid(scaled)), values[1])
    });
    Ok(())
}

/// A tensor with logical axes batch, head, position in the sequence and element of the head, in any memory order.
#[derive(Clone, Copy, Debug)]
struct Heads {
    id: Id,
    batch: i64,
    heads: i64,
    length: i64,
    size: i64,
    /// Strides of the four axes.
    steps: [i64; 4],
}

impl Heads {
    /// Creates a view of an operand of rank 4, or of rank 3 with heads and their elements combined in the last axis.
    fn new(cx: &Lowering<'_>, id: Id, heads: Option<i64>) -> Result<Self> {
        match (cx.shape(id), heads) {
            (&[batch, heads, length, size], _) => {
                let steps = [heads * length * size, length * size, size, 1];
                Ok(Self { id, batch, heads, length, size, steps })
            }
            (&[batch, length, width], Some(heads)) if heads > 0 => {
                let size = width / heads;
                Ok(Self { id, batch, heads, length, size, steps: [length * width, size, width, 1] })
            }
            _ => unsupported("the operands must have rank 4, or rank 3 and attributes with the number of heads"),
        }
    }
}

/// Lowers `softmax(scale * query * key^T + mask) * value`.
fn attention(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let attributes = node.attributes();
    let (q_heads, kv_heads) = (attributes.int("q_num_heads")?, attributes.int("kv_num_heads")?);
    let query = Heads::new(cx, node.input(0)?, q_heads)?;
    let key = Heads::new(cx, node.input(1)?, kv_heads)?;
    let value = Heads::new(cx, node.input(2)?, kv_heads)?;
    let past = node.optional(4).map_or(0, |id| cx.shape(id)[2]);
    let key = joined(cx, node.optional(4), key, node.result(1))?;
    let value = joined(cx, node.optional(5), value, node.result(2))?;
    let group = query.heads / key.heads.max(1);
    let y = node.output()?;
    let computed = accumulator(cx.dtype(query.id));

    let scores = cx.temporary(computed, &[query.batch, query.heads, query.length, key.length]);
    let ([qb, qh, qt, _], [kb, kh, kt, _]) = (query.steps, key.steps);
    let factors = [
        ContractionOperand { id: query.id, steps: vec![qb, group * qh, qh, qt, 0], depth_steps: vec![1] },
        ContractionOperand { id: key.id, steps: vec![kb, kh, 0, 0, kt], depth_steps: vec![1] },
    ];
    let shape = [query.batch, key.heads, group, query.length, key.length];
    contract(cx, &factors, &shape, &[query.size], scores);

    let rule = Scores::new(cx, node, &query, key.length, past)?;
    rule.lower(cx, node, scores);

    // The result has the order of axes of the query.
    let [pb, ph, pg, pt, pk]: [i64; 5] = strides(&shape).try_into().expect("there are five axes");
    let [vb, vh, vt, _] = value.steps;
    let is_flat = cx.shape(y).len() == 3;
    let order = |steps: [i64; 5]| {
        let [b, h, g, t, e] = steps;
        if is_flat { vec![b, t, h, g, e] } else { vec![b, h, g, t, e] }
    };
    let factors = [
        ContractionOperand { id: scores, steps: order([pb, ph, pg, pt, 0]), depth_steps: vec![pk] },
        ContractionOperand { id: value.id, steps: order([vb, vh, 0, 0, 1]), depth_steps: vec![vt] },
    ];
    contract(cx, &factors, &order([query.batch, key.heads, group, query.length, value.size]), &[key.length], y);
    Ok(())
}

/// Concatenates past and new keys or values along the sequence. Without past and without a result for them, returns the new ones
/// unchanged.
fn joined(cx: &mut Lowering<'_>, past: Option<Id>, new: Heads, present: Option<Id>) -> Result<Heads> {
    if past.is_none() && present.is_none() {
        return Ok(new);
    }
    let past = past.map(|id| Heads::new(cx, id, None)).transpose()?;
    let before = past.map_or(0, |past| past.length);
    let length = before + new.length;
    let dtype = cx.dtype(new.id);
    let shape = [new.batch, new.heads, length, new.size];
    let id = present.unwrap_or_else(|| cx.temporary(dtype, &shape));
    let reads: Vec<_> = [new.id].into_iter().chain(past.map(|past| past.id)).collect();
    cx.call(shape[..3].iter().product(), grain(new.size), &reads, &[id], |b, kernel| {
        let target = kernel.buffers[reads.len()];
        b.for_each(kernel.begin, kernel.end, 1, |row| {
            let place = b.coordinates(row, &shape[..3]);
            let copy = |from: usize, heads: &Heads, at: crate::emit::V| {
                let start = b.offset(&[place[0], place[1], at], &heads.steps[..3]);
                b.repeat(new.size, |i| {
                    let value = b.load(kernel.buffers[from], dtype, b.add(start, i));
                    b.store(value, target, dtype, b.add(b.times(row, new.size), i));
                });
            };
            match &past {
                None => copy(0, &new, place[2]),
                Some(past) => {
                    let is_past = b.less(place[2], b.index(before));
                    b.if_then(is_past, || copy(1, past, place[2]));
                    b.if_then(b.not(is_past), || copy(0, &new, b.plus(place[2], -before)));
                }
            }
        });
    });
    Heads::new(cx, id, None)
}

#[cfg(test)]
mod tests;
