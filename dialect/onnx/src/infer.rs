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
pub type Rule = fn(&Node<'_>) -> Types;

/// The rule for an operator, by its name in the `onnx` dialect (`Conv`); `None` if divi does not know it.
pub fn rule(op: &str) -> Option<Rule> {
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
