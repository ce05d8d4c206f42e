//! How much work an operator is: operations, bytes, and the loops that its efficiency depends on.
//!
//! **Operations.** A multiplication and an addition are two. A division, a square root, a comparison with its choice, a
//! rounding and a conversion are one each; the elementary functions (exponential, error function, …) are as many as
//! [`elementwise`] says. Products are counted as they are defined: padding, causal masks and dilation do not make a
//! convolution or an attention cheaper. A sum or a maximum of `n` elements is `n` operations: an accumulator starts from a
//! neutral element. What is estimated (TopK, interpolation, …) says so where it is counted.
//!
//! **Bytes.** An operand is read whole and once, a result is written once, each in its own element type; elements below a
//! byte are packed, and a string counts as its pointer and length (16 bytes). Operators that pick elements (Gather, Slice,
//! …) read only what they pick, and never more than there is. Constant operands are weights: [`Work::weights`] is what is
//! read of them, [`Work::resident_weights`] what must lie in the device's memory. An operand that is given twice is counted
//! twice. Views move nothing.
//!
//! **Scratch.** Only what an operator cannot do without: an attention's scores, the input products of a recurrent layer, the
//! samples of a deformable convolution. Convolutions are not assumed to unfold their data.
//!
//! Counts saturate, so that absurd shapes only have absurd counts. A dimension that is open is an error, except where it
//! does not matter (views), or where the data decide it (NonZero, Compress, Unique, NonMaxSuppression): there the result
//! counts at its largest.

mod conv;
pub mod elementwise;
mod generate;
mod image;
mod movement;
mod normalize;
mod operator;
mod pool;
mod product;
mod quantize;
mod recurrent;
mod reduce;
mod signal;
#[cfg(test)]
mod tests;

use divi_onnx::{DType, Error, Node, TensorType};
pub use operator::bytes;
use operator::{Count, Operator};

/// Operators that behave alike on a device: each class has coefficients of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The same bytes under another type: Reshape, Flatten, Squeeze, Unsqueeze, Identity; also what only a type tells: Shape,
    /// Size. Takes no time.
    View,
    /// Convolutions, grouped and transposed ones included, whose groups have several channels.
    Conv,
    /// Convolutions each of whose groups has one channel.
    DepthwiseConv,
    /// Gemm, MatMul, and what is made of them.
    MatMul,
    /// A few simple operations an element: Add, Relu, Where, Cast, comparisons.
    Elementwise,
    /// Operations that take many instructions an element: Exp, Erf, Tanh, Sigmoid, Gelu.
    Transcendental,
    /// BatchNormalization with fixed statistics: a scale and a shift a channel.
    BatchNorm,
    /// Normalization over elements that are read first: LayerNormalization, InstanceNormalization and their kin.
    Normalization,
    Softmax,
    /// ReduceMean and its kin, ArgMax, global pooling.
    Reduction,
    MaxPool,
    /// Means over windows, weighted ones too: interpolation by Resize.
    AveragePool,
    /// Bytes that move but do not change: Concat, Transpose, Slice, Split, Pad, Expand.
    Copy,
    /// Bytes that move to or from computed places: Gather, Scatter, Embedding look-ups.
    Gather,
    /// LSTM, GRU, RNN.
    Recurrent,
    /// Everything else, and operators that divi does not know.
    Other,
}

/// The loops of an operator, as far as its efficiency depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Geometry {
    /// A convolution: `pixels` of the output (of the input, if transposed) for each of `images`, `taps` of the kernel.
    Conv {
        images: u64,
        groups: u64,
        /// Of one group.
        in_channels: u64,
        /// Of one group.
        out_channels: u64,
        pixels: u64,
        /// The innermost spatial dimension of the output.
        width: u64,
        taps: u64,
        /// The product of the strides.
        stride: u64,
    },
    /// `count` products of a `rows` x `depth` by a `depth` x `columns` matrix.
    Product { count: u64, rows: u64, columns: u64, depth: u64 },
    /// `outer` results of `inner` elements each: reductions, normalizations, softmax, pooling windows.
    Reduce { outer: u64, inner: u64 },
    /// `count` elements, one by one.
    Elements { count: u64 },
}

/// What an operator does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    pub class: Class,
    /// Arithmetic operations; a multiplication and an addition are two.
    pub flops: u64,
    /// Bytes that are read of operands that other tasks compute.
    pub read: u64,
    /// Bytes that are read of operands that are constant.
    pub weights: u64,
    /// Bytes of constant operands that must be in the device's memory, whether they are read or not: all of an embedding
    /// table, of which a Gather reads a few rows.
    pub resident_weights: u64,
    /// Bytes of results.
    pub written: u64,
    /// Bytes that it needs while it runs, beside operands and results.
    pub scratch: u64,
    /// What the arithmetic is done in.
    pub dtype: DType,
    pub geometry: Geometry,
}

/// Counts what one operator does.
type Rule = fn(&Operator<'_>) -> Result<Count, Error>;

/// The class of an operator and the rule that counts it, by its name in the `onnx` dialect; `None` if divi does not know it.
fn rule(op: &str) -> Option<(Class, Rule)> {
    type Family = fn(&str) -> Option<(Class, Rule)>;
    const FAMILIES: &[Family] = &[
        elementwise::rule,
        conv::rule,
        generate::rule,
        image::rule,
        movement::rule,
        normalize::rule,
        pool::rule,
        product::rule,
        quantize::rule,
        recurrent::rule,
        reduce::rule,
        signal::rule,
    ];
    FAMILIES.iter().find_map(|family| family(op))
}

/// The class of an operator, by its name in the `onnx` dialect (`Conv`). Shapes and attributes can refine it: [`work`] says
/// [`Class::DepthwiseConv`] of a Conv whose groups have one channel.
pub fn class(op: &str) -> Class {
    rule(op).map_or(Class::Other, |(class, _)| class)
}

/// What an operator does. `results` are the types of those results that are there; `constant[i]` says whether operand `i` is
/// a constant (weights). An operator that divi does not know does one operation for each element of its results.
pub fn work(node: &Node<'_>, results: &[TensorType], constant: &[bool]) -> Result<Work, Error> {
    let (class, rule) = rule(node.op).unwrap_or((Class::Other, movement::opaque));
    let operator = Operator { node, results, class };
    let Count { class, flops, scratch, dtype, geometry, touched, written } = rule(&operator)?;
    let mut work =
        Work { class, flops, read: 0, weights: 0, resident_weights: 0, written: 0, scratch, dtype, geometry };
    for index in 0..node.inputs.len() {
        if !operator.has(index) {
            continue;
        }
        let is_constant = constant.get(index).copied().unwrap_or(false);
        let bytes = match touched.iter().find(|(operand, _)| *operand == index) {
            Some(&(_, bytes)) => bytes,
            None => operator.bytes(index)?,
        };
        if is_constant {
            work.weights = work.weights.saturating_add(bytes);
            work.resident_weights = work.resident_weights.saturating_add(operator.bytes(index)?);
        } else {
            work.read = work.read.saturating_add(bytes);
        }
    }
    work.written = match written {
        Some(bytes) => bytes,
        None => (0..results.len()).try_fold(0, |sum: u64, i| Ok(sum.saturating_add(operator.result_bytes(i)?)))?,
    };
    Ok(work)
}

/// The operand whose memory the first result of an operator shares, if it is a view of one. Shapes and sizes take no time
/// either, but share nothing.
pub fn viewed_operand(op: &str, work: &Work) -> Option<usize> {
    let shares = work.class == Class::View && !matches!(op, "Shape" | "Size" | "Constant");
    shares.then_some(0)
}
