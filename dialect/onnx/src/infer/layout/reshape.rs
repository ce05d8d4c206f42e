//! Operators that change the shape but not the elements.

use super::{list_operand, volume};
use crate::infer::{Types, single_result};
use crate::node::{Node, normalize_axes};
use crate::shape::{format_shape, product};
use crate::{Dim, Error, Shape, TensorType};

pub(in crate::infer) fn reshape(node: &Node<'_>) -> Types {
    let data = node.input(0)?;
    let Some(target) = list_operand(node, 1)? else {
        return single_result(TensorType::unranked(data.ty.dtype));
    };
    let target = Target::new(data.ty.shape.as_deref(), &target, node.flag("allowzero", false)?)?;
    let shape = match data.ty.shape.as_deref() {
        Some(shape) => target.solve(shape)?,
        None => target.shape,
    };
    single_result(TensorType::new(data.ty.dtype, shape))
}

/// Shape operand, before the number of elements is taken into account.
struct Target {
    shape: Shape,
    /// Positions whose size follows from the number of elements: -1, or an unknown element.
    free: Vec<usize>,
    /// Positions that copy the data's dimension: the two are equal even if they are unknown.
    copied: Vec<usize>,
    has_wildcard: bool,
}

impl Target {
    fn new(data: Option<&[Dim]>, target: &[Dim], allowzero: bool) -> Result<Self, Error> {
        let mut this = Self { shape: target.to_vec(), free: vec![], copied: vec![], has_wildcard: false };
        for (i, dim) in this.shape.iter_mut().enumerate() {
            match *dim {
                Dim::Known(-1) if this.has_wildcard => {
                    return Err(Error::new(format!("the shape {} has more than one -1", format_shape(target))));
                }
                Dim::Known(size) if size < -1 => {
                    return Err(Error::new(format!("the shape {} has the dimension {size}", format_shape(target))));
                }
                Dim::Known(-1) => {
                    this.has_wildcard = true;
                    this.free.push(i);
                    *dim = Dim::Unknown;
                }
                Dim::Known(0) if !allowzero => match data.map(|data| data.get(i)) {
                    Some(Some(&same)) => {
                        this.copied.push(i);
                        *dim = same;
                    }
                    Some(None) => {
                        return Err(Error::new(format!(
                            "the shape {} has a 0 at {i}, where the operand has no dimension to copy: \
                             set 'allowzero' if the result is to be empty",
                            format_shape(target)
                        )));
                    }
                    None => *dim = Dim::Unknown,
                },
                Dim::Unknown => this.free.push(i),
                Dim::Known(_) | Dim::Symbol(_) => {}
            }
        }
        if allowzero && this.has_wildcard && target.contains(&Dim::Known(0)) {
            return Err(Error::new(format!("the shape {} has -1 beside 0 under 'allowzero'", format_shape(target))));
        }
        Ok(this)
    }

    /// Computes the free dimension from the number of elements. Dimensions that occur on both sides cancel out, so that it may
    /// be known even if the batch size is unknown.
    fn solve(mut self, data: &[Dim]) -> Result<Shape, Error> {
        let is_copied = |i: usize, dim: Dim| dim.known().is_none() && self.copied.contains(&i);
        let rest = |dims: &[Dim]| -> Vec<Dim> {
            let kept = dims.iter().enumerate().filter(|&(i, &dim)| !is_copied(i, dim));
            kept.map(|(_, &dim)| dim).collect()
        };
        let mut from = rest(data);
        let mut to: Vec<Dim> = rest(&self.shape);
        to.retain(|dim| {
            let same = from.iter().position(|other| other == dim && matches!(dim, Dim::Symbol(_)));
            same.map(|at| from.remove(at)).is_none()
        });
        // The copied dimensions have been removed, so the unknown ones among `to` are the free dimensions.
        to.retain(|&dim| dim != Dim::Unknown);
        let (from_size, from_open) = split(&from);
        let (to_size, to_open) = split(&to);
        match (&self.free[..], from_size, to_size) {
            ([_], _, Some(0)) if self.has_wildcard => Err(Error::new(format!(
                "the shape {} has -1 beside 0, which leaves the -1 undetermined: write the size out",
                format_shape(&self.shape)
            ))),
            (&[at], Some(from), Some(to)) if to > 0 && to_open.is_empty() => {
                self.shape[at] = match from_open[..] {
                    [] if from % to != 0 => {
                        return Err(Error::new(format!(
                            "[{}] cannot be reshaped to [{}]: {to} does not divide {from} elements",
                            format_shape(data),
                            format_shape(&self.shape)
                        )));
                    }
                    [] => Dim::Known(from / to),
                    [dim] if from == to => dim,
                    _ if from == 0 => Dim::Known(0),
                    _ => Dim::Unknown,
                };
                Ok(self.shape)
            }
            ([], Some(from), Some(to)) if from != to && from_open.is_empty() && to_open.is_empty() => {
                Err(Error::new(format!(
                    "[{}] cannot be reshaped to [{}]: {from} elements against {to}",
                    format_shape(data),
                    format_shape(&self.shape)
                )))
            }
            _ => Ok(self.shape),
        }
    }
}

/// Returns the product of the known dimensions, `None` if it overflows, and the other dimensions.
fn split(dims: &[Dim]) -> (Option<i64>, Vec<Dim>) {
    let (known, open): (Vec<Dim>, Vec<Dim>) = dims.iter().partition(|dim| dim.known().is_some());
    (product(&known).known().filter(|&size| size >= 0), open)
}

pub(in crate::infer) fn flatten(node: &Node<'_>) -> Types {
    let axis = node.int_or("axis", 1)?;
    let shape = match node.shape(0)? {
        None => vec![Dim::Unknown; 2],
        Some(shape) => {
            let rank = shape.len() as i64;
            let at = if axis < 0 { axis.saturating_add(rank) } else { axis };
            if !(0..=rank).contains(&at) {
                return Err(Error::new(format!("axis {axis} is outside [{}, {rank}] for rank {rank}", -rank)));
            }
            let (outer, inner) = shape.split_at(at as usize);
            vec![volume(outer)?, volume(inner)?]
        }
    };
    single_result(TensorType::new(node.dtype(0)?, shape))
}

pub(in crate::infer) fn transpose(node: &Node<'_>) -> Types {
    let shape = node.shape(0)?;
    let shape = match (shape, node.ints("perm")?) {
        (None, None) => None,
        (Some(shape), None) => Some(shape.iter().rev().copied().collect()),
        (shape, Some(perm)) => {
            let rank = shape.map_or(perm.len(), <[Dim]>::len);
            let axes = normalize_axes(perm, rank)?;
            if axes.len() != rank || perm.iter().any(|&axis| axis < 0) {
                return Err(Error::new(format!(
                    "attribute 'perm' is {perm:?}, which is not a permutation of {rank} dimensions"
                )));
            }
            Some(axes.into_iter().map(|axis| shape.map_or(Dim::Unknown, |shape| shape[axis])).collect::<Shape>())
        }
    };
    single_result(TensorType::new(node.dtype(0)?, shape))
}

/// Returns the elements of an axes operand, if all are known, and their number.
fn axes_operand(node: &Node<'_>, index: usize) -> Result<(Option<Vec<i64>>, Option<usize>), Error> {
    let axes = list_operand(node, index)?;
    let len = axes.as_ref().map(Vec::len);
    Ok((axes.and_then(|axes| axes.into_iter().map(Dim::known).collect()), len))
}

pub(in crate::infer) fn squeeze(node: &Node<'_>) -> Types {
    let dtype = node.dtype(0)?;
    let Some(shape) = node.shape(0)? else {
        return single_result(TensorType::unranked(dtype));
    };
    let result = match node.optional(1) {
        None if shape.iter().all(|dim| dim.known().is_some()) => {
            Some(shape.iter().copied().filter(|&dim| dim != Dim::Known(1)).collect())
        }
        None => None,
        Some(_) => match axes_operand(node, 1)? {
            (Some(axes), _) => Some(without_ones(shape, &axes)?),
            (None, Some(len)) if len > shape.len() => {
                return Err(Error::new(format!("{len} axes cannot be squeezed from {}", format_shape(shape))));
            }
            (None, len) => len.map(|len| vec![Dim::Unknown; shape.len() - len]),
        },
    };
    single_result(TensorType::new(dtype, result))
}

fn without_ones(shape: &[Dim], axes: &[i64]) -> Result<Shape, Error> {
    let axes = normalize_axes(axes, shape.len())?;
    if let Some((axis, size)) =
        axes.iter().find_map(|&axis| Some((axis, shape[axis].known().filter(|&size| size != 1)?)))
    {
        return Err(Error::new(format!(
            "dimension {axis} of {} is {size}, only a 1 can be squeezed",
            format_shape(shape)
        )));
    }
    Ok(shape.iter().enumerate().filter(|(i, _)| !axes.contains(i)).map(|(_, &dim)| dim).collect())
}

pub(in crate::infer) fn unsqueeze(node: &Node<'_>) -> Types {
    let shape = node.shape(0)?;
    let result = match (shape, axes_operand(node, 1)?) {
        (Some(shape), (Some(axes), _)) => {
            let rank = shape.len() + axes.len();
            let axes = normalize_axes(&axes, rank)?;
            let mut dims = shape.iter().copied();
            let dim = |i| if axes.contains(&i) { Some(Dim::Known(1)) } else { dims.next() };
            (0..rank).map(dim).collect::<Option<Shape>>()
        }
        (Some(shape), (None, Some(len))) => Some(vec![Dim::Unknown; shape.len() + len]),
        _ => None,
    };
    single_result(TensorType::new(node.dtype(0)?, result))
}

#[cfg(test)]
mod tests {
    use crate::infer::testing::Case;

    #[test]
    fn reshape_follows_the_target() {
        let case = || Case::new("Reshape").input("float[2x3x4]");
        case().shape_input(&[4, 6]).infers(&["float[4x6]"]);
        case().shape_input(&[-1]).infers(&["float[24]"]);
        case().shape_input(&[0, -1]).infers(&["float[2x12]"]);
        case().shape_input(&[0, 0, 0]).infers(&["float[2x3x4]"]);
        case().shape_input(&[2, 3, 4, 1]).infers(&["float[2x3x4x1]"]);
        case().partial("?x6").infers(&["float[4x6]"]);
        case().partial("?x-1").infers(&["float[?x?]"]);
        case().input("int64[2]").infers(&["float[?x?]"]);
        case().input("int64[1]").infers(&["float[24]"]);
        case().input("int64[?]").infers(&["float[*]"]);
        Case::new("Reshape").input("float[*]").shape_input(&[0, 3, -1]).infers(&["float[?x3x?]"]);
        Case::new("Reshape").input("float[1]").shape_input(&[]).infers(&["float[]"]);
    }

    #[test]
    fn reshape_cancels_common_dimensions() {
        let case = || Case::new("Reshape").input("float[Nx8x64]");
        case().shape_input(&[-1, 512]).infers(&["float[Nx512]"]);
        case().shape_input(&[-1, 64]).infers(&["float[?x64]"]);
        case().shape_input(&[0, -1]).infers(&["float[Nx512]"]);
        case().partial("Nx-1x64").infers(&["float[Nx8x64]"]);
        case().partial("NxMx64").infers(&["float[NxMx64]"]);
        case().partial("Mx-1x64").infers(&["float[Mx?x64]"]);
        case().partial("Nx8x8x?").infers(&["float[Nx8x8x8]"]);
        case().partial("Nx500").fails("cannot be reshaped");
        let case = || Case::new("Reshape").input("float[?xSx12x64]");
        case().shape_input(&[0, 0, 768]).infers(&["float[?xSx768]"]);
        case().shape_input(&[0, 0, -1]).infers(&["float[?xSx768]"]);
        case().shape_input(&[0, -1, 768]).infers(&["float[?xSx768]"]);
        case().partial("?xSx-1").infers(&["float[?xSx?]"]);
        Case::new("Reshape").input("float[?x0]").shape_input(&[-1, 5]).infers(&["float[0x5]"]);
    }

    #[test]
    fn reshape_zeros() {
        let case = || Case::new("Reshape").input("float[0x3]");
        case().shape_input(&[0, 5]).infers(&["float[0x5]"]);
        case().shape_input(&[3, 0]).int("allowzero", 1).infers(&["float[3x0]"]);
        case().shape_input(&[0, -1]).fails("write the size out");
        case().shape_input(&[0, -1]).int("allowzero", 1).fails("-1 beside 0");
        Case::new("Reshape").input("float[2x3]").shape_input(&[2, 0]).int("allowzero", 1).fails("cannot be reshaped");
    }

    #[test]
    fn reshape_rejects() {
        let case = || Case::new("Reshape").input("float[2x3x4]");
        case().shape_input(&[5, 5]).fails("[2x3x4] cannot be reshaped to [5x5]");
        case().shape_input(&[5, -1]).fails("5 does not divide 24");
        case().shape_input(&[-1, -1]).fails("more than one -1");
        case().shape_input(&[-2, 3]).fails("the dimension -2");
        case().shape_input(&[2, 3, 4, 0]).fails("no dimension to copy");
        case().shape_input(&[1 << 62, 1 << 62]).fails("which no tensor can have");
    }

    #[test]
    fn flatten_makes_a_matrix() {
        let case = || Case::new("Flatten").input("float[Nx3x4]");
        case().infers(&["float[Nx12]"]);
        case().int("axis", 0).infers(&["float[1x?]"]);
        case().int("axis", -1).infers(&["float[?x4]"]);
        case().int("axis", 3).infers(&["float[?x1]"]);
        case().int("axis", 4).fails("outside [-3, 3]");
        case().int("axis", i64::MIN).fails("outside [-3, 3]");
        Case::new("Flatten").input("float[*]").infers(&["float[?x?]"]);
        Case::new("Flatten").input("float[1x4611686018427387904x4]").fails("too large");
    }

    #[test]
    fn transpose_permutes() {
        Case::new("Transpose").input("float[Nx3x4]").infers(&["float[4x3xN]"]);
        let case = || Case::new("Transpose").ints("perm", &[1, 0, 2]);
        case().input("float[Nx3x4]").infers(&["float[3xNx4]"]);
        case().input("float[*]").infers(&["float[?x?x?]"]);
        case().input("float[2x3x4x5]").fails("not a permutation of 4");
        case().input("float[2x3]").fails("axis 2 is outside");
        Case::new("Transpose").input("float[2x3]").ints("perm", &[0, 0]).fails("named twice");
        Case::new("Transpose").input("float[2x3]").ints("perm", &[0, -1]).fails("not a permutation");
        Case::new("Transpose").input("float[*]").infers(&["float[*]"]);
    }

    #[test]
    fn squeeze_drops_ones() {
        Case::new("Squeeze").input("float[1x3x1]").infers(&["float[3]"]);
        Case::new("Squeeze").input("float[1xNx1]").infers(&["float[*]"]);
        let case = || Case::new("Squeeze").input("float[1xNx1]");
        case().shape_input(&[-1, 0]).infers(&["float[N]"]);
        case().shape_input(&[1]).infers(&["float[1x1]"]);
        case().shape_input(&[]).infers(&["float[1xNx1]"]);
        case().input("int64[2]").infers(&["float[?]"]);
        case().input("int64[?]").infers(&["float[*]"]);
        case().input("int64[4]").fails("4 axes cannot be squeezed");
        Case::new("Squeeze").input("float[1x3]").shape_input(&[1]).fails("only a 1 can be squeezed");
        Case::new("Squeeze").input("float[1x3]").shape_input(&[2]).fails("axis 2 is outside");
    }

    #[test]
    fn unsqueeze_inserts_ones() {
        let case = || Case::new("Unsqueeze").input("float[Nx3]");
        case().shape_input(&[0, -1]).infers(&["float[1xNx3x1]"]);
        case().input("int64[1]").infers(&["float[?x?x?]"]);
        case().input("int64[*]").infers(&["float[*]"]);
        case().shape_input(&[3]).fails("axis 3 is outside");
        case().shape_input(&[0, 0]).fails("named twice");
        case().fails("operand 1 is missing");
        Case::new("Unsqueeze").input("float[*]").shape_input(&[0]).infers(&["float[*]"]);
    }
}
