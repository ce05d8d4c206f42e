//! The terms of the model: what a kernel spends its time on, each as the time it would take at a peak rate.
//!
//! A kernel's time is a sum of terms, each times a coefficient that is fitted for its class (the reciprocal of an efficiency)
//! and never negative. Every term grows with the batch and shrinks as rates grow, and so does every sum of them.

use crate::{Class, Geometry, Task, Work};

macro_rules! terms {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// See the module.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Term { $($(#[$doc])* $variant,)* }

        impl Term {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name in a model's file.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

terms! {
    /// All operations at the peak rate.
    Flops = "flops",
    /// The same, of convolutions of one tap only.
    FlopsPointwise = "flops.pointwise",
    /// The same, of unit-stride convolutions of nine taps only: those that Winograd's algorithm makes cheaper.
    Flops3x3 = "flops.3x3",
    /// The same, of all other convolutions only.
    FlopsOther = "flops.other",
    /// A product is cut into tiles; each unit computes one at a time, so that the last wave of tiles is as long as a full one.
    /// The time of all waves at the peak rate.
    Waves = "waves",
    WavesPointwise = "waves.pointwise",
    Waves3x3 = "waves.3x3",
    WavesOther = "waves.other",
    /// The time of one full tile on one unit: what a product takes at least, however small it is. A product with a vector has
    /// no tiles.
    Depth = "depth",
    DepthPointwise = "depth.pointwise",
    /// The same, of convolutions of several taps only.
    DepthOther = "depth.other",
    /// Tiles one after the other, as the steps of a recurrent layer.
    Steps = "steps",
    /// The operations of the first rows of a product: few rows do not fill the registers of a kernel.
    FewRows = "few_rows",
    /// Bytes of operands that are computed.
    Read = "read",
    /// Bytes of operands that are constant.
    Weights = "weights",
    /// Bytes of results.
    Written = "written",
    /// All of the three.
    Bytes = "bytes",
    /// Bytes that do not stay in the caches, whatever they are.
    Spill = "spill",
    /// Bytes of results of a convolution with a bias, which are read and written once more to add it.
    BiasPass = "bias_pass",
    /// Bytes of results of a convolution whose rows have an odd length, which are stored one by one.
    OddRows = "odd_rows",
    /// Bytes of results times the side of the kernel: a depthwise convolution reads a row of its kernel at once.
    KernelRows = "kernel_rows",
    /// Bytes of a convolution's data, unfolded for each tap.
    Unfold = "unfold",
}

/// What the terms know of the kind of device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Processors that run one tile each.
    pub units: f64,
    /// Rows that fill the registers of a kernel.
    pub rows: f64,
    /// Bytes that one operator can keep in the caches.
    pub cache: f64,
}

/// The side of a tile of a product.
const TILE: f64 = 64.0;

/// What a kernel does, as the terms see it: the operator that gives it its character, and the bytes of the whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel<'a> {
    pub(crate) work: &'a Work,
    pub(crate) read: f64,
    pub(crate) weights: f64,
    pub(crate) written: f64,
}

/// `count` products of a `rows` x `depth` by a `depth` x `columns` matrix.
struct Product {
    count: f64,
    rows: f64,
    columns: f64,
    depth: f64,
}

/// Convolutions that take different algorithms.
#[derive(PartialEq)]
enum Window {
    Pointwise,
    Unit3x3,
    Other,
}

impl<'a> Kernel<'a> {
    /// An operator by itself.
    pub(crate) fn new(work: &'a Work) -> Self {
        Self { work, read: work.read as f64, weights: work.weights as f64, written: work.written as f64 }
    }

    /// A task to which one of its members gives the character.
    pub(crate) fn of(task: &Task, work: &'a Work) -> Self {
        Self { work, read: task.read as f64, weights: task.weights as f64, written: task.written as f64 }
    }

    pub(crate) fn bytes(&self) -> f64 {
        self.read + self.weights + self.written
    }

    /// Whether it is a convolution with a bias.
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
            Geometry::Conv { taps: 9, stride: 1, .. } => Some(Window::Unit3x3),
            Geometry::Conv { .. } => Some(Window::Other),
            _ => None,
        }
    }

    /// Bytes that it keeps in the caches if they fit. Functions of one operand work in place.
    fn footprint(&self) -> f64 {
        const SCALARS: f64 = 64.0;
        let in_place = self.work.class == Class::Elementwise && self.read == self.written && self.weights <= SCALARS;
        if in_place { self.written } else { self.bytes() }
    }
}

impl Term {
    /// The term of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|term| term.name() == name)
    }

    /// Whether it is a number of operations; of bytes otherwise.
    pub fn is_compute(self) -> bool {
        self < Self::Read
    }

    /// How many operations or bytes it is. The device is busy with that many at its peak rate.
    pub(crate) fn amount(self, kernel: &Kernel<'_>, machine: &Machine) -> f64 {
        let only = |window: Window, amount: f64| if kernel.window() == Some(window) { amount } else { 0.0 };
        let product = |amount: fn(&Product, &Machine) -> f64| kernel.product().map_or(0.0, |it| amount(&it, machine));
        let flops = kernel.work.flops as f64;
        match self {
            Self::Flops => flops,
            Self::FlopsPointwise => only(Window::Pointwise, flops),
            Self::Flops3x3 => only(Window::Unit3x3, flops),
            Self::FlopsOther => only(Window::Other, flops),
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
            Self::Read => kernel.read,
            Self::Weights => kernel.weights,
            Self::Written => kernel.written,
            Self::Bytes => kernel.bytes(),
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
