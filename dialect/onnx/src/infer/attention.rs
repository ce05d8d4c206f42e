//! Attention, rotary embeddings and SwiGLU.

use super::{Types, single_result};
use crate::shape::{broadcasts_to, format_shape};
use crate::{Dim, Error, Node, Shape, TensorType};

/// Returns the number of heads from an optional attribute.
fn heads(node: &Node<'_>, name: &str) -> Result<Option<i64>, Error> {
    match node.int(name)? {
        Some(heads) if heads < 1 => Err(Error::new(format!("attribute '{name}' must be positive, is {heads}"))),
        heads => Ok(heads),
    }
}

fn required_heads(node: &Node<'_>, name: &str) -> Result<i64, Error> {
    heads(node, name)?
        .ok_or_else(|| Error::new(format!("needs the attribute '{name}' to split the last axis into heads")))
}

/// Returns batch, heads, sequence length and head size of an operand. In rank 4 the heads have their own axis; in rank 3 they
/// share the last one with their elements.
fn by_heads(node: &Node<'_>, index: usize, rank: Option<usize>, attribute: &str) -> Result<[Dim; 4], Error> {
    Ok(match rank {
        Some(3) => {
            let heads = required_heads(node, attribute)?;
            let shape = node.expect_shape(index, &[Dim::Unknown; 3])?;
            [shape[0], Dim::Known(heads), shape[1], shape[2].split(heads, "heads")?]
        }
        Some(_) => {
            let heads = heads(node, attribute)?.map_or(Dim::Unknown, Dim::Known);
            let shape = node.expect_shape(index, &[Dim::Unknown, heads, Dim::Unknown, Dim::Unknown])?;
            [shape[0], shape[1], shape[2], shape[3]]
        }
        None => [Dim::Unknown, heads(node, attribute)?.map_or(Dim::Unknown, Dim::Known), Dim::Unknown, Dim::Unknown],
    })
}

fn agree(a: Dim, b: Dim, what: &str) -> Result<Dim, Error> {
    a.unify(b).ok_or_else(|| Error::new(format!("{what} must be equal, are {a} and {b}")))
}

/// Checks grouped-query attention: the number of query heads must be a multiple of the number of key/value heads.
fn check_sharing(query_heads: Dim, heads: Dim) -> Result<(), Error> {
    match (query_heads, heads) {
        (Dim::Known(query), Dim::Known(heads)) if heads < 1 || query % heads != 0 => {
            Err(Error::new(format!("{query} query heads cannot share {heads} heads of key and value evenly")))
        }
        _ => Ok(()),
    }
}

pub(super) fn attention(node: &Node<'_>) -> Types {
    let (dtype, v_dtype) = (node.same_dtype(&[0, 1, 4])?, node.same_dtype(&[2, 5])?);
    let ranks = [node.input(0)?.ty.rank(), node.input(1)?.ty.rank(), node.input(2)?.ty.rank()];
    let rank = ranks.into_iter().flatten().next();
    if ranks.into_iter().flatten().any(|other| Some(other) != rank || !(3..=4).contains(&other)) {
        return Err(Error::new(format!(
            "Q, K and V must all have rank 3 or all rank 4, are {}, {} and {}",
            node.input(0)?.ty,
            node.input(1)?.ty,
            node.input(2)?.ty
        )));
    }
    let [q_batch, q_heads, q_length, q_size] = by_heads(node, 0, rank, "q_num_heads")?;
    let [k_batch, k_heads, k_length, k_size] = by_heads(node, 1, rank, "kv_num_heads")?;
    let [v_batch, v_heads, v_length, v_size] = by_heads(node, 2, rank, "kv_num_heads")?;
    let batch = agree(agree(q_batch, k_batch, "the batches of Q and K")?, v_batch, "the batches of K and V")?;
    let kv_heads = agree(k_heads, v_heads, "the heads of K and V")?;
    let kv_length = agree(k_length, v_length, "the sequence lengths of K and V")?;
    let size = agree(q_size, k_size, "the head sizes of Q and K")?;

    if node.optional(4).is_some() != node.optional(5).is_some() {
        return Err(Error::new("past_key and past_value belong together: add the other one"));
    }
    if node.optional(4).is_some() && node.optional(6).is_some() {
        return Err(Error::new(
            "nonpad_kv_seqlen is for a cache outside the operator, past_key for one inside: remove one",
        ));
    }
    let past_key = node.expect_shape(4, &[batch, kv_heads, Dim::Unknown, size])?;
    let past_value = node.expect_shape(5, &[past_key[0], past_key[1], past_key[2], v_size])?;
    let batch = node.expect_shape(6, &past_value[..1])?[0];
    let (kv_heads, size, v_size) = (past_value[1], past_key[3], past_value[3]);
    check_sharing(q_heads, kv_heads)?;
    let total = if node.optional(4).is_some() { past_value[2].plus(kv_length)? } else { kv_length };

    let scores = vec![batch, q_heads, q_length, total];
    check_mask(node, &scores)?;
    let y = match rank {
        Some(3) => Some(vec![batch, q_length, q_heads.times(v_size)?]),
        Some(_) => Some(vec![batch, q_heads, q_length, v_size]),
        None => None,
    };
    Ok(vec![
        TensorType::new(dtype, y),
        TensorType::new(dtype, vec![batch, kv_heads, total, size]),
        TensorType::new(v_dtype, vec![batch, kv_heads, total, v_size]),
        TensorType::new(dtype, scores),
    ])
}

/// Checks that the mask broadcasts to the scores; its last axis may also be shorter.
fn check_mask(node: &Node<'_>, scores: &[Dim]) -> Result<(), Error> {
    let Some(mask) = node.optional(3).and_then(|mask| mask.ty.shape.as_deref()) else { return Ok(()) };
    let Some((length, rest)) = mask.split_last() else { return Ok(()) };
    let short = matches!((*length, scores[3]), (Dim::Known(length), Dim::Known(total)) if length <= total);
    if broadcasts_to(rest, &scores[..3]).is_ok() && (short || length.unify(scores[3]).is_some()) {
        return Ok(());
    }
    Err(Error::new(format!("the mask [{}] does not fit the scores [{}]", format_shape(mask), format_shape(scores))))
}

pub(super) fn linear_attention(node: &Node<'_>) -> Types {
    let dtype = node.same_dtype(&[0, 1, 2, 4, 5])?;
    let (q_heads, kv_heads) = (required_heads(node, "q_num_heads")?, required_heads(node, "kv_num_heads")?);
    check_sharing(Dim::Known(q_heads), Dim::Known(kv_heads))?;
    let q = node.expect_shape(0, &[Dim::Unknown; 3])?;
    node.input(2)?;
    let k = node.expect_shape(1, &[q[0], q[1], Dim::Unknown])?;
    let v = node.expect_shape(2, &[k[0], k[1], Dim::Unknown])?;
    let k_size = agree(
        q[2].split(q_heads, "query heads")?,
        k[2].split(kv_heads, "key heads")?,
        "the head sizes of query and key",
    )?;
    let v_size = v[2].split(kv_heads, "value heads")?;
    let state = node.expect_shape(3, &[v[0], Dim::Known(kv_heads), k_size, v_size])?;

    let (gated, delta) = match node.str_or("update_rule", "gated_delta")? {
        "linear" => (false, false),
        "gated" => (true, false),
        "delta" => (false, true),
        "gated_delta" => (true, true),
        other => {
            return Err(Error::new(format!(
                "attribute 'update_rule' must be linear, gated, delta or gated_delta, is {other}"
            )));
        }
    };
    let widths = [
        (gated, 4, "decay", vec![Dim::Known(kv_heads), state[2].times(Dim::Known(kv_heads))?]),
        (delta, 5, "beta", vec![Dim::Known(kv_heads), Dim::Known(1)]),
    ];
    for (needed, index, name, widths) in widths {
        if needed && node.optional(index).is_none() {
            return Err(Error::new(format!("this update_rule needs the operand '{name}'")));
        }
        let fits = |width| node.expect_shape(index, &[state[0], v[1], width]);
        fits(widths[0]).or_else(|_| fits(widths[1]))?;
    }
    let output = vec![state[0], v[1], state[3].times(Dim::Known(q_heads))?];
    let state_dtype = node.optional(3).map_or(dtype, |state| state.ty.dtype);
    Ok(vec![TensorType::new(dtype, output), TensorType::new(state_dtype, state)])
}

pub(super) fn rotary_embedding(node: &Node<'_>) -> Types {
    let dtype = node.same_dtype(&[0, 1, 2])?;
    let rank = node.input(0)?.ty.rank();
    if rank.is_some_and(|rank| !(3..=4).contains(&rank)) {
        return Err(Error::new(format!("needs rank 3 or 4, has {}", node.input(0)?.ty)));
    }
    let [batch, _, length, size] = by_heads(node, 0, rank, "num_heads")?;
    let rotated = match node.int_or("rotary_embedding_dim", 0)? {
        0 => size,
        dim => Dim::Known(dim),
    };
    if let (Dim::Known(rotated), Dim::Known(size)) = (rotated, size)
        && !(0..=size).contains(&rotated)
    {
        return Err(Error::new(format!("cannot rotate {rotated} elements of heads of {size}")));
    }
    let half = rotated.split(2, "halves to rotate")?;
    let ids = node.expect_shape(3, &[batch, length])?;
    let cache: Shape = match node.optional(3) {
        Some(_) => vec![Dim::Unknown, half],
        None => vec![ids[0], ids[1], half],
    };
    node.input(2)?;
    let cache = node.expect_shape(1, &cache)?;
    node.expect_shape(2, &cache)?;
    single_result(TensorType::new(dtype, node.input(0)?.ty.shape.clone()))
}

/// Infers `SwiGLU`, whose operands do not broadcast.
pub(super) fn swiglu(node: &Node<'_>) -> Types {
    let dtype = node.same_dtype(&[0, 1])?;
    let shape = match (node.shape(0)?, node.shape(1)?) {
        (Some(shape), _) => Some(node.expect_shape(1, shape)?),
        (None, shape) => shape.map(<[Dim]>::to_vec),
    };
    single_result(TensorType::new(dtype, shape))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Case;

    fn three(op: &'static str, a: &str, b: &str, c: &str) -> Case {
        Case::new(op).input(a).input(b).input(c)
    }

    #[test]
    fn attention_of_rank_4() {
        three("Attention", "float[Nx9x4x8]", "float[Nx3x6x8]", "float[Nx3x6x10]").infers(&[
            "float[Nx9x4x10]",
            "float[Nx3x6x8]",
            "float[Nx3x6x10]",
            "float[Nx9x4x6]",
        ]);
        three("Attention", "float[2x3x4x8]", "float[2x3x6x9]", "float[2x3x6x8]").fails("head sizes of Q and K");
        three("Attention", "float[2x4x4x8]", "float[2x3x6x8]", "float[2x3x6x8]").fails("cannot share 3 heads");
        three("Attention", "float[2x3x4x8]", "float[2x6x24]", "float[2x3x6x8]").fails("all have rank 3 or all rank 4");
        three("Attention", "float[2x8]", "float[2x8]", "float[2x8]").fails("all have rank 3 or all rank 4");
    }

    #[test]
    fn attention_of_rank_3_splits_heads() {
        let case = || three("Attention", "float[NxSx72]", "float[Nx6x24]", "float[Nx6x30]");
        case().int("q_num_heads", 9).int("kv_num_heads", 3).infers(&[
            "float[NxSx90]",
            "float[Nx3x6x8]",
            "float[Nx3x6x10]",
            "float[Nx9xSx6]",
        ]);
        case().int("q_num_heads", 9).fails("needs the attribute 'kv_num_heads'");
        case().int("q_num_heads", 7).int("kv_num_heads", 3).fails("does not divide into 7 heads");
        case().int("q_num_heads", 0).fails("must be positive");
    }

    #[test]
    fn attention_extends_its_cache() {
        let case = || three("Attention", "float[2x3x4x8]", "float[2x3x6x8]", "float[2x3x6x8]");
        case().input("float[4x18]").input("float[2x3x12x8]").input("float[2x3x12x8]").infers(&[
            "float[2x3x4x8]",
            "float[2x3x18x8]",
            "float[2x3x18x8]",
            "float[2x3x4x18]",
        ]);
        case().none().input("float[2x3xPx8]").input("float[2x3xPx8]").infers(&[
            "float[2x3x4x8]",
            "float[2x3x?x8]",
            "float[2x3x?x8]",
            "float[2x3x4x?]",
        ]);
        case().none().input("float[2x3x12x8]").fails("belong together");
        case().input("bool[4x4]").none().none().input("int64[2]").outputs(1).infers(&[
            "float[2x3x4x8]",
            "float[2x3x6x8]",
            "float[2x3x6x8]",
            "float[2x3x4x6]",
        ]);
        case().input("bool[4x7]").fails("does not fit the scores");
        case().input("bool[5x6]").fails("does not fit the scores");
    }

    #[test]
    fn attention_of_unknown_rank() {
        three("Attention", "float[*]", "float[*]", "float[*]").infers(&[
            "float[*]",
            "float[?x?x?x?]",
            "float[?x?x?x?]",
            "float[?x?x?x?]",
        ]);
    }

    #[test]
    fn linear_attention_carries_state() {
        let case = |rule| {
            let case = three("LinearAttention", "float16[NxTx32]", "float16[NxTx16]", "float16[NxTx24]");
            case.int("q_num_heads", 4).int("kv_num_heads", 2).str("update_rule", rule)
        };
        case("linear").infers(&["float16[NxTx48]", "float16[Nx2x8x12]"]);
        case("linear").input("float[2x2x8x12]").infers(&["float16[2xTx48]", "float[2x2x8x12]"]);
        case("gated").none().input("float16[NxTx16]").infers(&["float16[NxTx48]", "float16[Nx2x8x12]"]);
        case("gated").none().input("float16[NxTx2]").infers(&["float16[NxTx48]", "float16[Nx2x8x12]"]);
        case("gated").none().input("float16[NxTx3]").fails("operand 4 must have shape");
        case("gated").fails("needs the operand 'decay'");
        case("delta").fails("needs the operand 'beta'");
        case("other").fails("must be linear");
    }

    #[test]
    fn rotary_embedding_preserves_type() {
        let case = |x, cache| three("RotaryEmbedding", x, cache, cache);
        case("float[2x4x3x8]", "float[50x4]").input("int64[2x3]").infers(&["float[2x4x3x8]"]);
        case("float[NxSx32]", "float[NxSx4]").int("num_heads", 4).infers(&["float[NxSx32]"]);
        case("float[2x4x3x8]", "float[2x3x2]").int("rotary_embedding_dim", 4).infers(&["float[2x4x3x8]"]);
        case("float[2x3x32]", "float[2x3x4]").fails("needs the attribute 'num_heads'");
        case("float[2x4x3x8]", "float[2x3x3]").fails("operand 1 must have shape [2x3x4]");
        case("float[2x4x3x8]", "float[2x3x4]").int("rotary_embedding_dim", 10).fails("cannot rotate 10");
        case("float[2x4x3x7]", "float[2x3x4]").fails("does not divide into 2 halves");
        case("float[2x4]", "float[2x3x4]").fails("needs rank 3 or 4");
    }

    #[test]
    fn swiglu_does_not_broadcast() {
        Case::new("SwiGLU").input("float[Nx3]").input("float[?x3]").infers(&["float[Nx3]"]);
        Case::new("SwiGLU").input("float[*]").input("float[Nx3]").infers(&["float[Nx3]"]);
        Case::new("SwiGLU").input("float[2x3]").input("float[3]").fails("operand 1 must have shape [2x3]");
    }
}
