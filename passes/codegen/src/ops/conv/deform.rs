//! Deformable convolutions: samples the elements of the windows by interpolation, then contracts them with the weights.

use crate::{
    emit::{Builder, V},
    error::{Result, unsupported},
    graph::{Id, Node, strides},
    lowering::Lowering,
    ops::{
        blocks::{ContractionOperand, accumulator, contract, grain, view},
        elementwise::map,
        window::{Axis, is_in_range, sliding},
    },
};

pub(super) fn deform_conv(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (x, w, y) = (node.input(0)?, node.input(1)?, node.output()?);
    let (image, weights, result) = (cx.shape(x).to_vec(), cx.shape(w).to_vec(), cx.shape(y).to_vec());
    if image.len() < 3 || weights.len() != image.len() {
        return unsupported("convolutions need a batch, channels and at least one spatial axis");
    }
    let axes = sliding(node, &image[2..], &result[2..], &weights[2..])?;
    let groups = node.attributes().int_or("group", 1)?;
    let taps: i64 = weights[2..].iter().product();
    let positions: i64 = result[2..].iter().product();
    let (batch, channels, depth, features) = (image[0], image[1], weights[1], result[1] / groups);
    let dtype = accumulator(cx.dtype(x));
    let samples = cx.temporary(dtype, &[batch, channels, taps, positions]);
    sample(cx, node, &axes, samples)?;
    let sums = if node.optional(3).is_some() { cx.temporary(dtype, &result) } else { y };
    let sample_steps = strides(&[batch, groups, depth, taps, positions]);
    let weight_steps = strides(&[groups, features, depth, taps]);
    let factors = [
        ContractionOperand {
            id: w,
            steps: vec![0, weight_steps[0], weight_steps[1], 0],
            depth_steps: weight_steps[2..].to_vec(),
        },
        ContractionOperand {
            id: samples,
            steps: vec![sample_steps[0], sample_steps[1], 0, 1],
            depth_steps: sample_steps[2..4].to_vec(),
        },
    ];
    contract(cx, &factors, &[batch, groups, features, positions], &[depth, taps], sums);
    if let Some(bias) = node.optional(3) {
        let mut shape = vec![1; result.len() - 1];
        shape[0] = result[1];
        let bias = view(cx, bias, &shape);
        map(cx, &[sums, bias], y, |b, values| b.add(values[0], values[1]));
    }
    Ok(())
}

/// Samples the image for each channel, element of the window and position of the window.
fn sample(cx: &mut Lowering<'_>, node: &Node, axes: &[Axis], samples: Id) -> Result<()> {
    let (x, offset, mask) = (node.input(0)?, node.input(2)?, node.optional(4));
    let rank = axes.len() as i64;
    let offset_groups = node.attributes().int_or("offset_group", 1)?;
    let kernel_shape: Vec<_> = axes.iter().map(|axis| axis.kernel).collect();
    let position_shape: Vec<_> = axes.iter().map(|axis| axis.positions).collect();
    let image_steps = strides(&cx.shape(x)[2..]);
    let (batch, channels) = (cx.shape(x)[0], cx.shape(x)[1]);
    let plane: i64 = cx.shape(x)[2..].iter().product();
    let (taps, positions) = (kernel_shape.iter().product::<i64>(), position_shape.iter().product::<i64>());
    let (dtype, sample_dtype) = (cx.dtype(x), cx.dtype(samples));
    let reads: Vec<_> = [x, offset].into_iter().chain(mask).collect();
    let extent = batch * channels * taps;
    cx.call(extent, grain(positions * 16), &reads, &[samples], |b, kernel| {
        let ty = b.computed(sample_dtype);
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let place = b.coordinates(number, &[batch, channels, taps]);
            let group = b.div_rem(place[1], channels / offset_groups).0;
            let element = b.coordinates(place[2], &kernel_shape);
            let tap = b.offset(&[place[0], group, place[2]], &strides(&[batch, offset_groups, taps]));
            let origin = b.times(b.offset(&place[..2], &[channels, 1]), plane);
            b.nest(&position_shape, |position| {
                let at = b.offset(position, &strides(&position_shape));
                let coordinates: Vec<_> = (0..axes.len())
                    .map(|i| {
                        let shift = b.times(b.plus(b.times(tap, rank), i as i64), positions);
                        let shift = b.load(kernel.buffers[1], dtype, b.add(shift, at));
                        let base = axes[i].place(b, position[i], element[i]);
                        b.add(b.int_to_float(base, ty, false), shift)
                    })
                    .collect();
                let image = |offset: V| b.load(kernel.buffers[0], dtype, b.add(origin, offset));
                let mut value = interpolate(b, axes, &image_steps, &coordinates, &image);
                if mask.is_some() {
                    let factor = b.load(kernel.buffers[2], dtype, b.add(b.times(tap, positions), at));
                    value = b.mul(value, factor);
                }
                b.store(value, kernel.buffers[reads.len()], sample_dtype, b.add(b.times(number, positions), at));
            });
        });
    });
    Ok(())
}

/// Interpolates linearly between the neighbors of a place; neighbors outside the image are 0.
fn interpolate(b: &Builder, axes: &[Axis], steps: &[i64], place: &[V], image: &dyn Fn(V) -> V) -> V {
    let ty = b.type_of(place[0]);
    let one = b.float(1.0, ty);
    let floors: Vec<_> = place.iter().map(|&at| b.floor(at)).collect();
    let parts: Vec<_> = place.iter().zip(&floors).map(|(&at, &floor)| b.sub(at, floor)).collect();
    let lows: Vec<_> = floors
        .iter()
        .zip(axes)
        .map(|(&floor, axis)| {
            // Clamp places far outside, so that they fit into an integer and remain outside.
            let far = b.float((axis.image + 2) as f64, ty);
            let near = b.max(b.min(floor, far, false), b.float(-2.0, ty), false);
            b.float_to_int(b.select(b.is_nan(near), far, near), b.i64(), false)
        })
        .collect();
    let corner = |corner: usize| {
        let (mut weight, mut offset, mut inside) = (one, b.index(0), b.integer(1, b.i1()));
        for (i, axis) in axes.iter().enumerate() {
            let is_high = corner >> i & 1 == 1;
            let at = b.plus(lows[i], i64::from(is_high));
            weight = b.mul(weight, if is_high { parts[i] } else { b.sub(one, parts[i]) });
            inside = b.and(inside, is_in_range(b, at, axis.image));
            offset = b.add(offset, b.times(at, steps[i]));
        }
        let safe = b.select(inside, offset, b.index(0));
        b.select(inside, b.mul(weight, image(safe)), b.zero(ty))
    };
    (0..1 << axes.len()).map(corner).reduce(|sum, term| b.add(sum, term)).expect("places have neighbors")
}
