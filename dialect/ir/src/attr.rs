//! Names and types of the attributes that divi reads and writes, one row each.
//!
//! A [`Key`] is read with [`Operation::get`](crate::Operation::get) and written with [`Operation::set`](crate::Operation::set). The
//! names of `divi.*` attributes appear only here and in `td/Divi.td`, which documents them.

mod ffi;

use crate::{BatchAttribute, ContextLike, CostAttribute, MoveAttribute, NamedAttribute};
pub use ffi::{
    array, as_array, as_dictionary, as_float, as_integer, as_integers, as_string, as_symbol, as_type,
    as_wrapping_integer, dictionary, entry, float, float_of_type, integer, integer_of_type, integers, is_dense,
    is_resource, is_splat, print, root_symbol, signed_integer, string, symbol, type_attribute, type_of, unit,
};
use melior::{ContextRef, ir::Attribute};
use std::marker::PhantomData;

/// Name of an attribute whose type is `K`.
#[derive(Debug)]
pub struct Key<K>(&'static str, PhantomData<K>);

impl<K> Clone for Key<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Key<K> {}

impl<K> Key<K> {
    const fn new(name: &'static str) -> Self {
        Self(name, PhantomData)
    }

    /// Returns the name of the attribute.
    pub const fn name(self) -> &'static str {
        self.0
    }
}

impl<K: Kind> Key<K> {
    /// Creates an attribute under this name, for a new operation.
    pub fn named<'m>(self, context: ContextRef<'m>, value: K::Write<'_, 'm>) -> NamedAttribute<'m> {
        NamedAttribute::new(context.identifier(self.0), K::write(context, value))
    }
}

/// Attribute type, with its conversions from and to Rust.
pub trait Kind {
    /// Rust type of the contents when read.
    type Read<'m>;
    /// Rust type of the contents when written.
    type Write<'a, 'm>
    where
        'm: 'a;

    /// Returns the contents; `None` for attributes of other types.
    fn read<'m>(attribute: Attribute<'m>) -> Option<Self::Read<'m>>;
    /// Creates an attribute.
    fn write<'a, 'm: 'a>(context: ContextRef<'m>, value: Self::Write<'a, 'm>) -> Attribute<'m>;
}

/// Declares attribute types and their [`Kind`] implementations.
macro_rules! kinds {
    ($($(#[$comment:meta])* $kind:ident: $read:ty, $write:ty, $from:expr, $to:expr;)*) => {$(
        $(#[$comment])*
        #[derive(Debug)]
        pub struct $kind;

        impl Kind for $kind {
            type Read<'m> = $read;
            type Write<'a, 'm> = $write where 'm: 'a;

            fn read<'m>(attribute: Attribute<'m>) -> Option<$read> {
                ($from)(attribute)
            }

            fn write<'a, 'm: 'a>(context: ContextRef<'m>, value: $write) -> Attribute<'m> {
                ($to)(context, value)
            }
        }
    )*};
}

kinds! {
    /// Any attribute.
    Any: Attribute<'m>, Attribute<'m>, Some, |_, attribute| attribute;
    /// `unit`
    Unit: (), (), |_| Some(()), |context, ()| unit(context);
    /// `"…"`
    Str: &'m str, &'a str, as_string, string;
    /// `@…`, a symbol of this scope.
    Symbol: &'m str, &'a str, as_symbol, symbol;
    /// `… : i64`; read with any width and sign.
    Integer: i64, i64, as_integer, integer;
    /// `… : f64`; read with any width.
    Float: f64, f64, as_float, float;
    /// `array<i64: …>`
    Integers: Vec<i64>, &'a [i64], as_integers, integers;
    /// `[…]`
    Array: Vec<Attribute<'m>>, &'a [Attribute<'m>], as_array, array;
    /// `["…", …]`; elements that are not strings are skipped.
    Strings: Vec<&'m str>, &'a [&'a str], |attribute| read_all(attribute, as_string), |context, all| write_all(context, all, string);
    /// `[@…, …]`; elements that are not symbols are skipped.
    Symbols: Vec<&'m str>, &'a [&'a str], |attribute| read_all(attribute, as_symbol), |context, all| write_all(context, all, symbol);
    /// `{… = …}`, read with [`entry`] and [`as_dictionary`].
    Dictionary: Attribute<'m>, &'a [(&'a str, Attribute<'m>)], |attribute| as_dictionary(attribute).map(|_| attribute), dictionary;
    /// `#divi.cost<…>`
    Cost: CostAttribute<'m>, CostAttribute<'m>, CostAttribute::from_attribute, |_, cost: CostAttribute<'m>| cost.as_attribute();
    /// `[#divi.batch<…>, …]`; other elements are skipped.
    Batches: Vec<BatchAttribute<'m>>, &'a [BatchAttribute<'m>], |attribute| read_all(attribute, BatchAttribute::from_attribute),
        |context, all: &[BatchAttribute<'m>]| array(context, &all.iter().map(BatchAttribute::as_attribute).collect::<Vec<_>>());
    /// `[#divi.move<…>, …]`; other elements are skipped.
    Moves: Vec<MoveAttribute<'m>>, &'a [MoveAttribute<'m>], |attribute| read_all(attribute, MoveAttribute::from_attribute),
        |context, all: &[MoveAttribute<'m>]| array(context, &all.iter().map(MoveAttribute::as_attribute).collect::<Vec<_>>());
}

fn read_all<'m, T>(attribute: Attribute<'m>, read: impl Fn(Attribute<'m>) -> Option<T>) -> Option<Vec<T>> {
    Some(as_array(attribute)?.into_iter().filter_map(read).collect())
}

fn write_all<'m>(
    context: ContextRef<'m>,
    all: &[&str],
    write: impl Fn(ContextRef<'m>, &str) -> Attribute<'m>,
) -> Attribute<'m> {
    array(context, &all.iter().map(|text| write(context, text)).collect::<Vec<_>>())
}

/// Declares a constant [`Key`] for each attribute.
macro_rules! keys {
    ($($(#[$comment:meta])* $key:ident: $kind:ident = $name:literal;)*) => {
        $($(#[$comment])* pub const $key: Key<$kind> = Key::new($name);)*
    };
}

// Constraints and decisions, on operations.
keys! {
    /// Device that an operator must run on.
    PIN: Symbol = "divi.pin";
    /// Devices that an operator must not run on.
    EXCLUDE: Symbols = "divi.exclude";
    /// Group of operators that run on one device.
    COLOCATE: Str = "divi.colocate";
    /// Memory that holds a task's parameters: `host` keeps them in host memory, whichever device the task runs on.
    WEIGHTS: Str = "divi.weights";
    /// Element type that a convolution or matrix product computes in: `f32`, `bf16` or `f16`.
    PRECISION: Str = "divi.precision";
    /// Device that a task runs on.
    DEVICE: Symbol = "divi.device";
    /// Start of a task or a transfer, in microseconds.
    START: Float = "divi.start";
    /// End of a transfer, in microseconds.
    END: Float = "divi.end";
    /// Index of a pipeline stage.
    STAGE: Integer = "divi.stage";
    /// Launches for batches of queued inputs.
    BATCHES: Batches = "divi.batches";
    /// Transfers of results; on a function, of arguments.
    MOVES: Moves = "divi.moves";
    /// Transfers of parameters.
    COPIES: Moves = "divi.copies";
    /// Device that holds a task's parameters from an earlier run.
    RESIDENT: Symbol = "divi.resident";
    /// Queued inputs of a launch.
    INPUTS: Integers = "divi.inputs";
    /// On a result of the function that runs the model: the results that the task of it reads, directly or through other tasks.
    COMPUTED_FROM: Integers = "divi.computed_from";
    /// Names of the ONNX nodes of a cluster.
    MEMBERS: Strings = "divi.members";
}

// Work, on operations and clusters.
keys! {
    /// Time on each device.
    COST: Cost = "divi.cost";
    /// Number of floating-point operations.
    FLOPS: Integer = "divi.flops";
    /// Bottleneck on each device: `compute`, `memory` or `launch`.
    BOUND: Dictionary = "divi.bound";
    /// Bytes of the weights.
    WEIGHT_BYTES: Integer = "divi.weight_bytes";
    /// Bytes of the operands that are not weights.
    INPUT_BYTES: Integer = "divi.input_bytes";
    /// Bytes of the results.
    OUTPUT_BYTES: Integer = "divi.output_bytes";
    /// Bytes of temporary buffers.
    SCRATCH_BYTES: Integer = "divi.scratch_bytes";
    /// Bytes of the weights that are read, if not all are.
    READ_WEIGHT_BYTES: Integer = "divi.read_weight_bytes";
    /// Bytes of the constants from which a constant is computed.
    CONSTANT_BYTES: Integer = "divi.constant_bytes";
}

// On the module.
keys! {
    /// Sources of the times.
    COSTS: Dictionary = "divi.costs";
    /// Model of concurrent transfers on one bus: `off`, `exclusive` or `shared`.
    CONTENTION: Str = "divi.contention";
    /// Present if parameters are in host memory when an input arrives.
    COLD: Unit = "divi.cold";
    /// On a nested module: the node that its plan does without.
    WITHOUT: Integer = "divi.without";
    /// On a nested module without a plan: the reason.
    REASON: Str = "divi.reason";
    /// The certificate.
    PLAN: Dictionary = "divi.plan";
}

// Inherent attributes of operations, and those of other dialects.
keys! {
    /// Name of a symbol.
    SYM_NAME: Str = "sym_name";
    /// Visibility of a symbol.
    SYM_VISIBILITY: Str = "sym_visibility";
    /// Attributes of a function's arguments, one dictionary each.
    ARG_ATTRS: Array = "arg_attrs";
    /// Attributes of a function's results, one dictionary each.
    RES_ATTRS: Array = "res_attrs";
    /// Type of a function.
    FUNCTION_TYPE: Any = "function_type";
    /// Name of the ONNX node that an operation came from.
    NODE_NAME: Str = "onnx_node_name";
    /// Function of a call or a launch.
    CALLEE: Symbol = "callee";
    /// Kind of a device or a cluster.
    KIND: Str = "kind";
    /// Elements of a constant.
    VALUE: Any = "value";
    /// Device of a launch.
    LAUNCH_DEVICE: Symbol = "device";
    /// Source of a transfer or a link.
    FROM: Symbol = "from";
    /// Destination of a transfer or a link.
    TO: Symbol = "to";
    /// Positions, in the operand of a slice, of the inputs that it extracts.
    POSITIONS: Integers = "positions";
    /// Number of inputs in the operand of a slice.
    COUNT: Integer = "count";
    /// Number of inputs in each operand of a gather.
    COUNTS: Integers = "counts";
    /// Axis along which a slice or a gather has the inputs.
    AXIS: Integer = "axis";
    /// Number of contiguous parts of the axis, each with all inputs.
    OUTER: Integer = "outer";
}

/// Returns true for the name of an attribute of the `divi` dialect.
pub fn is_divi(name: &str) -> bool {
    name.starts_with("divi.")
}
