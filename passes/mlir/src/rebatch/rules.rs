//! Rules for the batch of an operator's results, given that of its operands: one small function per kind of operator.
//!
//! A rule describes one run. It proves that `factor` runs at once compute the same as single runs, and returns the
//! changes of operands that this needs; `None` means that it cannot. Operators without a rule are assumed to mix the
//! inputs of a batch.

mod cut;
mod elementwise;
mod index;
mod product;
mod reduce;
mod shape;
mod table;
#[cfg(test)]
mod testing;

use super::layout::Layout;
use divi_onnx::{Dim, Node, Tensor, TensorType, node::normalize_axis, operators::BatchRule};

/// Operator with batched operands.
pub(crate) struct Site<'a> {
    /// Operator in one run.
    pub(crate) node: &'a Node<'a>,
    /// Position of the batch in each operand; `None` for shared operands.
    pub(crate) batch: &'a [Option<Layout>],
    /// Types of the results of one run.
    pub(crate) results: &'a [TensorType],
    /// Number of runs at once.
    pub(crate) factor: i64,
    /// Size of the batch in one run.
    pub(crate) unit: i64,
}

/// Change of an operand for several runs at once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    /// New elements of a constant that contains the batch size.
    Constant(Tensor),
    /// A tensor that all runs share is repeated along this axis, once per run.
    Spread(usize),
}

/// Batched form of an operator that does not mix inputs.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Flow {
    /// Position of the batch in each result; `None` if all runs share it.
    pub(crate) results: Vec<Option<Layout>>,
    pub(crate) changes: Vec<(usize, Change)>,
    /// True if the operator cannot express several runs at once, but a Reshape can.
    pub(crate) as_reshape: bool,
}

impl Flow {
    /// Returns the flow with the same batch in every result.
    fn all(site: &Site<'_>, layout: Layout, changes: Vec<(usize, Change)>) -> Self {
        Self { results: vec![Some(layout); site.results.len()], changes, as_reshape: false }
    }
}

/// Applies the rule of an operator; `None` if it mixes, or may mix, the inputs of a batch.
pub(crate) fn flow(site: &Site<'_>) -> Option<Flow> {
    // The batch is the first axis of an operand.
    const B: Option<usize> = Some(0);
    match site.node.op.batch_rule()? {
        BatchRule::SameAsFirst => elementwise::same_as_first(site),
        BatchRule::Broadcast => elementwise::broadcast(site),
        BatchRule::CastLike => Some(Flow { results: vec![site.batch(0)], ..Flow::default() }),
        BatchRule::BitCast => shape::bit_cast(site),
        BatchRule::Expand => shape::expand(site),
        BatchRule::Flatten => shape::flatten(site),
        BatchRule::Reshape => shape::reshape(site),
        BatchRule::Squeeze => shape::squeeze(site),
        BatchRule::Tile => shape::tile(site),
        BatchRule::Transpose => shape::transpose(site),
        BatchRule::Unsqueeze => shape::unsqueeze(site),
        BatchRule::CenterCropPad => cut::center_crop_pad(site),
        BatchRule::Compress => cut::compress(site),
        BatchRule::Concat => cut::concat(site),
        BatchRule::Pad => cut::pad(site),
        BatchRule::Resize => cut::resize(site),
        BatchRule::ReverseSequence => cut::reverse_sequence(site),
        BatchRule::Slice => cut::slice(site),
        BatchRule::Split => cut::split(site),
        BatchRule::TensorScatter => cut::tensor_scatter(site),
        BatchRule::Gather => index::gather(site),
        BatchRule::GatherScatterElements => index::elements(site),
        BatchRule::GatherND => index::gather_nd(site),
        BatchRule::ScatterND => index::scatter_nd(site),
        BatchRule::OneHot => index::one_hot(site),
        BatchRule::MatMul => product::matmul(site, 0, 1),
        BatchRule::MatMulInteger => product::single_elements(site, &[2, 3]).and_then(|()| product::matmul(site, 0, 1)),
        BatchRule::QLinearMatMul => {
            product::single_elements(site, &[1, 2, 4, 5, 6, 7]).and_then(|()| product::matmul(site, 0, 3))
        }
        BatchRule::Gemm => product::gemm(site),
        BatchRule::Einsum => product::einsum(site),
        BatchRule::Reduce => reduce::reduce(site),
        BatchRule::ArgExtremum => site
            .axis("axis", 0, 0)
            .and_then(|axis| reduce::without(site, &[axis], site.node.flag("keepdims", true).ok()?)),
        BatchRule::AlongAxis => reduce::along(site, site.axis("axis", -1, 0)),
        BatchRule::AlongOperandAxis => reduce::along(site, reduce::operand_axis(site, 1)),
        BatchRule::DFT => reduce::dft(site),
        BatchRule::MeanVarianceNormalization => reduce::mean_variance(site),
        BatchRule::LayerNormalization => reduce::layer_normalization(site),
        BatchRule::LastTwoAxes => reduce::in_front_of(site, 2),
        BatchRule::FirstAxis => table::in_front(site, &[B]),
        BatchRule::GridSample => table::in_front(site, &[B, B]),
        BatchRule::DeformConv => table::in_front(site, &[B, None, B, None, B]),
        BatchRule::CausalConvWithState => table::in_front(site, &[B, None, None, B]),
        BatchRule::LinearAttention => table::in_front(site, &[B; 6]),
        BatchRule::RotaryEmbedding if site.node.optional(3).is_some() => table::in_front(site, &[B, None, None, B]),
        BatchRule::RotaryEmbedding => table::in_front(site, &[B; 3]),
        BatchRule::Attention => table::attention(site),
        BatchRule::Loss => table::loss(site),
        BatchRule::TfIdfVectorizer if site.rank(0) == Some(2) => table::in_front(site, &[B]),
        BatchRule::TfIdfVectorizer => None,
        BatchRule::Pool => table::pool(site),
        // Indices are relative to the first element of the first run.
        BatchRule::MaxPool if site.node.outputs == 1 => table::pool(site),
        BatchRule::MaxPool => None,
        BatchRule::ExceptChannels => table::not_channels(site),
        BatchRule::BatchNormalization if site.node.flag("training_mode", false) == Ok(false) => {
            table::not_channels(site)
        }
        BatchRule::BatchNormalization => None,
        BatchRule::AffineGrid => table::affine_grid(site),
        BatchRule::Quantize => table::quantize(site),
        BatchRule::Recurrent => table::recurrent(site),
    }
}

impl Site<'_> {
    fn shape(&self, operand: usize) -> Option<&[Dim]> {
        self.node.optional(operand)?.ty.shape.as_deref()
    }

    fn rank(&self, operand: usize) -> Option<usize> {
        self.shape(operand).map(<[Dim]>::len)
    }

    fn result_shape(&self, result: usize) -> Option<&[Dim]> {
        self.results.get(result)?.shape.as_deref()
    }

    fn batch(&self, operand: usize) -> Option<Layout> {
        self.batch.get(operand).copied().flatten()
    }

    /// Returns the first operand with a batch.
    fn leader(&self) -> Option<(usize, Layout)> {
        self.batch.iter().enumerate().find_map(|(i, layout)| Some((i, (*layout)?)))
    }

    /// Returns the batch of the first operand, if no other has one.
    fn only_first(&self) -> Option<Layout> {
        self.batch.iter().skip(1).all(Option::is_none).then(|| self.batch(0))?
    }

    /// Returns an axis of an operand that an attribute names.
    fn axis(&self, name: &str, default: i64, operand: usize) -> Option<usize> {
        normalize_axis(self.node.int_or(name, default).ok()?, self.rank(operand)?).ok()
    }

    /// Returns the integers of an operand that all runs share.
    fn ints(&self, operand: usize) -> Option<Vec<i64>> {
        if self.batch(operand).is_some() {
            return None;
        }
        self.node.ints_of(operand)
    }

    /// Matches the batch as an index that operands share: `axes` has its position in each operand, `None` where it has
    /// none. Every batched operand must have it there, with the same layout. Other operands are repeated, unless they
    /// broadcast.
    ///
    /// Returns the common layout, on the leader's axis, and the changes.
    fn shared(&self, axes: &[Option<usize>], broadcasts: bool) -> Option<(Layout, Vec<(usize, Change)>)> {
        let (leader, layout) = self.leader()?;
        let size = self.shape(leader)?.get(layout.axis)?.known()?;
        let mut changes = vec![];
        for operand in 0..self.node.inputs.len() {
            if self.node.optional(operand).is_none() {
                continue;
            }
            let axis = axes.get(operand).copied().flatten();
            match (self.batch(operand), axis) {
                (Some(batch), Some(axis)) => {
                    if batch != layout.on(axis) || self.shape(operand)?.get(axis)?.known()? != size {
                        return None;
                    }
                }
                (Some(_), None) => return None,
                (None, Some(axis)) => match self.shape(operand)?.get(axis)?.known()? {
                    1 if broadcasts => {}
                    same if same == size && layout.outer == 1 => changes.push((operand, Change::Spread(axis))),
                    _ => return None,
                },
                (None, None) => {}
            }
        }
        Some((layout, changes))
    }

    /// Returns the change of one element of a constant operand; none if it is the same.
    fn with_element(&self, operand: usize, at: usize, element: i64) -> Option<Vec<(usize, Change)>> {
        let mut elements = self.ints(operand)?;
        let changed = elements.get_mut(at)?;
        if *changed == element {
            return Some(vec![]);
        }
        *changed = element;
        self.with_elements(operand, &elements)
    }

    /// Returns the change of all elements of a constant operand.
    fn with_elements(&self, operand: usize, elements: &[i64]) -> Option<Vec<(usize, Change)>> {
        let ty = &self.node.optional(operand)?.ty;
        let tensor = Tensor::from_ints(ty.dtype, ty.static_shape()?, elements)?;
        Some(vec![(operand, Change::Constant(tensor))])
    }
}
