//! Einstein summation.

use super::super::{Types, single_result};
use crate::{Dim, Error, Node, Shape, TensorType, shape::broadcast};

/// Labels of the axes of an operand or of the result, before and after an ellipsis.
struct Term<'e> {
    before: &'e [u8],
    after: &'e [u8],
    ellipsis: bool,
}

impl<'e> Term<'e> {
    fn parse(term: &'e str) -> Result<Self, Error> {
        let (before, after, ellipsis) = match term.split_once("...") {
            Some((before, after)) => (before, after, true),
            None => (term, "", false),
        };
        match before.chars().chain(after.chars()).find(|label| !label.is_ascii_alphabetic()) {
            Some(label) => Err(Error::new(format!("'{label}' in the term '{term}' of the equation is not a letter"))),
            None => Ok(Self { before: before.as_bytes(), after: after.as_bytes(), ellipsis }),
        }
    }

    fn labels(&self) -> impl Iterator<Item = u8> {
        self.before.iter().chain(self.after).copied()
    }

    /// Returns the sizes of the labeled axes and of those that the ellipsis covers. If the operand's rank is unknown, the former
    /// are unknown and the latter `None`.
    fn sizes(&self, shape: Option<&[Dim]>) -> Result<(Shape, Option<Shape>), Error> {
        let labels = self.before.len() + self.after.len();
        let Some(shape) = shape else { return Ok((vec![Dim::Unknown; labels], None)) };
        if shape.len() < labels || (shape.len() > labels && !self.ellipsis) {
            return Err(Error::new(format!("a term of the equation has {labels} labels for rank {}", shape.len())));
        }
        let (before, rest) = shape.split_at(self.before.len());
        let (ellipsis, after) = rest.split_at(rest.len() - self.after.len());
        Ok(([before, after].concat(), Some(ellipsis.to_vec())))
    }
}

/// Labels of all operands, in order of their first occurrence.
#[derive(Default)]
struct Labels(Vec<Label>);

struct Label {
    name: u8,
    size: Dim,
    uses: usize,
}

impl Labels {
    fn get(&self, name: u8) -> Option<&Label> {
        self.0.iter().find(|label| label.name == name)
    }

    fn add(&mut self, name: u8, size: Dim) -> Result<(), Error> {
        let Some(label) = self.0.iter_mut().find(|label| label.name == name) else {
            self.0.push(Label { name, size, uses: 1 });
            return Ok(());
        };
        label.uses += 1;
        label.size = match broadcast(&[label.size], &[size]).as_deref() {
            Ok(&[size]) => size,
            _ => {
                return Err(Error::new(format!(
                    "label '{}' of the equation is an axis of {} and one of {size}",
                    char::from(name),
                    label.size
                )));
            }
        };
        Ok(())
    }
}

pub(in crate::infer) fn einsum(node: &Node<'_>) -> Types {
    let operands = node.operands()?;
    let dtype = node.same_dtype(&(0..operands.len()).collect::<Vec<_>>())?;
    let equation = node.str("equation")?.ok_or_else(|| Error::new("needs the attribute 'equation'"))?.replace(' ', "");
    let (terms, result) = equation.split_once("->").map_or((&equation[..], None), |(terms, r)| (terms, Some(r)));
    let terms = terms.split(',').map(Term::parse).collect::<Result<Vec<_>, _>>()?;
    if terms.len() != operands.len() {
        return Err(Error::new(format!("the equation has {} terms for {} operands", terms.len(), operands.len())));
    }

    let mut labels = Labels::default();
    let mut ellipsis: Option<Shape> = None;
    let mut unranked_ellipsis = false;
    for (term, operand) in terms.iter().zip(&operands) {
        let (sizes, covered) = term.sizes(operand.ty.shape.as_deref())?;
        for (name, size) in term.labels().zip(sizes) {
            labels.add(name, size)?;
        }
        ellipsis = match (ellipsis, covered) {
            (old, _) if !term.ellipsis => old,
            (old, None) => {
                unranked_ellipsis = true;
                old
            }
            (Some(old), Some(new)) if old.len() != new.len() => {
                return Err(Error::new(format!("an ellipsis covers {} axes and {}", old.len(), new.len())));
            }
            (Some(old), Some(new)) => Some(broadcast(&old, &new)?),
            (None, new) => new,
        };
    }
    let ellipsis = match ellipsis {
        None if unranked_ellipsis => None,
        // An operand of unknown rank may broadcast an axis of size 1.
        Some(axes) if unranked_ellipsis => Some(broadcast(&axes, &vec![Dim::Unknown; axes.len()])?),
        known => Some(known.unwrap_or_default()),
    };
    single_result(TensorType::new(dtype, result_shape(result, &terms, &labels, ellipsis)?))
}

/// Returns the shape of the result. In implicit mode it has the ellipsis, followed by the sorted labels that occur once.
fn result_shape(
    term: Option<&str>,
    terms: &[Term<'_>],
    labels: &Labels,
    ellipsis: Option<Shape>,
) -> Result<Option<Shape>, Error> {
    let mut once: Vec<u8> = labels.0.iter().filter(|label| label.uses == 1).map(|label| label.name).collect();
    once.sort_unstable();
    let term = match term {
        Some(term) => Term::parse(term)?,
        None => Term { before: &[], after: &once, ellipsis: terms.iter().any(|term| term.ellipsis) },
    };
    let size = |&name: &u8| {
        let wrong = |why| Error::new(format!("label '{}' of the result {why}", char::from(name)));
        if term.labels().filter(|&other| other == name).count() > 1 {
            return Err(wrong("occurs twice"));
        }
        labels.get(name).map(|label| label.size).ok_or_else(|| wrong("is in no operand's term"))
    };
    let before: Shape = term.before.iter().map(size).collect::<Result<_, _>>()?;
    let after: Shape = term.after.iter().map(size).collect::<Result<_, _>>()?;
    let ellipsis = if term.ellipsis { ellipsis } else { Some(vec![]) };
    Ok(ellipsis.map(|ellipsis| [before, ellipsis, after].concat()))
}

#[cfg(test)]
mod tests {
    use crate::infer::testing::Case;

    fn einsum(equation: &str, operands: &[&str]) -> Case {
        operands.iter().fold(Case::new("Einsum"), |case, ty| case.input(ty)).str("equation", equation)
    }

    #[test]
    fn explicit_results() {
        einsum("ij->ji", &["float[3xN]"]).infers(&["float[Nx3]"]);
        einsum("ij->i", &["float[3x4]"]).infers(&["float[3]"]);
        einsum("bij, bjk -> bik", &["float[Nx2x3]", "float[Nx3x4]"]).infers(&["float[Nx2x4]"]);
        einsum("i,i", &["float[5]", "float[5]"]).infers(&["float[]"]);
        einsum("i->", &["float[5]"]).infers(&["float[]"]);
        einsum("ij,jk->ik", &["float[*]", "float[3x4]"]).infers(&["float[?x4]"]);
        einsum("i,i->i", &["float[1]", "float[3]"]).infers(&["float[3]"]);
    }

    #[test]
    fn implicit_results_are_sorted() {
        einsum("ba", &["float[2x3]"]).infers(&["float[3x2]"]);
        einsum("aB", &["float[2x3]"]).infers(&["float[3x2]"]);
        einsum("ij,jk", &["float[2x3]", "float[3x4]"]).infers(&["float[2x4]"]);
        einsum("i...", &["float[2x3x4]"]).infers(&["float[3x4x2]"]);
    }

    #[test]
    fn ellipses_broadcast() {
        einsum("...ii ->...i", &["float[Nx5x5]"]).infers(&["float[Nx5]"]);
        einsum("...ij,...jk->...ik", &["float[Nx1x2x3]", "float[Nx7x3x4]"]).infers(&["float[Nx7x2x4]"]);
        einsum("...ij,...jk->...ik", &["float[6x1x2x3]", "float[*]"]).infers(&["float[6x?x2x?]"]);
        einsum("...i->...i", &["float[*]"]).infers(&["float[*]"]);
        einsum("...i->i", &["float[*]"]).infers(&["float[?]"]);
        einsum("...i,...i->...", &["float[2x3]", "float[2x2x3]"]).fails("covers 1 axes and 2");
        einsum("...i,...i->...", &["float[2x3]", "float[4x3]"]).fails("do not broadcast");
    }

    #[test]
    fn equations_are_checked() {
        einsum("ij,jk->ik", &["float[2x3]", "float[4x5]"])
            .fails("label 'j' of the equation is an axis of 3 and one of 4");
        einsum("ij->i", &["float[2]"]).fails("2 labels for rank 1");
        einsum("i->i", &["float[2x3]"]).fails("1 labels for rank 2");
        einsum("ij,jk->ik", &["float[2x3]"]).fails("2 terms for 1 operands");
        einsum("i->k", &["float[2]"]).fails("is in no operand's term");
        einsum("ij->ii", &["float[2x3]"]).fails("occurs twice");
        einsum("i1->i", &["float[2x3]"]).fails("'1' in the term");
        einsum("i->i->i", &["float[2]"]).fails("is not a letter");
        einsum("......i->i", &["float[2]"]).fails("is not a letter");
        Case::new("Einsum").str("equation", "").fails("at least one operand");
        Case::new("Einsum").input("float[2]").fails("needs the attribute 'equation'");
    }
}
