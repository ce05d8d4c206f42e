//! Recognizes attention in the nodes of a task.
//!
//! The nodes are followed symbolically: a value is a view of an operand of the task, the scaled and masked scores, their Softmax, or the
//! result.

use super::super::matrix::Matrices;
use crate::{
    epilogue::scalar,
    error::Result,
    graph::{Id, Node},
    half_precision::{cast_type, is_half},
    lowering::Lowering,
    strided_view::StridedView,
};
use divi_onnx::{
    DType, Op,
    node::{normalize_axes, normalize_axis},
    operators,
};
use rustc_hash::FxHashMap;

/// `softmax(scale * queries * keys^T + mask) * values`, for a batch of matrices.
#[derive(Clone, Debug)]
pub(super) struct Attention {
    /// Rows of `queries` and of `result`.
    pub(super) rows: i64,
    /// Rows of `keys` and `values`.
    pub(super) keys: i64,
    /// Elements of a query and of a key.
    pub(super) depth: i64,
    /// Elements of a row of `values` and of `result`.
    pub(super) columns: i64,
    pub(super) queries: Matrices,
    pub(super) key_rows: Matrices,
    pub(super) values: Matrices,
    pub(super) mask: Option<Mask>,
    pub(super) result: Matrices,
    pub(super) scale: f64,
    /// Half-precision type that the probabilities are rounded to.
    pub(super) rounding: Option<DType>,
    /// True if the operands of both products are `bf16`.
    pub(super) is_bf16: bool,
}

/// Addend of the scores, which is broadcast to them.
#[derive(Clone, Debug)]
pub(super) struct Mask {
    pub(super) matrices: Matrices,
    /// True if all keys have the same addend.
    pub(super) is_repeated: bool,
}

/// Value of the task.
#[derive(Clone, Debug)]
enum Symbol {
    Operand(Operand),
    /// Scores, before or after the Softmax.
    Scores(Scores),
    /// Result, with the order of its axes in memory. `is_final` if it was reshaped.
    Result {
        scores: Scores,
        values: Operand,
        order: Vec<usize>,
        is_final: bool,
    },
}

/// View of a value that other tasks compute, times a number.
#[derive(Clone, Debug)]
struct Operand {
    id: Id,
    view: StridedView,
    scale: f64,
    /// Type of its elements in the model.
    dtype: DType,
}

#[derive(Clone, Debug)]
struct Scores {
    queries: Operand,
    keys: Operand,
    shape: Vec<i64>,
    scale: f64,
    mask: Option<(Id, StridedView)>,
    has_softmax: bool,
    rounding: Option<DType>,
}

impl Attention {
    /// Returns the attention that all nodes of a task compute; `None` if they compute something else, or a value besides the last one is
    /// used elsewhere. The first node is at `position` in the stage.
    pub(super) fn of_task(cx: &Lowering<'_>, nodes: &[Node], position: usize) -> Result<Option<Self>> {
        let count = |op: Op| nodes.iter().filter(|node| node.op == op).count();
        let Some((last, others)) = nodes.split_last().filter(|_| (count(Op::Softmax), count(Op::MatMul)) == (1, 2))
        else {
            return Ok(None);
        };
        let range = position..position + nodes.len();
        let mut inner = others.iter().flat_map(|node| node.outputs.iter().flatten());
        if inner.any(|&id| !cx.is_read_only_by(id, range.clone())) {
            return Ok(None);
        }
        let mut trace = Trace { cx, symbols: FxHashMap::default() };
        for node in nodes {
            let (Some(symbol), Some(id)) = (trace.symbol_of(node)?, node.result(0)) else { return Ok(None) };
            trace.symbols.insert(id, symbol);
        }
        let result = last.output()?;
        Ok(match trace.symbols.remove(&result) {
            Some(Symbol::Result { scores, values, order, .. }) => Self::new(cx, scores, &values, &order, result),
            _ => None,
        })
    }

    fn new(cx: &Lowering<'_>, scores: Scores, values: &Operand, order: &[usize], result: Id) -> Option<Self> {
        let axes = scores.shape.len() - 2;
        let (rows, keys) = (scores.shape[axes], scores.shape[axes + 1]);
        let Scores { queries, keys: key_columns, scale, mask, rounding, .. } = scores;
        // Keys are the columns of the second operand.
        let swapped: Vec<usize> = (0..axes).chain([axes + 1, axes]).collect();
        let is_bf16 = [&queries, &key_columns, values].iter().all(|operand| operand.dtype == DType::BF16);
        // Only tiles round operands on the way.
        let is_rounded = |operand: &&Operand| is_half(operand.dtype) && cx.dtype(operand.id) == DType::F32;
        if !is_bf16 && [&queries, &key_columns, values].iter().any(is_rounded) {
            return None;
        }
        let (depth, columns) = (queries.view.shape[axes + 1], values.view.shape[axes + 1]);
        let dims: Vec<i64> = scores.shape[..axes].iter().copied().chain([rows, columns]).collect();
        let in_memory = StridedView::row_major(&order.iter().map(|&axis| dims[axis]).collect::<Vec<_>>());
        let place = |axis: usize| order.iter().position(|&other| other == axis).unwrap_or(axis);
        let result = Matrices::of_view(result, &in_memory.permuted(&(0..dims.len()).map(place).collect::<Vec<_>>()))?;
        let mask = match mask {
            None => None,
            Some((id, mut view)) => {
                let is_repeated = view.strides[axes + 1] == 0;
                if is_repeated {
                    view.shape[axes + 1] = 1;
                }
                Some(Mask { matrices: Matrices::of_view(id, &view)?, is_repeated })
            }
        };
        Some(Self {
            rows,
            keys,
            depth,
            columns,
            key_rows: Matrices::of_view(key_columns.id, &key_columns.view.permuted(&swapped))?,
            values: Matrices::of_view(values.id, &values.view)?,
            mask,
            result,
            scale: scale * queries.scale * key_columns.scale,
            queries: Matrices::of_view(queries.id, &queries.view)?,
            rounding,
            is_bf16,
        })
    }
}

/// Symbols of the values that the nodes so far compute.
struct Trace<'a, 'b> {
    cx: &'a Lowering<'b>,
    symbols: FxHashMap<Id, Symbol>,
}

impl Trace<'_, '_> {
    fn symbol(&self, id: Id) -> Option<Symbol> {
        if let Some(symbol) = self.symbols.get(&id) {
            return Some(symbol.clone());
        }
        let is_plain = self.cx.is_computed_in_f32(id) && !self.cx.is_blocked(id);
        let (view, dtype) = (StridedView::row_major(self.cx.shape(id)), self.cx.dtype(id));
        is_plain.then_some(Symbol::Operand(Operand { id, view, scale: 1.0, dtype }))
    }

    /// Returns the symbol of a node's result; `None` if the node is not part of attention.
    fn symbol_of(&self, node: &Node) -> Result<Option<Symbol>> {
        let Some(first) = node.optional(0).and_then(|id| self.symbol(id)) else { return Ok(None) };
        let result = node.output()?;
        Ok(match node.op {
            Op::Cast => self.cast(node, first),
            Op::Transpose => {
                let rank = self.cx.shape(node.input(0)?).len();
                let order = match node.attributes().ints("perm")? {
                    Some(order) => normalize_axes(order, rank)?,
                    None => (0..rank).rev().collect(),
                };
                transposed(first, &order)
            }
            Op::Mul | Op::Div => self.scaled(node, first)?,
            Op::Add => self.masked(node, first)?,
            Op::Softmax => {
                let rank = self.cx.shape(result).len();
                let axis = normalize_axis(node.attributes().int_or("axis", -1)?, rank)?;
                match first {
                    Symbol::Scores(scores) if axis + 1 == rank && !scores.has_softmax => {
                        Some(Symbol::Scores(Scores { has_softmax: true, ..scores }))
                    }
                    _ => None,
                }
            }
            Op::MatMul => self.product(node, first)?,
            op if op.lowering() == Some(operators::Lowering::View) => reshaped(first, self.cx.shape(result)),
            _ => None,
        })
    }

    fn cast(&self, node: &Node, symbol: Symbol) -> Option<Symbol> {
        let Some(dtype) = cast_type(node) else { return Some(symbol) };
        let is_float = dtype == DType::F32 || is_half(dtype);
        Some(match symbol {
            _ if !is_float => return None,
            Symbol::Operand(operand) => Symbol::Operand(Operand { dtype, ..operand }),
            Symbol::Scores(scores) if dtype == DType::F32 => Symbol::Scores(scores),
            Symbol::Scores(scores) if scores.has_softmax => Symbol::Scores(Scores { rounding: Some(dtype), ..scores }),
            // The result is rounded when it is stored.
            Symbol::Result { .. } if dtype == self.cx.type_in_memory(node.result(0)?) => symbol,
            _ => return None,
        })
    }

    fn scaled(&self, node: &Node, first: Symbol) -> Result<Option<Symbol>> {
        let (left, right) = (node.input(0)?, node.input(1)?);
        let number = scalar(self.cx, right).map(|number| (first, number));
        let pair = match node.op {
            Op::Mul => number.or_else(|| self.symbol(right).zip(scalar(self.cx, left))),
            _ => number.map(|(symbol, number)| (symbol, 1.0 / number)),
        };
        let Some((symbol, factor)) = pair.filter(|(_, factor)| factor.is_finite() && *factor != 0.0) else {
            return Ok(None);
        };
        Ok(match symbol {
            Symbol::Operand(operand) => Some(Symbol::Operand(Operand { scale: operand.scale * factor, ..operand })),
            Symbol::Scores(scores) if scores.mask.is_none() && !scores.has_softmax => {
                Some(Symbol::Scores(Scores { scale: scores.scale * factor, ..scores }))
            }
            _ => None,
        })
    }

    fn masked(&self, node: &Node, first: Symbol) -> Result<Option<Symbol>> {
        let Some(second) = self.symbol(node.input(1)?) else { return Ok(None) };
        let (Symbol::Scores(scores), Symbol::Operand(mask)) = (match first {
            Symbol::Scores(_) => (first, second),
            _ => (second, first),
        }) else {
            return Ok(None);
        };
        let view = mask.view.broadcast(&scores.shape).filter(|_| mask.scale == 1.0);
        let is_first = scores.mask.is_none() && !scores.has_softmax;
        let same_shape = self.cx.shape(node.output()?) == scores.shape;
        Ok(view
            .filter(|_| is_first && same_shape)
            .map(|view| Symbol::Scores(Scores { mask: Some((mask.id, view)), ..scores })))
    }

    fn product(&self, node: &Node, first: Symbol) -> Result<Option<Symbol>> {
        let Some(Symbol::Operand(right)) = self.symbol(node.input(1)?) else { return Ok(None) };
        let shape = self.cx.shape(node.output()?).to_vec();
        let rank = shape.len();
        let same_batch = |left: &[i64]| {
            rank >= 2
                && left.len() == rank
                && right.view.shape.len() == rank
                && left[..rank - 2] == right.view.shape[..rank - 2]
        };
        Ok(match first {
            Symbol::Operand(left) if same_batch(&left.view.shape) => Some(Symbol::Scores(Scores {
                queries: left,
                keys: right,
                shape,
                scale: 1.0,
                mask: None,
                has_softmax: false,
                rounding: None,
            })),
            Symbol::Scores(scores) if scores.has_softmax && same_batch(&scores.shape) && right.scale == 1.0 => {
                Some(Symbol::Result { scores, values: right, order: (0..rank).collect(), is_final: false })
            }
            _ => None,
        })
    }
}

fn transposed(symbol: Symbol, axes: &[usize]) -> Option<Symbol> {
    match symbol {
        Symbol::Operand(operand) => {
            let view = operand.view.permuted(axes);
            Some(Symbol::Operand(Operand { view, ..operand }))
        }
        Symbol::Result { scores, values, order, is_final: false } => {
            let order = axes.iter().map(|&axis| order[axis]).collect();
            Some(Symbol::Result { scores, values, order, is_final: false })
        }
        _ => None,
    }
}

fn reshaped(symbol: Symbol, shape: &[i64]) -> Option<Symbol> {
    match symbol {
        Symbol::Operand(operand) => {
            let view = operand.view.reshaped(shape)?;
            Some(Symbol::Operand(Operand { view, ..operand }))
        }
        Symbol::Scores(scores) if scores.shape == shape => Some(Symbol::Scores(scores)),
        Symbol::Result { scores, values, order, .. } => Some(Symbol::Result { scores, values, order, is_final: true }),
        Symbol::Scores(_) => None,
    }
}
