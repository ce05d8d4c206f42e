//! Recurrent layers.

use super::Types;
use crate::{Dim, Error, Node, TensorType};

/// Infers a layer with `gates` gates, whose weights are stacked in one matrix, and `states` state tensors.
pub(super) fn recurrent(node: &Node<'_>, gates: i64, states: usize) -> Types {
    let dtype = node.same_dtype(&[0, 1, 2, 3, 5, 6, 7])?;
    let directions = Dim::Known(match node.str_or("direction", "forward")? {
        "forward" | "reverse" => 1,
        "bidirectional" => 2,
        other => {
            return Err(Error::new(format!(
                "attribute 'direction' must be forward, reverse or bidirectional, is {other}"
            )));
        }
    });
    let batch_first = match node.int_or("layout", 0)? {
        0 => false,
        1 => true,
        other => return Err(Error::new(format!("attribute 'layout' must be 0 or 1, is {other}"))),
    };
    let x = node.expect_shape(0, &[Dim::Unknown; 3])?;
    let (sequence, batch) = if batch_first { (x[1], x[0]) } else { (x[0], x[1]) };
    let hidden = hidden_size(node, directions, gates)?;

    let stacked = hidden.times(Dim::Known(gates))?;
    node.expect_shape(1, &[directions, stacked, x[2]])?;
    node.expect_shape(2, &[directions, stacked, hidden])?;
    node.expect_shape(3, &[directions, stacked.times(Dim::Known(2))?])?;
    let mut batch = node.expect_shape(4, &[batch])?[0];
    for index in 5..5 + states {
        let at = |batch| if batch_first { [batch, directions, hidden] } else { [directions, batch, hidden] };
        batch = node.expect_shape(index, &at(batch))?[usize::from(!batch_first)];
    }
    // Peepholes of LSTM: input, output and forget gate.
    node.expect_shape(7, &[directions, hidden.times(Dim::Known(3))?])?;

    let (all, last) = if batch_first {
        (vec![batch, sequence, directions, hidden], vec![batch, directions, hidden])
    } else {
        (vec![sequence, directions, batch, hidden], vec![directions, batch, hidden])
    };
    let mut types = vec![TensorType::new(dtype, all)];
    types.resize(1 + states, TensorType::new(dtype, last));
    Ok(types)
}

/// Returns the hidden size from the attribute, the recurrence weights or the weights.
fn hidden_size(node: &Node<'_>, directions: Dim, gates: i64) -> Result<Dim, Error> {
    let hidden = match node.int("hidden_size")? {
        Some(size) if size < 1 => {
            return Err(Error::new(format!("attribute 'hidden_size' must be positive, is {size}")));
        }
        size => size.map_or(Dim::Unknown, Dim::Known),
    };
    node.input(1)?;
    node.input(2)?;
    let recurrence = node.expect_shape(2, &[directions, Dim::Unknown, hidden])?;
    match recurrence[2] {
        Dim::Unknown => node.expect_shape(1, &[directions, recurrence[1], Dim::Unknown])?[1].split(gates, "gates"),
        hidden => Ok(hidden),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Case;

    fn layer(op: &'static str, x: &str, w: &str, r: &str) -> Case {
        Case::new(op).input(x).input(w).input(r)
    }

    #[test]
    fn layers_return_all_steps_and_the_last() {
        layer("RNN", "float[1x3x2]", "float[1x4x2]", "float[1x4x4]").infers(&["float[1x1x3x4]", "float[1x3x4]"]);
        layer("GRU", "float[SxNx2]", "float[2x15x2]", "float[2x15x5]")
            .str("direction", "bidirectional")
            .infers(&["float[Sx2xNx5]", "float[2xNx5]"]);
        layer("LSTM", "float[NxSx2]", "float[1x28x2]", "float[1x28x7]").int("layout", 1).infers(&[
            "float[NxSx1x7]",
            "float[Nx1x7]",
            "float[Nx1x7]",
        ]);
    }

    #[test]
    fn hidden_size_from_any_source() {
        layer("GRU", "float[*]", "float[1x15x2]", "float[*]").infers(&["float[?x1x?x5]", "float[1x?x5]"]);
        layer("GRU", "float[*]", "float[*]", "float[*]")
            .int("hidden_size", 5)
            .infers(&["float[?x1x?x5]", "float[1x?x5]"]);
        layer("GRU", "float[*]", "float[1x16x2]", "float[*]").fails("does not divide into 3 gates");
    }

    #[test]
    fn batch_from_any_operand() {
        layer("LSTM", "float[Sx?x2]", "float[1x28x2]", "float[1x28x7]")
            .none()
            .none()
            .none()
            .input("float[1x3x7]")
            .infers(&["float[Sx1x3x7]", "float[1x3x7]", "float[1x3x7]"]);
    }

    #[test]
    fn operands_are_checked() {
        let gru = || layer("GRU", "float[1x3x2]", "float[1x15x2]", "float[1x15x5]");
        gru().input("float[1x30]").input("int32[3]").input("float[1x3x5]").infers(&["float[1x1x3x5]", "float[1x3x5]"]);
        gru().input("float[1x15]").fails("operand 3 must have shape [1x30]");
        gru().none().input("int32[4]").fails("operand 4 must have shape [3]");
        gru().int("hidden_size", 6).fails("operand 2 must have shape [1x?x6]");
        gru().int("hidden_size", 0).fails("must be positive");
        gru().str("direction", "both").fails("must be forward");
        gru().int("layout", 2).fails("must be 0 or 1");
        layer("RNN", "float[1x3x2]", "float[1x4x3]", "float[1x4x4]").fails("operand 1 must have shape [1x4x2]");
        layer("LSTM", "float[*]", "float[*]", "float[*]").int("hidden_size", 1 << 62).fails("overflows");
    }
}
