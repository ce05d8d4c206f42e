//! Folding a `BatchNormalization` into the convolution before it.
//!
//! With fixed statistics it is a scale and a shift a channel, and so is a part of the weights and the bias:
//! `(conv(x, w) + b - mean) · f + B = conv(x, w · f) + (b - mean) · f + B` where `f = scale / √(var + epsilon)`.

use crate::{Error, Tensor};

/// The constants of a `BatchNormalization`, a number a channel each.
#[derive(Clone, Copy, Debug)]
pub struct BatchNorm<'a> {
    pub scale: &'a Tensor,
    pub bias: &'a Tensor,
    pub mean: &'a Tensor,
    pub variance: &'a Tensor,
    pub epsilon: f32,
}

/// What a convolution has in its constants, with the normalization behind it or without.
#[derive(Clone, Debug, PartialEq)]
pub struct Convolution {
    pub weights: Tensor,
    /// A number for each output channel.
    pub bias: Tensor,
}

/// Folds into a `Conv`, of any number of groups: the weights' first dimension is that of output channels.
///
/// Numbers are computed in `f64` and rounded to the weights' type once.
pub fn fold_into_conv(weights: &Tensor, bias: Option<&Tensor>, norm: &BatchNorm<'_>) -> Result<Convolution, Error> {
    let &[channels, ref rest @ ..] = weights.dims() else { return Err(Error::new("the weights have no dimensions")) };
    let elements_a_channel = size(rest)?;
    fold(weights, bias, norm, size(&[channels])?, |index| index / elements_a_channel.max(1))
}

/// Folds into a `ConvTranspose` with that many groups: the weights are input channels by output channels of a group.
///
/// Numbers are computed in `f64` and rounded to the weights' type once.
pub fn fold_into_conv_transpose(
    weights: &Tensor,
    bias: Option<&Tensor>,
    groups: i64,
    norm: &BatchNorm<'_>,
) -> Result<Convolution, Error> {
    let &[inputs, outputs_a_group, ref rest @ ..] = weights.dims() else {
        return Err(Error::new(format!("the weights have {} dimensions, not 3 or more", weights.dims().len())));
    };
    if groups < 1 || inputs % groups != 0 {
        return Err(Error::new(format!("{inputs} input channels cannot be cut into {groups} groups")));
    }
    let (outputs_a_group, kernel) = (size(&[outputs_a_group])?, size(rest)?);
    let inputs_a_group = size(&[inputs / groups])?;
    let channels = outputs_a_group.checked_mul(size(&[groups])?).ok_or_else(too_large)?;
    fold(weights, bias, norm, channels, |index| {
        let row = index / kernel.max(1);
        let (input, output) = (row / outputs_a_group.max(1), row % outputs_a_group.max(1));
        input / inputs_a_group.max(1) * outputs_a_group + output
    })
}

/// `channel_of` is the output channel that an element of the weights, by its index, is for.
fn fold(
    weights: &Tensor,
    bias: Option<&Tensor>,
    norm: &BatchNorm<'_>,
    channels: usize,
    channel_of: impl Fn(usize) -> usize,
) -> Result<Convolution, Error> {
    let scale = numbers("scale", norm.scale, channels)?;
    let shift = numbers("bias", norm.bias, channels)?;
    let mean = numbers("mean", norm.mean, channels)?;
    let variance = numbers("variance", norm.variance, channels)?;
    let before = match bias {
        Some(bias) => numbers("convolution's bias", bias, channels)?,
        None => vec![0.0; channels],
    };
    let epsilon = f64::from(norm.epsilon);
    let factors: Vec<f64> = (0..channels).map(|c| scale[c] / (variance[c] + epsilon).sqrt()).collect();
    let bias: Vec<f64> = (0..channels).map(|c| (before[c] - mean[c]) * factors[c] + shift[c]).collect();

    let not_floats = || Error::new(format!("the weights are {}, not floating-point numbers", weights.dtype()));
    let mut elements = weights.floats().ok_or_else(not_floats)?;
    for (index, element) in elements.iter_mut().enumerate() {
        *element *= factors[channel_of(index)];
    }
    let tensor = |dims, values: &[f64]| Tensor::from_floats(weights.dtype(), dims, values).ok_or_else(not_floats);
    Ok(Convolution {
        weights: tensor(weights.dims().to_vec(), &elements)?,
        bias: tensor(vec![channels as i64], &bias)?,
    })
}

fn numbers(what: &str, tensor: &Tensor, channels: usize) -> Result<Vec<f64>, Error> {
    let values = tensor.floats().ok_or_else(|| Error::new(format!("the {what} is {}", tensor.dtype())))?;
    if values.len() != channels {
        return Err(Error::new(format!("the {what} has {} elements for {channels} channels", values.len())));
    }
    Ok(values)
}

fn size(dims: &[i64]) -> Result<usize, Error> {
    let count = crate::tensor::count_of(dims).and_then(|count| usize::try_from(count).ok());
    count.ok_or_else(too_large)
}

fn too_large() -> Error {
    Error::new("the weights are too large")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    fn floats(dims: &[i64], values: &[f64]) -> Tensor {
        Tensor::from_floats(DType::F32, dims.to_vec(), values).unwrap()
    }

    /// Factors 2, 3, … for as many channels.
    fn with_norm<T>(channels: i64, body: impl FnOnce(&BatchNorm<'_>) -> T) -> T {
        let each = |f: fn(i64) -> f64| floats(&[channels], &(0..channels).map(f).collect::<Vec<_>>());
        let (scale, bias, mean, variance) =
            (each(|c| (c + 2) as f64 * 2.0), each(|c| c as f64), each(|_| 1.0), each(|_| 3.5));
        body(&BatchNorm { scale: &scale, bias: &bias, mean: &mean, variance: &variance, epsilon: 0.5 })
    }

    #[test]
    fn conv_by_its_first_dimension() {
        let weights = floats(&[2, 1, 2], &[1.0, 2.0, 3.0, 4.0]);
        let folded = with_norm(2, |norm| fold_into_conv(&weights, Some(&floats(&[2], &[5.0, 6.0])), norm)).unwrap();
        assert_eq!(folded.weights, floats(&[2, 1, 2], &[2.0, 4.0, 9.0, 12.0]));
        assert_eq!(folded.bias, floats(&[2], &[(5.0 - 1.0) * 2.0, (6.0 - 1.0) * 3.0 + 1.0]));
        let folded = with_norm(2, |norm| fold_into_conv(&weights, None, norm)).unwrap();
        assert_eq!(folded.bias, floats(&[2], &[-2.0, -3.0 + 1.0]));
    }

    #[test]
    fn conv_transpose_by_group_and_second_dimension() {
        // Four input channels in two groups, three output channels a group.
        let weights = floats(&[4, 3, 1], &[1.0; 12]);
        let folded = with_norm(6, |norm| fold_into_conv_transpose(&weights, None, 2, norm)).unwrap();
        let expected = [2.0, 3.0, 4.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 5.0, 6.0, 7.0];
        assert_eq!(folded.weights, floats(&[4, 3, 1], &expected));
        assert_eq!(folded.bias.dims(), [6]);
    }

    #[test]
    fn narrow_weights_stay_narrow() {
        let weights = Tensor::from_floats(DType::F16, vec![1, 1], &[0.1]).unwrap();
        let folded = with_norm(1, |norm| fold_into_conv(&weights, None, norm)).unwrap();
        assert_eq!((folded.weights.dtype(), folded.bias.dtype()), (DType::F16, DType::F16));
        assert_eq!(folded.weights.floats().unwrap(), [2.0 * weights.floats().unwrap()[0]]);
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let message = |weights: &Tensor, channels| {
            with_norm(channels, |norm| fold_into_conv(weights, None, norm)).unwrap_err().to_string()
        };
        assert_eq!(message(&floats(&[2, 1], &[1.0; 2]), 3), "the scale has 3 elements for 2 channels");
        let integers = Tensor::from_ints(DType::I8, vec![2, 1], &[1, 2]).unwrap();
        assert_eq!(message(&integers, 2), "the weights are int8, not floating-point numbers");
        assert_eq!(message(&floats(&[], &[1.0]), 1), "the weights have no dimensions");
        let weights = floats(&[3, 2, 1], &[1.0; 6]);
        let error = with_norm(4, |norm| fold_into_conv_transpose(&weights, None, 2, norm)).unwrap_err();
        assert_eq!(error.to_string(), "3 input channels cannot be cut into 2 groups");
        let empty = floats(&[0, 2, 1], &[]);
        assert!(with_norm(2, |norm| fold_into_conv_transpose(&empty, None, 1, norm)).is_ok());
    }
}
