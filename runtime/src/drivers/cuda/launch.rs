//! Launches: the payload of calls on CUDA devices. The compiler fills these types in.

use crate::bundle::Call;
use serde::{Deserialize, Serialize};

/// Launch of a call: a kernel `(buffers…, extent: i64, status: *mut i32)` on a grid, whose threads share its iterations. The
/// status is there only where the kernel `can_fail`. Only threads that fail write it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    pub blocks: u32,
    pub threads: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub can_fail: bool,
    /// Kernels on the same buffers that finish what it has begun.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<Then>,
    /// Another way to the same result, which is taken where the library is installed and not slower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<LibraryCall>,
}

impl Launch {
    /// Reads the launch of a call.
    pub fn of(call: &Call) -> Result<Self, String> {
        if call.payload.is_null() {
            return Err("it has no grid to launch".to_owned());
        }
        Self::deserialize(&call.payload).map_err(|error| format!("its payload is not a launch: {error}"))
    }

    /// Returns the payload of a call.
    pub fn to_payload(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("keys are strings and all numbers are integers")
    }

    /// Returns the signatures of all kernels that may be launched for a call ([`Call::signature`]), with blocks and threads behind.
    pub fn signatures(&self, call: &Call) -> Vec<String> {
        let line =
            |kernel: &str, extent, blocks, threads| format!("{} {blocks} {threads}", call.signature(kernel, extent));
        let first = line(&call.kernel, call.extent, self.blocks, self.threads);
        let others = self.then.iter().chain(self.library.iter().flat_map(|library| &library.then));
        let others = others.map(|then| line(&then.kernel, then.extent, then.blocks, then.threads));
        [first].into_iter().chain(others).collect()
    }
}

/// A kernel on the buffers of a call, behind what came before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Then {
    pub kernel: String,
    pub blocks: u32,
    pub threads: u32,
    pub extent: i64,
}

/// What a vendor's library computes: of the call's buffers, it has the first ones and, as its output, the last one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LibraryCall {
    pub way: Library,
    /// Kernels on all buffers that finish what it has computed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<Then>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Library {
    Convolution(Convolution),
    Product(Product),
}

impl Library {
    /// What is wrong with its numbers, if something is.
    pub(crate) fn problem(&self) -> Option<String> {
        match self {
            Self::Convolution(Convolution { input, filters, output, groups, strides, dilations, .. }) => {
                let fits = input[0] == output[0]
                    && filters[0] == output[1]
                    && filters[1].checked_mul(*groups) == Some(input[1])
                    && strides.iter().chain(dilations).chain([groups]).all(|&number| number > 0);
                let text = || {
                    format!(
                        "the library's filters {filters:?} do not lead from {input:?} to {output:?} in {groups} groups"
                    )
                };
                (!fits).then(text)
            }
            Self::Product(Product { count, rows, columns, depth, .. }) => {
                let is_empty = [count, rows, columns, depth].contains(&&0);
                is_empty.then(|| format!("the library has {count} products of {rows} by {depth} by {columns}"))
            }
        }
    }

    /// The bytes of each buffer, from the first that is used to the last.
    pub fn buffer_bytes(&self) -> Vec<u64> {
        let floats = |count: u64| count.saturating_mul(4);
        match self {
            Self::Convolution(it) => {
                let all = |shape: [u32; 4]| shape.iter().fold(4_u64, |bytes, &size| bytes.saturating_mul(size.into()));
                let images = |[count, rest @ ..]: [u32; 4], stride: u64| {
                    let one = all([1, rest[0], rest[1], rest[2]]);
                    floats(stride).saturating_mul(u64::from(count).saturating_sub(1)).saturating_add(one)
                };
                let [input, output, residual] = it.image_strides;
                let mut bytes = vec![images(it.input, input), all(it.filters), floats(it.filters[0].into())];
                bytes.extend(it.has_residual.then(|| images(it.output, residual)));
                bytes.push(images(it.output, output));
                bytes
            }
            Self::Product(it) => {
                let matrices = |rows: u32, columns: u32, stride: u64| {
                    let apart = stride.saturating_mul(u64::from(it.count).saturating_sub(1));
                    floats((u64::from(rows) * u64::from(columns)).saturating_add(apart))
                };
                let mut bytes =
                    vec![matrices(it.rows, it.depth, it.left_stride), matrices(it.depth, it.columns, it.right_stride)];
                bytes.extend(it.has_bias.then(|| floats(it.columns.into())));
                bytes.push(matrices(it.rows, it.columns, it.output_stride));
                bytes
            }
        }
    }
}

/// What is computed of each sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Epilogue {
    #[default]
    None,
    Relu,
}

/// A convolution of `f32` images, `[batch, channels, rows, columns]`. Its buffers: input, filters `[filters, channels / groups, rows,
/// columns]`, a bias for each filter, the residual if there is one, output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Convolution {
    pub input: [u32; 4],
    pub filters: [u32; 4],
    pub output: [u32; 4],
    /// Elements from an image to the next one, in input, output and residual: more than an image has where it is a part of
    /// another tensor.
    pub image_strides: [u64; 3],
    /// At the top and on the left; as much at the bottom and on the right, or less where no window reaches it.
    pub padding: [u32; 2],
    pub strides: [u32; 2],
    pub dilations: [u32; 2],
    pub groups: u32,
    /// Whether a tensor of the output's shape is added before the epilogue.
    pub has_residual: bool,
    pub epilogue: Epilogue,
}

/// Products of row-major `f32` matrices, `alpha * left * right`: `[rows, depth]` or turned, `[depth, columns]` or turned. Buffers:
/// left, right, a bias for each column if there is one, output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Product {
    /// How many products there are, and how far apart their matrices lie: 0 for a matrix that all of them share.
    pub count: u32,
    pub left_stride: u64,
    pub right_stride: u64,
    pub output_stride: u64,
    pub rows: u32,
    pub columns: u32,
    pub depth: u32,
    /// Whether matrices lie as `[depth, rows]` and `[columns, depth]`.
    pub left_is_turned: bool,
    pub right_is_turned: bool,
    /// The bits of an `f32`.
    pub alpha: u32,
    pub has_bias: bool,
    pub epilogue: Epilogue,
}
