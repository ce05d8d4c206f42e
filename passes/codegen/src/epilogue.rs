//! Epilogues: element-wise operators (bias, activation, residual) that are fused into the kernel that computes their operand.

use crate::{
    emit::{Builder, V},
    error::Result,
    graph::{Id, Node},
    half_precision::rounds_to,
    lowering::Lowering,
};
use divi_onnx::{DType, Op};
use divi_runtime::prepare::Expression;

/// An element-wise function of `f32`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Function {
    Add,
    Sub,
    Mul,
    Div,
    Max,
    Min,
    Relu,
    Sigmoid,
    Tanh,
    Erf,
    Exp,
    Sqrt,
    Neg,
    Abs,
    Reciprocal,
    HardSigmoid {
        alpha: f64,
        beta: f64,
    },
    HardSwish,
    LeakyRelu {
        alpha: f64,
    },
    Clip {
        low: Option<f64>,
        high: Option<f64>,
    },
    Gelu {
        is_approximate: bool,
    },
    Square,
    /// Rounding to half precision, stored in `f32`.
    Round(DType),
}

/// Argument of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Argument {
    /// Result of the kernel before the epilogue.
    Start,
    /// Result of an earlier step.
    Step(usize),
    /// Corresponding element of an operand, which may be broadcast.
    Operand(usize),
    /// Constant.
    Number(f64),
}

/// Straight-line program of an epilogue. The last step yields the result; without steps, the result is [`Argument::Start`].
#[derive(Clone, Debug, Default)]
pub(crate) struct FusedEpilogue {
    /// Tensors that the steps read, without duplicates.
    pub(crate) operands: Vec<Id>,
    steps: Vec<(Function, Vec<Argument>)>,
    /// True if the result is rounded to half precision, so that faster and less exact functions suffice.
    is_rounded: bool,
}

impl FusedEpilogue {
    /// Returns an operand as an argument; adds it if it is new.
    fn operand(&mut self, id: Id) -> Argument {
        let index = self.operands.iter().position(|&known| known == id).unwrap_or_else(|| {
            self.operands.push(id);
            self.operands.len() - 1
        });
        Argument::Operand(index)
    }

    /// Splits off a first step that adds an operand to [`Argument::Start`], if `accept` returns true for the operand and no other step
    /// reads either. Returns the operand and the remaining epilogue.
    pub(crate) fn split_bias(&self, accept: impl Fn(Id) -> bool) -> Option<(Id, Self)> {
        use Argument::{Operand, Start, Step};
        let ((Function::Add, sum), rest) = self.steps.split_first()? else { return None };
        let (&[Start, Operand(addend)] | &[Operand(addend), Start]) = &sum[..] else { return None };
        let mut uses = rest.iter().flat_map(|(_, arguments)| arguments);
        if !accept(self.operands[addend]) || uses.any(|&argument| argument == Start || argument == Operand(addend)) {
            return None;
        }
        let shifted = |argument: &Argument| match *argument {
            Step(0) => Start,
            Step(step) => Step(step - 1),
            Operand(operand) if operand > addend => Operand(operand - 1),
            other => other,
        };
        let steps = rest.iter().map(|(function, arguments)| (*function, arguments.iter().map(shifted).collect()));
        let mut left = Self { operands: self.operands.clone(), steps: steps.collect(), is_rounded: self.is_rounded };
        let id = left.operands.remove(addend);
        Some((id, left))
    }

    /// Returns the epilogue in the form of the epilogues of BLAS libraries: an optional addend, and true if a ReLU follows. `None` if the
    /// epilogue has another form.
    pub(crate) fn as_library_epilogue(&self) -> Option<(Option<Id>, bool)> {
        use Argument::{Operand, Start, Step};
        match &self.steps[..] {
            [] => Some((None, false)),
            [(Function::Relu, _)] => Some((None, true)),
            [(Function::Add, sum), rest @ ..] if matches!(rest, [] | [(Function::Relu, _)]) => match sum[..] {
                [Start, Operand(0)] | [Operand(0), Start] => {
                    let is_relu_of_it = rest.iter().all(|(_, arguments)| arguments[..] == [Step(0)]);
                    is_relu_of_it.then_some((Some(self.operands[0]), !rest.is_empty()))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns true if the result is rounded to half precision.
    pub(crate) fn is_rounded(&self) -> bool {
        self.is_rounded
    }

    /// Returns true if the result is finite for small finite operands.
    pub(crate) fn is_finite(&self) -> bool {
        let is_risky = |function: &Function| matches!(function, Function::Div | Function::Reciprocal | Function::Sqrt);
        !self.steps.iter().any(|(function, _)| is_risky(function))
    }

    /// Emits the epilogue for an element or a vector of elements. Returns the result.
    pub(crate) fn emit(&self, b: &Builder, start: V, operands: &[V]) -> V {
        let mut results: Vec<V> = vec![];
        for (function, arguments) in &self.steps {
            let ty = b.type_of(start);
            let values = arguments.iter().map(|argument| match *argument {
                Argument::Start => start,
                Argument::Step(step) => results[step],
                Argument::Operand(operand) => operands[operand],
                Argument::Number(value) => b.float(value, ty),
            });
            let values: Vec<_> = values.collect();
            results.push(match (function, &arguments[..]) {
                (Function::Div, &[_, Argument::Number(divisor)]) if self.is_rounded && divisor.abs() > 1e-30 => {
                    b.mul(values[0], b.float(divisor.recip(), ty))
                }
                _ => function.emit(b, &values, self.is_rounded),
            });
        }
        results.last().copied().unwrap_or(start)
    }
}

impl Function {
    /// Emits the function of some values. If the result is rounded to half precision, less exact formulas suffice.
    fn emit(self, b: &Builder, values: &[V], is_rounded: bool) -> V {
        let x = values[0];
        let ty = b.type_of(x);
        let float = |value| b.float(value, ty);
        let erf = |x| if is_rounded { b.rough_erf(x) } else { b.erf(x) };
        match self {
            Self::Add => b.add_rounded(x, values[1]),
            Self::Sub => b.sub_rounded(x, values[1]),
            Self::Mul => b.mul_rounded(x, values[1]),
            Self::Div => b.div(x, values[1], false),
            Self::Max => b.max(x, values[1], false),
            Self::Min => b.min(x, values[1], false),
            Self::Relu => b.relu(x),
            Self::Sigmoid if is_rounded => b.rough_sigmoid(x),
            Self::Sigmoid => b.sigmoid(x),
            Self::Tanh => b.tanh(x),
            Self::Erf => erf(x),
            Self::Exp => b.exp(x),
            Self::Sqrt => b.sqrt(x),
            Self::Neg => b.neg(x),
            Self::Abs => b.abs(x),
            Self::Reciprocal => b.div(float(1.0), x, false),
            Self::HardSigmoid { alpha, beta } => b.clamp(b.fma(x, float(alpha), float(beta)), Some(0.0), Some(1.0)),
            Self::HardSwish => {
                let gate = b.clamp(b.fma(x, float(1.0 / 6.0), float(0.5)), Some(0.0), Some(1.0));
                b.mul(x, gate)
            }
            Self::LeakyRelu { alpha } => b.select(b.less(x, float(0.0)), b.mul(x, float(alpha)), x),
            Self::Clip { low, high } => b.clamp(x, low, high),
            Self::Gelu { is_approximate: false } => {
                let cumulative = b.add(erf(b.mul(x, float(std::f64::consts::FRAC_1_SQRT_2))), float(1.0));
                b.mul(b.mul(x, float(0.5)), cumulative)
            }
            Self::Gelu { is_approximate: true } => {
                let cube = b.mul(b.mul(x, x), x);
                let inner = b.mul(b.fma(cube, float(0.044_715), x), float((2.0 / std::f64::consts::PI).sqrt()));
                b.mul(b.mul(x, float(0.5)), b.add(b.tanh(inner), float(1.0)))
            }
            Self::Square => b.mul_rounded(x, x),
            Self::Round(dtype) => b.rounded_to_half(x, dtype),
        }
    }
}

/// Predicate: returns true if the epilogue of a kernel can read an operand.
pub(crate) type Accept<'a> = &'a dyn Fn(&Lowering<'_>, Id) -> bool;

/// Finds the longest sequence of nodes after the definition of `start`, in the same task, that can be fused into its epilogue. Returns
/// the number of nodes, the epilogue, and its result. `start` and all other results of the sequence have no uses outside of it.
pub(crate) fn fuse_epilogue(
    cx: &mut Lowering<'_>,
    nodes: &[Node],
    from: usize,
    start: Id,
    accept: Accept<'_>,
) -> (usize, FusedEpilogue, Id) {
    let task = nodes.get(from.wrapping_sub(1)).map(|node| node.task);
    run(cx, nodes, from, task, start, true, accept)
}

/// As [`fuse_epilogue`], but `start` may have other uses.
pub(crate) fn fuse_chain(
    cx: &mut Lowering<'_>,
    nodes: &[Node],
    from: usize,
    start: Id,
    accept: Accept<'_>,
) -> (usize, FusedEpilogue, Id) {
    let task = nodes.get(from).map(|node| node.task);
    run(cx, nodes, from, task, start, false, accept)
}

/// Common part of [`fuse_epilogue`] (`owns_start`) and [`fuse_chain`]: scans the nodes of a task from a position on.
fn run(
    cx: &mut Lowering<'_>,
    nodes: &[Node],
    from: usize,
    task: Option<usize>,
    start: Id,
    owns_start: bool,
    accept: Accept<'_>,
) -> (usize, FusedEpilogue, Id) {
    let shape = cx.shape(start).to_vec();
    let mut fused = FusedEpilogue::default();
    let mut inside = vec![(start, Argument::Start)];
    let mut best = (0, FusedEpilogue::default(), start);
    for (position, node) in nodes.iter().enumerate().skip(from) {
        let is_same_task = Some(node.task) == task;
        let Some(result) = node.result(0).filter(|&result| is_same_task && cx.shape(result) == shape) else { break };
        if !cx.is_computed_in_f32(result) || node.outputs.iter().skip(1).any(Option::is_some) {
            break;
        }
        let Ok(Some(argument)) = append(cx, &mut fused, node, &inside) else { break };
        if !fused.operands.iter().all(|&id| accept(cx, id)) {
            break;
        }
        inside.push((result, argument));
        let ends = rounds(cx, node);
        let first = usize::from(!owns_start);
        let is_inner = |&(id, _): &(Id, Argument)| id == result || cx.is_read_only_by(id, from..position + 1);
        if inside[first..].iter().all(is_inner) {
            let is_round = matches!(fused.steps.last(), Some((Function::Round(_), _)));
            fused.is_rounded = is_round || cx.half_precision(result).is_some();
            best = (position + 1 - from, fused.clone(), result);
        }
        if ends {
            break;
        }
    }
    best
}

/// Returns true for a conversion of the model to half precision, whose result must be rounded. Those that were inserted where values leave
/// a task have no attributes.
fn rounds(cx: &Lowering<'_>, node: &Node) -> bool {
    let is_of_model = node.op == Op::Cast && node.attributes.get("to").is_some();
    is_of_model && node.result(0).is_some_and(|result| cx.dtype(result) != DType::F32)
}

fn is_batch_normalization(op: Op) -> bool {
    op.onnx_op() == Op::BatchNormalization
}

/// Appends the steps of a node. Returns its result; `None` if it is not element-wise or reads no value of `inside`.
fn append(
    cx: &mut Lowering<'_>,
    fused: &mut FusedEpilogue,
    node: &Node,
    inside: &[(Id, Argument)],
) -> Result<Option<Argument>> {
    let known = |id: Id| inside.iter().find(|(known, _)| *known == id).map(|&(_, argument)| argument);
    let Some(read) = node.inputs.iter().flatten().find_map(|&id| known(id)) else { return Ok(None) };
    // Results of an epilogue keep the precision of `f32` until they are stored.
    if node.op == Op::Cast {
        let (operand, result) = (node.input(0)?, node.output()?);
        let Some(dtype) = rounds_to(node, cx.dtype(operand), cx.dtype(result)) else { return Ok(Some(read)) };
        fused.steps.push((Function::Round(dtype), vec![read]));
        return Ok(Some(Argument::Step(fused.steps.len() - 1)));
    }
    let attributes = node.attributes();
    let number = |name: &str, default: f64| Ok(attributes.float(name)?.map_or(default, f64::from));
    if is_batch_normalization(node.op) {
        return normalization(cx, fused, node, inside);
    }
    let function = match node.op {
        Op::Add => Function::Add,
        Op::Sum if node.inputs.len() == 2 => Function::Add,
        Op::Sub => Function::Sub,
        Op::Mul => Function::Mul,
        Op::Div => Function::Div,
        Op::Max if node.inputs.len() == 2 => Function::Max,
        Op::Min if node.inputs.len() == 2 => Function::Min,
        Op::Relu => Function::Relu,
        Op::Sigmoid => Function::Sigmoid,
        Op::Tanh => Function::Tanh,
        Op::Erf => Function::Erf,
        Op::Exp => Function::Exp,
        Op::Sqrt => Function::Sqrt,
        Op::Neg => Function::Neg,
        Op::Abs => Function::Abs,
        Op::Reciprocal => Function::Reciprocal,
        Op::HardSigmoid => Function::HardSigmoid { alpha: number("alpha", 0.2)?, beta: number("beta", 0.5)? },
        Op::HardSwish => Function::HardSwish,
        Op::LeakyRelu => Function::LeakyRelu { alpha: number("alpha", 0.01)? },
        Op::Gelu => Function::Gelu { is_approximate: attributes.str_or("approximate", "none")? == "tanh" },
        Op::Pow if exponent(cx, node) == Some(2.0) => Function::Square,
        Op::Clip => {
            let bound = |index| match node.optional(index) {
                None => Some(None),
                Some(id) => scalar(cx, id).map(Some),
            };
            let (Some(low), Some(high)) = (bound(1), bound(2)) else { return Ok(None) };
            Function::Clip { low, high }
        }
        _ => return Ok(None),
    };
    let operands = match function {
        Function::Clip { .. } | Function::Square => 1,
        _ => node.inputs.len(),
    };
    let mut arguments = vec![];
    for &input in node.inputs.iter().take(operands) {
        let Some(id) = input else { return Ok(None) };
        if !cx.is_computed_in_f32(id) {
            return Ok(None);
        }
        let argument = known(id).or_else(|| scalar(cx, id).map(Argument::Number));
        arguments.push(argument.unwrap_or_else(|| fused.operand(id)));
    }
    fused.steps.push((function, arguments));
    Ok(Some(Argument::Step(fused.steps.len() - 1)))
}

/// Appends a BatchNormalization with constant parameters as a multiplication and an addition per channel.
fn normalization(
    cx: &mut Lowering<'_>,
    fused: &mut FusedEpilogue,
    node: &Node,
    inside: &[(Id, Argument)],
) -> Result<Option<Argument>> {
    let start = node.input(0)?;
    let Some(&(_, argument)) = inside.iter().find(|(id, _)| *id == start) else { return Ok(None) };
    let Some((factor, shift)) = batch_norm_affine(cx, node, None)? else { return Ok(None) };
    let rank = cx.shape(start).len();
    let channels = cx.count(node.input(1)?);
    let mut shape = vec![1; rank];
    let Some(axis) = shape.get_mut(1) else { return Ok(None) };
    *axis = channels;
    let factor = cx.constant(DType::F32, &shape, factor);
    let shift = cx.constant(DType::F32, &shape, shift);
    let factor = fused.operand(factor);
    fused.steps.push((Function::Mul, vec![argument, factor]));
    let scaled = Argument::Step(fused.steps.len() - 1);
    let shift = fused.operand(shift);
    fused.steps.push((Function::Add, vec![scaled, shift]));
    Ok(Some(Argument::Step(fused.steps.len() - 1)))
}

/// Returns the next node if it is a BatchNormalization of the same task and the only user of `result`, which the node at `position`
/// defines.
pub(crate) fn following_batch_norm<'n>(
    cx: &Lowering<'_>,
    nodes: &'n [Node],
    position: usize,
    result: Id,
) -> Option<&'n Node> {
    nodes.get(position + 1).filter(|next| {
        is_batch_normalization(next.op)
            && next.task == nodes[position].task
            && next.optional(0) == Some(result)
            && next.outputs.iter().skip(1).all(Option::is_none)
            && cx.is_read_only_by(result, position..position + 2)
    })
}

/// Returns factor and shift per channel of a BatchNormalization with constant parameters, after a layer with a bias. `None` if a parameter
/// is not constant.
pub(crate) fn batch_norm_affine(
    cx: &Lowering<'_>,
    node: &Node,
    bias: Option<Expression>,
) -> Result<Option<(Expression, Expression)>> {
    if node.attributes().flag("training_mode", false)? {
        return Ok(None);
    }
    let mut parts = vec![];
    for index in 1..5 {
        let id = node.input(index)?;
        let Some(expression) = cx.expression(id).filter(|_| cx.dtype(id) == DType::F32) else { return Ok(None) };
        parts.push(Box::new(expression.clone()));
    }
    let epsilon = node.attributes().float("epsilon")?.unwrap_or(1e-5);
    let [scale, shift, mean, variance] = <[_; 4]>::try_from(parts).expect("four operands were read");
    let factor = Expression::NormalizedScale { scale, variance, epsilon };
    let bias = bias.map(Box::new);
    let shift = Expression::NormalizedShift { shift, mean, factor: Box::new(factor.clone()), bias };
    Ok(Some((factor, shift)))
}

/// Returns the value of a constant with one element.
pub(crate) fn scalar(cx: &Lowering<'_>, id: Id) -> Option<f64> {
    match cx.tensor(id)?.floats()?[..] {
        [value] => Some(value),
        _ => None,
    }
}

fn exponent(cx: &Lowering<'_>, node: &Node) -> Option<f64> {
    scalar(cx, node.optional(1)?)
}
