//! Activation functions of recurrent layers.

use crate::{
    emit::{Builder, Compare, Math, V},
    error::{Result, unsupported},
    graph::Node,
};
use divi_onnx::Attr;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Activation {
    Relu,
    Tanh,
    Sigmoid,
    Softsign,
    Softplus,
    Affine { alpha: f64, beta: f64 },
    LeakyRelu { alpha: f64 },
    ThresholdedRelu { alpha: f64 },
    ScaledTanh { alpha: f64, beta: f64 },
    HardSigmoid { alpha: f64, beta: f64 },
    Elu { alpha: f64 },
}

/// Returns the activation functions of each direction. Functions with parameters consume the lists of alphas and betas in order.
pub(super) fn activations(node: &Node, default: &[&str], directions: usize) -> Result<Vec<Vec<Activation>>> {
    let names: Vec<String> = match node.attributes.get("activations") {
        Some(Attr::Strs(names)) => names.clone(),
        _ => default.iter().cycle().take(default.len() * directions).map(|&name| name.into()).collect(),
    };
    if names.len() != default.len() * directions {
        return unsupported(format!("needs {} activations, has {}", default.len() * directions, names.len()));
    }
    let mut alphas = node.attributes().floats("activation_alpha")?.unwrap_or_default().iter();
    let mut betas = node.attributes().floats("activation_beta")?.unwrap_or_default().iter();
    let mut alpha = |default: f64| alphas.next().map_or(default, |&value| value.into());
    let mut beta = |default: f64| betas.next().map_or(default, |&value| value.into());
    let mut functions = vec![];
    for name in names {
        functions.push(match &name.to_ascii_lowercase()[..] {
            "relu" => Activation::Relu,
            "tanh" => Activation::Tanh,
            "sigmoid" => Activation::Sigmoid,
            "softsign" => Activation::Softsign,
            "softplus" => Activation::Softplus,
            "affine" => Activation::Affine { alpha: alpha(1.0), beta: beta(0.0) },
            "leakyrelu" => Activation::LeakyRelu { alpha: alpha(0.01) },
            "thresholdedrelu" => Activation::ThresholdedRelu { alpha: alpha(1.0) },
            "scaledtanh" => Activation::ScaledTanh { alpha: alpha(1.0), beta: beta(1.0) },
            "hardsigmoid" => Activation::HardSigmoid { alpha: alpha(0.2), beta: beta(0.5) },
            "elu" => Activation::Elu { alpha: alpha(1.0) },
            _ => return unsupported(format!("unknown activation '{name}'; use one of the ONNX specification")),
        });
    }
    Ok(functions.chunks(default.len()).map(<[_]>::to_vec).collect())
}

impl Activation {
    pub(super) fn apply(self, b: &Builder, x: V) -> V {
        let ty = b.type_of(x);
        let float = |value| b.float(value, ty);
        let (zero, one) = (float(0.0), float(1.0));
        let affine = |alpha, beta| b.add(b.mul(float(alpha), x), float(beta));
        let is_positive = b.compare(Compare::GreaterOrEqual, x, zero, false);
        match self {
            Self::Relu => b.max(x, zero, false),
            Self::Tanh => b.tanh(x),
            Self::Sigmoid => b.sigmoid(x),
            Self::Softsign => b.div(x, b.add(one, b.abs(x)), false),
            // max(x, 0) is factored out, so that the exponential does not overflow.
            Self::Softplus => b.add(b.max(x, zero, false), b.math(Math::Log1p, b.exp(b.neg(b.abs(x))))),
            Self::Affine { alpha, beta } => affine(alpha, beta),
            Self::LeakyRelu { alpha } => b.select(is_positive, x, b.mul(float(alpha), x)),
            Self::ThresholdedRelu { alpha } => {
                b.select(b.compare(Compare::GreaterOrEqual, x, float(alpha), false), x, zero)
            }
            Self::ScaledTanh { alpha, beta } => b.mul(float(alpha), b.tanh(b.mul(float(beta), x))),
            Self::HardSigmoid { alpha, beta } => b.max(b.min(affine(alpha, beta), one, false), zero, false),
            Self::Elu { alpha } => b.select(is_positive, x, b.mul(float(alpha), b.sub(b.exp(x), one))),
        }
    }
}
