//! Loop nest of a convolution around a register tile.

use super::{Geometry, Kernel, Tile};
use crate::{
    cpu::{
        epilogue_operand::OperandAccess,
        pack::{Packing, Source},
        tile_order::TileOrder,
    },
    emit::{Builder, Signature, V},
    epilogue::FusedEpilogue,
    graph::Id,
    layout::Blocked,
    lowering::Lowering,
};

/// Kernel of a convolution in `f32`.
pub(super) struct ConvKernel<'a> {
    pub(super) geometry: &'a Geometry,
    pub(super) tile: Tile,
    pub(super) source: &'a Blocked,
    pub(super) target: &'a Blocked,
    pub(super) fused: &'a FusedEpilogue,
    pub(super) accesses: &'a [OperandAccess],
    /// True if the input is NCHW instead of blocked.
    pub(super) is_planar: bool,
}

/// A reduction loop: trip count, stride in the input in elements, and unroll factor.
#[derive(Clone, Copy)]
pub(super) struct Term {
    pub(super) count: i64,
    pub(super) stride: i64,
    pub(super) unroll: i64,
}

/// Position and size of a tile.
struct TilePosition {
    image: V,
    panel: V,
    /// First filter block of the panel.
    block: V,
    /// Number of filter blocks of the panel.
    vectors: usize,
    y: V,
    x: V,
    rows: i64,
    columns: i64,
    /// Index among the tiles of the image.
    number: V,
}

impl Kernel for ConvKernel<'_> {
    fn pack(&self, cx: &mut Lowering<'_>, weights: Source) -> Id {
        let packing = match self.geometry.is_depthwise || self.geometry.has_narrow_groups {
            true => pack_blocks(self.geometry, self.tile.blocks, self.target.lanes),
            false => pack(self.geometry, &self.tile, self.target.lanes, self.is_planar),
        };
        packing.apply(cx, weights)
    }

    fn extent(&self) -> i64 {
        let (down, across) = self.tile.grid();
        self.geometry.batch * self.panels() * down * across
    }

    fn grain(&self) -> i64 {
        /// Minimal number of multiplications per thread.
        const WORK: i64 = 200_000;
        let per_output = self.geometry.channels * self.geometry.kernel.0 * self.geometry.kernel.1;
        let lanes = self.target.lanes * self.tile.vectors as i64;
        let tile = self.tile.rows * self.tile.columns * lanes * per_output;
        (WORK / tile.max(1)).max(1)
    }

    fn is_by_pixels(&self) -> bool {
        !self.tile.panels_outermost
    }

    fn emit(&self, b: &Builder, signature: &Signature<'_>) {
        let (down, across) = self.tile.grid();
        let order =
            TileOrder { panels: self.panels(), tiles: down * across, panels_outermost: self.tile.panels_outermost };
        b.for_each(signature.begin, signature.end, 1, |number| {
            let (image, panel, tile) = order.split(b, number);
            let (row, column) = b.div_rem(tile, across);
            self.by_size(b, signature, image, panel, tile, row, column);
        });
    }
}

impl ConvKernel<'_> {
    fn panels(&self) -> i64 {
        if self.geometry.is_depthwise { self.tile.blocks } else { self.tile.panels() }
    }

    /// Emits a specialized tile for each combination of sizes: the last panel, row and column of tiles may be smaller.
    #[allow(clippy::too_many_arguments)]
    fn by_size(&self, b: &Builder, signature: &Signature<'_>, image: V, panel: V, number: V, row: V, column: V) {
        let tile = &self.tile;
        let (down, across) = tile.grid();
        let vectors = tile.vectors as i64;
        let last_panel = tile.blocks - (self.panels() - 1) * vectors;
        let last_row = tile.output.0 - (down - 1) * tile.rows;
        let last_column = tile.output.1 - (across - 1) * tile.columns;
        either(b, panel, self.panels(), vectors, last_panel, |vectors| {
            either(b, row, down, tile.rows, last_row, |rows| {
                either(b, column, across, tile.columns, last_column, |columns| {
                    let place = TilePosition {
                        image,
                        panel,
                        block: b.times(panel, tile.vectors as i64),
                        vectors: vectors as usize,
                        y: b.times(row, tile.rows),
                        x: b.times(column, tile.columns),
                        rows,
                        columns,
                        number,
                    };
                    if self.geometry.is_depthwise {
                        self.depthwise(b, signature, &place);
                    } else if self.geometry.has_narrow_groups {
                        self.narrow_groups(b, signature, &place);
                    } else {
                        self.tile(b, signature, &place);
                    }
                });
            });
        });
    }

    /// Returns the distances of windows in the input: vertically and horizontally.
    fn window_steps(&self) -> (i64, i64) {
        let (geometry, source) = (self.geometry, self.source);
        let row = if self.tile.is_flat { 0 } else { source.row() * geometry.strides.0 };
        (row, source.lanes * geometry.strides.1)
    }

    /// Emits the offset of a tile's first window in the input, which begins in `plane`.
    fn first_window(&self, b: &Builder, place: &TilePosition, plane: V) -> V {
        let (geometry, source, (row, pixel)) = (self.geometry, self.source, self.window_steps());
        let corner = source.origin() - geometry.padding.0 * source.row() - geometry.padding.1 * source.lanes;
        let start = b.add(b.times(plane, source.plane()), b.add(b.times(place.y, row), b.times(place.x, pixel)));
        b.plus(start, corner)
    }

    /// Returns the offsets of a tile's windows from the first one.
    fn window_offsets(&self, place: &TilePosition) -> Vec<i64> {
        let (row, pixel) = self.window_steps();
        (0..place.rows).flat_map(|y| (0..place.columns).map(move |x| y * row + x * pixel)).collect()
    }

    /// Emits a tile of a dense or grouped convolution.
    fn tile(&self, b: &Builder, signature: &Signature<'_>, place: &TilePosition) {
        let (geometry, source, lanes) = (self.geometry, self.source, self.target.lanes);
        let vectors = place.vectors as i64;
        let (kernel_rows, kernel_columns) = geometry.kernel;
        let window = kernel_rows * kernel_columns;
        let (whole, rest) = if self.is_planar { (0, geometry.channels) } else { geometry.split(lanes) };

        let group_blocks = self.tile.blocks / geometry.groups;
        let first_plane = match geometry.groups {
            1 => b.times(place.image, source.blocks()),
            groups => {
                let (group, _) = b.div_rem(place.block, group_blocks);
                let plane = b.add(b.times(place.image, groups), group);
                b.times(plane, whole)
            }
        };
        let start = self.first_window(b, place, first_plane);
        let offsets = self.window_offsets(place);

        let ty = b.vector();
        let first_lane = b.times(place.block, lanes);
        let bias: Vec<_> = (0..vectors)
            .map(|vector| b.load_vector(signature.buffers[2], b.plus(first_lane, vector * lanes), ty))
            .collect();
        let mut sums: Vec<V> = offsets.iter().flat_map(|_| bias.iter().copied()).collect();
        self.prefetch_operands(b, signature, place);

        // Weights of whole channel blocks come first, for all panels. All panels before this one have full width.
        let panel_weights = whole * window * lanes * lanes;
        let whole_start = b.times(place.block, panel_weights);
        let prefetch = (self.tile.panels_outermost && whole > 0).then(|| {
            let (down, across) = self.tile.grid();
            let elements = panel_weights * vectors;
            Prefetch::new(b, whole_start, elements, vectors * lanes, place.number, down * across)
        });
        let buffers = [signature.buffers[0], signature.buffers[1]];
        let kernel_terms = [
            Term { count: kernel_rows, stride: source.row() * geometry.dilations.0, unroll: 1 },
            Term { count: kernel_columns, stride: source.lanes * geometry.dilations.1, unroll: 1 },
        ];
        if whole > 0 {
            let blocks = Term { count: whole, stride: source.plane(), unroll: 1 };
            let channels = Term { count: lanes, stride: 1, unroll: 4 };
            let terms = [blocks, kernel_terms[0], kernel_terms[1], channels];
            sums = accumulate(b, buffers, &offsets, place.vectors, &terms, start, whole_start, sums, prefetch.as_ref());
        }
        if rest > 0 {
            let (stride, unroll) = match self.is_planar {
                true => (source.plane(), rest),
                false => (1, [4, 2, 1].into_iter().find(|unroll| rest % unroll == 0).unwrap_or(1)),
            };
            let channels = Term { count: rest, stride, unroll };
            let terms = [kernel_terms[0], kernel_terms[1], channels];
            let rest_start = panel_weights * self.tile.blocks;
            let weights = b.plus(b.times(place.block, rest * window * lanes), rest_start);
            let start = b.plus(start, whole * source.plane());
            sums = accumulate(b, buffers, &offsets, place.vectors, &terms, start, weights, sums, None);
        }
        self.store(b, signature, place, &sums);
    }

    /// Emits a tile of a depthwise convolution. Input pixels stay in registers for all windows of the tile that contain them.
    fn depthwise(&self, b: &Builder, signature: &Signature<'_>, place: &TilePosition) {
        let (geometry, source, lanes) = (self.geometry, self.source, self.target.lanes);
        let ty = b.vector();
        let plane = b.add(b.times(place.image, self.tile.blocks), place.panel);
        let start = self.first_window(b, place, plane);
        let bias = b.load_vector(signature.buffers[2], b.times(place.block, lanes), ty);
        let (rows, columns) = geometry.kernel;
        let weights = b.times(place.panel, rows * columns * lanes);
        let sums = vec![bias; place.columns as usize];
        let sums = b.for_loop_carried(b.index(0), b.index(rows), 1, &sums, |ky, sums| {
            let mut sums = sums.to_vec();
            let row = b.add(start, b.times(ky, source.row() * geometry.dilations.0));
            let row_weights = b.add(weights, b.times(ky, columns * lanes));
            let mut pixels = rustc_hash::FxHashMap::default();
            for kx in 0..columns {
                let weight = b.load_vector(signature.buffers[1], b.plus(row_weights, kx * lanes), ty);
                for (x, sum) in sums.iter_mut().enumerate() {
                    let column = x as i64 * geometry.strides.1 + kx * geometry.dilations.1;
                    let pixel = *pixels
                        .entry(column)
                        .or_insert_with(|| b.load_vector(signature.buffers[0], b.plus(row, column * lanes), ty));
                    *sum = b.fma(pixel, weight, *sum);
                }
            }
            sums
        });
        self.store(b, signature, place, &sums);
    }

    /// Emits a tile of a convolution with several groups in each channel block. For each channel of a group, all groups multiply
    /// theirs at once: it is copied to the lanes of all filters of the group.
    fn narrow_groups(&self, b: &Builder, signature: &Signature<'_>, place: &TilePosition) {
        let (geometry, source, lanes) = (self.geometry, self.source, self.target.lanes);
        let (rows, columns) = geometry.kernel;
        let channels = geometry.channels;
        let ty = b.vector();
        let plane = b.add(b.times(place.image, self.tile.blocks), place.panel);
        let start = self.first_window(b, place, plane);
        let offsets = self.window_offsets(place);
        let bias = b.load_vector(signature.buffers[2], b.times(place.block, lanes), ty);
        let of_tap = channels * lanes;
        let weights = b.times(place.panel, rows * columns * of_tap);
        let sums = vec![bias; offsets.len()];
        let sums = b.for_loop_carried(b.index(0), b.index(rows), 1, &sums, |ky, sums| {
            let start = b.add(start, b.times(ky, source.row() * geometry.dilations.0));
            let weights = b.add(weights, b.times(ky, columns * of_tap));
            b.for_loop_carried(b.index(0), b.index(columns), 1, sums, |kx, sums| {
                let start = b.add(start, b.times(kx, lanes * geometry.dilations.1));
                let weights = b.add(weights, b.times(kx, of_tap));
                let load = |&offset: &i64| b.load_vector(signature.buffers[0], b.plus(start, offset), ty);
                let pixels: Vec<V> = offsets.iter().map(load).collect();
                let mut sums = sums.to_vec();
                for channel in 0..channels {
                    let weight = b.load_vector(signature.buffers[1], b.plus(weights, channel * lanes), ty);
                    for (sum, &pixel) in sums.iter_mut().zip(&pixels) {
                        *sum = b.fma(b.spread_in_groups(pixel, channels as usize, channel as usize), weight, *sum);
                    }
                }
                sums
            })
        });
        self.store(b, signature, place, &sums);
    }

    /// Prefetches the operands of the epilogue before the sums are computed.
    fn prefetch_operands(&self, b: &Builder, signature: &Signature<'_>, place: &TilePosition) {
        for (access, &pointer) in self.accesses.iter().zip(&signature.buffers[3..]) {
            for row in 0..place.rows {
                for column in 0..place.columns {
                    for vector in 0..place.vectors as i64 {
                        let (y, x) = (b.plus(place.y, row), b.plus(place.x, column));
                        access.prefetch(b, pointer, place.image, b.plus(place.block, vector), y, x);
                    }
                }
            }
        }
    }

    /// Emits the epilogue and stores the results.
    fn store(&self, b: &Builder, signature: &Signature<'_>, place: &TilePosition, sums: &[V]) {
        let (target, lanes) = (self.target, self.target.lanes);
        let operands = &signature.buffers[3..3 + self.accesses.len()];
        let result = signature.buffers[3 + self.accesses.len()];
        let plane = b.add(b.times(place.image, self.tile.blocks), place.block);
        let mut sums = sums.iter();
        for row in 0..place.rows {
            let y = b.plus(place.y, row);
            for column in 0..place.columns {
                for vector in 0..place.vectors as i64 {
                    let (plane, x) = (b.plus(plane, vector), b.plus(place.x, column));
                    let sum = *sums.next().expect("a tile has a sum for each pixel and vector");
                    let values: Vec<_> = self
                        .accesses
                        .iter()
                        .zip(operands)
                        .map(|(access, &pointer)| {
                            let block = b.plus(place.block, vector);
                            access.load(b, pointer, place.image, block, y, x)
                        })
                        .collect();
                    let value = self.fused.emit(b, sum, &values);
                    let at = match self.tile.is_flat {
                        true => b.add(b.times(plane, target.plane()), b.times(x, lanes)),
                        false => target.at(b, plane, y, x),
                    };
                    b.store_aligned(value, result, at);
                }
            }
        }
    }
}

/// Packs weights in the order in which the kernel reads them: `[panels][channel blocks][kernel rows][kernel columns][channels][filters
/// of a panel]`. The channels of a last partial block follow those of all whole blocks.
fn pack(geometry: &Geometry, tile: &Tile, lanes: i64, is_planar: bool) -> Packing {
    let (rows, columns) = geometry.kernel;
    let mut packing = Packing::of(&[geometry.filters, geometry.channels, rows, columns]);
    let (whole, rest) = if is_planar { (0, geometry.channels) } else { geometry.split(lanes) };
    let panel = tile.vectors as i64 * lanes;
    let panels = tile.blocks / tile.vectors as i64;
    let last = (tile.blocks % tile.vectors as i64) * lanes;
    let kernel = [(2, rows, 1), (3, columns, 1)];
    let widths = [(0, panels, panel), (panels * panel, i64::from(last > 0), last)];
    for (first, panels, width) in widths {
        let loops = [(0, panels, panel), (1, whole, lanes), kernel[0], kernel[1], (1, lanes, 1), (0, width, 1)];
        packing.add(&[first, 0, 0, 0], &loops);
    }
    for (first, panels, width) in widths {
        let loops = [(0, panels, panel), kernel[0], kernel[1], (1, rest, 1), (0, width, 1)];
        packing.add(&[first, whole * lanes, 0, 0], &loops);
    }
    packing
}

/// Packs weights whose filters read channels of their own block as `[blocks][kernel rows][kernel columns][channels][filters of a
/// block]`; a depthwise convolution has one channel.
fn pack_blocks(geometry: &Geometry, blocks: i64, lanes: i64) -> Packing {
    let (channels, (rows, columns)) = (geometry.channels, geometry.kernel);
    let mut packing = Packing::of(&[geometry.filters, channels, rows, columns]);
    packing.add(&[0; 4], &[(0, blocks, lanes), (2, rows, 1), (3, columns, 1), (1, channels, 1), (0, lanes, 1)]);
    packing
}

/// Emits code for the size `usual` and, if the last of `count` sizes differs, a branch with code for `last`.
pub(super) fn either(b: &Builder, index: V, count: i64, usual: i64, last: i64, code: impl Fn(i64)) {
    b.specialize_last(index, count, last != usual, |is_last| code(if is_last { last } else { usual }));
}

/// Prefetch of the next panel of weights during the current one. Each tile of a panel prefetches its share.
pub(super) struct Prefetch {
    /// Offset of the tile's share.
    from: V,
    /// Offset of the current panel.
    panel: V,
    /// Cache lines that each iteration of the innermost loop prefetches.
    lines: i64,
    /// Elements of weights that each iteration of the innermost loop reads.
    step: i64,
}

impl Prefetch {
    /// Unroll factor of the innermost loop, which is over channels.
    const UNROLL: i64 = 4;

    /// Prefetches the share of tile `number` of `tiles`; the panel has `elements` in rows of `width`.
    pub(super) fn new(b: &Builder, panel: V, elements: i64, width: i64, number: V, tiles: i64) -> Self {
        let step = Self::UNROLL * width;
        // A cache line has 16 elements.
        let lines = (step / 16 + tiles - 1) / tiles;
        let share = elements / step * lines * 16;
        let from = b.add(b.plus(panel, elements), b.times(number, share));
        Self { from, panel, lines, step }
    }

    fn emit(&self, b: &Builder, weights: V, at: V) {
        let done = b.div(b.sub(at, self.panel), b.index(self.step), true);
        let line = b.add(self.from, b.times(done, self.lines * 16));
        for i in 0..self.lines {
            b.prefetch(weights, b.plus(line, i * 16));
        }
    }
}

/// Accumulates a tile over a nest of reduction loops: the outer product of one input element per pixel (at `offsets`) and `vectors`
/// vectors of weights, which are contiguous in the order of the loops.
#[allow(clippy::too_many_arguments)]
pub(super) fn accumulate(
    b: &Builder,
    [image, packed]: [V; 2],
    offsets: &[i64],
    vectors: usize,
    terms: &[Term],
    input: V,
    weights: V,
    sums: Vec<V>,
    prefetch: Option<&Prefetch>,
) -> Vec<V> {
    let lanes = b.lanes() as i64;
    let Some((&Term { count, stride, unroll }, inner)) = terms.split_first() else {
        let ty = b.vector();
        let weights: Vec<_> =
            (0..vectors as i64).map(|vector| b.load_vector(packed, b.plus(weights, vector * lanes), ty)).collect();
        let mut sums = sums;
        for (pixel, &offset) in offsets.iter().enumerate() {
            let element = b.load(image, divi_onnx::DType::F32, b.plus(input, offset));
            let element = b.broadcast(element, ty);
            for (vector, &weight) in weights.iter().enumerate() {
                let sum = &mut sums[pixel * vectors + vector];
                *sum = b.fma(element, weight, *sum);
            }
        }
        return sums;
    };
    let weight_stride = inner.iter().map(|term| term.count).product::<i64>() * vectors as i64 * lanes;
    let unrolled = |input: V, weights: V, mut sums: Vec<V>, times: i64| {
        for i in 0..times {
            let (input, weights) = (b.plus(input, i * stride), b.plus(weights, i * weight_stride));
            sums = accumulate(b, [image, packed], offsets, vectors, inner, input, weights, sums, prefetch);
        }
        sums
    };
    if unroll >= count {
        return unrolled(input, weights, sums, count);
    }
    b.for_loop_carried(b.index(0), b.index(count), unroll, &sums, |counter, sums| {
        let input = b.add(input, b.times(counter, stride));
        let weights = b.add(weights, b.times(counter, weight_stride));
        if let Some(prefetch) = prefetch.filter(|_| inner.is_empty()) {
            prefetch.emit(b, packed, weights);
        }
        unrolled(input, weights, sums.to_vec(), unroll)
    })
}
