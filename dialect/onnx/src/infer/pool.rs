//! Pooling and its inverse.

use super::conv::window::Window;
use super::{Types, single_result};
use crate::{DType, Dim, Error, Node, Shape, TensorType};

/// Returns the data's shape, whose rank follows from the kernel, and the window.
fn data_and_window(node: &Node<'_>) -> Result<(Shape, Window), Error> {
    let kernel = node.ints("kernel_shape")?.ok_or_else(|| Error::new("needs the attribute 'kernel_shape'"))?;
    node.input(0)?;
    let x = node.expect_shape(0, &vec![Dim::Unknown; kernel.len() + 2])?;
    Ok((x, Window::new(node, kernel.iter().copied().map(Dim::Known).collect())?))
}

fn pooled(node: &Node<'_>) -> Result<Shape, Error> {
    let (x, window) = data_and_window(node)?;
    let mut shape = x[..2].to_vec();
    shape.extend(window.slide(&x[2..], node.flag("ceil_mode", false)?)?);
    Ok(shape)
}

pub(super) fn pool(node: &Node<'_>) -> Types {
    single_result(TensorType::new(node.dtype(0)?, pooled(node)?))
}

pub(super) fn max_pool(node: &Node<'_>) -> Types {
    let shape = pooled(node)?;
    Ok(vec![TensorType::new(node.dtype(0)?, shape.clone()), TensorType::new(DType::I64, shape)])
}

pub(super) fn global_pool(node: &Node<'_>) -> Types {
    let shape = match node.shape(0)? {
        Some(shape) if shape.len() < 2 => {
            return Err(Error::new(format!("needs a batch and channels, has {}", node.input(0)?.ty)));
        }
        Some(shape) => {
            let mut pooled = shape.to_vec();
            pooled[2..].fill(Dim::Known(1));
            Some(pooled)
        }
        None => None,
    };
    single_result(TensorType::new(node.dtype(0)?, shape))
}

/// Infers `MaxUnpool`. Its optional operand is the full shape, including batch and channels.
pub(super) fn max_unpool(node: &Node<'_>) -> Types {
    let (x, window) = data_and_window(node)?;
    if node.dtype(1)? != DType::I64 {
        return Err(Error::new(format!("the indices must be int64, are {}: insert a Cast", node.dtype(1)?)));
    }
    let x = node.expect_shape(1, &x)?;
    let shape = match node.optional(2) {
        None => {
            let mut shape = x[..2].to_vec();
            shape.extend(window.spread(&x[2..], &vec![0; x.len() - 2])?);
            shape
        }
        Some(_) => match node.sizes_of(2)? {
            Some(sizes) if sizes.len() != x.len() => {
                return Err(Error::new(format!("output_shape has {} sizes for rank {}", sizes.len(), x.len())));
            }
            Some(sizes) => sizes,
            None => vec![Dim::Unknown; x.len()],
        },
    };
    single_result(TensorType::new(node.dtype(0)?, shape))
}

pub(super) fn max_roi_pool(node: &Node<'_>) -> Types {
    let dtype = node.same_dtype(&[0, 1])?;
    let x = node.expect_shape(0, &[Dim::Unknown; 4])?;
    node.input(1)?;
    let rois = node.expect_shape(1, &[Dim::Unknown, Dim::Known(5)])?;
    match node.ints("pooled_shape")? {
        Some(&[height, width]) if height > 0 && width > 0 => {
            single_result(TensorType::new(dtype, vec![rois[0], x[1], Dim::Known(height), Dim::Known(width)]))
        }
        _ => Err(Error::new("needs the attribute 'pooled_shape', a positive height and width")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Case;

    fn pool(op: &'static str, x: &str, kernel: &[i64]) -> Case {
        Case::new(op).input(x).ints("kernel_shape", kernel)
    }

    #[test]
    fn pools_slide_their_kernel() {
        pool("AveragePool", "float[Nx3x32x32]", &[2, 2]).infers(&["float[Nx3x31x31]"]);
        pool("AveragePool", "float[1x3x28x28]", &[3, 3]).ints("pads", &[2, 2, 2, 2]).infers(&["float[1x3x30x30]"]);
        pool("LpPool", "float[1x3x4x4]", &[2, 2]).ints("dilations", &[2, 2]).infers(&["float[1x3x2x2]"]);
        pool("MaxPoolSingleOut", "float[*]", &[2, 2]).infers(&["float[?x?x?x?]"]);
        pool("MaxPool", "float[1x1x5x5]", &[5, 5])
            .ints("pads", &[2, 2, 2, 2])
            .infers(&["float[1x1x5x5]", "int64[1x1x5x5]"]);
        Case::new("MaxPool").input("float[1x1x5x5]").fails("needs the attribute 'kernel_shape'");
        pool("MaxPool", "float[1x1x5]", &[2, 2]).fails("operand 0 must have shape [?x?x?x?]");
        pool("MaxPool", "float[1x1x5]", &[0]).fails("must be positive");
        pool("MaxPool", "float[1x1x5]", &[6]).fails("does not fit");
    }

    #[test]
    fn auto_padding() {
        pool("MaxPool", "float[1x3x32xW]", &[2, 2])
            .str("auto_pad", "SAME_UPPER")
            .infers(&["float[1x3x32xW]", "int64[1x3x32xW]"]);
        pool("AveragePool", "float[1x1x5x5]", &[3, 3])
            .str("auto_pad", "SAME_UPPER")
            .ints("strides", &[2, 2])
            .infers(&["float[1x1x3x3]"]);
        pool("AveragePool", "float[1x1x6]", &[3])
            .str("auto_pad", "VALID")
            .ints("strides", &[2])
            .int("ceil_mode", 1)
            .infers(&["float[1x1x3]"]);
    }

    #[test]
    fn ceil_mode_counts_a_last_window_that_starts_inside() {
        let ceil = |x, kernel: &[i64], stride: i64, pads: &[i64]| {
            let case = pool("AveragePool", x, kernel).int("ceil_mode", 1).ints("pads", pads);
            case.ints("strides", &vec![stride; kernel.len()])
        };
        ceil("float[1x1x4x4]", &[3, 3], 2, &[0; 4]).infers(&["float[1x1x2x2]"]);
        ceil("float[1x1x2x2]", &[1, 1], 2, &[0; 4]).infers(&["float[1x1x1x1]"]);
        ceil("float[1x1x4]", &[3], 3, &[1, 1]).infers(&["float[1x1x2]"]);
        ceil("float[1x1x3]", &[2], 2, &[1, 1]).infers(&["float[1x1x2]"]);
        ceil("float[1x1x2]", &[3], 2, &[0, 0]).infers(&["float[1x1x1]"]);
        ceil("float[1x1x2]", &[3], 1, &[0, 0]).fails("does not fit");
        ceil("float[1x1x9223372036854775807]", &[1], 1 << 62, &[0, 0]).fails("overflows");
    }

    #[test]
    fn global_pools_have_spatial_size_one() {
        Case::new("GlobalAveragePool").input("float[Nx3x5xW]").infers(&["float[Nx3x1x1]"]);
        Case::new("GlobalMaxPool").input("float[*]").infers(&["float[*]"]);
        Case::new("GlobalLpPool").input("float[3]").fails("needs a batch and channels");
    }

    #[test]
    fn max_unpool_inverts() {
        let case = |indices| pool("MaxUnpool", "float[1x1x2x2]", &[2, 2]).input(indices).ints("strides", &[2, 2]);
        case("int64[1x1x2x2]").infers(&["float[1x1x4x4]"]);
        case("int64[1x1x2x2]").shape_input(&[1, 1, 5, 5]).infers(&["float[1x1x5x5]"]);
        case("int64[1x1x2x2]").input("int64[4]").infers(&["float[?x?x?x?]"]);
        case("int64[1x1x2x2]").shape_input(&[5, 5]).fails("2 sizes for rank 4");
        case("int64[1x1x2x3]").fails("operand 1 must have shape [1x1x2x2]");
        case("int32[1x1x2x2]").fails("must be int64");
    }

    #[test]
    fn roi_pool_pools_each_region() {
        let case = |rois| Case::new("MaxRoiPool").input("float[1x3x8x8]").input(rois);
        case("float[Rx5]").ints("pooled_shape", &[2, 3]).infers(&["float[Rx3x2x3]"]);
        case("float[Rx4]").ints("pooled_shape", &[2, 3]).fails("operand 1 must have shape [?x5]");
        case("float[Rx5]").ints("pooled_shape", &[0, 3]).fails("positive height and width");
    }
}
