//! What is computed of each element behind a kernel's main work: bias, activation, residual.

use crate::{
    emit::{Builder, V},
    error::Result,
    graph::{Id, Node},
    lowering::Lowering,
};
use divi_onnx::{DType, Op};
use divi_runtime::prepare::Expression;

/// A function of `f32` elements.
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
    HardSigmoid { alpha: f64, beta: f64 },
    HardSwish,
    LeakyRelu { alpha: f64 },
    Clip { low: Option<f64>, high: Option<f64> },
    Gelu { is_approximate: bool },
    Square,
}

/// What a step computes with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Argument {
    /// What the kernel has computed.
    Start,
    /// The result of an earlier step.
    Step(usize),
    /// The element of another tensor at the same place.
    Operand(usize),
    Number(f64),
}

/// Steps, the last of which has the result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    pub(crate) operands: Vec<Id>,
    steps: Vec<(Function, Vec<Argument>)>,
}

impl Program {
    fn operand(&mut self, id: Id) -> Argument {
        let index = self.operands.iter().position(|&known| known == id).unwrap_or_else(|| {
            self.operands.push(id);
            self.operands.len() - 1
        });
        Argument::Operand(index)
    }

    /// The tensor that the first step adds to what the kernel has computed, if `accept` says that the kernel can add it itself, and
    /// the program that is left then.
    pub(crate) fn split_sum(&self, accept: impl Fn(Id) -> bool) -> Option<(Id, Self)> {
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
        let mut left = Self { operands: self.operands.clone(), steps: steps.collect() };
        let id = left.operands.remove(addend);
        Some((id, left))
    }

    /// What libraries can compute with a product: a sum with another tensor, if there is one, and whether what is below zero
    /// becomes that. `None` if it is anything else.
    pub(crate) fn as_epilogue(&self) -> Option<(Option<Id>, bool)> {
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

    /// The result for an element, or for a vector of them.
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
            results.push(function.emit(b, &values));
        }
        results.last().copied().unwrap_or(start)
    }
}

impl Function {
    fn emit(self, b: &Builder, values: &[V]) -> V {
        let x = values[0];
        let ty = b.type_of(x);
        let float = |value| b.float(value, ty);
        match self {
            Self::Add => b.add_rounded(x, values[1]),
            Self::Sub => b.sub_rounded(x, values[1]),
            Self::Mul => b.mul_rounded(x, values[1]),
            Self::Div => b.div(x, values[1], false),
            Self::Max => b.max(x, values[1], false),
            Self::Min => b.min(x, values[1], false),
            Self::Relu => b.relu(x),
            Self::Sigmoid => b.sigmoid(x),
            Self::Tanh => b.tanh(x),
            Self::Erf => b.erf(x),
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
                let erf = b.erf(b.mul(x, float(std::f64::consts::FRAC_1_SQRT_2)));
                b.mul(b.mul(x, float(0.5)), b.add(erf, float(1.0)))
            }
            Self::Gelu { is_approximate: true } => {
                let cube = b.mul(b.mul(x, x), x);
                let inner = b.mul(b.fma(cube, float(0.044_715), x), float((2.0 / std::f64::consts::PI).sqrt()));
                b.mul(b.mul(x, float(0.5)), b.add(b.tanh(inner), float(1.0)))
            }
            Self::Square => b.mul_rounded(x, x),
        }
    }
}

/// Whether a kernel can read an operand beside its result.
pub(crate) type Accept<'a> = &'a dyn Fn(&Lowering<'_>, Id) -> bool;

/// The longest run of nodes behind a value, of its task, that can be computed with it: how many, the program, and the result
/// that others read. Every other result of the run, and the value itself, is read inside of it alone.
pub(crate) fn absorb(
    cx: &mut Lowering<'_>,
    nodes: &[Node],
    from: usize,
    start: Id,
    accept: Accept<'_>,
) -> (usize, Program, Id) {
    let task = nodes.get(from.wrapping_sub(1)).map(|node| node.task);
    run(cx, nodes, from, task, start, true, accept)
}

/// As [`absorb`], for a value that others may read as well.
pub(crate) fn absorb_chain(
    cx: &mut Lowering<'_>,
    nodes: &[Node],
    from: usize,
    start: Id,
    accept: Accept<'_>,
) -> (usize, Program, Id) {
    let task = nodes.get(from).map(|node| node.task);
    run(cx, nodes, from, task, start, false, accept)
}

fn run(
    cx: &mut Lowering<'_>,
    nodes: &[Node],
    from: usize,
    task: Option<usize>,
    start: Id,
    owns_start: bool,
    accept: Accept<'_>,
) -> (usize, Program, Id) {
    let shape = cx.shape(start).to_vec();
    let mut program = Program::default();
    let mut inside = vec![(start, Argument::Start)];
    let mut best = (0, Program::default(), start);
    for (position, node) in nodes.iter().enumerate().skip(from) {
        let is_same_task = Some(node.task) == task;
        let Some(result) = node.result(0).filter(|&result| is_same_task && cx.shape(result) == shape) else { break };
        if cx.dtype(result) != DType::F32 || node.outputs.iter().skip(1).any(Option::is_some) {
            break;
        }
        let Ok(Some(())) = append(cx, &mut program, node, &inside) else { break };
        if !program.operands.iter().all(|&id| accept(cx, id)) {
            break;
        }
        inside.push((result, Argument::Step(program.steps.len() - 1)));
        let first = usize::from(!owns_start);
        let is_inner = |&(id, _): &(Id, Argument)| id == result || cx.is_read_only_by(id, from..position + 1);
        if inside[first..].iter().all(is_inner) {
            best = (position + 1 - from, program.clone(), result);
        }
    }
    best
}

fn is_batch_normalization(op: Op) -> bool {
    op.exported() == Op::BatchNormalization
}

/// Adds a node's steps; `None` if it is not made of functions of elements, or reads nothing of what is inside.
fn append(cx: &mut Lowering<'_>, program: &mut Program, node: &Node, inside: &[(Id, Argument)]) -> Result<Option<()>> {
    if !node.inputs.iter().flatten().any(|input| inside.iter().any(|(id, _)| id == input)) {
        return Ok(None);
    }
    let attributes = node.attributes();
    let number = |name: &str, default: f64| Ok(attributes.float(name)?.map_or(default, f64::from));
    if is_batch_normalization(node.op) {
        return normalization(cx, program, node, inside);
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
        if cx.dtype(id) != DType::F32 {
            return Ok(None);
        }
        arguments.push(match inside.iter().find(|(known, _)| *known == id) {
            Some(&(_, argument)) => argument,
            None => scalar(cx, id).map_or_else(|| program.operand(id), Argument::Number),
        });
    }
    program.steps.push((function, arguments));
    Ok(Some(()))
}

/// `BatchNormalization` with constants: a product and a sum by channel.
fn normalization(
    cx: &mut Lowering<'_>,
    program: &mut Program,
    node: &Node,
    inside: &[(Id, Argument)],
) -> Result<Option<()>> {
    let start = node.input(0)?;
    let Some(&(_, argument)) = inside.iter().find(|(id, _)| *id == start) else { return Ok(None) };
    let Some((factor, shift)) = affine(cx, node, None)? else { return Ok(None) };
    let rank = cx.shape(start).len();
    let channels = cx.count(node.input(1)?);
    let mut shape = vec![1; rank];
    let Some(axis) = shape.get_mut(1) else { return Ok(None) };
    *axis = channels;
    let factor = cx.constant(DType::F32, &shape, factor);
    let shift = cx.constant(DType::F32, &shape, shift);
    let factor = program.operand(factor);
    program.steps.push((Function::Mul, vec![argument, factor]));
    let scaled = Argument::Step(program.steps.len() - 1);
    let shift = program.operand(shift);
    program.steps.push((Function::Add, vec![scaled, shift]));
    Ok(Some(()))
}

/// The BatchNormalization of the same task that alone reads the result of a node, behind it.
pub(crate) fn normalization_behind<'n>(
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

/// What a BatchNormalization with constants multiplies channels with and adds to them, behind a layer with a bias.
pub(crate) fn affine(
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

/// The number of a constant that has one.
fn scalar(cx: &Lowering<'_>, id: Id) -> Option<f64> {
    match cx.tensor(id)?.floats()?[..] {
        [value] => Some(value),
        _ => None,
    }
}

fn exponent(cx: &Lowering<'_>, node: &Node) -> Option<f64> {
    scalar(cx, node.optional(1)?)
}
