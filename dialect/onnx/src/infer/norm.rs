//! Normalizations and softmax.

use super::{Types, single_result};
use crate::node::{normalize_axes, normalize_axis};
use crate::{DType, Dim, Error, Node, Shape, TensorType, shape::broadcasts_to};

/// Returns the number of channels; a tensor without a channel axis has one.
fn channels(node: &Node<'_>) -> Result<Dim, Error> {
    Ok(match node.shape(0)? {
        Some([]) => return Err(Error::new("needs a batch, has a scalar")),
        Some([_]) => Dim::Known(1),
        Some([_, channels, ..]) => *channels,
        None => Dim::Unknown,
    })
}

/// Returns the data's type and the number of channels, both refined by the shapes of the parameters.
fn per_channel(node: &Node<'_>, parameters: std::ops::Range<usize>) -> Result<(TensorType, Dim), Error> {
    let mut channels = channels(node)?;
    for index in parameters {
        node.input(index)?;
        channels = node.expect_shape(index, &[channels])?[0];
    }
    let mut ty = node.input(0)?.ty.clone();
    if let Some([_, dim, ..]) = ty.shape.as_deref_mut() {
        *dim = channels;
    }
    Ok((ty, channels))
}

/// Infers `BatchNormalization`, which returns running statistics in training mode only.
pub(super) fn batch_normalization(node: &Node<'_>) -> Types {
    node.same_dtype(&[1, 2])?;
    let statistics = node.same_dtype(&[3, 4])?;
    let (ty, channels) = per_channel(node, 1..5)?;
    if node.flag("training_mode", false)? {
        let statistics = TensorType::new(statistics, vec![channels]);
        return Ok(vec![ty, statistics.clone(), statistics]);
    }
    if node.outputs > 1 {
        return Err(Error::new(format!(
            "has {} results, but all except the first are for training: set training_mode to 1 or remove them",
            node.outputs
        )));
    }
    single_result(ty)
}

pub(super) fn batch_normalization_inference_mode(node: &Node<'_>) -> Types {
    node.same_dtype(&[1, 2])?;
    node.same_dtype(&[3, 4])?;
    single_result(per_channel(node, 1..5)?.0)
}

pub(super) fn instance_normalization(node: &Node<'_>) -> Types {
    node.same_dtype(&[0, 1, 2])?;
    single_result(per_channel(node, 1..3)?.0)
}

pub(super) fn group_normalization(node: &Node<'_>) -> Types {
    node.same_dtype(&[0, 1, 2])?;
    let groups = node.int("num_groups")?.ok_or_else(|| Error::new("needs the attribute 'num_groups'"))?;
    let (ty, channels) = per_channel(node, 1..3)?;
    channels.split(groups, "groups")?;
    single_result(ty)
}

/// Checks that scale and bias broadcast to the data, and returns the shape of the statistics: that of the data, with size 1
/// for all axes from the attribute 'axis' on.
fn statistics(node: &Node<'_>, parameters: &[usize]) -> Result<Option<Shape>, Error> {
    let Some(shape) = node.shape(0)? else { return Ok(None) };
    for &index in parameters {
        if let Some(parameter) = node.optional(index).and_then(|value| value.ty.shape.as_ref()) {
            broadcasts_to(parameter, shape)
                .map_err(|error| Error::new(format!("operand {index} does not fit operand 0: {error}")))?;
        }
    }
    let axis = normalize_axis(node.int_or("axis", -1)?, shape.len())?;
    let mut statistics = shape.to_vec();
    statistics[axis..].fill(Dim::Known(1));
    Ok(Some(statistics))
}

pub(super) fn layer_normalization(node: &Node<'_>) -> Types {
    node.same_dtype(&[0, 1, 2])?;
    node.input(1)?;
    let stash = node.dtype_attr("stash_type")?.unwrap_or(DType::F32);
    let statistics = TensorType::new(stash, statistics(node, &[1, 2])?);
    Ok(vec![node.input(0)?.ty.clone(), statistics.clone(), statistics])
}

/// Infers `RMSNormalization`. The result has the element type of the scale, which may differ from the data's.
pub(super) fn rms_normalization(node: &Node<'_>) -> Types {
    let dtype = node.dtype(1)?;
    statistics(node, &[1])?;
    single_result(TensorType::new(dtype, node.input(0)?.ty.shape.clone()))
}

/// Infers onnx-mlir's form of `RMSNormalization`, with a bias, and the inverse deviation as a second result.
pub(super) fn rms_layer_normalization(node: &Node<'_>) -> Types {
    let dtype = node.same_dtype(&[1, 2])?;
    let stash = node.dtype_attr("stash_type")?.unwrap_or(DType::F32);
    let statistics = TensorType::new(stash, statistics(node, &[1, 2])?);
    Ok(vec![TensorType::new(dtype, node.input(0)?.ty.shape.clone()), statistics])
}

pub(super) fn lrn(node: &Node<'_>) -> Types {
    channels(node)?;
    match node.int("size")? {
        Some(size) if size > 0 => single_result(node.input(0)?.ty.clone()),
        _ => Err(Error::new("needs the attribute 'size', a positive number of channels")),
    }
}

pub(super) fn lp_normalization(node: &Node<'_>) -> Types {
    match node.int_or("p", 2)? {
        1 | 2 => along_axis(node),
        p => Err(Error::new(format!("attribute 'p' must be 1 or 2, is {p}"))),
    }
}

pub(super) fn mean_variance_normalization(node: &Node<'_>) -> Types {
    if let Some(shape) = node.shape(0)? {
        normalize_axes(node.ints("axes")?.unwrap_or(&[0, 2, 3]), shape.len())?;
    }
    single_result(node.input(0)?.ty.clone())
}

pub(super) fn along_axis(node: &Node<'_>) -> Types {
    if let Some(shape) = node.shape(0)? {
        normalize_axis(node.int_or("axis", -1)?, shape.len())?;
    }
    single_result(node.input(0)?.ty.clone())
}

#[cfg(test)]
mod tests {
    use super::super::testing::Case;

    fn batch(op: &'static str, x: &str, parameter: &str) -> Case {
        Case::new(op).input(x).input(parameter).input(parameter).input("float[3]").input("float[3]")
    }

    #[test]
    fn batch_normalization_has_statistics_in_training() {
        batch("BatchNormalization", "float16[NxCx4x5]", "float16[3]").infers(&["float16[Nx3x4x5]"]);
        batch("BatchNormalization", "float16[2x3x4x5]", "float16[3]").int("training_mode", 1).outputs(3).infers(&[
            "float16[2x3x4x5]",
            "float[3]",
            "float[3]",
        ]);
        batch("BatchNormalization", "float[2x3x4x5]", "float[3]").outputs(3).fails("set training_mode to 1");
        batch("BatchNormalization", "float[2x4]", "float[4]").fails("operand 3 must have shape [4]");
        batch("BatchNormalization", "float[]", "float[3]").fails("needs a batch");
        batch("BatchNormalizationInferenceMode", "float[NxCx2]", "float[3]").infers(&["float[Nx3x2]"]);
    }

    #[test]
    fn channels_have_parameters() {
        let case = |op, x| Case::new(op).input(x).input("float[4]").input("float[4]");
        case("InstanceNormalization", "float[Nx4x3x3]").infers(&["float[Nx4x3x3]"]);
        case("InstanceNormalization", "float[Nx3x3x3]").fails("operand 1 must have shape [3]");
        case("GroupNormalization", "float[3x4x2x2]").int("num_groups", 2).infers(&["float[3x4x2x2]"]);
        case("GroupNormalization", "float[3x4x2x2]").int("num_groups", 3).fails("does not divide into 3 groups");
        case("GroupNormalization", "float[3x4x2x2]").int("num_groups", 0).fails("must be positive");
        case("GroupNormalization", "float[3x4x2x2]").fails("needs the attribute 'num_groups'");
    }

    #[test]
    fn layer_normalization_has_statistics() {
        let case = |scale| Case::new("LayerNormalization").input("float16[Nx3x4x5]").input(scale);
        case("float16[5]").infers(&["float16[Nx3x4x5]", "float[Nx3x4x1]", "float[Nx3x4x1]"]);
        case("float16[3x4x5]").int("axis", 1).int("stash_type", 16).infers(&[
            "float16[Nx3x4x5]",
            "bfloat16[Nx1x1x1]",
            "bfloat16[Nx1x1x1]",
        ]);
        case("float16[4]").fails("operand 1 does not fit operand 0");
        case("float16[5]").int("axis", 4).fails("axis 4 is outside");
    }

    #[test]
    fn rms_normalization_has_the_type_of_its_scale() {
        let case = |op| Case::new(op).input("float16[Nx3x4]").input("float[4]");
        case("RMSNormalization").infers(&["float[Nx3x4]"]);
        case("RMSNormalization").int("axis", -4).fails("axis -4 is outside");
        case("RMSLayerNormalization").input("float[4]").infers(&["float[Nx3x4]", "float[Nx3x1]"]);
        case("RMSLayerNormalization").input("float[3]").fails("operand 2 does not fit");
    }

    #[test]
    fn other_normalizations_preserve_type() {
        Case::new("LRN").input("float[5x5x5x5]").int("size", 3).infers(&["float[5x5x5x5]"]);
        Case::new("LRN").input("float[5x5x5x5]").fails("needs the attribute 'size'");
        Case::new("LpNormalization").input("float[2x2]").int("p", 1).infers(&["float[2x2]"]);
        Case::new("LpNormalization").input("float[2x2]").int("p", 3).fails("must be 1 or 2");
        Case::new("MeanVarianceNormalization").input("float[3x3x3x1]").infers(&["float[3x3x3x1]"]);
        Case::new("MeanVarianceNormalization").input("float[3x3]").fails("axis 2 is outside");
        Case::new("Softmax").input("float[NxM]").int("axis", 1).infers(&["float[NxM]"]);
        Case::new("LogSoftmax").input("float[*]").infers(&["float[*]"]);
        Case::new("Hardmax").input("float[]").fails("axis -1 is outside");
    }
}
