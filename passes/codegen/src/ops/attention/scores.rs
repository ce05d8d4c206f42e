//! Attention probabilities from products of queries and keys: scale, soft cap, masks, softmax.

use super::Heads;
use crate::{
    emit::{Builder, Compare, V},
    error::Result,
    graph::{Id, Node, broadcast_strides},
    lowering::Lowering,
    ops::blocks::grain,
};
use divi_onnx::DType;

/// Intermediate value that the node's optional result contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Scaled,
    Capped,
    Masked,
    Probabilities,
}

/// Parameters of the computation of probabilities.
pub(super) struct Scores {
    /// Batch, heads, queries, keys.
    shape: [i64; 4],
    scale: f64,
    /// Soft cap: scores become `cap * tanh(score / cap)`; none if 0.
    cap: f64,
    is_causal: bool,
    /// Number of visible keys before and after the position of a query; unlimited if `None`.
    window: [Option<i64>; 2],
    /// Number of past keys, which precede the first query.
    past: i64,
    mask: Option<Mask>,
    /// True if an operand contains the length of each sequence; keys beyond it are padding.
    has_lengths: bool,
    stage: Stage,
}

/// Mask operand: booleans, or numbers that are added to the scores.
struct Mask {
    dtype: DType,
    /// Number of keys that it covers; all later keys are masked.
    length: i64,
    /// Strides of batch, heads and queries.
    steps: Vec<i64>,
}

impl Scores {
    pub(super) fn new(cx: &Lowering<'_>, node: &Node, query: &Heads, keys: i64, past: i64) -> Result<Self> {
        let attributes = node.attributes();
        let shape = [query.batch, query.heads, query.length, keys];
        let mask = node.optional(3).map(|id| {
            let own = cx.shape(id);
            let length = own.last().copied().unwrap_or(keys);
            let mut to = shape;
            to[3] = length;
            let mut steps = broadcast_strides(own, &to);
            steps.pop();
            Mask { dtype: cx.dtype(id), length, steps }
        });
        let window = |name: &str| -> Result<Option<i64>> { Ok(attributes.int(name)?.filter(|&size| size >= 0)) };
        Ok(Self {
            shape,
            scale: attributes.float("scale")?.map_or(1.0 / (query.size as f64).sqrt(), f64::from),
            cap: attributes.float("softcap")?.unwrap_or(0.0).into(),
            is_causal: attributes.flag("is_causal", false)?,
            window: [window("left_window_size")?, window("right_window_size")?],
            past,
            mask,
            has_lengths: node.optional(6).is_some(),
            stage: match attributes.int_or("qk_matmul_output_mode", 0)? {
                1 => Stage::Capped,
                2 => Stage::Masked,
                3 => Stage::Probabilities,
                _ => Stage::Scaled,
            },
        })
    }

    /// Adds the call that computes probabilities from scores, in place.
    pub(super) fn lower(&self, cx: &mut Lowering<'_>, node: &Node, scores: Id) {
        let [batch, heads, queries, keys] = self.shape;
        let dtype = cx.dtype(scores);
        let reads: Vec<_> = node.optional(3).into_iter().chain(node.optional(6)).collect();
        let stage_result = node.result(3);
        let stage_dtype = stage_result.map(|id| cx.dtype(id));
        let writes: Vec<_> = [scores].into_iter().chain(stage_result).collect();
        cx.call(batch * heads * queries, grain(keys * 16), &reads, &writes, |b, kernel| {
            let scores = kernel.buffers[reads.len()];
            let ty = b.computed(dtype);
            let lowest = b.float(f64::NEG_INFINITY, ty);
            b.for_each(kernel.begin, kernel.end, 1, |row| {
                let place = b.coordinates(row, &self.shape[..3]);
                let origin = b.times(row, keys);
                let store_stage = |stage: Stage, key: V, value: V| {
                    if let (Some(dtype), true) = (stage_dtype, stage == self.stage) {
                        b.store(value, kernel.buffers[reads.len() + 1], dtype, b.add(origin, key));
                    }
                };
                let visible = self.visible(b, &kernel.buffers[..reads.len()], &place);
                let most = b.fold_nest(&[keys], &[lowest], |at, most| {
                    let key = at[0];
                    let value = b.load(scores, dtype, b.add(origin, key));
                    let value = b.mul(value, b.float(self.scale, ty));
                    store_stage(Stage::Scaled, key, value);
                    let value = self.capped(b, value);
                    store_stage(Stage::Capped, key, value);
                    let value = self.masked(b, kernel.buffers, &place, key, value, &visible);
                    store_stage(Stage::Masked, key, value);
                    b.store(value, scores, dtype, b.add(origin, key));
                    vec![b.max(most[0], value, false)]
                })[0];
                // If all keys are masked, all probabilities are 0.
                let is_masked = b.equal(most, lowest);
                let base = b.select(is_masked, b.zero(ty), most);
                let sum = b.fold_nest(&[keys], &[b.zero(ty)], |at, sum| {
                    let key = b.add(origin, at[0]);
                    let value = b.exp(b.sub(b.load(scores, dtype, key), base));
                    b.store(value, scores, dtype, key);
                    vec![b.accumulate(sum[0], value)]
                })[0];
                let factor = b.div(b.float(1.0, ty), b.select(is_masked, b.float(1.0, ty), sum), false);
                b.repeat(keys, |key| {
                    let at = b.add(origin, key);
                    let value = b.mul(b.load(scores, dtype, at), factor);
                    // The exponential of negative infinity may be a subnormal number instead of 0.
                    let value = b.select(is_masked, b.zero(ty), value);
                    store_stage(Stage::Probabilities, key, value);
                    b.store(value, scores, dtype, at);
                });
            });
        });
    }

    fn capped(&self, b: &Builder, value: V) -> V {
        if self.cap <= 0.0 {
            return value;
        }
        let cap = b.float(self.cap, b.type_of(value));
        b.mul(b.tanh(b.div(value, cap, false)), cap)
    }

    /// Returns the first key that is visible to a query, and one past the last; `None` if unlimited.
    fn visible(&self, b: &Builder, operands: &[V], place: &[V]) -> [Option<V>; 2] {
        let lengths = self.has_lengths.then(|| b.load(operands[operands.len() - 1], DType::I64, place[0]));
        let offset = match lengths {
            Some(length) => b.plus(length, -self.shape[2]),
            None => b.index(self.past),
        };
        let position = b.add(place[2], offset);
        let [left, right] = self.window;
        let first = left.map(|size| b.plus(position, -size));
        let ends = [
            lengths,
            self.is_causal.then(|| b.plus(position, 1)),
            right.map(|size| b.plus(position, size.saturating_add(1))),
        ];
        [first, ends.into_iter().flatten().reduce(|a, c| b.min(a, c, false))]
    }

    fn masked(&self, b: &Builder, buffers: &[V], place: &[V], key: V, value: V, visible: &[Option<V>; 2]) -> V {
        let ty = b.type_of(value);
        let lowest = b.float(f64::NEG_INFINITY, ty);
        let mut value = value;
        if let Some(mask) = &self.mask {
            let keys = self.shape[3];
            // Keys beyond the mask read its last element; the value is discarded below.
            let at = if mask.length < keys { b.min(key, b.index(mask.length - 1), false) } else { key };
            let element = b.load(buffers[0], mask.dtype, b.add(b.offset(place, &mask.steps), at));
            value = match mask.dtype {
                DType::Bool => b.select(element, value, lowest),
                _ => b.add(value, b.resize_float(element, ty)),
            };
            if mask.length < keys {
                value = b.select(b.less(key, b.index(mask.length)), value, lowest);
            }
        }
        if let Some(first) = visible[0] {
            value = b.select(b.less(key, first), lowest, value);
        }
        if let Some(end) = visible[1] {
            let is_beyond = b.compare(Compare::GreaterOrEqual, key, end, false);
            value = b.select(is_beyond, lowest, value);
        }
        value
    }
}
