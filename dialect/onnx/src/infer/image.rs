//! Operators on images.

use super::{Types, single_result};
use crate::node::normalize_axes;
use crate::{DType, Dim, Error, Node, Shape, TensorType};

/// Returns the size of a dimension that is cropped to the fraction `part` and scaled. Computed in `f32`, the type of scales:
/// `10 * 0.7` must be 7.
fn scaled(dim: Dim, part: f64, scale: f64) -> Result<Dim, Error> {
    if !(scale > 0.0 && scale.is_finite()) {
        return Err(Error::new(format!("scales must be positive, one is {scale}")));
    }
    if part == 1.0 && scale == 1.0 {
        return Ok(dim);
    }
    let Some(size) = dim.known() else { return Ok(Dim::Unknown) };
    let result = (size as f32 * part as f32 * scale as f32).floor();
    if !(0.0..i64::MAX as f32).contains(&result) {
        return Err(Error::new(format!(
            "a dimension of {size} scaled by {scale}, cropped to {part}, is not a valid size"
        )));
    }
    Ok(Dim::Known(result as i64))
}

/// Returns true if an operand is present. Models of older opsets, which required the operand, pass an empty tensor instead.
fn is_present(node: &Node<'_>, index: usize) -> bool {
    node.optional(index).is_some_and(|value| value.ty.shape.as_deref() != Some(&[Dim::Known(0)]))
}

pub(super) fn resize(node: &Node<'_>) -> Types {
    let ty = &node.input(0)?.ty;
    let by_sizes = match (is_present(node, 2), is_present(node, 3)) {
        (true, true) => return Err(Error::new("has both scales and sizes: remove one")),
        (false, false) => return Err(Error::new("needs scales or sizes")),
        (_, by_sizes) => by_sizes,
    };
    let Some(x) = &ty.shape else { return single_result(ty.clone()) };
    let axes = match node.ints("axes")? {
        Some(axes) => normalize_axes(axes, x.len())?,
        None => (0..x.len()).collect(),
    };
    let before: Shape = axes.iter().map(|&axis| x[axis]).collect();
    let after = if by_sizes { resized_to(node, &before)? } else { resized_by(node, &before)? };
    let mut shape = x.clone();
    for (axis, size) in axes.into_iter().zip(after) {
        shape[axis] = size;
    }
    single_result(TensorType::new(ty.dtype, shape))
}

/// Returns the new sizes of the axes, given by the operand 'sizes'.
fn resized_to(node: &Node<'_>, before: &[Dim]) -> Result<Shape, Error> {
    node.expect_shape(3, &[Dim::Known(before.len() as i64)])?;
    let sizes = match node.sizes_of(3)? {
        Some(sizes) if sizes.len() != before.len() => {
            return Err(Error::new(format!("has {} sizes for {} axes", sizes.len(), before.len())));
        }
        sizes => sizes.unwrap_or_else(|| vec![Dim::Unknown; before.len()]),
    };
    let smallest = match node.str_or("keep_aspect_ratio_policy", "stretch")? {
        "stretch" => return Ok(sizes),
        "not_larger" => true,
        "not_smaller" => false,
        other => {
            return Err(Error::new(format!(
                "attribute 'keep_aspect_ratio_policy' must be stretch, not_larger or not_smaller, is {other}"
            )));
        }
    };
    let known = |dims: &[Dim]| dims.iter().map(|dim| dim.known()).collect::<Option<Vec<_>>>();
    let (Some(old), Some(new)) = (known(before), known(&sizes)) else { return Ok(vec![Dim::Unknown; before.len()]) };
    if let Some(size) = old.iter().find(|&&size| size < 1) {
        return Err(Error::new(format!("an axis of size {size} has no aspect ratio to keep")));
    }
    // Ratios are compared and rounded exactly, as integers: floating-point rounding of halves is inconsistent.
    let ratio = |&(new, old): &(i64, i64)| (i128::from(new), i128::from(old));
    let compare = |a: &(i64, i64), b: &(i64, i64)| {
        let ((a_new, a_old), (b_new, b_old)) = (ratio(a), ratio(b));
        (a_new * b_old).cmp(&(b_new * a_old))
    };
    let ratios = new.into_iter().zip(old.iter().copied());
    let Some(chosen) = (if smallest { ratios.min_by(compare) } else { ratios.max_by(compare) }) else {
        return Ok(before.to_vec());
    };
    let (new, unit) = ratio(&chosen);
    let round = |size: i64| {
        let rounded = (i128::from(size) * new).checked_mul(2)?.checked_add(unit)? / (2 * unit);
        i64::try_from(rounded).ok().map(Dim::Known)
    };
    old.into_iter()
        .map(|size| round(size).ok_or_else(|| Error::new(format!("a dimension overflows: {size} * {new} / {unit}"))))
        .collect()
}

/// Returns the new sizes of the axes, given by the operand 'scales'.
fn resized_by(node: &Node<'_>, before: &[Dim]) -> Result<Shape, Error> {
    let axes = before.len();
    node.expect_shape(2, &[Dim::Known(axes as i64)])?;
    let crops = node.str_or("coordinate_transformation_mode", "half_pixel")? == "tf_crop_and_resize";
    let parts = if crops {
        if !is_present(node, 1) {
            return Err(Error::new("tf_crop_and_resize needs the operand 'roi'"));
        }
        node.expect_shape(1, &[Dim::Known(2 * axes as i64)])?;
        node.floats_of(1).map(|roi| roi.iter().zip(roi.iter().skip(axes)).map(|(start, end)| end - start).collect())
    } else {
        Some(vec![1.0; axes])
    };
    let (Some::<Vec<f64>>(parts), Some(scales)) = (parts, node.floats_of(2)) else {
        return Ok(vec![Dim::Unknown; axes]);
    };
    before.iter().zip(parts).zip(scales).map(|((&dim, part), scale)| scaled(dim, part, scale)).collect()
}

pub(super) fn upsample(node: &Node<'_>) -> Types {
    let ty = &node.input(0)?.ty;
    node.input(1)?;
    let Some(x) = &ty.shape else { return single_result(ty.clone()) };
    node.expect_shape(1, &[Dim::Known(x.len() as i64)])?;
    let shape = match node.floats_of(1) {
        Some(scales) => x.iter().zip(scales).map(|(&dim, scale)| scaled(dim, 1.0, scale)).collect::<Result<_, _>>()?,
        None => vec![Dim::Unknown; x.len()],
    };
    single_result(TensorType::new(ty.dtype, shape))
}

/// Infers `GridSample`. The grid has one point of the image per element of the result.
pub(super) fn grid_sample(node: &Node<'_>) -> Types {
    let (x, grid) = (node.input(0)?, node.input(1)?);
    let Some(rank) = x.ty.rank().or(grid.ty.rank()) else { return single_result(TensorType::unranked(x.ty.dtype)) };
    if rank < 3 {
        return Err(Error::new(format!("needs a batch, channels and at least one spatial axis, has {}", x.ty)));
    }
    let image = node.expect_shape(0, &vec![Dim::Unknown; rank])?;
    let mut points = vec![Dim::Unknown; rank];
    (points[0], points[rank - 1]) = (image[0], Dim::Known(rank as i64 - 2));
    let points = node.expect_shape(1, &points)?;
    let mut shape = vec![points[0], image[1]];
    shape.extend(&points[1..rank - 1]);
    single_result(TensorType::new(x.ty.dtype, shape))
}

pub(super) fn affine_grid(node: &Node<'_>) -> Types {
    let dtype = node.dtype(0)?;
    node.input(1)?;
    let theta = node.expect_shape(0, &[Dim::Unknown; 3])?;
    let size = match (node.sizes_of(1)?, theta[1]) {
        (Some(size), _) => size,
        (None, Dim::Known(2)) => vec![Dim::Unknown; 4],
        (None, Dim::Known(3)) => vec![Dim::Unknown; 5],
        (None, _) => return single_result(TensorType::unranked(dtype)),
    };
    if !(4..=5).contains(&size.len()) {
        return Err(Error::new(format!("size must be that of an image (4) or a volume (5), has {}", size.len())));
    }
    let axes = size.len() as i64 - 2;
    let theta = node.expect_shape(0, &[size[0], Dim::Known(axes), Dim::Known(axes + 1)])?;
    let mut shape = vec![theta[0]];
    shape.extend(&size[2..]);
    shape.push(Dim::Known(axes));
    single_result(TensorType::new(dtype, shape))
}

pub(super) fn roi_align(node: &Node<'_>) -> Types {
    let dtype = node.same_dtype(&[0, 1])?;
    node.input(2)?;
    let x = node.expect_shape(0, &[Dim::Unknown; 4])?;
    let rois = node.expect_shape(1, &[Dim::Unknown, Dim::Known(4)])?;
    let regions = node.expect_shape(2, &rois[..1])?[0];
    match (node.int_or("output_height", 1)?, node.int_or("output_width", 1)?) {
        (height, width) if height > 0 && width > 0 => {
            single_result(TensorType::new(dtype, vec![regions, x[1], Dim::Known(height), Dim::Known(width)]))
        }
        (height, width) => {
            Err(Error::new(format!("output_height and output_width must be positive, are {height} and {width}")))
        }
    }
}

pub(super) fn image_decoder(node: &Node<'_>) -> Types {
    node.shape_of_rank(0, 1)?;
    let channels = match node.str_or("pixel_format", "RGB")? {
        "RGB" | "BGR" => 3,
        "Grayscale" => 1,
        other => return Err(Error::new(format!("attribute 'pixel_format' must be RGB, BGR or Grayscale, is {other}"))),
    };
    single_result(TensorType::new(DType::U8, vec![Dim::Unknown, Dim::Unknown, Dim::Known(channels)]))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Case;
    use crate::{DType, Tensor};

    fn floats(values: &[f64]) -> Tensor {
        Tensor::from_floats(DType::F32, vec![values.len() as i64], values).unwrap()
    }

    fn by_scales(x: &str, scales: &[f64]) -> Case {
        Case::new("Resize").input(x).none().constant(floats(scales))
    }

    fn to_sizes(x: &str, sizes: &[i64]) -> Case {
        Case::new("Resize").input(x).none().none().shape_input(sizes)
    }

    #[test]
    fn scales_round_down() {
        by_scales("float[NxCx2x4]", &[1.0, 1.0, 0.6, 0.6]).infers(&["float[NxCx1x2]"]);
        by_scales("float[1x1x10xW]", &[1.0, 1.0, 0.7, 2.0]).infers(&["float[1x1x7x?]"]);
        by_scales("float[1x1x2x2]", &[2.0, 3.0]).ints("axes", &[-1, -2]).infers(&["float[1x1x6x4]"]);
        by_scales("float[1x1x2x2]", &[2.0, 3.0]).fails("operand 2 must have shape [4]");
        by_scales("float[2]", &[0.0]).fails("must be positive");
        by_scales("float[2]", &[f64::NAN]).fails("must be positive");
        by_scales("float[4611686018427387904]", &[1e30]).fails("is not a valid size");
        Case::new("Resize").input("float[NxHxW]").none().input("float[3]").infers(&["float[?x?x?]"]);
    }

    #[test]
    fn crops_scale_the_remaining_part() {
        let crop = |roi: &[f64], scales: &[f64]| {
            let case = Case::new("Resize").input("float[1x1x4x4]").constant(floats(roi)).constant(floats(scales));
            case.str("coordinate_transformation_mode", "tf_crop_and_resize").ints("axes", &[2, 3])
        };
        crop(&[0.25, 0.5, 0.75, 1.0], &[2.0, 3.0]).infers(&["float[1x1x4x6]"]);
        crop(&[0.75, 0.5, 0.25, 1.0], &[2.0, 3.0]).fails("is not a valid size");
        crop(&[0.75, 0.5], &[2.0, 3.0]).fails("operand 1 must have shape [4]");
        by_scales("float[2]", &[2.0])
            .str("coordinate_transformation_mode", "tf_crop_and_resize")
            .fails("needs the operand 'roi'");
    }

    #[test]
    fn sizes_replace_dimensions() {
        to_sizes("float[1x1x2x4]", &[1, 1, 7, 8]).infers(&["float[1x1x7x8]"]);
        to_sizes("float[Nx1x2x4]", &[7, 8]).ints("axes", &[2, 3]).infers(&["float[Nx1x7x8]"]);
        to_sizes("float[Nx1x2x4]", &[7, 8]).ints("axes", &[2, 2]).fails("named twice");
        to_sizes("float[Nx1x2x4]", &[7, -8]).ints("axes", &[2, 3]).fails("must contain sizes");
        Case::new("Resize").input("float[Nx3x5x5]").none().none().partial("Nx3xHxW").infers(&["float[Nx3xHxW]"]);
        Case::new("Resize").input("float[2x2]").none().input("float[0]").shape_input(&[3, 3]).infers(&["float[3x3]"]);
        Case::new("Resize").input("float[2x2]").none().input("float[2]").shape_input(&[3, 3]).fails("remove one");
        Case::new("Resize").input("float[2x2]").fails("needs scales or sizes");
        Case::new("Resize").input("float[*]").none().none().shape_input(&[3]).infers(&["float[*]"]);
    }

    #[test]
    fn aspect_ratios_are_preserved() {
        let keep =
            |x, sizes: &[i64], policy| to_sizes(x, sizes).ints("axes", &[2, 3]).str("keep_aspect_ratio_policy", policy);
        keep("float[1x1x2x4]", &[7, 8], "not_larger").infers(&["float[1x1x4x8]"]);
        keep("float[1x1x2x4]", &[7, 8], "not_smaller").infers(&["float[1x1x7x14]"]);
        keep("float[1x1x2x3]", &[5, 100], "not_larger").infers(&["float[1x1x5x8]"]);
        keep("float[Nx1x2xW]", &[7, 8], "not_larger").infers(&["float[Nx1x?x?]"]);
        Case::new("Resize")
            .input("float[1x1x2x2]")
            .none()
            .none()
            .input("int64[*]")
            .str("keep_aspect_ratio_policy", "not_larger")
            .infers(&["float[?x?x?x?]"]);
        keep("float[1x1x0x4]", &[7, 8], "not_larger").fails("no aspect ratio");
        keep("float[1x1x1x9223372036854775807]", &[i64::MAX, 1], "not_smaller").fails("overflows");
        keep("float[1x1x2x4]", &[7, 8], "keep").fails("must be stretch");
    }

    #[test]
    fn upsample_scales_every_axis() {
        let case = |scales: &[f64]| Case::new("Upsample").input("float[Nx1x2x2]").constant(floats(scales));
        case(&[1.0, 1.0, 2.0, 3.0]).infers(&["float[Nx1x4x6]"]);
        case(&[2.0, 3.0]).fails("operand 1 must have shape [4]");
    }

    #[test]
    fn grids_determine_the_result_shape() {
        let case = |x, grid| Case::new("GridSample").input(x).input(grid);
        case("float[NxCx4x4]", "float[Nx6x7x2]").infers(&["float[NxCx6x7]"]);
        case("float[NxCx3x4x4]", "float[2x2x6x7x3]").infers(&["float[2xCx2x6x7]"]);
        case("float[*]", "float[Nx6x7x2]").infers(&["float[Nx?x6x7]"]);
        case("float[1x1x4x4]", "float[1x6x7x3]").fails("operand 1 must have shape [1x?x?x2]");
        case("float[1x1]", "float[1x6]").fails("at least one spatial axis");
        let case = |theta| Case::new("AffineGrid").input(theta);
        case("float[2x2x3]").shape_input(&[2, 3, 5, 6]).infers(&["float[2x5x6x2]"]);
        case("float[Nx3x4]").partial("Nx3x4x5x6").infers(&["float[Nx4x5x6x3]"]);
        case("float[Nx2x3]").input("int64[*]").infers(&["float[Nx?x?x2]"]);
        case("float[2x3x4]").shape_input(&[2, 3, 5, 6]).fails("operand 0 must have shape [2x2x3]");
        case("float[2x3x4]").shape_input(&[2]).fails("an image (4) or a volume (5)");
    }

    #[test]
    fn regions_have_one_size() {
        let case = |rois| Case::new("RoiAlign").input("float[1x3x8x8]").input(rois).input("int64[R]");
        case("float[Rx4]").int("output_height", 5).int("output_width", 6).infers(&["float[Rx3x5x6]"]);
        case("float[Rx5]").fails("operand 1 must have shape [?x4]");
        case("float[Rx4]").int("output_height", 0).fails("must be positive");
    }

    #[test]
    fn decoded_images_have_channels() {
        Case::new("ImageDecoder").input("uint8[L]").infers(&["uint8[?x?x3]"]);
        Case::new("ImageDecoder").input("uint8[L]").str("pixel_format", "Grayscale").infers(&["uint8[?x?x1]"]);
        Case::new("ImageDecoder").input("uint8[L]").str("pixel_format", "CMYK").fails("must be RGB");
    }
}
