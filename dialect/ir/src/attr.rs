//! Names and types of the attributes that divi reads and writes, one row each.
//!
//! A [`Key`] is read with [`Operation::get`](crate::Operation::get) and written with [`Operation::set`](crate::Operation::set). The
//! names of `divi.*` attributes stand here and in `td/Divi.td` only, which documents them.

mod ffi;

use crate::{BatchAttribute, ContextLike, CostAttribute, MoveAttribute, NamedAttribute};
pub use ffi::{
    array, as_array, as_dictionary, as_float, as_integer, as_integers, as_string, as_symbol, as_type, dictionary,
    entry, float, float_of_type, integer, integer_of_type, integers, is_dense, is_resource, is_splat, of_type, print,
    root_symbol, signed_integer, string, symbol, type_attribute, unit, wrapped_integer,
};
use melior::{ContextRef, ir::Attribute};
use std::marker::PhantomData;

/// The name of an attribute whose type is `K`.
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

/// A type of attributes, as Rust reads and writes it.
pub trait Kind {
    type Read<'m>;
    type Write<'a, 'm>
    where
        'm: 'a;

    /// Returns the contents; `None` for attributes of other types.
    fn read<'m>(attribute: Attribute<'m>) -> Option<Self::Read<'m>>;
    fn write<'a, 'm: 'a>(context: ContextRef<'m>, value: Self::Write<'a, 'm>) -> Attribute<'m>;
}

/// Declares types of attributes.
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

/// Declares keys.
macro_rules! keys {
    ($($(#[$comment:meta])* $key:ident: $kind:ident = $name:literal;)*) => {
        $($(#[$comment])* pub const $key: Key<$kind> = Key::new($name);)*
    };
}

// Constraints and decisions, on operators.
keys! {
    /// Device that an operator must run on.
    PIN: Symbol = "divi.pin";
    /// Devices that an operator must not run on.
    EXCLUDE: Symbols = "divi.exclude";
    /// Group of operators that run on one device.
    COLOCATE: Str = "divi.colocate";
    /// Place of parameters while tasks run elsewhere: `host`.
    WEIGHTS: Str = "divi.weights";
    /// Device that a task runs on.
    DEVICE: Symbol = "divi.device";
    /// Start of a task or a transfer, in microseconds.
    START: Float = "divi.start";
    /// End of a transfer, in microseconds.
    END: Float = "divi.end";
    /// Stage of a pipeline.
    STAGE: Integer = "divi.stage";
    /// Which queued inputs run where and when.
    BATCHES: Batches = "divi.batches";
    /// Transfers of results; on a function, of arguments.
    MOVES: Moves = "divi.moves";
    /// Transfers of parameters.
    COPIES: Moves = "divi.copies";
    /// Device that has a task's parameters from an earlier run.
    RESIDENT: Symbol = "divi.resident";
    /// Queued inputs that a launch is for.
    INPUTS: Integers = "divi.inputs";
    /// ONNX nodes that a cluster was made of.
    MEMBERS: Strings = "divi.members";
}

// Work, on operators and clusters.
keys! {
    /// Time on each device.
    COST: Cost = "divi.cost";
    FLOPS: Integer = "divi.flops";
    /// Limit of the time on each device.
    BOUND: Dictionary = "divi.bound";
    WEIGHT_BYTES: Integer = "divi.weight_bytes";
    INPUT_BYTES: Integer = "divi.input_bytes";
    OUTPUT_BYTES: Integer = "divi.output_bytes";
    SCRATCH_BYTES: Integer = "divi.scratch_bytes";
    /// Bytes of the weights that are read, where that is not all of them.
    READ_WEIGHT_BYTES: Integer = "divi.read_weight_bytes";
    /// Bytes of the constants that a constant is computed of.
    CONSTANT_BYTES: Integer = "divi.constant_bytes";
}

// On the module.
keys! {
    /// Sources of the times.
    COSTS: Dictionary = "divi.costs";
    /// Effect of transfers on one bus on each other.
    CONTENTION: Str = "divi.contention";
    /// Parameters are in the host's memory when an input comes.
    COLD: Unit = "divi.cold";
    /// The certificate.
    PLAN: Dictionary = "divi.plan";
}

// Inherent attributes of operations, and those of other dialects.
keys! {
    SYM_NAME: Str = "sym_name";
    SYM_VISIBILITY: Str = "sym_visibility";
    ARG_ATTRS: Array = "arg_attrs";
    RES_ATTRS: Array = "res_attrs";
    FUNCTION_TYPE: Any = "function_type";
    /// Name of the ONNX node that an operation came from.
    NODE_NAME: Str = "onnx_node_name";
    /// Function that a call or a launch runs.
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
    /// Inputs that a slice takes, by where they are in its operand.
    POSITIONS: Integers = "positions";
    /// Number of inputs that a slice's operand is for.
    COUNT: Integer = "count";
    /// Number of inputs that each operand of a gather is for.
    COUNTS: Integers = "counts";
    /// Axis that has the inputs, in a slice or a gather.
    AXIS: Integer = "axis";
    /// Parts of the axis, one behind the other, that have all inputs each.
    OUTER: Integer = "outer";
}

/// Returns true for the name of an attribute of the `divi` dialect.
pub fn is_divi(name: &str) -> bool {
    name.starts_with("divi.")
}
