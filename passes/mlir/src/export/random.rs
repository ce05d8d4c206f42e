//! Recipes for random constants in place of missing files. The operators that read a constant determine its role.

use crate::ir::ONNX_CONSTANT;
use divi_dialect::{ExternalAttribute, Operation, Value, attr, op};
use divi_onnx::{DType, Op};
use divi_runtime::random_weights::{Element, RandomConstant, Role};
use rustc_hash::FxHashMap;
use std::path::Path;

/// Roles of the constants in files.
///
/// The role of a constant is determined by the operators that read it, anywhere in the module, directly or through
/// operators that only rearrange it. It depends on nothing else, so a module and the stages of its plan have the same
/// constants.
#[derive(Debug, Default)]
pub struct Recipes(FxHashMap<(String, u64, u64), Role>);

impl Recipes {
    /// Determines the roles of all external constants of a module.
    pub fn of(module: Operation<'_>) -> Self {
        let mut roles = FxHashMap::default();
        module.walk(|operation| {
            if operation.name() != ONNX_CONSTANT {
                return;
            }
            let value = operation.get(attr::VALUE);
            let Some(external) = value.and_then(ExternalAttribute::from_attribute) else { return };
            let found = operation.results().into_iter().filter_map(role_of).max().unwrap_or(Role::Unknown);
            let role: &mut Role = roles.entry(extent(external)).or_insert(found);
            *role = found.max(*role);
        });
        Self(roles)
    }

    /// Returns the recipe of a constant. The error is the reason why it cannot be generated.
    pub fn find(&self, external: ExternalAttribute<'_>, dtype: DType) -> Result<RandomConstant, String> {
        let role = self.0.get(&extent(external)).copied().unwrap_or(Role::Unknown);
        let element = match dtype {
            DType::F16 => Some(Element::F16),
            DType::BF16 => Some(Element::BF16),
            DType::F32 => Some(Element::F32),
            DType::F64 => Some(Element::F64),
            // Other integers are indices, shapes or masks, which must not be random.
            _ if dtype.is_int() && matches!(role, Role::Quantized | Role::ZeroPoint | Role::Addend) => {
                Some(Element::Int { bits: dtype.bits() as u32, signed: dtype.is_signed_int() })
            }
            _ => None,
        };
        let element = element.ok_or_else(|| {
            format!(
                "has {dtype} elements in '{}', which does not exist, and only floating-point and quantized weights can be \
                 generated: restore the file",
                external.path()
            )
        })?;
        // The name of a file does not depend on the location of the IR.
        let file = Path::new(external.path()).file_name().unwrap_or_default().to_string_lossy();
        let key = format!("{file}@{}", external.offset());
        Ok(RandomConstant::new(key, element, external.length() * 8 / dtype.bits(), role))
    }
}

fn extent(external: ExternalAttribute<'_>) -> (String, u64, u64) {
    (external.path().to_owned(), external.offset(), external.length())
}

/// Returns the role of a value: the maximum over its uses.
fn role_of(value: Value<'_>) -> Option<Role> {
    value.uses().into_iter().filter_map(|(user, operand)| role_in(user, operand, value)).max()
}

/// Returns the role of an operand of an operator.
fn role_in<'m>(user: Operation<'m>, operand: usize, value: Value<'m>) -> Option<Role> {
    if user.name() == op::CLUSTER {
        let body = *user.blocks().first()?;
        return role_of(body.argument(operand));
    }
    let of_results = || user.results().into_iter().filter_map(role_of).max();
    let weight = |fan_in: Option<u64>| Some(Role::Weight { fan_in: fan_in? });
    let shape = || -> Option<Vec<u64>> {
        value.tensor_type()?.static_shape()?.into_iter().map(|size| u64::try_from(size).ok()).collect()
    };
    match (user.op()?, operand) {
        (
            Op::Cast
            | Op::CastLike
            | Op::Concat
            | Op::Expand
            | Op::Flatten
            | Op::Identity
            | Op::Pad
            | Op::Reshape
            | Op::Slice
            | Op::Split
            | Op::Squeeze
            | Op::Tile
            | Op::Transpose
            | Op::Unsqueeze,
            _,
        ) => of_results(),

        (Op::Conv | Op::DeformConv, 1) => weight(shape().map(|shape| shape.iter().skip(1).product())),
        (Op::ConvTranspose, 1) => weight(shape().map(|shape| transposed_fan_in(user, &shape))),
        (Op::Conv | Op::ConvTranspose | Op::Gemm, 2) | (Op::DeformConv, 3) | (Op::LSTM | Op::GRU | Op::RNN, 3..) => {
            Some(Role::Addend)
        }
        (Op::LSTM | Op::GRU | Op::RNN, 1 | 2) => weight(shape().and_then(|shape| shape.last().copied())),
        (Op::Gemm, 0 | 1) => {
            let transposed = user.attribute(if operand == 0 { "transA" } else { "transB" });
            let is_transposed = transposed.and_then(attr::as_integer).is_some_and(|flag| flag != 0);
            weight(shape().and_then(|shape| shape.get(usize::from((operand == 0) != is_transposed)).copied()))
        }
        (Op::MatMul, 0) => weight(shape().and_then(|shape| shape.last().copied())),
        (Op::MatMul, 1) => weight(shape().and_then(|shape| shape.get(shape.len().saturating_sub(2)).copied())),
        (Op::Einsum, _) => weight(shape().and_then(|shape| shape.into_iter().max())),

        (Op::BatchNormalization | Op::BatchNormalizationInferenceMode, 4) => Some(Role::Variance),
        (Op::BatchNormalization | Op::BatchNormalizationInferenceMode, 3) => Some(Role::Addend),
        (op, 1) if is_normalization(op) => Some(Role::Scale),
        (op, 2) if is_normalization(op) => Some(Role::Addend),

        (Op::Gather | Op::GatherElements | Op::GatherND, 0) => Some(Role::Embedding),
        (Op::PRelu, 1) => Some(Role::Slope),
        (Op::Add | Op::Sub | Op::Sum, _) => {
            let is_rooted = |result: Value<'m>| result.uses().iter().any(|(user, _)| user.op() == Some(Op::Sqrt));
            Some(if user.results().into_iter().any(is_rooted) { Role::Variance } else { Role::Addend })
        }
        (Op::Mul | Op::Div | Op::Pow, _) => Some(Role::Scale),
        (Op::Sqrt | Op::Log | Op::Reciprocal, _) => Some(Role::Variance),

        (Op::DequantizeLinear, 0) => Some(of_results().filter(|&role| role == Role::Addend).unwrap_or(Role::Quantized)),
        (Op::QuantizeLinear, 0) => of_results(),
        (Op::DequantizeLinear | Op::QuantizeLinear, 1) => {
            Some(Role::QuantizationScale { fan_in: of_results().and_then(fan_in) })
        }
        (Op::QLinearConv | Op::QLinearMatMul, 0 | 3) | (Op::ConvInteger | Op::MatMulInteger, 0 | 1) => {
            Some(Role::Quantized)
        }
        (Op::QLinearConv | Op::QLinearMatMul, 1 | 4 | 6) => Some(Role::QuantizationScale { fan_in: None }),
        (Op::QLinearConv, 8) => Some(Role::Addend),
        (Op::DequantizeLinear | Op::QuantizeLinear, 2)
        | (Op::QLinearConv | Op::QLinearMatMul, 2 | 5 | 7)
        | (Op::ConvInteger | Op::MatMulInteger, 2 | 3) => Some(Role::ZeroPoint),
        _ => None,
    }
}

/// Returns true if an operator has a scale and a shift after its first operand.
fn is_normalization(op: Op) -> bool {
    op.onnx_op().name().ends_with("Normalization")
}

fn fan_in(role: Role) -> Option<u64> {
    match role {
        Role::Weight { fan_in } => Some(fan_in),
        _ => None,
    }
}

/// Returns the average number of products that are summed for an element of a transposed convolution.
fn transposed_fan_in(operation: Operation<'_>, shape: &[u64]) -> u64 {
    let group = operation.attribute("group").and_then(attr::as_integer).unwrap_or(1).max(1) as u64;
    let strides = operation.attribute("strides").and_then(attr::as_array).unwrap_or_default();
    let strides: u64 = strides.into_iter().filter_map(attr::as_integer).map(|stride| stride.max(1) as u64).product();
    let kernel: u64 = shape.iter().skip(2).product();
    (shape.first().copied().unwrap_or(1) / group * kernel / strides).max(1)
}
