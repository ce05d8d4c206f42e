//! Work of `linalg` operators on tensors: operations from loop ranges, bytes from operands.

mod ffi;

use divi_cost::{Class, Geometry, Work};
use divi_dialect::Operation;

/// Returns the work of an operator that moves the bytes of `moved`; `None` if it is not a `linalg` operator or has
/// dynamic loop ranges.
pub(super) fn work(operation: Operation<'_>, moved: Work) -> Option<Work> {
    let found = ffi::linalg_work(operation)?;
    let [a, b, c, d, e, f, g, h] = found.loops;
    let reduce = Geometry::Reduce { outer: found.parallel, inner: found.iterations / found.parallel.max(1) };
    let (class, geometry) = match found.kind {
        3 => {
            let class = if c == 1 && b > 1 { Class::DepthwiseConv } else { Class::Conv };
            let geometry = Geometry::Conv {
                images: a,
                groups: b,
                in_channels: c,
                out_channels: d,
                pixels: e,
                width: f,
                taps: g,
                stride: h,
            };
            (class, geometry)
        }
        2 => (Class::MatMul, Geometry::Product { count: a, rows: b, columns: c, depth: d }),
        1 => (Class::Reduction, reduce),
        _ if found.operations == 0 => (Class::Copy, Geometry::Elements { count: found.iterations }),
        _ if found.transcendental => (Class::Transcendental, Geometry::Elements { count: found.iterations }),
        _ => (Class::Elementwise, Geometry::Elements { count: found.iterations }),
    };
    Some(Work { class, flops: found.iterations.saturating_mul(found.operations), geometry, ..moved })
}
