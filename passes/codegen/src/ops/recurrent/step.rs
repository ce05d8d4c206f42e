//! Step functions of the recurrent cells.

use super::{Buffers, Layer};
use crate::emit::{Builder, V};

/// Kind of recurrent cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    Rnn,
    /// Gates: update, reset, hidden.
    Gru {
        is_linear_first: bool,
    },
    /// Gates: input, output, forget, cell.
    Lstm {
        couples_gates: bool,
    },
}

impl Cell {
    pub(super) fn default_activations(self) -> Vec<&'static str> {
        match self {
            Self::Rnn => vec!["Tanh"],
            Self::Gru { .. } => vec!["Sigmoid", "Tanh"],
            Self::Lstm { .. } => vec!["Sigmoid", "Tanh", "Tanh"],
        }
    }

    fn gates(self) -> i64 {
        match self {
            Self::Rnn => 1,
            Self::Gru { .. } => 3,
            Self::Lstm { .. } => 4,
        }
    }
}

/// Context of the step function for one sequence and step.
struct StepContext<'a> {
    b: &'a Builder,
    layer: &'a Layer,
    places: &'a Buffers,
    buffers: &'a [V],
    sequence: V,
    step: V,
}

impl Layer {
    /// Emits the update of a sequence's states by one step.
    pub(super) fn step(&self, b: &Builder, places: &Buffers, buffers: &[V], sequence: V, step: V) {
        let at = StepContext { b, layer: self, places, buffers, sequence, step };
        match self.cell {
            Cell::Rnn => at.rnn(),
            Cell::Gru { is_linear_first } => at.gru(is_linear_first),
            Cell::Lstm { couples_gates } => at.lstm(couples_gates),
        }
    }
}

impl StepContext<'_> {
    fn activate(&self, function: usize, x: V) -> V {
        let b = self.b;
        let clipped = self.layer.clip.map_or(x, |clip| {
            let (most, least) = (b.float(clip.into(), b.type_of(x)), b.float(f64::from(-clip), b.type_of(x)));
            b.max(b.min(x, most, false), least, false)
        });
        self.layer.activations[function].apply(b, clipped)
    }

    /// Returns the offset of an element in a scratch buffer with `size` elements per sequence.
    fn own(&self, size: i64, element: V) -> V {
        self.b.add(self.b.times(self.sequence, size), element)
    }

    fn state(&self, which: usize, element: V) -> V {
        let place = self.buffers[self.places.scratch[which]];
        self.b.load(place, self.layer.computed, self.own(self.layer.hidden, element))
    }

    fn set_state(&self, which: usize, element: V, value: V) {
        let place = self.buffers[self.places.scratch[which]];
        self.b.store(value, place, self.layer.computed, self.own(self.layer.hidden, element));
    }

    fn rows(&self) -> i64 {
        self.layer.cell.gates() * self.layer.hidden
    }

    fn gate(&self, row: V) -> V {
        self.b.load(self.buffers[self.places.scratch[2]], self.layer.computed, self.own(self.rows(), row))
    }

    fn set_gate(&self, row: V, value: V) {
        let place = self.buffers[self.places.scratch[2]];
        self.b.store(value, place, self.layer.computed, self.own(self.rows(), row));
    }

    /// Loads the input projection of a row of the gates.
    fn input(&self, row: V) -> V {
        let (b, layer) = (self.b, self.layer);
        let before = b.plus(self.step, layer.direction * layer.steps);
        let offset = b.add(b.times(before, layer.batch), self.sequence);
        b.load(self.buffers[self.places.input], layer.computed, b.add(b.times(offset, self.rows()), row))
    }

    /// Loads the bias of the input projection or of the recurrence; 0 if there is none.
    fn bias(&self, of_recurrence: bool, row: V) -> V {
        let (b, layer) = (self.b, self.layer);
        let Some(bias) = self.places.bias else { return b.zero(b.computed(layer.computed)) };
        let start = (2 * layer.direction + i64::from(of_recurrence)) * self.rows();
        b.load(self.buffers[bias], layer.dtype, b.plus(row, start))
    }

    fn both_biases(&self, row: V) -> V {
        self.b.add(self.bias(false, row), self.bias(true, row))
    }

    fn peephole(&self, gate: i64, element: V) -> Option<V> {
        let (b, layer) = (self.b, self.layer);
        let start = (3 * layer.direction + gate) * layer.hidden;
        Some(b.load(self.buffers[self.places.peepholes?], layer.dtype, b.plus(element, start)))
    }

    /// Emits the product of a row of the recurrence weights and a vector, normally the state.
    fn recurrence(&self, row: V, state: impl FnOnce(V) -> V) -> V {
        let (b, layer) = (self.b, self.layer);
        let start = b.times(b.plus(row, layer.direction * self.rows()), layer.hidden);
        let zero = b.zero(b.computed(layer.computed));
        b.fold_nest(&[layer.hidden], &[zero], |k, sum| {
            let weight = b.load(self.buffers[self.places.recurrence], layer.dtype, b.add(start, k[0]));
            vec![b.accumulate(sum[0], b.mul(weight, state(k[0])))]
        })[0]
    }

    /// Computes the pre-activations of rows of the gates.
    fn fill(&self, from: i64, to: i64) {
        let b = self.b;
        b.for_each(b.index(from), b.index(to), 1, |row| {
            let sum = b.add(self.input(row), self.recurrence(row, |k| self.state(0, k)));
            self.set_gate(row, b.add(sum, self.both_biases(row)));
        });
    }

    fn rnn(&self) {
        let hidden = self.layer.hidden;
        self.fill(0, hidden);
        self.b.repeat(hidden, |j| self.set_state(0, j, self.activate(0, self.gate(j))));
    }

    fn gru(&self, is_linear_first: bool) {
        let (b, hidden) = (self.b, self.layer.hidden);
        self.fill(0, 2 * hidden);
        b.repeat(2 * hidden, |row| self.set_gate(row, self.activate(0, self.gate(row))));
        let (reset, last) = (|j| b.plus(j, hidden), |j| b.plus(j, 2 * hidden));
        if is_linear_first {
            b.repeat(hidden, |j| {
                let row = last(j);
                let linear = b.add(self.recurrence(row, |k| self.state(0, k)), self.bias(true, row));
                let input = b.add(self.input(row), self.bias(false, row));
                self.set_gate(row, b.add(input, b.mul(self.gate(reset(j)), linear)));
            });
        } else {
            // The reset state is kept in the buffer of the cell state, which GRUs do not have.
            b.repeat(hidden, |j| self.set_state(1, j, b.mul(self.gate(reset(j)), self.state(0, j))));
            b.repeat(hidden, |j| {
                let row = last(j);
                let sum = b.add(self.input(row), self.recurrence(row, |k| self.state(1, k)));
                self.set_gate(row, b.add(sum, self.both_biases(row)));
            });
        }
        b.repeat(hidden, |j| {
            let update = self.gate(j);
            let candidate = self.activate(1, self.gate(last(j)));
            let one = b.float(1.0, b.type_of(update));
            let kept = b.mul(update, self.state(0, j));
            self.set_state(0, j, b.add(b.mul(b.sub(one, update), candidate), kept));
        });
    }

    fn lstm(&self, couples_gates: bool) {
        let (b, hidden) = (self.b, self.layer.hidden);
        self.fill(0, 4 * hidden);
        b.repeat(hidden, |j| {
            let gate = |number: i64| self.gate(b.plus(j, number * hidden));
            let before = self.state(1, j);
            let peep = |value, gate, cell| match self.peephole(gate, j) {
                Some(weight) => b.add(value, b.mul(weight, cell)),
                None => value,
            };
            let input = self.activate(0, peep(gate(0), 0, before));
            let forget = if couples_gates {
                b.sub(b.float(1.0, b.type_of(input)), input)
            } else {
                self.activate(0, peep(gate(2), 2, before))
            };
            let candidate = self.activate(1, gate(3));
            let cell = b.add(b.mul(forget, before), b.mul(input, candidate));
            let output = self.activate(0, peep(gate(1), 1, cell));
            self.set_state(1, j, cell);
            self.set_state(0, j, b.mul(output, self.layer.activations[2].apply(b, cell)));
        });
    }
}
