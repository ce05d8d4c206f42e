//! Einstein summation: contracts operands from left to right, and sums over each label after its last use.

use crate::{
    error::{Result, unsupported},
    graph::{Id, Node, strides},
    lowering::Lowering,
    ops::blocks::{ContractionOperand, accumulator, contract},
};

/// Label of an axis: a letter, or the position within the ellipsis, counted from the last axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    Letter(u8),
    Ellipsis(usize),
}

/// A tensor with the labels of its axes.
#[derive(Clone)]
struct Operand {
    id: Id,
    shape: Vec<i64>,
    labels: Vec<Label>,
}

impl Operand {
    /// Returns the stride of a label: 0 for axes of size 1, which are broadcast; the sum of the strides if the label repeats (diagonal).
    fn step(&self, label: Label) -> i64 {
        let steps = strides(&self.shape);
        (0..self.shape.len()).filter(|&i| self.labels[i] == label && self.shape[i] != 1).map(|i| steps[i]).sum()
    }

    fn factor(&self, kept: &[Label], summed: &[Label]) -> ContractionOperand {
        ContractionOperand {
            id: self.id,
            steps: kept.iter().map(|&label| self.step(label)).collect(),
            depth_steps: summed.iter().map(|&label| self.step(label)).collect(),
        }
    }
}

/// Returns the labels of a term, whose ellipsis stands for `hidden` axes.
fn labels(term: &str, hidden: usize) -> Vec<Label> {
    let letters = |text: &str| text.bytes().map(Label::Letter).collect::<Vec<_>>();
    match term.split_once("...") {
        None => letters(term),
        Some((before, after)) => {
            [letters(before), (0..hidden).rev().map(Label::Ellipsis).collect(), letters(after)].concat()
        }
    }
}

pub(super) fn einsum(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let equation = node.attributes().str_or("equation", "")?.replace(' ', "");
    let (terms, result_term) = equation.split_once("->").map_or((&equation[..], None), |(terms, r)| (terms, Some(r)));
    let terms: Vec<_> = terms.split(',').collect();
    if terms.len() != node.inputs.len() {
        return unsupported(format!("the equation has {} terms for {} operands", terms.len(), node.inputs.len()));
    }
    let mut operands = vec![];
    for (i, term) in terms.iter().enumerate() {
        let id = node.input(i)?;
        let shape = cx.shape(id).to_vec();
        let letters = term.bytes().filter(|&byte| byte != b'.').count();
        let Some(hidden) = shape.len().checked_sub(letters) else {
            return unsupported(format!("the term '{term}' of the equation has more letters than its operand axes"));
        };
        operands.push(Operand { id, shape, labels: labels(term, hidden) });
    }
    let all: Vec<_> = operands.iter().flat_map(|operand| operand.labels.clone()).collect();
    let hidden = all.iter().filter_map(|label| if let Label::Ellipsis(i) = label { Some(i + 1) } else { None }).max();
    let hidden = hidden.unwrap_or(0);
    let wanted = match result_term {
        Some(term) => labels(term, hidden),
        None => {
            let mut once: Vec<u8> = terms.concat().bytes().filter(|&byte| byte != b'.').collect();
            once.sort_unstable();
            let is_single = |byte: &u8| once.iter().filter(|&other| other == byte).count() == 1;
            let letters: Vec<_> = once.iter().copied().filter(is_single).map(Label::Letter).collect();
            [(0..hidden).rev().map(Label::Ellipsis).collect(), letters].concat()
        }
    };
    let size = |label: Label| -> i64 {
        let sizes = operands.iter().flat_map(|operand| operand.labels.iter().zip(&operand.shape));
        // An axis of size 1 is broadcast to the others with its label.
        sizes.filter(|&(&other, &size)| other == label && size != 1).map(|(_, &size)| size).next().unwrap_or(1)
    };
    let result = node.output()?;
    let mut rest = operands.iter().cloned();
    let Some(mut product) = rest.next() else { return unsupported("needs at least one operand") };
    let mut rest: Vec<_> = rest.collect();
    loop {
        let next = if rest.is_empty() { None } else { Some(rest.remove(0)) };
        let factors: Vec<_> = [product].into_iter().chain(next).collect();
        let is_last = rest.is_empty();
        let mut present: Vec<Label> = vec![];
        for label in factors.iter().flat_map(|factor| &factor.labels) {
            if !present.contains(label) {
                present.push(*label);
            }
        }
        let is_needed = |label: &Label| wanted.contains(label) || rest.iter().any(|other| other.labels.contains(label));
        let kept = if is_last { wanted.clone() } else { present.iter().copied().filter(is_needed).collect() };
        // Labels that no later operand has are reduced, with their full size: factors of size 1 along them have stride 0.
        let summed: Vec<_> = present.iter().copied().filter(|label| !kept.contains(label)).collect();
        let shape: Vec<_> = kept.iter().map(|&label| size(label)).collect();
        let depth: Vec<_> = summed.iter().map(|&label| size(label)).collect();
        let target = if is_last { result } else { cx.temporary(accumulator(cx.dtype(result)), &shape) };
        let factors: Vec<_> = factors.iter().map(|operand| operand.factor(&kept, &summed)).collect();
        contract(cx, &factors, &shape, &depth, target);
        if is_last {
            return Ok(());
        }
        product = Operand { id: target, shape, labels: kept };
    }
}
