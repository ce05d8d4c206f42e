//! Terms of the model: components of a kernel's time, each as its time at a peak rate.
//!
//! A kernel's time is a sum of terms with nonnegative coefficients, which are fitted per class (the reciprocal of an
//! efficiency). Every term, and so every sum, increases with the batch size and decreases with the rates.

use crate::{Class, Geometry, Task, Work};

macro_rules! terms {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Term of the model: see the module. Terms that count operations precede those that count bytes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Term { $($(#[$doc])* $variant,)* }

        impl Term {
            /// All terms.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the name in model files.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

terms! {
    /// All operations.
    Flops = "flops",
    /// Operations of pointwise convolutions.
    FlopsPointwise = "flops.pointwise",
    /// Operations of unit-stride 3×3 convolutions without groups, for which Winograd's algorithm applies.
    Flops3x3 = "flops.3x3",
    /// Operations of all other convolutions.
    FlopsOther = "flops.other",
    /// Operations of convolutions in groups, in addition to the terms of their window.
    FlopsGrouped = "flops.grouped",
    /// Operations of a product with its tiles rounded up to full waves: each unit computes one tile at a time, so that the
    /// last wave takes as long as a full one (wave quantization).
    Waves = "waves",
    /// `Waves` of pointwise convolutions.
    WavesPointwise = "waves.pointwise",
    /// `Waves` of unit-stride 3×3 convolutions.
    Waves3x3 = "waves.3x3",
    /// `Waves` of all other convolutions.
    WavesOther = "waves.other",
    /// Time of one full tile on one unit, the minimum for a product of any size. A product with a vector has no tiles.
    Depth = "depth",
    /// `Depth` of pointwise convolutions.
    DepthPointwise = "depth.pointwise",
    /// `Depth` of all other convolutions.
    DepthOther = "depth.other",
    /// Sequential tiles: the steps of a recurrent layer.
    Steps = "steps",
    /// Operations of the first rows of a product: few rows do not fill the registers of a kernel.
    FewRows = "few_rows",
    /// Operations of elementary functions (exponential, error function, …) of the other members of a cluster.
    Epilogue = "epilogue",
    /// Bytes of computed operands.
    Read = "read",
    /// Bytes of constant operands.
    Weights = "weights",
    /// Bytes of results.
    Written = "written",
    /// Bytes of operands, weights and results.
    Bytes = "bytes",
    /// Bytes of operands and results of unit-stride 3×3 convolutions without groups, which Winograd's algorithm transforms.
    Transformed = "transformed",
    /// Bytes that exceed the caches.
    Spill = "spill",
    /// Bytes of results of a convolution with a bias, which a separate pass reads and writes again.
    BiasPass = "bias_pass",
    /// Bytes of results of a convolution with odd row length, whose stores are not vectorized.
    OddRows = "odd_rows",
    /// Bytes of results times the side of the kernel: a depthwise convolution reads one row of its kernel at a time.
    KernelRows = "kernel_rows",
    /// Bytes of a convolution's unfolded data (im2col).
    Unfold = "unfold",
}

/// Properties of a device that the terms depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Processors that compute one tile each at a time.
    pub units: f64,
    /// Rows that fill the registers of a kernel.
    pub rows: f64,
    /// Cache capacity in bytes that one operator can use.
    pub cache: f64,
    /// Time in microseconds to distribute a loop to several threads and to wait for them.
    pub fork: f64,
    /// Share of the first thread's rate that each further thread adds: less than 1 if threads share cores, memory or power.
    pub scaling: f64,
}

/// Side of a tile of a product.
const TILE: f64 = 64.0;

/// Work of a kernel: its dominant operator, and the memory traffic of the whole kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel<'a> {
    pub(crate) work: &'a Work,
    pub(crate) read: f64,
    pub(crate) weights: f64,
    pub(crate) written: f64,
    /// Operations of elementary functions of other members.
    pub(crate) epilogue: f64,
}

/// `count` products of a `rows` x `depth` by a `depth` x `columns` matrix.
struct Product {
    count: f64,
    rows: f64,
    columns: f64,
    depth: f64,
}

/// Kinds of convolutions, for which libraries use different algorithms.
#[derive(PartialEq)]
enum Window {
    Pointwise,
    Unit3x3,
    Other,
}

impl<'a> Kernel<'a> {
    /// Returns a kernel of one operator.
    pub(crate) fn new(work: &'a Work) -> Self {
        let (read, weights, written) = (work.read as f64, work.weights as f64, work.written as f64);
        Self { work, read, weights, written, epilogue: 0.0 }
    }

    /// Returns the kernel of a task with the dominant operator `work`.
    pub(crate) fn of(task: &Task, work: &'a Work) -> Self {
        let (read, weights, written) = (task.read as f64, task.weights as f64, task.written as f64);
        let is_function = |other: &&Work| !std::ptr::eq(*other, work) && other.class == Class::Transcendental;
        let others = task.members.iter().filter(is_function);
        Self { work, read, weights, written, epilogue: others.map(|other| other.flops as f64).sum() }
    }

    pub(crate) fn bytes(&self) -> f64 {
        self.read + self.weights + self.written
    }

    /// Returns true for a convolution with a bias.
    pub(crate) fn has_bias(&self) -> bool {
        let Geometry::Conv { groups, in_channels, out_channels, taps, .. } = self.work.geometry else { return false };
        let kernels = groups.saturating_mul(in_channels).saturating_mul(out_channels).saturating_mul(taps);
        self.work.dtype.byte_len(kernels).is_some_and(|bytes| self.work.weights > bytes)
    }

    fn product(&self) -> Option<Product> {
        match self.work.geometry {
            Geometry::Conv { images, groups, in_channels, out_channels, pixels, taps, .. } => Some(Product {
                count: groups as f64,
                rows: images as f64 * pixels as f64,
                columns: out_channels as f64,
                depth: in_channels as f64 * taps as f64,
            }),
            Geometry::Product { count, rows, columns, depth } => {
                Some(Product { count: count as f64, rows: rows as f64, columns: columns as f64, depth: depth as f64 })
            }
            Geometry::Reduce { .. } | Geometry::Elements { .. } => None,
        }
    }

    fn window(&self) -> Option<Window> {
        match self.work.geometry {
            Geometry::Conv { taps: 1, .. } => Some(Window::Pointwise),
            Geometry::Conv { taps: 9, stride: 1, groups: 1, in_channels: 8.., .. } => Some(Window::Unit3x3),
            Geometry::Conv { .. } => Some(Window::Other),
            _ => None,
        }
    }

    /// Returns the operations of the algorithm that needs fewest: Winograd's has 16 products instead of 36.
    pub(crate) fn fewest_operations(&self) -> f64 {
        let share = if self.window() == Some(Window::Unit3x3) { 16.0 / 36.0 } else { 1.0 };
        self.work.flops as f64 * share
    }

    /// Returns the pixels of the result of a convolution in whole squares of 2×2, relative to its pixels.
    fn in_whole_squares(&self) -> f64 {
        let Geometry::Conv { pixels, width, .. } = self.work.geometry else { return 1.0 };
        let (height, even) = (pixels.checked_div(width).unwrap_or(0), |size: u64| size.div_ceil(2) as f64 * 2.0);
        if pixels == 0 { 1.0 } else { even(height) * even(width) / pixels as f64 }
    }

    /// Returns the bytes of its working set. Unary elementwise operators work in place.
    fn footprint(&self) -> f64 {
        const SCALARS: f64 = 64.0;
        let in_place = self.work.class == Class::Elementwise && self.read == self.written && self.weights <= SCALARS;
        if in_place { self.written } else { self.bytes() }
    }
}

/// Returns true for operators that compute each element of the result from the elements at the same position.
pub(crate) fn is_elementwise(class: Class) -> bool {
    matches!(class, Class::Elementwise | Class::Transcendental | Class::BatchNorm)
}

impl Term {
    /// Finds a term by its name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|term| term.name() == name)
    }

    /// Returns true if the term counts operations, false if it counts bytes.
    pub fn is_compute(self) -> bool {
        self < Self::Read
    }

    /// Returns the number of operations or bytes, which take time at the peak rate of the whole device.
    pub(crate) fn amount(self, kernel: &Kernel<'_>, machine: &Machine) -> f64 {
        let only = |window: Window, amount: f64| if kernel.window() == Some(window) { amount } else { 0.0 };
        let product = |amount: fn(&Product, &Machine) -> f64| kernel.product().map_or(0.0, |it| amount(&it, machine));
        let flops = kernel.work.flops as f64;
        match self {
            Self::Flops => flops,
            Self::FlopsPointwise => only(Window::Pointwise, flops),
            Self::Flops3x3 => only(Window::Unit3x3, flops * kernel.in_whole_squares()),
            Self::FlopsOther => only(Window::Other, flops),
            Self::FlopsGrouped => match kernel.work.geometry {
                Geometry::Conv { groups: 2.., .. } => flops,
                _ => 0.0,
            },
            Self::Waves => product(Product::waves),
            Self::WavesPointwise => only(Window::Pointwise, product(Product::waves)),
            Self::Waves3x3 => only(Window::Unit3x3, product(Product::waves)),
            Self::WavesOther => only(Window::Other, product(Product::waves)),
            Self::Depth => product(Product::tile),
            Self::DepthPointwise => only(Window::Pointwise, product(Product::tile)),
            Self::DepthOther if kernel.window() == Some(Window::Pointwise) => 0.0,
            Self::DepthOther => product(Product::tile),
            Self::Steps => product(|product, machine| product.count * product.tile(machine)),
            Self::FewRows => product(Product::few_rows),
            Self::Epilogue => kernel.epilogue,
            Self::Read => kernel.read,
            Self::Weights => kernel.weights,
            Self::Written => kernel.written,
            Self::Bytes => kernel.bytes(),
            Self::Transformed => only(Window::Unit3x3, kernel.read + kernel.written),
            Self::Spill => (kernel.footprint() - machine.cache).max(0.0),
            Self::BiasPass if kernel.has_bias() => kernel.written,
            Self::BiasPass => 0.0,
            Self::OddRows => match kernel.work.geometry {
                Geometry::Conv { width, .. } if width % 2 == 1 => kernel.written,
                _ => 0.0,
            },
            Self::KernelRows => match kernel.work.geometry {
                Geometry::Conv { taps, .. } => kernel.written * (taps as f64).sqrt(),
                _ => kernel.written,
            },
            Self::Unfold => match (kernel.product(), kernel.window()) {
                (Some(it), Some(Window::Unit3x3 | Window::Other)) => {
                    it.count * it.rows * it.depth * kernel.work.dtype.bits() as f64 / 8.0
                }
                _ => 0.0,
            },
        }
    }
}

impl Product {
    fn waves(&self, machine: &Machine) -> f64 {
        let tiles = (self.rows / TILE).ceil() * (self.columns / TILE).ceil() * self.count;
        let full = (tiles / machine.units).ceil() * machine.units;
        2.0 * full * self.rows.min(TILE) * self.columns.min(TILE) * self.depth
    }

    fn tile(&self, machine: &Machine) -> f64 {
        if self.rows > 1.0 { 2.0 * TILE * TILE * self.depth * machine.units } else { 0.0 }
    }

    fn few_rows(&self, machine: &Machine) -> f64 {
        2.0 * self.rows.min(machine.rows) * self.columns * self.depth * self.count
    }
}
