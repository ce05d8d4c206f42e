//! Recurrent layers. The input projection is one matrix multiplication for all steps; then the steps run in order, parallel over the
//! sequences of the batch.

mod activation;
mod step;

use super::{
    Lower,
    blocks::{ContractionOperand, accumulator, contract, grain, to_index},
};
use crate::{
    emit::{Builder, Signature, V},
    error::{Result, unsupported},
    graph::{Id, Node, strides},
    lowering::Lowering,
};
use activation::{Activation, activations};
use divi_onnx::{DType, Op};
use divi_runtime::bundle::Status;
use step::Cell;

pub(super) fn find(op: Op) -> Option<Lower> {
    Some(match op {
        Op::RNN => |cx, node| lower(cx, node, Cell::Rnn),
        Op::GRU => |cx, node| {
            let is_linear_first = node.attributes().flag("linear_before_reset", false)?;
            lower(cx, node, Cell::Gru { is_linear_first })
        },
        Op::LSTM => |cx, node| {
            let couples_gates = node.attributes().flag("input_forget", false)?;
            lower(cx, node, Cell::Lstm { couples_gates })
        },
        _ => return None,
    })
}

/// One direction of a layer.
struct Layer {
    cell: Cell,
    direction: i64,
    directions: i64,
    is_reverse: bool,
    is_batch_first: bool,
    steps: i64,
    batch: i64,
    hidden: i64,
    dtype: DType,
    /// Type of computations, states and gates.
    computed: DType,
    lengths: DType,
    activations: Vec<Activation>,
    clip: Option<f32>,
}

/// Indices of the kernel's buffers; `None` if a value is omitted.
#[derive(Default)]
struct Buffers {
    ids: Vec<Id>,
    input: usize,
    recurrence: usize,
    bias: Option<usize>,
    lengths: Option<usize>,
    states: [Option<usize>; 2],
    peepholes: Option<usize>,
    all: Option<usize>,
    last: [Option<usize>; 2],
    /// Hidden state, cell state, gates.
    scratch: [usize; 3],
}

impl Buffers {
    fn add(&mut self, id: Id) -> usize {
        self.ids.push(id);
        self.ids.len() - 1
    }

    fn maybe(&mut self, id: Option<Id>) -> Option<usize> {
        id.map(|id| self.add(id))
    }
}

fn lower(cx: &mut Lowering<'_>, node: &Node, cell: Cell) -> Result<()> {
    let (x, w, r) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let is_batch_first = node.attributes().int_or("layout", 0)? == 1;
    let (&[first, second, width], &[directions, gates, hidden]) = (cx.shape(x), cx.shape(r)) else {
        return unsupported("the input and the recurrence weights must have rank 3");
    };
    let (steps, batch) = if is_batch_first { (second, first) } else { (first, second) };
    let x_steps = strides(cx.shape(x));
    let (step_of_time, step_of_batch) =
        if is_batch_first { (x_steps[1], x_steps[0]) } else { (x_steps[0], x_steps[1]) };
    let (dtype, computed) = (cx.dtype(x), accumulator(cx.dtype(x)));
    let input = cx.temporary(computed, &[directions, steps, batch, gates]);
    let factors = [
        ContractionOperand { id: x, steps: vec![0, step_of_time, step_of_batch, 0], depth_steps: vec![1] },
        ContractionOperand { id: w, steps: vec![gates * width, 0, 0, width], depth_steps: vec![1] },
    ];
    contract(cx, &factors, &[directions, steps, batch, gates], &[width], input);

    let direction = node.attributes().str_or("direction", "forward")?;
    let functions = activations(node, &cell.default_activations(), directions as usize)?;
    for (index, activations) in functions.into_iter().enumerate() {
        let layer = Layer {
            cell,
            direction: index as i64,
            directions,
            is_reverse: direction == "reverse" || index == 1,
            is_batch_first,
            steps,
            batch,
            hidden,
            dtype,
            computed,
            lengths: node.optional(4).map_or(DType::I32, |id| cx.dtype(id)),
            activations,
            clip: node.attributes().float("clip")?,
        };
        let mut places = Buffers::default();
        places.input = places.add(input);
        places.recurrence = places.add(r);
        places.bias = places.maybe(node.optional(3));
        places.lengths = places.maybe(node.optional(4));
        places.states[0] = places.maybe(node.optional(5));
        if matches!(cell, Cell::Lstm { .. }) {
            places.states[1] = places.maybe(node.optional(6));
            places.peepholes = places.maybe(node.optional(7));
        }
        let reads = places.ids.len();
        places.all = places.maybe(node.result(0));
        places.last = [places.maybe(node.result(1)), places.maybe(node.result(2))];
        let scratch = [hidden, hidden, gates].map(|size| cx.temporary(computed, &[batch, size]));
        places.scratch = scratch.map(|id| places.add(id));
        let (read, written) = places.ids.split_at(reads);
        cx.call(batch, grain(steps * gates * hidden), read, written, |b, kernel| layer.emit(b, &places, kernel));
    }
    Ok(())
}

impl Layer {
    /// Returns the offset of a sequence's state in the state operands and results.
    fn state(&self, b: &Builder, sequence: V) -> V {
        let number = if self.is_batch_first {
            b.plus(b.times(sequence, self.directions), self.direction)
        } else {
            b.plus(sequence, self.direction * self.batch)
        };
        b.times(number, self.hidden)
    }

    /// Returns the offset of a step in the first result.
    fn result(&self, b: &Builder, step: V, sequence: V) -> V {
        let number = if self.is_batch_first {
            let row = b.add(b.times(sequence, self.steps), step);
            b.plus(b.times(row, self.directions), self.direction)
        } else {
            let row = b.plus(b.times(step, self.directions), self.direction);
            b.add(b.times(row, self.batch), sequence)
        };
        b.times(number, self.hidden)
    }

    fn emit(&self, b: &Builder, places: &Buffers, kernel: Signature<'_>) {
        let ty = b.computed(self.computed);
        let buffers = kernel.buffers;
        b.for_each(kernel.begin, kernel.end, 1, |sequence| {
            let state_rows = [0, 1].map(|_| b.times(sequence, self.hidden));
            let state = self.state(b, sequence);
            for i in 0..2 {
                b.repeat(self.hidden, |j| {
                    let value = match places.states[i] {
                        Some(initial) => b.load(buffers[initial], self.dtype, b.add(state, j)),
                        None => b.zero(ty),
                    };
                    b.store(value, buffers[places.scratch[i]], self.computed, b.add(state_rows[i], j));
                });
            }
            let steps = b.index(self.steps);
            let length = places.lengths.map_or(steps, |lengths| {
                let length = to_index(b, b.load(buffers[lengths], self.lengths, sequence), self.lengths);
                let is_outside = b.compare(crate::emit::Compare::Greater, length, steps, true);
                b.fail_if(is_outside, Status::BadValue);
                b.select(is_outside, steps, length)
            });
            b.for_each(b.index(0), length, 1, |number| {
                let step = if self.is_reverse { b.plus(b.sub(length, number), -1) } else { number };
                self.step(b, places, buffers, sequence, step);
                if let Some(all) = places.all {
                    let target = self.result(b, step, sequence);
                    self.copy_state(b, buffers[places.scratch[0]], state_rows[0], buffers[all], target);
                }
            });
            if let Some(all) = places.all {
                // Results beyond the end of a sequence are 0.
                b.for_each(length, steps, 1, |step| {
                    let target = self.result(b, step, sequence);
                    b.repeat(self.hidden, |j| b.store(b.zero(ty), buffers[all], self.dtype, b.add(target, j)));
                });
            }
            for i in 0..2 {
                if let Some(last) = places.last[i] {
                    self.copy_state(b, buffers[places.scratch[i]], state_rows[i], buffers[last], state);
                }
            }
        });
    }

    fn copy_state(&self, b: &Builder, from: V, row: V, to: V, target: V) {
        b.repeat(self.hidden, |j| {
            b.store(b.load(from, self.computed, b.add(row, j)), to, self.dtype, b.add(target, j));
        });
    }
}

#[cfg(test)]
mod tests;
