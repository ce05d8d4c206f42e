//! `--input-shape` and `--batch`: fixes the shapes of a model's inputs.

use super::{Options, list_names};
use divi_onnx::{Dim, Symbol, TensorType};
use rustc_hash::FxHashMap;

/// Sizes of named dimensions.
pub(crate) type Sizes = FxHashMap<Symbol, i64>;

/// Sets the shapes of inputs as the options request. A named dimension that is fixed in one input is fixed in all.
///
/// The caller reports shapes for unknown inputs.
pub(crate) fn fix(options: &Options, inputs: &mut [(&str, &mut TensorType)]) -> Result<Sizes, String> {
    let mut sizes = Sizes::default();
    // The first dimension of this input is the batch, even if it is static.
    let batched = inputs.iter().find(|(_, ty)| has_front(ty)).map(|(name, _)| (*name).to_owned());
    for (name, dims) in &named_shapes(options, inputs)? {
        let Some((_, ty)) = inputs.iter_mut().find(|(other, _)| other == name) else { continue };
        if let Some(shape) = &ty.shape {
            if shape.len() != dims.len() {
                return Err(format!("input '{name}' has rank {}, but is given {} dimensions", shape.len(), dims.len()));
            }
            let open = matches!(shape.first(), Some(Dim::Symbol(_) | Dim::Unknown));
            if let (Some(batch), Some(&size)) = (options.batch, dims.first())
                && size != batch
                && (open || batched.as_ref() == Some(name))
            {
                return Err(format!(
                    "input '{name}' is given {size} for its first dimension, but the batch is {batch}"
                ));
            }
            for (&dim, &size) in shape.iter().zip(dims) {
                set(&mut sizes, dim, size).map_err(|other| {
                    format!("input '{name}' is given {size} for a dimension that another makes {other}")
                })?;
            }
        }
        ty.shape = Some(dims.iter().copied().map(Dim::Known).collect());
    }
    if let Some(batch) = options.batch {
        fix_batch(batch, inputs, &mut sizes);
    }
    for dim in inputs.iter_mut().filter_map(|(_, ty)| ty.shape.as_mut()).flatten() {
        if let Dim::Symbol(symbol) = dim
            && let Some(&size) = sizes.get(symbol)
        {
            *dim = Dim::Known(size);
        }
    }
    Ok(sizes)
}

/// Returns the requested shapes, each with its input's name.
fn named_shapes(options: &Options, inputs: &[(&str, &mut TensorType)]) -> Result<Vec<(String, Vec<i64>)>, String> {
    let mut shapes = options.input_shapes.clone();
    let Some(unnamed) = shapes.iter().position(|(name, _)| name.is_empty()) else { return Ok(shapes) };
    let &[(only, _)] = inputs else {
        let list = if inputs.is_empty() {
            "there is none".into()
        } else {
            format!("there are {}", list_names(inputs.iter().map(|(name, _)| *name)))
        };
        return Err(format!("a shape without a name is for a model with one input, and {list}: write NAME:AxBxC"));
    };
    if shapes.iter().any(|(name, _)| name == only && !name.is_empty()) {
        return Err(format!("input '{only}' is given two shapes"));
    }
    only.clone_into(&mut shapes[unnamed].0);
    Ok(shapes)
}

/// Returns true if any input has, or may have, a first dimension.
pub(crate) fn has_batch(inputs: &[(&str, &mut TensorType)]) -> bool {
    inputs.iter().any(|(_, ty)| has_front(ty))
}

fn has_front(ty: &TensorType) -> bool {
    ty.shape.as_ref().is_none_or(|shape| !shape.is_empty())
}

/// Sets the first dimension of every input where it is dynamic.
fn fix_batch(batch: i64, inputs: &mut [(&str, &mut TensorType)], sizes: &mut Sizes) {
    for (_, ty) in inputs.iter_mut() {
        if let Some(first @ (Dim::Symbol(_) | Dim::Unknown)) = ty.shape.as_mut().and_then(|shape| shape.first_mut())
            && set(sizes, *first, batch).is_ok()
        {
            *first = Dim::Known(batch);
        }
    }
}

/// Records the size of a named dimension. The error is another size recorded earlier.
fn set(sizes: &mut Sizes, dim: Dim, size: i64) -> Result<(), i64> {
    let Dim::Symbol(symbol) = dim else { return Ok(()) };
    match *sizes.entry(symbol).or_insert(size) {
        other if other != size => Err(other),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use divi_onnx::DType;

    const N: Dim = Dim::Symbol(Symbol(0));
    const M: Dim = Dim::Symbol(Symbol(1));

    fn fixed(options: &Options, shapes: &[(&str, &[Dim])]) -> Result<Vec<Vec<Dim>>, String> {
        let mut types: Vec<_> =
            shapes.iter().map(|(name, shape)| (*name, TensorType::new(DType::F32, shape.to_vec()))).collect();
        let mut inputs: Vec<_> = types.iter_mut().map(|(name, ty)| (*name, ty)).collect();
        fix(options, &mut inputs)?;
        Ok(types.into_iter().map(|(_, ty)| ty.shape.unwrap()).collect())
    }

    #[test]
    fn named_dimension_is_fixed_in_all_inputs() {
        let options = Options { input_shapes: vec![("y".into(), vec![8, 3])], ..Options::default() };
        let shapes = fixed(&options, &[("x", &[N, M]), ("y", &[N, Dim::Known(3)])]).unwrap();
        assert_eq!(shapes, [[Dim::Known(8), M], [Dim::Known(8), Dim::Known(3)]]);
    }

    #[test]
    fn unnamed_shape_is_for_the_only_input() {
        let options = Options { input_shapes: vec![(String::new(), vec![8, 3])], ..Options::default() };
        assert_eq!(fixed(&options, &[("x", &[N, M])]).unwrap(), [[Dim::Known(8), Dim::Known(3)]]);
        let message = fixed(&options, &[("x", &[N, M]), ("y", &[N])]).unwrap_err();
        assert!(message.contains("there are 'x', 'y'"), "{message}");
        assert!(fixed(&options, &[]).unwrap_err().contains("there is none"));
        let shapes = vec![(String::new(), vec![8]), ("x".into(), vec![8])];
        assert!(fixed(&Options { input_shapes: shapes, ..Options::default() }, &[("x", &[N])]).is_err());
    }

    #[test]
    fn batch_fixes_dynamic_first_dimensions() {
        let options = Options { batch: Some(4), ..Options::default() };
        let shapes = fixed(&options, &[("x", &[N]), ("mask", &[Dim::Known(1), N]), ("z", &[Dim::Unknown])]).unwrap();
        assert_eq!(shapes, [vec![Dim::Known(4)], vec![Dim::Known(1), Dim::Known(4)], vec![Dim::Known(4)]]);
    }

    #[test]
    fn batch_needs_an_input_with_a_first_dimension() {
        let has = |mut ty: TensorType| has_batch(&[("x", &mut ty)]);
        assert!(has(TensorType::of_rank(DType::F32, 1)) && has(TensorType::unranked(DType::F32)));
        assert!(!has(TensorType::scalar(DType::F32)));
    }

    #[test]
    fn batch_must_agree_with_the_first_shape() {
        let of =
            |name: &str| Options { batch: Some(4), input_shapes: vec![(name.into(), vec![2])], ..Options::default() };
        let inputs: &[(&str, &[Dim])] = &[("x", &[Dim::Known(1)]), ("table", &[Dim::Known(9)]), ("y", &[N])];
        assert!(fixed(&of("x"), inputs).unwrap_err().contains("the batch is 4"));
        assert!(fixed(&of("y"), inputs).unwrap_err().contains("the batch is 4"));
        assert!(fixed(&of("table"), inputs).is_ok());
    }

    #[test]
    fn contradictory_shapes_are_rejected() {
        let shapes = vec![("x".into(), vec![2]), ("y".into(), vec![3])];
        let options = Options { input_shapes: shapes, ..Options::default() };
        assert!(fixed(&options, &[("x", &[N]), ("y", &[N])]).unwrap_err().contains("another makes 2"));
        assert!(fixed(&options, &[("x", &[N, N])]).unwrap_err().contains("rank 2"));
    }
}
