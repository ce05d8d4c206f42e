//! Convolutions: plain, transposed, integer, deformable and causal, and `Col2Im`.

pub(super) mod window;

use super::{Types, single_result};
use crate::{DType, Dim, Error, Node, Shape, TensorType, shape::format_shape, shape::product};
use window::Window;

/// Operand indices of data, weights and bias.
struct Operands {
    x: usize,
    w: usize,
    bias: Option<usize>,
}

/// Returns the shapes of data and weights, which have the same rank; `None` if the rank is unknown.
fn data_and_weights(node: &Node<'_>, operands: &Operands) -> Result<Option<(Shape, Shape)>, Error> {
    let (x, w) = (node.input(operands.x)?, node.input(operands.w)?);
    let kernel = node.ints("kernel_shape")?;
    let Some(rank) = w.ty.rank().or(x.ty.rank()).or(kernel.map(|kernel| kernel.len() + 2)) else { return Ok(None) };
    if rank < 3 {
        return Err(Error::new(format!(
            "needs a batch, channels and at least one spatial axis, has {} and {}",
            x.ty, w.ty
        )));
    }
    let (x, mut w) = (node.expect_shape(operands.x, &unknown(rank))?, node.expect_shape(operands.w, &unknown(rank))?);
    if let Some(kernel) = kernel {
        let kernel: Shape = kernel.iter().copied().map(Dim::Known).collect();
        let unified =
            (kernel.len() == rank - 2).then(|| kernel.iter().zip(&w[2..]).map(|(k, &w)| k.unify(w)).collect());
        let Some(Some::<Shape>(unified)) = unified else {
            return Err(Error::new(format!(
                "attribute 'kernel_shape' says {}, the weights {}: remove the attribute",
                format_shape(&kernel),
                format_shape(&w[2..])
            )));
        };
        w.splice(2.., unified);
    }
    Ok(Some((x, w)))
}

fn unknown(rank: usize) -> Shape {
    vec![Dim::Unknown; rank]
}

fn group(node: &Node<'_>) -> Result<i64, Error> {
    match node.int_or("group", 1)? {
        group if group < 1 => Err(Error::new(format!("attribute 'group' must be positive, is {group}"))),
        group => Ok(group),
    }
}

/// Returns the result shape of a convolution.
fn convolved(node: &Node<'_>, operands: &Operands) -> Result<Option<Shape>, Error> {
    let Some((x, w)) = data_and_weights(node, operands)? else { return Ok(None) };
    let group = group(node)?;
    let channels = w[1].times(Dim::Known(group))?;
    if x[1].unify(channels).is_none() {
        return Err(Error::new(format!(
            "the data have {} channels, the weights are for {channels} ({} in each of {group} groups)",
            x[1], w[1]
        )));
    }
    w[0].split(group, "groups")?;
    let features = match operands.bias {
        Some(bias) => node.expect_shape(bias, &w[..1])?[0],
        None => w[0],
    };
    let mut shape = vec![x[0], features];
    shape.extend(Window::new(node, w[2..].to_vec())?.slide(&x[2..], false)?);
    Ok(Some(shape))
}

pub(super) fn conv(node: &Node<'_>) -> Types {
    let dtype = node.same_dtype(&[0, 1, 2])?;
    single_result(TensorType::new(dtype, convolved(node, &Operands { x: 0, w: 1, bias: Some(2) })?))
}

pub(super) fn conv_integer(node: &Node<'_>) -> Types {
    node.same_dtype(&[0, 2])?;
    node.same_dtype(&[1, 3])?;
    single_result(TensorType::new(DType::I32, convolved(node, &Operands { x: 0, w: 1, bias: None })?))
}

pub(super) fn qlinear_conv(node: &Node<'_>) -> Types {
    node.same_dtype(&[0, 2])?;
    node.same_dtype(&[3, 5])?;
    single_result(TensorType::new(node.dtype(7)?, convolved(node, &Operands { x: 0, w: 3, bias: Some(8) })?))
}

/// Infers `DeformConv`. Offsets and mask have one entry per position of the window, so they may determine sizes of the result.
pub(super) fn deform_conv(node: &Node<'_>) -> Types {
    let dtype = node.same_dtype(&[0, 1, 2, 3, 4])?;
    let operands = Operands { x: 0, w: 1, bias: Some(3) };
    let (Some(mut shape), Some((x, w))) = (convolved(node, &operands)?, data_and_weights(node, &operands)?) else {
        return single_result(TensorType::unranked(dtype));
    };
    node.input(2)?;
    let offset_group = node.int_or("offset_group", 1)?;
    x[1].split(offset_group, "offset groups")?;
    let axes = w.len() - 2;
    let samples = product(&w[2..]).times(Dim::Known(offset_group))?;
    let mut offset = vec![shape[0], samples.times(Dim::Known(axes as i64))?];
    offset.extend(&shape[2..]);
    let offset = node.expect_shape(2, &offset)?;
    // The specification is unclear about the mask's channels for other than two spatial axes.
    let mut mask = vec![offset[0], if axes == 2 { samples } else { Dim::Unknown }];
    mask.extend(&offset[2..]);
    let mask = node.expect_shape(4, &mask)?;
    shape[0] = mask[0];
    shape.splice(2.., mask[2..].iter().copied());
    single_result(TensorType::new(dtype, shape))
}

pub(super) fn conv_transpose(node: &Node<'_>) -> Types {
    let dtype = node.same_dtype(&[0, 1, 2])?;
    let Some((x, w)) = data_and_weights(node, &Operands { x: 0, w: 1, bias: Some(2) })? else {
        return single_result(TensorType::unranked(dtype));
    };
    let group = group(node)?;
    let Some(channels) = x[1].unify(w[0]) else {
        return Err(Error::new(format!("the data have {} channels, the weights are for {}", x[1], w[0])));
    };
    channels.split(group, "groups")?;
    let window = Window::new(node, w[2..].to_vec())?;
    let output_padding = window.output_padding(node)?;
    let spatial = match node.ints("output_shape")? {
        Some(sizes) if sizes.len() != output_padding.len() || sizes.iter().any(|&size| size < 0) => {
            return Err(Error::new(format!(
                "attribute 'output_shape' must have one size for each of the {} spatial axes, without batch and \
                 channels, is {sizes:?}",
                output_padding.len()
            )));
        }
        Some(sizes) => sizes.iter().copied().map(Dim::Known).collect(),
        None => window.spread(&x[2..], &output_padding)?,
    };
    let mut shape = vec![x[0], node.expect_shape(2, &[w[1].times(Dim::Known(group))?])?[0]];
    shape.extend(spatial);
    single_result(TensorType::new(dtype, shape))
}

pub(super) fn causal_conv_with_state(node: &Node<'_>) -> Types {
    let dtype = node.same_dtype(&[0, 1, 2, 3])?;
    let x = node.expect_shape(0, &unknown(3))?;
    node.input(1)?;
    let w = node.expect_shape(1, &[x[1], Dim::Known(1), Dim::Unknown])?;
    if w[2].known().is_some_and(|kernel| kernel < 1) {
        return Err(Error::new(format!("the kernel's size must be positive, is {}", w[2])));
    }
    let channels = node.expect_shape(2, &w[..1])?[0];
    let state = node.expect_shape(3, &[x[0], channels, w[2].map(|kernel| kernel.checked_sub(1))])?;
    Ok(vec![TensorType::new(dtype, vec![state[0], state[1], x[2]]), TensorType::new(dtype, state)])
}

/// Infers `Col2Im`. The sizes of the image are an operand; the window determines the number of blocks.
pub(super) fn col2im(node: &Node<'_>) -> Types {
    let dtype = node.dtype(0)?;
    let input = node.expect_shape(0, &unknown(3))?;
    node.input(1)?;
    node.input(2)?;
    let (image, block) = match (node.sizes_of(1)?, node.sizes_of(2)?) {
        (None, None) => return single_result(TensorType::unranked(dtype)),
        (Some(image), None) => (image.clone(), unknown(image.len())),
        (None, Some(block)) => (unknown(block.len()), block),
        (Some(image), Some(block)) => (image, block),
    };
    if image.len() != block.len() {
        return Err(Error::new(format!(
            "image_shape has {} sizes and block_shape {}: they must have the same length",
            image.len(),
            block.len()
        )));
    }
    let window = Window::new(node, block)?;
    let blocks = product(&window.slide(&image, false)?);
    if blocks.unify(input[2]).is_none() {
        return Err(Error::new(format!("an image of {} has {blocks} blocks, not {}", format_shape(&image), input[2])));
    }
    let channels = match product(window.kernel()) {
        Dim::Known(size) => input[1].split(size, "elements of a block")?,
        _ => Dim::Unknown,
    };
    let mut shape = vec![input[0], channels];
    shape.extend(image);
    single_result(TensorType::new(dtype, shape))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Case;

    fn conv(x: &str, w: &str) -> Case {
        Case::new("Conv").input(x).input(w)
    }

    #[test]
    fn conv_slides_its_kernel() {
        conv("float[Nx1x5x5]", "float[1x1x3x3]").infers(&["float[Nx1x3x3]"]);
        conv("float[1x1x7x5]", "float[1x1x3x3]")
            .ints("strides", &[2, 2])
            .ints("pads", &[1, 1, 1, 1])
            .infers(&["float[1x1x4x3]"]);
        conv("float[1x1x7x5]", "float[1x1x3x3]")
            .ints("strides", &[2, 2])
            .ints("pads", &[1, 0, 1, 0])
            .infers(&["float[1x1x4x2]"]);
        conv("float[1x1x9]", "float[4x1x3]").ints("dilations", &[2]).infers(&["float[1x4x5]"]);
        conv("float[1x6x8x8]", "float[4x2x3x3]")
            .int("group", 2)
            .fails("the data have 6 channels, the weights are for 4");
        conv("float[1x4x8x8]", "float[6x2x1x1]").int("group", 2).input("float[6]").infers(&["float[1x6x8x8]"]);
        conv("float[1x4x8x8]", "float[5x2x1x1]").int("group", 2).fails("does not divide into 2 groups");
        conv("float[1x4x8x8]", "float[6x4x1x1]").input("float[5]").fails("operand 2 must have shape [6]");
    }

    #[test]
    fn conv_auto_pad() {
        let strided = |mode| conv("float[1x1x5x5]", "float[1x1x3x3]").str("auto_pad", mode).ints("strides", &[2, 2]);
        strided("SAME_LOWER").infers(&["float[1x1x3x3]"]);
        strided("SAME_UPPER").infers(&["float[1x1x3x3]"]);
        strided("VALID").infers(&["float[1x1x2x2]"]);
        strided("SAME").fails("must be NOTSET");
        strided("VALID").ints("pads", &[1, 0, 0, 0]).fails("exclude each other");
    }

    #[test]
    fn conv_preserves_symbols_of_unchanged_sizes() {
        conv("float[Nx3xHxW]", "float[8x3x3x3]").ints("pads", &[1, 1, 1, 1]).infers(&["float[Nx8xHxW]"]);
        conv("float[Nx3xHxW]", "float[8x3x3x3]").infers(&["float[Nx8x?x?]"]);
        conv("float[Nx3xHxW]", "float[8x3x?x?]").str("auto_pad", "SAME_UPPER").infers(&["float[Nx8xHxW]"]);
        conv("float[*]", "float[8x3x3x3]").infers(&["float[?x8x?x?]"]);
        conv("float[*]", "float[*]").infers(&["float[*]"]);
        conv("float[*]", "float[*]").ints("kernel_shape", &[3]).infers(&["float[?x?x?]"]);
    }

    #[test]
    fn conv_rejects_invalid_operands() {
        conv("float[1x1x5x5]", "float[1x1x3]").fails("operand 0 must have shape");
        conv("float[1x1]", "float[1x1]").fails("at least one spatial axis");
        conv("float[1x1x5x5]", "double[1x1x3x3]").fails("insert a Cast");
        conv("float[1x1x5x5]", "float[1x1x3x3]").ints("kernel_shape", &[5, 5]).fails("remove the attribute");
        conv("float[1x1x5x5]", "float[1x1x7x7]").fails("pad more or shrink the kernel");
        conv("float[1x1x5x5]", "float[1x1x0x3]").fails("must be positive");
        conv("float[1x1x5]", "float[1x1x3]").ints("strides", &[0]).fails("at least 1");
        conv("float[1x1x5]", "float[1x1x3]").ints("strides", &[]).fails("must have 1 numbers");
        conv("float[1x1x5]", "float[1x1x3]").ints("pads", &[-1, 0]).fails("at least 0");
        conv("float[1x1x5]", "float[1x1x3]").ints("pads", &[i64::MAX, i64::MAX]).fails("overflows");
        conv("float[1x1x5]", "float[1x1x3]").ints("dilations", &[i64::MAX]).fails("overflows");
        conv("float[1x1x5]", "float[1x4611686018427387904x3]").int("group", 4).fails("overflows");
        conv("float[1x1x5]", "float[1x1x3]").int("group", 0).fails("must be positive");
    }

    #[test]
    fn conv_transpose_spreads_its_kernel() {
        let case = || Case::new("ConvTranspose").input("float[Nx1x3x3]").input("float[1x2x3x3]");
        case().infers(&["float[Nx2x5x5]"]);
        case().ints("strides", &[3, 2]).infers(&["float[Nx2x9x7]"]);
        case().ints("strides", &[3, 2]).ints("output_padding", &[1, 1]).infers(&["float[Nx2x10x8]"]);
        case().ints("strides", &[3, 2]).ints("pads", &[1, 2, 1, 2]).infers(&["float[Nx2x7x3]"]);
        case().ints("strides", &[3, 2]).ints("output_shape", &[10, 8]).infers(&["float[Nx2x10x8]"]);
        case().ints("strides", &[2, 2]).str("auto_pad", "SAME_UPPER").infers(&["float[Nx2x6x6]"]);
        case().ints("dilations", &[2, 2]).infers(&["float[Nx2x7x7]"]);
        case().input("float[2]").infers(&["float[Nx2x5x5]"]);
        case().ints("output_shape", &[1, 2, 10, 8]).fails("without batch and channels");
        case().ints("output_padding", &[1, 1]).fails("less than stride");
        case().ints("pads", &[4, 4, 4, 4]).fails("negative");
        case().ints("strides", &[1 << 62, 1 << 62]).fails("overflows");
        Case::new("ConvTranspose")
            .input("float[1x4xL]")
            .input("float[4x3x3]")
            .int("group", 2)
            .ints("pads", &[1, 1])
            .infers(&["float[1x6xL]"]);
        Case::new("ConvTranspose").input("float[1x4x9]").input("float[6x3x3]").fails("the data have 4 channels");
    }

    #[test]
    fn integer_convolutions() {
        Case::new("ConvInteger")
            .input("uint8[1x1x3x3]")
            .input("uint8[1x1x2x2]")
            .input("uint8[]")
            .infers(&["int32[1x1x2x2]"]);
        let quantized = |zero_point| {
            let case = Case::new("QLinearConv").input("uint8[1x1x7x7]").input("float[]").input("uint8[]");
            case.input("int8[1x1x1x1]").input("float[1]").input(zero_point).input("float[]").input("uint8[]")
        };
        quantized("int8[1]").infers(&["uint8[1x1x7x7]"]);
        quantized("uint8[1]").fails("operands 3 and 5");
    }

    #[test]
    fn deform_conv_checks_its_offsets() {
        let case = |offset| Case::new("DeformConv").input("float[1x1x3x3]").input("float[1x1x2x2]").input(offset);
        case("float[1x8x4x4]").ints("pads", &[1, 1, 1, 1]).infers(&["float[1x1x4x4]"]);
        case("float[Nx8x2x2]").none().input("float[1x4x2x2]").infers(&["float[1x1x2x2]"]);
        case("float[1x8x3x3]").fails("operand 2 must have shape [1x8x2x2]");
    }

    #[test]
    fn causal_conv_carries_state() {
        let case = |w| Case::new("CausalConvWithState").input("float[NxCx7]").input(w);
        case("float[4x1x3]").infers(&["float[Nx4x7]", "float[Nx4x2]"]);
        case("float[4x1x3]").none().input("float[2x4x2]").infers(&["float[2x4x7]", "float[2x4x2]"]);
        case("float[4x2x3]").fails("operand 1 must have shape");
        case("float[4x1x0]").fails("must be positive");
    }

    #[test]
    fn col2im_has_the_given_image_size() {
        let case = |x| Case::new("Col2Im").input(x);
        case("float[1x5x5]").shape_input(&[5, 5]).shape_input(&[1, 5]).infers(&["float[1x1x5x5]"]);
        case("float[1x9x4]")
            .shape_input(&[6, 6])
            .shape_input(&[3, 3])
            .ints("dilations", &[1, 5])
            .fails("extends over 11");
        case("float[1x9x16]").shape_input(&[6, 6]).shape_input(&[3, 3]).infers(&["float[1x1x6x6]"]);
        case("float[Nx5x?]").input("int64[2]").shape_input(&[1, 5]).infers(&["float[Nx1x?x?]"]);
        case("float[Nx5x?]").partial("HxW").input("int64[*]").infers(&["float[Nx?xHxW]"]);
        case("float[1x5x5]").shape_input(&[5, 5, 5]).shape_input(&[1, 5]).fails("the same length");
        case("float[1x5x6]").shape_input(&[5, 5]).shape_input(&[1, 5]).fails("has 5 blocks, not 6");
        case("float[1x6x5]").shape_input(&[5, 5]).shape_input(&[1, 5]).fails("does not divide");
        case("float[1x5x5]").shape_input(&[-5, 5]).shape_input(&[1, 5]).fails("must contain sizes");
        case("float[1x5x5]").input("int64[4611686018427387904]").input("int64[?]").infers(&["float[*]"]);
    }
}
