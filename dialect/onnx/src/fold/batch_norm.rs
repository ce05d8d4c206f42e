//! Folding a `BatchNormalization` into the convolution before it.
//!
//! With fixed statistics it is a scale and a shift per channel, which can be merged into the weights and the bias:
//! `(conv(x, w) + b - mean) · f + B = conv(x, w · f) + (b - mean) · f + B` where `f = scale / √(var + epsilon)`.

use crate::{Error, Tensor};

/// Constants of a `BatchNormalization`; each tensor has one element per channel.
#[derive(Clone, Copy, Debug)]
pub struct BatchNorm<'a> {
    /// Factor.
    pub scale: &'a Tensor,
    /// Summand, applied after the factor.
    pub bias: &'a Tensor,
    /// Mean.
    pub mean: &'a Tensor,
    /// Variance.
    pub variance: &'a Tensor,
    /// Number added to the variance.
    pub epsilon: f32,
}

/// Constants of a convolution that includes the normalization.
#[derive(Clone, Debug, PartialEq)]
pub struct Convolution {
    /// Weights, of the shape and type of the original ones.
    pub weights: Tensor,
    /// Bias, with one element per output channel.
    pub bias: Tensor,
}

/// Folds the normalization into a `Conv` with any number of groups: the first dimension of the weights is output channels.
///
/// Computes in `f64` and rounds to the weights' type once.
pub fn fold_into_conv(weights: &Tensor, bias: Option<&Tensor>, norm: &BatchNorm<'_>) -> Result<Convolution, Error> {
    let &[channels, ref rest @ ..] = weights.dims() else { return Err(Error::new("the weights have no dimensions")) };
    let elements_per_channel = size(rest)?;
    fold(weights, bias, norm, size(&[channels])?, |index| index / elements_per_channel.max(1))
}

/// Folds the normalization into a `ConvTranspose` with `groups` groups: the first dimensions of the weights are input channels
/// and output channels per group.
///
/// Computes in `f64` and rounds to the weights' type once.
pub fn fold_into_conv_transpose(
    weights: &Tensor,
    bias: Option<&Tensor>,
    groups: i64,
    norm: &BatchNorm<'_>,
) -> Result<Convolution, Error> {
    let &[inputs, outputs_per_group, ref rest @ ..] = weights.dims() else {
        return Err(Error::new(format!("the weights have {} dimensions, not 3 or more", weights.dims().len())));
    };
    if groups < 1 || inputs % groups != 0 {
        return Err(Error::new(format!("{inputs} input channels cannot be divided into {groups} groups")));
    }
    let (outputs_per_group, kernel) = (size(&[outputs_per_group])?, size(rest)?);
    let inputs_per_group = size(&[inputs / groups])?;
    let channels = outputs_per_group.checked_mul(size(&[groups])?).ok_or_else(too_large)?;
    fold(weights, bias, norm, channels, |index| {
        let row = index / kernel.max(1);
        let (input, output) = (row / outputs_per_group.max(1), row % outputs_per_group.max(1));
        input / inputs_per_group.max(1) * outputs_per_group + output
    })
}

/// Folds the normalization; `channel_of` maps the index of a weight to its output channel.
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

    /// Calls `body` with a normalization whose channels have the factors 2, 3, ….
    fn with_norm<T>(channels: i64, body: impl FnOnce(&BatchNorm<'_>) -> T) -> T {
        let each = |f: fn(i64) -> f64| floats(&[channels], &(0..channels).map(f).collect::<Vec<_>>());
        let (scale, bias, mean, variance) =
            (each(|c| (c + 2) as f64 * 2.0), each(|c| c as f64), each(|_| 1.0), each(|_| 3.5));
        body(&BatchNorm { scale: &scale, bias: &bias, mean: &mean, variance: &variance, epsilon: 0.5 })
    }

    #[test]
    fn conv_scales_first_dimension() {
        let weights = floats(&[2, 1, 2], &[1.0, 2.0, 3.0, 4.0]);
        let folded = with_norm(2, |norm| fold_into_conv(&weights, Some(&floats(&[2], &[5.0, 6.0])), norm)).unwrap();
        assert_eq!(folded.weights, floats(&[2, 1, 2], &[2.0, 4.0, 9.0, 12.0]));
        assert_eq!(folded.bias, floats(&[2], &[(5.0 - 1.0) * 2.0, (6.0 - 1.0) * 3.0 + 1.0]));
        let folded = with_norm(2, |norm| fold_into_conv(&weights, None, norm)).unwrap();
        assert_eq!(folded.bias, floats(&[2], &[-2.0, -3.0 + 1.0]));
    }

    #[test]
    fn conv_transpose_scales_group_and_second_dimension() {
        // Four input channels in two groups, three output channels per group.
        let weights = floats(&[4, 3, 1], &[1.0; 12]);
        let folded = with_norm(6, |norm| fold_into_conv_transpose(&weights, None, 2, norm)).unwrap();
        let expected = [2.0, 3.0, 4.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 5.0, 6.0, 7.0];
        assert_eq!(folded.weights, floats(&[4, 3, 1], &expected));
        assert_eq!(folded.bias.dims(), [6]);
    }

    #[test]
    fn weight_type_is_preserved() {
        let weights = Tensor::from_floats(DType::F16, vec![1, 1], &[0.1]).unwrap();
        let folded = with_norm(1, |norm| fold_into_conv(&weights, None, norm)).unwrap();
        assert_eq!((folded.weights.dtype(), folded.bias.dtype()), (DType::F16, DType::F16));
        assert_eq!(folded.weights.floats().unwrap(), [2.0 * weights.floats().unwrap()[0]]);
    }

    #[test]
    fn mismatched_constants_are_errors() {
        let message = |weights: &Tensor, channels| {
            with_norm(channels, |norm| fold_into_conv(weights, None, norm)).unwrap_err().to_string()
        };
        assert_eq!(message(&floats(&[2, 1], &[1.0; 2]), 3), "the scale has 3 elements for 2 channels");
        let integers = Tensor::from_ints(DType::I8, vec![2, 1], &[1, 2]).unwrap();
        assert_eq!(message(&integers, 2), "the weights are int8, not floating-point numbers");
        assert_eq!(message(&floats(&[], &[1.0]), 1), "the weights have no dimensions");
        let weights = floats(&[3, 2, 1], &[1.0; 6]);
        let error = with_norm(4, |norm| fold_into_conv_transpose(&weights, None, 2, norm)).unwrap_err();
        assert_eq!(error.to_string(), "3 input channels cannot be divided into 2 groups");
        let empty = floats(&[0, 2, 1], &[]);
        assert!(with_norm(2, |norm| fold_into_conv_transpose(&empty, None, 1, norm)).is_ok());
    }
}
