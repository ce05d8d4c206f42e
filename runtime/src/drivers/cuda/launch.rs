//! Launches: the payload of calls on CUDA devices, written by the compiler.

use crate::bundle::Call;
use serde::{Deserialize, Serialize};

/// Launch of a call: a kernel `(buffers…, extent: i64, status: *mut i32)` on a grid, whose threads share its iterations. Only
/// kernels that `can_fail` have a status, which failing threads write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// Number of blocks.
    pub blocks: u32,
    /// Threads per block.
    pub threads: u32,
    /// True if the kernel has a status argument.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub can_fail: bool,
    /// Kernels that run after it on the same buffers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<FollowUpKernel>,
    /// Library call with the same result, used if the library is installed and faster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<LibraryCall>,
}

impl Launch {
    /// Parses the payload of a call.
    pub fn of(call: &Call) -> Result<Self, String> {
        if call.payload.is_null() {
            return Err("it has no grid to launch".to_owned());
        }
        Self::deserialize(&call.payload).map_err(|error| format!("its payload is not a launch: {error}"))
    }

    /// Converts the launch to the payload of a call.
    pub fn to_payload(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("keys are strings and all numbers are integers")
    }

    /// Returns the signatures of all kernels that may be launched for a call ([`Call::signature`]), followed by blocks and
    /// threads.
    pub fn signatures(&self, call: &Call) -> Vec<String> {
        let line =
            |kernel: &str, extent, blocks, threads| format!("{} {blocks} {threads}", call.signature(kernel, extent));
        let first = line(&call.kernel, call.extent, self.blocks, self.threads);
        let others = self.then.iter().chain(self.library.iter().flat_map(|library| &library.then));
        let others = others.map(|then| line(&then.kernel, then.extent, then.blocks, then.threads));
        [first].into_iter().chain(others).collect()
    }
}

/// Kernel that runs on the buffers of a call after its first kernel or its library call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FollowUpKernel {
    /// Name of the kernel.
    pub kernel: String,
    /// Number of blocks.
    pub blocks: u32,
    /// Threads per block.
    pub threads: u32,
    /// Number of iterations.
    pub extent: i64,
}

/// Call of a vendor library. Its inputs are the first buffers of the call, its output is the last one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LibraryCall {
    /// Computation of the library.
    #[serde(rename = "way")]
    pub computation: LibraryOp,
    /// Kernels that run after it on all buffers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<FollowUpKernel>,
}

/// Computation of a vendor library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LibraryOp {
    /// Convolution by cuDNN.
    Convolution(Convolution),
    /// Matrix product by cuBLASLt.
    #[serde(rename = "product")]
    MatMul(MatMul),
}

impl LibraryOp {
    /// Returns an error message if its sizes are inconsistent.
    pub(crate) fn problem(&self) -> Option<String> {
        match self {
            Self::Convolution(Convolution { input, filters, output, groups, strides, dilations, .. }) => {
                let fits = input[0] == output[0]
                    && filters[0] == output[1]
                    && filters[1].checked_mul(*groups) == Some(input[1])
                    && strides.iter().chain(dilations).chain([groups]).all(|&number| number > 0);
                let text = || {
                    format!("the library's filters {filters:?} do not map {input:?} to {output:?} in {groups} groups")
                };
                (!fits).then(text)
            }
            Self::MatMul(MatMul { count, rows, columns, depth, .. }) => {
                let is_empty = [count, rows, columns, depth].contains(&&0);
                is_empty.then(|| format!("the library's product is empty: {count} of {rows} * {depth} * {columns}"))
            }
        }
    }

    /// Returns the size of each buffer in bytes, from its first to its last accessed element.
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
            Self::MatMul(it) => {
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

/// Elementwise function of the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Epilogue {
    /// Identity.
    #[default]
    None,
    /// `max(x, 0)`.
    Relu,
}

/// Convolution of `f32` images. Its buffers: input, filters, bias (one per filter), the residual if there is one, output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Convolution {
    /// Shape of the input: `[batch, channels, rows, columns]`.
    pub input: [u32; 4],
    /// Shape of the filters: `[filters, channels / groups, rows, columns]`.
    pub filters: [u32; 4],
    /// Shape of the output: `[batch, filters, rows, columns]`.
    pub output: [u32; 4],
    /// Batch strides of input, output and residual in elements; larger than an image if it is part of another tensor.
    pub image_strides: [u64; 3],
    /// Padding at the top and on the left. The padding at the bottom and on the right is the same, or less if no window
    /// reaches it.
    pub padding: [u32; 2],
    /// Strides of rows and columns.
    pub strides: [u32; 2],
    /// Dilations of rows and columns.
    pub dilations: [u32; 2],
    /// Number of groups.
    pub groups: u32,
    /// True if a tensor of the output's shape is added before the epilogue.
    pub has_residual: bool,
    /// Function applied to the result.
    pub epilogue: Epilogue,
}

/// Batch of products of row-major `f32` matrices: `alpha * left * right`. Its buffers: left, right, bias (one per column) if
/// there is one, output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatMul {
    /// Number of products.
    pub count: u32,
    /// Distance between left matrices in elements; 0 if all products share one.
    pub left_stride: u64,
    /// Distance between right matrices in elements; 0 if all products share one.
    pub right_stride: u64,
    /// Distance between output matrices in elements.
    pub output_stride: u64,
    /// Rows of the output.
    pub rows: u32,
    /// Columns of the output.
    pub columns: u32,
    /// Columns of the left matrix.
    pub depth: u32,
    /// True if the left matrix is transposed: `[depth, rows]` instead of `[rows, depth]`.
    #[serde(rename = "left_is_turned")]
    pub left_is_transposed: bool,
    /// True if the right matrix is transposed: `[columns, depth]` instead of `[depth, columns]`.
    #[serde(rename = "right_is_turned")]
    pub right_is_transposed: bool,
    /// Factor: the bits of an `f32`.
    pub alpha: u32,
    /// True if a bias is added to each row.
    pub has_bias: bool,
    /// Function applied to the result.
    pub epilogue: Epilogue,
}
