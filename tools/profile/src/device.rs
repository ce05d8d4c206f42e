//! Selection of a device kind.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use divi_cost::device::{self, Kind, MemorySpace};

/// Returns a parser of device kind names.
pub(crate) fn kinds() -> impl TypedValueParser<Value = Kind> {
    let names = PossibleValuesParser::new(device::all().into_iter().map(Kind::name));
    names.try_map(|name| device::find(&name).ok_or("unknown device kind"))
}

/// Returns the default device kind of tables: the first with its own memory.
pub(crate) fn kind_of_tables() -> Kind {
    let kinds = device::all();
    let accelerator = kinds.iter().find(|kind| kind.memory() == MemorySpace::Device);
    *accelerator.unwrap_or(&kinds[0])
}
