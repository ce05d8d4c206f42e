//! Losses and `TfIdfVectorizer`.

use super::{Types, single_result};
use crate::{DType, Dim, Error, Node, Shape, TensorType, shape::checked_size};

/// Infers the loss of each sample, or a scalar if they are reduced. The scores have the samples' shape with the classes as
/// the second axis.
fn loss(node: &Node<'_>) -> Result<TensorType, Error> {
    let dtype = node.same_dtype(&[0, 2])?;
    let target = node.shape(1)?.map(<[Dim]>::to_vec);
    let samples: Option<Shape> = match node.shape(0)? {
        Some([batch, classes, rest @ ..]) => {
            node.expect_shape(2, &[*classes])?;
            let samples: Shape = std::iter::once(batch).chain(rest).copied().collect();
            Some(node.expect_shape(1, &samples)?)
        }
        Some(_) => return Err(Error::new(format!("needs scores by sample and class, has {}", node.input(0)?.ty))),
        None => target,
    };
    match node.str_or("reduction", "mean")? {
        "none" => Ok(TensorType::new(dtype, samples)),
        "mean" | "sum" => Ok(TensorType::scalar(dtype)),
        other => Err(Error::new(format!("attribute 'reduction' must be none, mean or sum, is {other}"))),
    }
}

pub(super) fn negative_log_likelihood_loss(node: &Node<'_>) -> Types {
    single_result(loss(node)?)
}

pub(super) fn softmax_cross_entropy_loss(node: &Node<'_>) -> Types {
    Ok(vec![loss(node)?, node.input(0)?.ty.clone()])
}

/// Infers `TfIdfVectorizer`, whose result has one element per n-gram of the pool.
pub(super) fn tf_idf_vectorizer(node: &Node<'_>) -> Types {
    let indexes = node.ints("ngram_indexes")?.unwrap_or_default();
    let Some(&last) = indexes.iter().max() else {
        return Err(Error::new(
            "needs the attribute 'ngram_indexes', the positions of the pool's n-grams in the result",
        ));
    };
    if let Some(index) = indexes.iter().find(|&&index| index < 0) {
        return Err(Error::new(format!("attribute 'ngram_indexes' has the negative index {index}")));
    }
    if node.floats("weights")?.is_some_and(|weights| weights.len() != indexes.len()) {
        return Err(Error::new("attributes 'weights' and 'ngram_indexes' must have the same length"));
    }
    let width = checked_size(last.checked_add(1), || format!("{last} + 1"))?;
    let shape = match node.shape(0)? {
        Some([_]) => Some(vec![width]),
        Some([batch, _]) => Some(vec![*batch, width]),
        Some(_) => return Err(Error::new(format!("needs one sequence or a batch of them, has {}", node.input(0)?.ty))),
        None => None,
    };
    single_result(TensorType::new(DType::F32, shape))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Case;

    fn loss(op: &'static str, scores: &str, target: &str) -> Case {
        Case::new(op).input(scores).input(target)
    }

    #[test]
    fn losses_are_reduced() {
        loss("NegativeLogLikelihoodLoss", "float[Nx5x2x3]", "int64[Nx2x3]").infers(&["float[]"]);
        loss("NegativeLogLikelihoodLoss", "float[3x5x?x3]", "int64[Nx2x3]")
            .str("reduction", "none")
            .infers(&["float[3x2x3]"]);
        loss("NegativeLogLikelihoodLoss", "float[*]", "int64[Nx2]").str("reduction", "none").infers(&["float[Nx2]"]);
        loss("SoftmaxCrossEntropyLoss", "float[Nx5]", "int64[N]").input("float[5]").infers(&["float[]", "float[Nx5]"]);
        loss("SoftmaxCrossEntropyLoss", "float[3x5]", "int64[4]").fails("operand 1 must have shape [3]");
        loss("SoftmaxCrossEntropyLoss", "float[3x5]", "int64[3]")
            .input("float[4]")
            .fails("operand 2 must have shape [5]");
        loss("SoftmaxCrossEntropyLoss", "float[3]", "int64[3]").fails("by sample and class");
        loss("SoftmaxCrossEntropyLoss", "float[3x5]", "int64[3]").str("reduction", "max").fails("none, mean or sum");
    }

    #[test]
    fn n_grams_have_an_index() {
        let case = |x, indexes: &[i64]| Case::new("TfIdfVectorizer").input(x).ints("ngram_indexes", indexes);
        case("int32[12]", &[0, 1, 6, 2]).infers(&["float[7]"]);
        case("string[Nx6]", &[0, 1]).infers(&["float[Nx2]"]);
        case("int64[*]", &[0, 1]).infers(&["float[*]"]);
        case("int64[6]", &[]).fails("needs the attribute 'ngram_indexes'");
        case("int64[6]", &[3, -1]).fails("negative index");
        case("int64[6]", &[i64::MAX]).fails("overflows");
        case("int64[1x2x3]", &[0]).fails("needs one sequence");
    }
}
