//! Work of Einstein summation.

use super::super::operator::{Count, Operator, times};
use super::super::{Class, Geometry};
use divi_onnx::Error;

/// Index of the expression.
struct Index {
    name: Name,
    size: u64,
    /// Bit set of the operands that have it.
    operands: u64,
    /// True if the result has it.
    kept: bool,
}

/// Letter, or axis that the ellipsis covers, counted from the last.
#[derive(Clone, Copy, PartialEq)]
enum Name {
    Letter(char),
    Ellipsis(usize),
}

/// Counts `Einsum`: for each point of the space of all indices, one multiplication less than there are operands, and an addition
/// if any index is summed over. That is two for a matrix product.
pub(in crate::work) fn einsum(op: &Operator<'_>) -> Result<Count, Error> {
    let equation = op.node.str("equation")?.ok_or_else(|| Error::new("needs the attribute 'equation'"))?;
    let equation = equation.replace(' ', "");
    let (terms, result) = match equation.split_once("->") {
        Some((terms, result)) => (terms, Some(result)),
        None => (&equation[..], None),
    };
    let terms: Vec<&str> = terms.split(',').collect();
    if terms.len() != op.node.inputs.len() || terms.len() > 64 {
        return Err(Error::new(format!(
            "the equation has {} terms for {} operands",
            terms.len(),
            op.node.inputs.len()
        )));
    }
    let mut indices: Vec<Index> = vec![];
    let mut occurrences: Vec<char> = vec![];
    for (operand, term) in terms.iter().enumerate() {
        let dims = op.dims(operand)?;
        let names = names(term, dims.len())?;
        for (&name, &size) in names.iter().zip(&dims) {
            if let Name::Letter(letter) = name {
                occurrences.push(letter);
            }
            match indices.iter_mut().find(|index| index.name == name) {
                Some(index) => {
                    // An axis of size 1 broadcasts.
                    index.size = if index.size == 1 { size } else { index.size };
                    index.operands |= 1 << operand;
                }
                None => indices.push(Index { name, size, operands: 1 << operand, kept: false }),
            }
        }
    }
    for index in &mut indices {
        index.kept = match (index.name, result) {
            (Name::Letter(letter), Some(result)) => result.contains(letter),
            (Name::Letter(letter), None) => occurrences.iter().filter(|&&other| other == letter).count() == 1,
            (Name::Ellipsis(_), Some(result)) => result.contains("..."),
            (Name::Ellipsis(_), None) => true,
        };
    }
    Ok(count(op, terms.len() as u64, &indices))
}

/// Returns the names of a term's axes.
fn names(term: &str, rank: usize) -> Result<Vec<Name>, Error> {
    let (before, after, ellipsis) = match term.split_once("...") {
        Some((before, after)) => (before, after, true),
        None => (term, "", false),
    };
    let labels = before.chars().count() + after.chars().count();
    let covered = match rank.checked_sub(labels) {
        Some(covered) if covered == 0 || ellipsis => covered,
        _ => return Err(Error::new(format!("a term of the equation has {labels} labels for rank {rank}"))),
    };
    let letters = |part: &str| part.chars().map(Name::Letter).collect::<Vec<_>>();
    let ellipsis: Vec<Name> = (0..covered).rev().map(Name::Ellipsis).collect();
    Ok([letters(before), ellipsis, letters(after)].concat())
}

fn count(op: &Operator<'_>, operands: u64, indices: &[Index]) -> Count {
    let range = |chosen: &dyn Fn(&Index) -> bool| {
        times(&indices.iter().filter(|index| chosen(index)).map(|index| index.size).collect::<Vec<_>>())
    };
    let space = range(&|_| true);
    let sums = indices.iter().any(|index| !index.kept);
    let flops = times(&[space, operands - 1 + u64::from(sums)]);
    let outer = range(&|index| index.kept);
    match (operands, sums) {
        (2, _) => {
            let geometry = Geometry::Product {
                count: range(&|index| index.kept && index.operands == 0b11),
                rows: range(&|index| index.kept && index.operands == 0b01),
                columns: range(&|index| index.kept && index.operands == 0b10),
                depth: range(&|index| !index.kept),
            };
            op.does(flops, geometry)
        }
        (1, false) => op.does(flops, Geometry::Elements { count: outer }).class(Class::Copy),
        (1, true) => {
            op.does(flops, Geometry::Reduce { outer, inner: range(&|index| !index.kept) }).class(Class::Reduction)
        }
        _ => op.does(flops, Geometry::Reduce { outer, inner: range(&|index| !index.kept) }),
    }
}
