//! Shape and type inference: one function per operator, one file per family.
//!
//! A rule takes the types and known elements of the operands and the attributes, and returns the types of all results,
//! including optional ones. It never guesses: missing information yields unknown dimensions or an unknown rank.
//! Violations of the operator's definition are errors. Operators have the form of the newest opset; the importer upgrades
//! older ones.

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

use crate::{Error, Node, TensorType, operators::InferRule};

/// Types of a node's results.
pub type Types = Result<Vec<TensorType>, Error>;

/// Function that infers the results of an operator.
type Rule = fn(&Node<'_>) -> Types;

/// Infers the types of a node's results, for operators with [`crate::Op::is_inferred`]. A result whose number of elements
/// overflows is an error.
pub fn infer(node: &Node<'_>) -> Types {
    let rule = node.op.infer_rule().ok_or_else(|| Error::new(format!("has no rule for the operator {}", node.op)))?;
    let types = function(rule)(node)?;
    match types.iter().find(|ty| ty.overflows()) {
        Some(ty) => Err(Error::new(format!("has a result of type {ty}, which no tensor can have"))),
        None => Ok(types),
    }
}

/// Returns the function of a rule.
fn function(rule: InferRule) -> Rule {
    match rule {
        InferRule::Attention => attention::attention,
        InferRule::LinearAttention => attention::linear_attention,
        InferRule::RotaryEmbedding => attention::rotary_embedding,
        InferRule::SwiGLU => attention::swiglu,
        InferRule::Conv => conv::conv,
        InferRule::ConvTranspose => conv::conv_transpose,
        InferRule::ConvInteger => conv::conv_integer,
        InferRule::QLinearConv => conv::qlinear_conv,
        InferRule::DeformConv => conv::deform_conv,
        InferRule::CausalConvWithState => conv::causal_conv_with_state,
        InferRule::Col2Im => conv::col2im,
        InferRule::SameAsFirst => elementwise::same_as_first,
        InferRule::Arithmetic => elementwise::arithmetic,
        InferRule::Variadic => elementwise::variadic,
        InferRule::Comparison => elementwise::comparison,
        InferRule::Predicate => elementwise::predicate,
        InferRule::Pow => elementwise::pow,
        InferRule::PRelu => elementwise::prelu,
        InferRule::Where => elementwise::where_,
        InferRule::Cast => elementwise::cast,
        InferRule::CastLike => elementwise::cast_like,
        InferRule::Constant => generate::constant,
        InferRule::ConstantOfShape => generate::constant_of_shape,
        InferRule::Range => generate::range,
        InferRule::Random => generate::random,
        InferRule::RandomLike => generate::random_like,
        InferRule::Bernoulli => generate::bernoulli,
        InferRule::Multinomial => generate::multinomial,
        InferRule::EyeLike => generate::eye_like,
        InferRule::Shape => generate::shape,
        InferRule::Size => generate::size,
        InferRule::Dropout => generate::dropout,
        InferRule::Resize => image::resize,
        InferRule::Upsample => image::upsample,
        InferRule::GridSample => image::grid_sample,
        InferRule::AffineGrid => image::affine_grid,
        InferRule::RoiAlign => image::roi_align,
        InferRule::ImageDecoder => image::image_decoder,
        InferRule::Gather => index::gather,
        InferRule::GatherElements => index::gather_elements,
        InferRule::GatherND => index::gather_nd,
        InferRule::ScatterElements => index::scatter_elements,
        InferRule::ScatterND => index::scatter_nd,
        InferRule::OneHot => index::one_hot,
        InferRule::TopK => index::top_k,
        InferRule::ArgExtremum => index::arg_extremum,
        InferRule::NonZero => index::non_zero,
        InferRule::Unique => index::unique,
        InferRule::NonMaxSuppression => index::non_max_suppression,
        InferRule::Reshape => layout::reshape::reshape,
        InferRule::Flatten => layout::reshape::flatten,
        InferRule::Transpose => layout::reshape::transpose,
        InferRule::Squeeze => layout::reshape::squeeze,
        InferRule::Unsqueeze => layout::reshape::unsqueeze,
        InferRule::Slice => layout::slice_pad::slice,
        InferRule::Split => layout::slice_pad::split,
        InferRule::Pad => layout::slice_pad::pad,
        InferRule::CenterCropPad => layout::slice_pad::center_crop_pad,
        InferRule::Compress => layout::slice_pad::compress,
        InferRule::Concat => layout::concat,
        InferRule::Tile => layout::tile,
        InferRule::Expand => layout::expand,
        InferRule::DepthToSpace => layout::depth_to_space,
        InferRule::SpaceToDepth => layout::space_to_depth,
        InferRule::Trilu => layout::trilu,
        InferRule::ReverseSequence => layout::reverse_sequence,
        InferRule::BitCast => layout::bit_cast,
        InferRule::TensorScatter => layout::tensor_scatter,
        InferRule::NegativeLogLikelihoodLoss => loss::negative_log_likelihood_loss,
        InferRule::SoftmaxCrossEntropyLoss => loss::softmax_cross_entropy_loss,
        InferRule::TfIdfVectorizer => loss::tf_idf_vectorizer,
        InferRule::MatMul => matmul::matmul,
        InferRule::MatMulInteger => matmul::matmul_integer,
        InferRule::QLinearMatMul => matmul::qlinear_matmul,
        InferRule::Gemm => matmul::gemm,
        InferRule::Einsum => matmul::einsum::einsum,
        InferRule::Det => matmul::det,
        InferRule::BatchNormalization => norm::batch_normalization,
        InferRule::BatchNormalizationInferenceMode => norm::batch_normalization_inference_mode,
        InferRule::InstanceNormalization => norm::instance_normalization,
        InferRule::GroupNormalization => norm::group_normalization,
        InferRule::LayerNormalization => norm::layer_normalization,
        InferRule::RMSNormalization => norm::rms_normalization,
        InferRule::RMSLayerNormalization => norm::rms_layer_normalization,
        InferRule::LRN => norm::lrn,
        InferRule::LpNormalization => norm::lp_normalization,
        InferRule::MeanVarianceNormalization => norm::mean_variance_normalization,
        InferRule::AlongAxis => norm::along_axis,
        InferRule::Pool => pool::pool,
        InferRule::MaxPool => pool::max_pool,
        InferRule::GlobalPool => pool::global_pool,
        InferRule::MaxUnpool => pool::max_unpool,
        InferRule::MaxRoiPool => pool::max_roi_pool,
        InferRule::QuantizeLinear => quantize::quantize_linear,
        InferRule::DequantizeLinear => quantize::dequantize_linear,
        InferRule::DynamicQuantizeLinear => quantize::dynamic_quantize_linear,
        InferRule::RNN => |node| recurrent::recurrent(node, 1, 1),
        InferRule::GRU => |node| recurrent::recurrent(node, 3, 1),
        InferRule::LSTM => |node| recurrent::recurrent(node, 4, 2),
        InferRule::Reduce => reduce::reduce,
        InferRule::Cumulative => reduce::cumulate,
        InferRule::DFT => signal::dft,
        InferRule::STFT => signal::stft,
        InferRule::Window => signal::window,
        InferRule::MelWeightMatrix => signal::mel_weight_matrix,
    }
}

/// Returns the types of a node with one result.
fn single_result(ty: TensorType) -> Types {
    Ok(vec![ty])
}
