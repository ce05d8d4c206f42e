//! Work of operators: operations, bytes, and the loop structure that determines efficiency.
//!
//! **Operations.** A multiplication and an addition count as two. A division, a square root, a comparison with selection, a
//! rounding and a conversion count as one each; [`elementwise`] defines the counts of elementary functions (exponential, error
//! function, …). Products are counted by definition: padding, causal masks and dilation do not reduce the count of a
//! convolution or an attention. A sum or a maximum of `n` elements counts as `n`: the accumulator starts from the identity.
//! Estimated counts (TopK, interpolation, …) are documented as such.
//!
//! **Bytes.** An operand is read entirely and once, a result is written once, each in its own element type; elements narrower
//! than a byte are packed, and a string counts as its pointer and length (16 bytes). Operators that select elements (Gather,
//! Slice, …) read only the selected ones, at most the whole operand. Constant operands are weights: [`Work::weights`] counts
//! the bytes that are read, [`Work::resident_weights`] those that must be in memory. An operand that occurs twice is counted
//! twice. Views move no bytes.
//!
//! **Scratch.** Only unavoidable temporary buffers: an attention's scores, the input products of a recurrent layer, the
//! samples of a deformable convolution. Convolutions are not assumed to unfold their data.
//!
//! Counts saturate. An unknown dimension is an error, unless it does not matter (views) or depends on data (NonZero, Compress,
//! Unique, NonMaxSuppression): then the maximum size of the result is counted.

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

/// Loop structure of an operator, as far as it determines efficiency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Geometry {
    /// Convolution.
    Conv {
        /// Number of images.
        images: u64,
        /// Number of groups.
        groups: u64,
        /// Input channels per group.
        in_channels: u64,
        /// Output channels per group.
        out_channels: u64,
        /// Pixels of an output image (of an input image, if transposed).
        pixels: u64,
        /// Innermost spatial dimension of the output.
        width: u64,
        /// Elements of the kernel's window.
        taps: u64,
        /// Product of the strides.
        stride: u64,
    },
    /// `count` products of a `rows` x `depth` by a `depth` x `columns` matrix.
    Product {
        /// Number of products.
        count: u64,
        /// Rows of the result.
        rows: u64,
        /// Columns of the result.
        columns: u64,
        /// Length of the dot products.
        depth: u64,
    },
    /// `outer` results of `inner` elements each: reductions, normalizations, softmax, pooling windows.
    Reduce {
        /// Number of results.
        outer: u64,
        /// Elements per result.
        inner: u64,
    },
    /// Independent elements.
    Elements {
        /// Number of elements.
        count: u64,
    },
}

/// Work of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Class of the cost model.
    pub class: Class,
    /// Arithmetic operations; a multiplication and an addition count as two.
    pub flops: u64,
    /// Bytes that are read from operands that other tasks compute.
    pub read: u64,
    /// Bytes that are read from constant operands.
    pub weights: u64,
    /// Bytes of constant operands that must be in the device's memory, whether or not they are read: a whole embedding table,
    /// of which a Gather reads a few rows.
    pub resident_weights: u64,
    /// Bytes of results.
    pub written: u64,
    /// Bytes of temporary buffers.
    pub scratch: u64,
    /// Element type of the arithmetic.
    pub dtype: DType,
    /// Loop structure.
    pub geometry: Geometry,
}

impl Work {
    /// Returns the work of a concatenation without the copies of operands that their tasks compute inside the result, `bytes` in
    /// total.
    pub fn without_copies(mut self, bytes: u64) -> Self {
        let share = self.written.saturating_sub(bytes) as f64 / self.written.max(1) as f64;
        (self.read, self.written) = (self.read.saturating_sub(bytes), self.written.saturating_sub(bytes));
        if let Geometry::Elements { count } = &mut self.geometry {
            *count = (*count as f64 * share) as u64;
        }
        self
    }
}

/// Function that counts the work of an operator.
type Rule = fn(&Operator<'_>) -> Result<Count, Error>;

/// Returns the function of a rule.
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
        // A multiplication and an addition.
        WorkRule::Range => |op| op.each(2),
        // A scale and a shift.
        WorkRule::RandomUniform => |op| generate::random(op, RANDOM + 2),
        // Box-Muller: two uniform numbers yield two normal ones by a logarithm, a root, sine and cosine, and products; then a
        // scale and a shift.
        WorkRule::RandomNormal => |op| generate::random(op, RANDOM + LOG + SIN + 4),
        // The comparison with the probability.
        WorkRule::Bernoulli => |op| op.each(RANDOM + 1),
        WorkRule::Multinomial => generate::multinomial,
        WorkRule::Dropout => generate::dropout,
        WorkRule::Resize => image::resize,
        WorkRule::GridSample => image::grid_sample,
        WorkRule::AffineGrid => image::affine_grid,
        WorkRule::RoiAlign => image::roi_align,
        WorkRule::ImageDecoder => |op| op.each(1),
        // Shape and Size depend only on the operand's type.
        WorkRule::View => |op| Ok(op.view()),
        WorkRule::Transpose => movement::transpose,
        WorkRule::Copy => movement::copy,
        WorkRule::Select => movement::pick,
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
        // A square or an absolute value, the sum, the quotient; the root, if p is 2.
        WorkRule::LpNormalization => |op| normalize::along_axis(op, 3, u64::from(op.node.int_or("p", 2)? == 2)),
        WorkRule::LRN => normalize::lrn,
        WorkRule::Softmax => |op| normalize::along_axis(op, normalize::SOFTMAX_EACH, normalize::SOFTMAX_ROW),
        // Like softmax, with a difference instead of the last product, and the logarithm of the sum.
        WorkRule::LogSoftmax => |op| normalize::along_axis(op, normalize::SOFTMAX_EACH, LOG),
        // The maximum, and the comparison of each element with it.
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
        WorkRule::Cumulative => reduce::cumulate,
        WorkRule::TopK => reduce::top_k,
        WorkRule::DFT => signal::dft,
        WorkRule::STFT => signal::stft,
        // A constant minus a scaled cosine of a scaled position; Blackman's window has two cosines.
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
        | WorkRule::SineCosine
        | WorkRule::Tan
        | WorkRule::InverseTrigonometric
        | WorkRule::Hyperbolic
        | WorkRule::InverseHyperbolic
        | WorkRule::Elu
        | WorkRule::ScaledElu
        | WorkRule::Softplus
        | WorkRule::Mish => elementwise::by_table,
    }
}

/// Counts the work of an operator. `results` are the types of its present results; `constant[i]` is true if operand `i` is
/// constant (weights).
pub fn work(node: &Node<'_>, results: &[TensorType], constant: &[bool]) -> Result<Work, Error> {
    let Some(rule) = node.op.work_rule() else { return opaque_work(node.inputs, results, constant) };
    let count = function(rule)(&Operator { node, results, class: node.op.class() })?;
    total(count, node.inputs, results, constant)
}

/// Counts the work of an unknown operator: one operation per element of its results.
pub fn opaque_work(inputs: &[Option<&Value>], results: &[TensorType], constant: &[bool]) -> Result<Work, Error> {
    let count = results.iter().enumerate().try_fold(0, |sum, (i, ty)| Ok(plus(&[sum, result_count(ty, i)?])))?;
    let dtype = operator::dtype(inputs, results);
    let geometry = Geometry::Elements { count };
    let count =
        Count { class: Class::Other, flops: count, scratch: 0, dtype, geometry, read_bytes: vec![], written: None };
    total(count, inputs, results, constant)
}

/// Adds the bytes of operands and results to a count.
fn total(count: Count, inputs: &[Option<&Value>], results: &[TensorType], constant: &[bool]) -> Result<Work, Error> {
    let Count { class, flops, scratch, dtype, geometry, read_bytes, written } = count;
    let mut work =
        Work { class, flops, read: 0, weights: 0, resident_weights: 0, written: 0, scratch, dtype, geometry };
    for (index, input) in inputs.iter().enumerate() {
        let Some(value) = input else { continue };
        let is_constant = constant.get(index).copied().unwrap_or(false);
        let bytes = match read_bytes.iter().find(|(operand, _)| *operand == index) {
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

/// Returns the operand whose memory the first result of an operator shares, if it is a view. Shape and Size also take no time,
/// but share no memory.
pub fn viewed_operand(op: Op, work: &Work) -> Option<usize> {
    let shares = work.class == Class::View && !matches!(op, Op::Shape | Op::Size | Op::Constant);
    shares.then_some(0)
}
