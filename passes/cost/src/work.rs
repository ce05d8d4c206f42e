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

pub use divi_onnx::operators::CostClass as Class;
use divi_onnx::{DType, Error, Node, Op, TensorType, Value, operators::WorkRule};
use elementwise::{EXP, LOG, RANDOM, REQUANTIZE, SIGMOID, SIN};
pub use operator::bytes;
use operator::{Count, Operator, operand_bytes, plus, result_bytes, result_count};

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

/// Counts the work of an operator.
type Rule = fn(&Operator<'_>) -> Result<Count, Error>;

/// The function of a rule.
fn function(rule: WorkRule) -> Rule {
    match rule {
        WorkRule::Clip => elementwise::clip,
        WorkRule::Variadic => |op| op.each(op.node.inputs.len().saturating_sub(1) as u64),
        WorkRule::Mean => |op| op.each(op.node.inputs.len() as u64),
        WorkRule::Cast => elementwise::cast,
        WorkRule::Where => elementwise::select,
        WorkRule::Pow => elementwise::pow,
        WorkRule::Gelu => elementwise::gelu,
        WorkRule::Swish => |op| op.each(SIGMOID + 1 + u64::from(elementwise::is_scaled(op)?)),
        WorkRule::SwiGLU => |op| op.each(SIGMOID + 2 + u64::from(elementwise::is_scaled(op)?)),
        WorkRule::RotaryEmbedding => elementwise::rotary_embedding,
        WorkRule::Conv => |op| conv::convolution(op, 1, Some(2)),
        WorkRule::ConvInteger => |op| conv::convolution(op, 1, None),
        WorkRule::QLinearConv => conv::qlinear_conv,
        WorkRule::DeformConv => conv::deform_conv,
        WorkRule::ConvTranspose => conv::conv_transpose,
        WorkRule::CausalConvWithState => conv::causal_conv_with_state,
        WorkRule::Col2Im => conv::col2im,
        WorkRule::Fill => generate::fill,
        // A product and a sum.
        WorkRule::Range => |op| op.each(2),
        // A scale and a shift.
        WorkRule::RandomUniform => |op| generate::drawn(op, RANDOM + 2),
        // Two uniform numbers make two normal ones: a logarithm, a root, sine and cosine, products; a scale and a shift.
        WorkRule::RandomNormal => |op| generate::drawn(op, RANDOM + LOG + SIN + 4),
        // The comparison.
        WorkRule::Bernoulli => |op| op.each(RANDOM + 1),
        WorkRule::Multinomial => generate::multinomial,
        WorkRule::Dropout => generate::dropout,
        WorkRule::Resize => image::resize,
        WorkRule::GridSample => image::grid_sample,
        WorkRule::AffineGrid => image::affine_grid,
        WorkRule::RoiAlign => image::roi_align,
        WorkRule::ImageDecoder => |op| op.each(1),
        // Shape and Size are known when the operand's type is, whatever its elements are.
        WorkRule::View => |op| Ok(op.view()),
        WorkRule::Transpose => movement::transpose,
        WorkRule::Copy => movement::copy,
        WorkRule::Pick => movement::pick,
        WorkRule::Compress => movement::compress,
        WorkRule::NonZero => movement::non_zero,
        WorkRule::Scatter => movement::scatter,
        WorkRule::NegativeLogLikelihoodLoss => movement::negative_log_likelihood,
        WorkRule::Unique => movement::unique,
        WorkRule::NonMaxSuppression => movement::non_max_suppression,
        WorkRule::TfIdfVectorizer => movement::tf_idf_vectorizer,
        WorkRule::BatchNormalizationInferenceMode => |op| op.each(2),
        WorkRule::BatchNormalization => normalize::batch_normalization,
        WorkRule::InstanceNormalization => normalize::instance_normalization,
        WorkRule::GroupNormalization => normalize::group_normalization,
        WorkRule::LayerNormalization => |op| normalize::from_axis(op, normalize::MOMENTS_EACH, normalize::MOMENTS_ROW),
        WorkRule::RmsNormalization => |op| normalize::from_axis(op, normalize::RMS_EACH, normalize::RMS_ROW),
        WorkRule::MeanVarianceNormalization => normalize::mean_variance_normalization,
        // A power or an absolute value, the sum, the quotient; the root, where the norm has one.
        WorkRule::LpNormalization => |op| normalize::along_axis(op, 3, u64::from(op.node.int_or("p", 2)? == 2)),
        WorkRule::LRN => normalize::lrn,
        WorkRule::Softmax => |op| normalize::along_axis(op, normalize::SOFTMAX_EACH, normalize::SOFTMAX_ROW),
        // As a softmax, with a difference for the last product and the logarithm of the sum.
        WorkRule::LogSoftmax => |op| normalize::along_axis(op, normalize::SOFTMAX_EACH, LOG),
        // The maximum, and which element it is.
        WorkRule::Hardmax => |op| normalize::along_axis(op, 2, 0),
        WorkRule::SoftmaxCrossEntropyLoss => normalize::cross_entropy,
        WorkRule::MaxPool => |op| pool::windows(op, pool::kernel(op)?, 1, 0),
        // The division by the number of elements.
        WorkRule::AveragePool => |op| pool::windows(op, pool::kernel(op)?, 1, 1),
        WorkRule::LpPool => pool::lp_pool,
        WorkRule::GlobalMaxPool => |op| pool::windows(op, pool::image(op)?, 1, 0),
        WorkRule::GlobalAveragePool => |op| pool::windows(op, pool::image(op)?, 1, 1),
        WorkRule::GlobalLpPool => pool::global_lp_pool,
        WorkRule::MaxRoiPool => pool::max_roi_pool,
        WorkRule::MaxUnpool => |op| op.each(0),
        WorkRule::MatMul => |op| product::matmul(op, 1),
        WorkRule::QLinearMatMul => product::qlinear_matmul,
        WorkRule::Gemm => product::gemm,
        WorkRule::Einsum => product::einsum::einsum,
        WorkRule::Attention => product::attention::attention,
        WorkRule::LinearAttention => product::attention::linear_attention,
        WorkRule::Det => product::det,
        // Divide, round, saturate; add the zero point if there is one.
        WorkRule::QuantizeLinear => |op| op.each(REQUANTIZE - 1 + u64::from(op.has(2))),
        WorkRule::DequantizeLinear => quantize::dequantize,
        WorkRule::DynamicQuantizeLinear => quantize::dynamic_quantize,
        WorkRule::RNN => recurrent::rnn,
        WorkRule::GRU => recurrent::gru,
        WorkRule::LSTM => recurrent::lstm,
        WorkRule::Reduce => |op| reduce::reduce(op, 1, 0),
        // The division by the number of elements.
        WorkRule::ReduceMean => |op| reduce::reduce(op, 1, 1),
        // An absolute value or a square, and the sum.
        WorkRule::ReduceMapped => |op| reduce::reduce(op, 2, 0),
        WorkRule::ReduceL2 => |op| reduce::reduce(op, 2, 1),
        WorkRule::ReduceLogSum => |op| reduce::reduce(op, 1, LOG),
        // The maximum, the difference from it, the exponential, the sum; the logarithm and the maximum again.
        WorkRule::ReduceLogSumExp => |op| reduce::reduce(op, EXP + 3, LOG + 1),
        WorkRule::Cumulate => reduce::cumulate,
        WorkRule::TopK => reduce::top_k,
        WorkRule::DFT => signal::dft,
        WorkRule::STFT => signal::stft,
        // A constant less a scaled cosine of a scaled position; Blackman's has two cosines.
        WorkRule::CosineWindow => |op| signal::window(op, SIN + 3),
        WorkRule::BlackmanWindow => |op| signal::window(op, 2 * SIN + 6),
        WorkRule::MelWeightMatrix => signal::mel_weight_matrix,
        WorkRule::Operations1
        | WorkRule::Operations2
        | WorkRule::Operations3
        | WorkRule::Operations4
        | WorkRule::Operations5
        | WorkRule::Exp
        | WorkRule::Log
        | WorkRule::Erf
        | WorkRule::Tanh
        | WorkRule::Sigmoid
        | WorkRule::Sine
        | WorkRule::Tan
        | WorkRule::Arc
        | WorkRule::Hyperbolic
        | WorkRule::ArcHyperbolic
        | WorkRule::Elu
        | WorkRule::ScaledElu
        | WorkRule::Softplus
        | WorkRule::Mish => elementwise::by_table,
    }
}

/// Counts the work of an operator. `results` are the types of those results that are there; `constant[i]` says whether operand
/// `i` is a constant (weights).
pub fn work(node: &Node<'_>, results: &[TensorType], constant: &[bool]) -> Result<Work, Error> {
    let Some(rule) = node.op.work_rule() else { return opaque(node.inputs, results, constant) };
    let count = function(rule)(&Operator { node, results, class: node.op.class() })?;
    total(count, node.inputs, results, constant)
}

/// Counts the work of an operator that divi does not know: one operation for each element of its results.
pub fn opaque(inputs: &[Option<&Value>], results: &[TensorType], constant: &[bool]) -> Result<Work, Error> {
    let count = results.iter().enumerate().try_fold(0, |sum, (i, ty)| Ok(plus(&[sum, result_count(ty, i)?])))?;
    let dtype = operator::dtype(inputs, results);
    let geometry = Geometry::Elements { count };
    let count =
        Count { class: Class::Other, flops: count, scratch: 0, dtype, geometry, touched: vec![], written: None };
    total(count, inputs, results, constant)
}

/// Adds the bytes of operands and results to a count.
fn total(count: Count, inputs: &[Option<&Value>], results: &[TensorType], constant: &[bool]) -> Result<Work, Error> {
    let Count { class, flops, scratch, dtype, geometry, touched, written } = count;
    let mut work =
        Work { class, flops, read: 0, weights: 0, resident_weights: 0, written: 0, scratch, dtype, geometry };
    for (index, input) in inputs.iter().enumerate() {
        let Some(value) = input else { continue };
        let is_constant = constant.get(index).copied().unwrap_or(false);
        let bytes = match touched.iter().find(|(operand, _)| *operand == index) {
            Some(&(_, bytes)) => bytes,
            None => operand_bytes(value, index)?,
        };
        if is_constant {
            work.weights = work.weights.saturating_add(bytes);
            work.resident_weights = work.resident_weights.saturating_add(operand_bytes(value, index)?);
        } else {
            work.read = work.read.saturating_add(bytes);
        }
    }
    work.written = match written {
        Some(bytes) => bytes,
        None => results.iter().enumerate().try_fold(0, |sum, (i, ty)| Ok(plus(&[sum, result_bytes(ty, i)?])))?,
    };
    Ok(work)
}

/// The operand whose memory the first result of an operator shares, if it is a view of one. Shapes and sizes take no time
/// either, but share nothing.
pub fn viewed_operand(op: Op, work: &Work) -> Option<usize> {
    let shares = work.class == Class::View && !matches!(op, Op::Shape | Op::Size | Op::Constant);
    shares.then_some(0)
}
