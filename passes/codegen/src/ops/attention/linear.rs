//! Linear attention: a recurrent state that each token updates and reads.

use super::Heads;
use crate::{
    emit::V,
    error::{Result, unsupported},
    graph::Node,
    lowering::Lowering,
    ops::blocks::{accumulator, grain, to_float},
};

pub(super) fn linear_attention(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let attributes = node.attributes();
    let (q_heads, kv_heads) = (attributes.int("q_num_heads")?, attributes.int("kv_num_heads")?);
    let query = Heads::new(cx, node.input(0)?, q_heads)?;
    let key = Heads::new(cx, node.input(1)?, kv_heads)?;
    let value = Heads::new(cx, node.input(2)?, kv_heads)?;
    let (is_gated, corrects) = match attributes.str_or("update_rule", "gated_delta")? {
        "linear" => (false, false),
        "gated" => (true, false),
        "delta" => (false, true),
        "gated_delta" => (true, true),
        other => {
            return unsupported(format!(
                "attribute 'update_rule' is '{other}', must be linear, gated, delta or gated_delta"
            ));
        }
    };
    let scale = match attributes.float("scale")? {
        Some(scale) if scale != 0.0 => f64::from(scale),
        _ => 1.0 / (query.size as f64).sqrt(),
    };
    let (past, y, present) = (node.optional(3), node.output()?, node.result(1));
    let decay = node.optional(4).filter(|_| is_gated);
    let rate = node.optional(5).filter(|_| corrects);
    if decay.is_some() != is_gated || rate.is_some() != corrects {
        return unsupported("operands that the update rule requires are missing");
    }
    let dtype = cx.dtype(query.id);
    let computed = accumulator(dtype);
    let state_dtype = past.or(present).map_or(computed, |id| cx.dtype(id));
    let (heads, rows, columns) = (key.heads, key.size, value.size);
    let group = query.heads / heads.max(1);
    let decay_width = decay.map_or(1, |id| cx.shape(id)[2]);
    let rate_width = rate.map_or(1, |id| cx.shape(id)[2]);
    let state = cx.temporary(computed, &[key.batch * heads, rows, columns]);
    let written = cx.temporary(computed, &[key.batch * heads, columns]);
    let reads: Vec<_> = [query.id, key.id, value.id].into_iter().chain(past).chain(decay).chain(rate).collect();
    let writes: Vec<_> = [y, state, written].into_iter().chain(present).collect();
    let work = key.length * rows * columns * (group + 2);
    cx.call(key.batch * heads, grain(work), &reads, &writes, |b, kernel| {
        let (inputs, outputs) = kernel.buffers.split_at(reads.len());
        let mut optional = inputs[3..].iter().copied();
        let past = past.and_then(|_| optional.next());
        let decay = decay.and_then(|_| optional.next());
        let rate = rate.and_then(|_| optional.next());
        let (state, written) = (outputs[1], outputs[2]);
        let ty = b.computed(computed);
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let (batch, head) = b.div_rem(number, heads);
            let origin = b.times(number, rows * columns);
            let slot = |row: V, column: V| b.add(origin, b.add(b.times(row, columns), column));
            let own = |column: V| b.add(b.times(number, columns), column);
            b.repeat(rows * columns, |i| {
                let at = b.add(origin, i);
                let start = past.map_or(b.zero(ty), |past| to_float(b, b.load(past, state_dtype, at), state_dtype, ty));
                b.store(start, state, computed, at);
            });
            b.repeat(key.length, |token| {
                let at = |heads: &Heads, head: V| b.offset(&[batch, head, token], &heads.steps[..3]);
                let (key_row, value_row) = (at(&key, head), at(&value, head));
                let token_number = b.add(b.times(batch, key.length), token);
                if let Some(decay) = decay {
                    // One decay per head, or one per row of its state.
                    let is_by_row = decay_width != heads;
                    b.repeat(rows, |row| {
                        let within = if is_by_row { b.add(b.times(head, rows), row) } else { head };
                        let gate = b.exp(b.load(decay, dtype, b.add(b.times(token_number, decay_width), within)));
                        b.repeat(columns, |column| {
                            let at = slot(row, column);
                            b.store(b.mul(b.load(state, computed, at), gate), state, computed, at);
                        });
                    });
                }
                let key_at = |row: V| b.load(inputs[1], dtype, b.add(key_row, row));
                b.repeat(columns, |column| {
                    let value = b.load(inputs[2], dtype, b.add(value_row, column));
                    b.store(value, written, computed, own(column));
                });
                if let Some(rate) = rate {
                    let within = if rate_width == 1 { b.index(0) } else { head };
                    let rate = b.load(rate, dtype, b.add(b.times(token_number, rate_width), within));
                    b.repeat(rows, |row| {
                        let factor = key_at(row);
                        b.repeat(columns, |column| {
                            let known = b.mul(b.load(state, computed, slot(row, column)), factor);
                            let rest = b.sub(b.load(written, computed, own(column)), known);
                            b.store(rest, written, computed, own(column));
                        });
                    });
                    b.repeat(columns, |column| {
                        let value = b.mul(b.load(written, computed, own(column)), rate);
                        b.store(value, written, computed, own(column));
                    });
                }
                b.repeat(rows, |row| {
                    let factor = key_at(row);
                    b.repeat(columns, |column| {
                        let at = slot(row, column);
                        let more = b.mul(factor, b.load(written, computed, own(column)));
                        b.store(b.add(b.load(state, computed, at), more), state, computed, at);
                    });
                });
                b.repeat(group, |member| {
                    let q_head = b.add(b.times(head, group), member);
                    let query_row = at(&query, q_head);
                    let y_row = b.times(b.add(b.times(token_number, query.heads), q_head), columns);
                    b.repeat(columns, |column| {
                        let sum = b.fold_nest(&[rows], &[b.zero(ty)], |row, sum| {
                            let value = b.load(inputs[0], dtype, b.add(query_row, row[0]));
                            vec![b.accumulate(sum[0], b.mul(value, b.load(state, computed, slot(row[0], column))))]
                        })[0];
                        b.store(b.mul(sum, b.float(scale, ty)), outputs[0], dtype, b.add(y_row, column));
                    });
                });
            });
            if present.is_some() {
                b.repeat(rows * columns, |i| {
                    let at = b.add(origin, i);
                    let value = b.resize_float(b.load(state, computed, at), b.computed(state_dtype));
                    b.store(value, outputs[3], state_dtype, at);
                });
            }
        });
    });
    Ok(())
}
