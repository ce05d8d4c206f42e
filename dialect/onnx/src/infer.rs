//! Shape and type inference: one small function an operator, one file a family.
//!
//! A rule gets the operands' types, what is known of their elements, and the attributes, and returns the type
//! of every result it can have. Where something it needs is unknown, it returns less (an unknown dimension, an
//! unknown rank), never a guess; what contradicts the operator's definition is an error. Operators have the form
//! of the newest opset; `divi-passes` brings older ones into it when it imports them.

mod attention;
mod conv;
mod elementwise;
mod generate;
mod image;
mod index;
mod layout;
mod loss;
mod matmul;
mod norm;
mod pool;
mod quantize;
mod recurrent;
mod reduce;
mod signal;
#[cfg(test)]
pub(crate) mod testing;

use crate::{Error, Node, TensorType};

/// The types of a node's results.
pub type Types = Result<Vec<TensorType>, Error>;

/// Infers the results of one operator.
type Rule = fn(&Node<'_>) -> Types;

/// Infers the types of a node's results; [`knows`] says of which operators. A result that is too large to exist is an
/// error, whatever the operator.
pub fn infer(node: &Node<'_>) -> Types {
    let rule = rule(node.op).ok_or_else(|| Error::new(format!("has no rule for the operator {}", node.op)))?;
    let types = rule(node)?;
    match types.iter().find(|ty| ty.is_impossible()) {
        Some(ty) => Err(Error::new(format!("has a result of type {ty}, which no tensor can have"))),
        None => Ok(types),
    }
}

/// Whether divi knows an operator, by its name in the `onnx` dialect.
pub fn knows(op: &str) -> bool {
    rule(op).is_some()
}

/// The rule for an operator, by its name in the `onnx` dialect (`Conv`).
fn rule(op: &str) -> Option<Rule> {
    const FAMILIES: &[fn(&str) -> Option<Rule>] = &[
        elementwise::rule,
        attention::rule,
        conv::rule,
        generate::rule,
        image::rule,
        index::rule,
        layout::rule,
        loss::rule,
        matmul::rule,
        norm::rule,
        pool::rule,
        quantize::rule,
        recurrent::rule,
        reduce::rule,
        signal::rule,
    ];
    FAMILIES.iter().find_map(|family| family(op))
}

/// One result of this type: what most rules return.
fn one(ty: TensorType) -> Types {
    Ok(vec![ty])
}
