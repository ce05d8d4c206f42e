//! Signal processing: Fourier transforms and windows.

use super::{Types, single_result};
use crate::node::normalize_axis;
use crate::{DType, Dim, Error, Node, TensorType, shape::checked_size};

/// Returns the number of nonredundant frequencies of a real signal: the others are their conjugates.
fn unique_bins(length: Dim) -> Dim {
    length.map(|length| (length / 2).checked_add(1))
}

/// Checks the last axis, which contains the real and, for a complex signal, the imaginary part.
fn check_parts(parts: Dim, complex: Option<bool>) -> Result<(), Error> {
    let (allowed, what) = match complex {
        None => (1..=2, "1 (real) or 2 (complex)"),
        Some(false) => (1..=1, "1: a one-sided spectrum is that of a real signal"),
        Some(true) => (2..=2, "2: the inverse of a one-sided spectrum is that of a complex one"),
    };
    match parts.known() {
        Some(parts) if !allowed.contains(&parts) => {
            Err(Error::new(format!("the last axis is {parts}, must be {what}")))
        }
        _ => Ok(()),
    }
}

fn positive(length: Dim, what: &str) -> Result<Dim, Error> {
    match length {
        Dim::Known(length) if length < 1 => Err(Error::new(format!("the {what} must be positive, is {length}"))),
        length => Ok(length),
    }
}

pub(super) fn dft(node: &Node<'_>) -> Types {
    let ty = &node.input(0)?.ty;
    let (inverse, onesided) = (node.flag("inverse", false)?, node.flag("onesided", false)?);
    let length = positive(node.size_of(1)?, "length of the transform")?;
    let Some(x) = &ty.shape else { return single_result(ty.clone()) };
    let [signal @ .., parts] = &x[..] else {
        return Err(Error::new("needs a signal, has a scalar"));
    };
    check_parts(*parts, onesided.then_some(inverse))?;
    let mut shape = x.clone();
    shape[signal.len()] = Dim::Known(if onesided && inverse { 1 } else { 2 });

    let axis = match node.optional(2) {
        None => Some(-2),
        Some(_) => node.int_of(2),
    };
    let Some(axis) = axis else {
        shape[..signal.len()].fill(Dim::Unknown);
        return single_result(TensorType::new(ty.dtype, shape));
    };
    let index = normalize_axis(axis, x.len())?;
    if index == signal.len() {
        return Err(Error::new(format!("axis {axis} is that of real and imaginary parts: choose one of the signal")));
    }
    let length = match node.optional(1) {
        Some(_) => length,
        None if onesided && inverse => match signal[index].known() {
            Some(bins) => {
                checked_size(bins.checked_sub(1).and_then(|bins| bins.checked_mul(2)), || format!("2 * ({bins} - 1)"))?
            }
            None => Dim::Unknown,
        },
        None => signal[index],
    };
    shape[index] = if onesided && !inverse { unique_bins(length) } else { length };
    single_result(TensorType::new(ty.dtype, shape))
}

pub(super) fn stft(node: &Node<'_>) -> Types {
    let dtype = node.same_dtype(&[0, 2])?;
    node.input(1)?;
    let onesided = node.flag("onesided", true)?;
    let signal = node.expect_shape(0, &[Dim::Unknown; 3])?;
    check_parts(signal[2], onesided.then_some(false))?;
    let step = positive(node.size_of(1)?, "frame_step")?;
    let frame = positive(node.size_of(3)?, "frame_length")?;
    let frame = match (node.optional(2), node.optional(3)) {
        (None, None) => signal[1],
        _ => positive(node.expect_shape(2, &[frame])?[0], "length of the window")?,
    };
    let frames = match (signal[1], frame, step) {
        (Dim::Known(length), Dim::Known(frame), _) if frame > length => {
            return Err(Error::new(format!("a frame of {frame} is longer than the signal of {length}")));
        }
        (Dim::Known(length), Dim::Known(frame), Dim::Known(step)) => {
            checked_size(((length - frame) / step).checked_add(1), || format!("({length} - {frame}) / {step} + 1"))?
        }
        // There is only one frame if it is as long as the signal.
        (length, frame, _) if length == frame && length != Dim::Unknown => Dim::Known(1),
        _ => Dim::Unknown,
    };
    let bins = if onesided { unique_bins(frame) } else { frame };
    single_result(TensorType::new(dtype, vec![signal[0], frames, bins, Dim::Known(2)]))
}

fn output_datatype(node: &Node<'_>) -> Result<DType, Error> {
    Ok(node.dtype_attr("output_datatype")?.unwrap_or(DType::F32))
}

pub(super) fn window(node: &Node<'_>) -> Types {
    node.input(0)?;
    single_result(TensorType::new(output_datatype(node)?, vec![node.size_of(0)?]))
}

pub(super) fn mel_weight_matrix(node: &Node<'_>) -> Types {
    (0..5).try_for_each(|index| node.input(index).map(|_| ()))?;
    single_result(TensorType::new(output_datatype(node)?, vec![unique_bins(node.size_of(1)?), node.size_of(0)?]))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Case;
    use crate::{DType, Tensor};

    fn scalar(value: i64) -> Tensor {
        Tensor::from_ints(DType::I64, vec![], &[value]).unwrap()
    }

    fn dft(x: &str) -> Case {
        Case::new("DFT").input(x)
    }

    #[test]
    fn dft_is_complex() {
        dft("float[Nx10x10x1]").infers(&["float[Nx10x10x2]"]);
        dft("float[1xSx2]").int("inverse", 1).infers(&["float[1xSx2]"]);
        dft("float[1x10x9x1]").constant(scalar(16)).constant(scalar(1)).infers(&["float[1x16x9x2]"]);
        dft("float[1x10x9x1]").none().input("int64[]").infers(&["float[?x?x?x2]"]);
        dft("float[*]").infers(&["float[*]"]);
        dft("float[1x10x3]").fails("must be 1 (real) or 2 (complex)");
        dft("float[1x10x1]").none().constant(scalar(-1)).fails("choose one of the signal");
        dft("float[1x10x1]").constant(scalar(0)).fails("must be positive");
        dft("float[]").fails("needs a signal");
    }

    #[test]
    fn onesided_transforms_halve_the_spectrum() {
        dft("float[1x10x9x1]").none().constant(scalar(1)).int("onesided", 1).infers(&["float[1x6x9x2]"]);
        dft("float[1x6x9x2]")
            .none()
            .constant(scalar(1))
            .int("onesided", 1)
            .int("inverse", 1)
            .infers(&["float[1x10x9x1]"]);
        dft("float[1x6x2]").constant(scalar(11)).int("onesided", 1).int("inverse", 1).infers(&["float[1x11x1]"]);
        dft("float[1x6x2]").int("onesided", 1).fails("that of a real signal");
        dft("float[1x6x1]").int("onesided", 1).int("inverse", 1).fails("that of a complex one");
        dft("float[1x0x2]").int("onesided", 1).int("inverse", 1).fails("negative");
    }

    #[test]
    fn stft_has_frames() {
        let case = || Case::new("STFT").input("float[Nx128x1]").constant(scalar(8));
        case().input("float[16]").infers(&["float[Nx15x9x2]"]);
        case().none().constant(scalar(16)).int("onesided", 0).infers(&["float[Nx15x16x2]"]);
        case().infers(&["float[Nx1x65x2]"]);
        case().input("float[*]").infers(&["float[Nx?x?x2]"]);
        case().input("float[16]").constant(scalar(17)).fails("operand 2 must have shape [17]");
        case().input("float[200]").fails("longer than the signal");
        case().input("float[0]").fails("must be positive");
        Case::new("STFT").input("float[1xSx1]").input("int64[]").infers(&["float[1x1x?x2]"]);
        Case::new("STFT").input("float[1x128x2]").input("int64[]").fails("that of a real signal");
        Case::new("STFT").input("float[1x128x1]").constant(scalar(0)).fails("must be positive");
    }

    #[test]
    fn windows_have_their_size() {
        Case::new("HannWindow").constant(scalar(10)).infers(&["float[10]"]);
        Case::new("HammingWindow").input("int32[]").infers(&["float[?]"]);
        Case::new("BlackmanWindow").partial("L").int("output_datatype", 11).infers(&["double[L]"]);
        Case::new("HannWindow").constant(scalar(-1)).fails("must contain sizes");
        Case::new("HannWindow").constant(scalar(1)).int("output_datatype", 99).fails("not an ONNX element type");
    }

    #[test]
    fn mel_weights_map_bins() {
        let case = |bins, length| Case::new("MelWeightMatrix").constant(scalar(bins)).constant(scalar(length));
        let rest = |case: Case| case.input("int32[]").input("float[]").input("float[]");
        rest(case(8, 16)).infers(&["float[9x8]"]);
        rest(case(8, i64::MAX)).fails("which no tensor can have");
        case(8, 16).fails("operand 2 is missing");
    }
}
