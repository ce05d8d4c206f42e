//! Reorders of blocked images at the boundary to CPU stages.

use crate::{
    emit::{Builder, Compare, V},
    graph::{Id, strides},
    layout::{Blocked, Halo},
    lowering::Lowering,
};
use divi_onnx::DType;

/// Channels that a thread copies: adjacent in the blocked layout, as are those of adjacent threads, so accesses are coalesced.
const WIDE: i64 = 4;

/// Reorders a blocked image into a row-major one.
pub(crate) fn to_dense(cx: &mut Lowering<'_>, blocked: Id, dense: Id, layout: Blocked) {
    let Blocked { batch, channels, height, width, lanes, .. } = layout;
    let shape = [batch, layout.blocks(), height, width, lanes / WIDE];
    cx.call(shape.iter().product(), 1, &[blocked], &[dense], |b, kernel| {
        let [source, target] = [kernel.buffers[0], kernel.buffers[1]];
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let [image, block, y, x, part] = b.coordinates(number, &shape)[..] else { unreachable!("five axes") };
            let plane = b.add(b.times(image, layout.blocks()), block);
            let at = b.add(layout.at(b, plane, y, x), b.times(part, WIDE));
            let pixels = b.load_vector_aligned(source, at, WIDE as usize);
            for lane in 0..WIDE {
                let (channel, at) = row_major_offset(b, &layout, [image, block, y, x, part], lane);
                let store = || b.store(b.element(pixels, lane as usize), target, DType::F32, at);
                match channels % lanes {
                    0 => store(),
                    _ => b.if_then(b.less(channel, b.index(channels)), store),
                }
            }
        });
    });
}

/// Returns the channel of one of a thread's lanes, and the offset of its pixel in the row-major image.
fn row_major_offset(b: &Builder, layout: &Blocked, [image, block, y, x, part]: [V; 5], lane: i64) -> (V, V) {
    let channel = b.plus(b.offset(&[block, part], &[layout.lanes, WIDE]), lane);
    let strides = strides(&[layout.batch, layout.channels, layout.height, layout.width]);
    (channel, b.offset(&[image, channel, y, x], &strides))
}

/// Reorders a row-major image into a blocked one, and fills its halo.
pub(crate) fn to_blocks(cx: &mut Lowering<'_>, dense: Id, blocked: Id, layout: Blocked) {
    let Blocked { channels, height, width, lanes, halo: Halo { top, left, .. }, .. } = layout;
    let mut shape = layout.shape();
    shape[4] = lanes / WIDE;
    cx.call(shape.iter().product(), 1, &[dense], &[blocked], |b, kernel| {
        let [source, target] = [kernel.buffers[0], kernel.buffers[1]];
        let fill = b.float(layout.halo.value(), b.f32());
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let [image, block, y, x, part] = b.coordinates(number, &shape)[..] else { unreachable!("five axes") };
            let (y, x) = (b.plus(y, -top), b.plus(x, -left));
            // The unsigned comparison covers negative coordinates, too.
            let is_in_range = |a, size| b.compare(Compare::Less, a, b.index(size), true);
            let is_inside = b.and(is_in_range(y, height), is_in_range(x, width));
            let pixels = (0..WIDE).map(|lane| {
                let (channel, from) = row_major_offset(b, &layout, [image, block, y, x, part], lane);
                let exists = b.and(is_inside, is_in_range(channel, channels));
                let value = b.load(source, DType::F32, b.select(exists, from, b.index(0)));
                b.select(exists, value, fill)
            });
            b.store_vector_aligned(&pixels.collect::<Vec<_>>(), target, b.times(number, WIDE));
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{graph::Graph, target::Target, testing::run};

    /// Runs the calls that `call` adds, with one input and one output. Returns the output.
    fn run_call(input: (&[i64], &[f32]), shape: &[i64], call: impl FnOnce(&mut Lowering<'_>, Id, Id)) -> Vec<f32> {
        let mut graph = Graph::default();
        let from = graph.input(DType::F32, input.0);
        let to = graph.value(DType::F32, shape);
        graph.outputs = vec![to];
        let bytes: Vec<u8> = input.1.iter().flat_map(|number| number.to_le_bytes()).collect();
        let size = graph.values[to.0].bytes() as usize;
        let outputs = run(
            &Target::named("x86-64-v3").unwrap(),
            false,
            |host| {
                let mut cx = Lowering::of(&mut graph, &mut host.kernels, None, &mut host.pool);
                cx.place_at_input(from, 0);
                cx.place_at_output(to, 0);
                call(&mut cx, from, to);
                Ok(cx.finish())
            },
            &[&bytes],
            &[size],
        );
        outputs.unwrap()[0].as_chunks().0.iter().map(|&number| f32::from_le_bytes(number)).collect()
    }

    #[test]
    fn into_blocks_and_back() {
        let around = Halo { top: 1, left: 2, bottom: 0, right: 3, is_negative_infinity: false };
        let halos = [Halo::NONE, around, Halo { is_negative_infinity: true, ..around }];
        for (channels, halo) in [(16, halos[0]), (5, halos[1]), (20, halos[2]), (8, halos[2])] {
            let shape = [2, channels, 3, 5];
            let layout = Blocked::of(&shape, 8, halo).unwrap();
            let numbers: Vec<f32> = (0..shape.iter().product()).map(|number: i64| number as f32).collect();
            let blocked = run_call((&shape, &numbers), &layout.shape(), |cx, from, to| to_blocks(cx, from, to, layout));
            let mut seen = 0;
            let sizes: Vec<usize> = layout.shape().into_iter().map(|size| size as usize).collect();
            for (number, &value) in blocked.iter().enumerate() {
                let mut rest = number;
                let mut place = [0; 5];
                for axis in (0..5).rev() {
                    (rest, place[axis]) = (rest / sizes[axis], rest % sizes[axis]);
                }
                let [n, block, y, x, lane] = place.map(|at| at as i64);
                let (c, y, x) = (block * 8 + lane, y - halo.top, x - halo.left);
                if c >= channels {
                    continue;
                }
                let is_inside = (0..3).contains(&y) && (0..5).contains(&x);
                let expected =
                    if is_inside { (((n * channels + c) * 3 + y) * 5 + x) as f32 } else { halo.value() as f32 };
                assert_eq!(value, expected, "{channels} channels, at {place:?}");
                seen += usize::from(is_inside);
            }
            assert_eq!(seen, numbers.len());
            let dense = run_call((&layout.shape(), &blocked), &shape, |cx, from, to| to_dense(cx, from, to, layout));
            assert_eq!(dense, numbers, "{channels} channels");
        }
    }
}
