//! The kind of device that measurements are of.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use divi_cost::device::{self, Kind, MemorySpace};

/// Parser of the names of kinds.
pub(crate) fn kinds() -> impl TypedValueParser<Value = Kind> {
    let names = PossibleValuesParser::new(device::all().into_iter().map(Kind::name));
    names.try_map(|name| device::find(&name).ok_or("there is no such kind of device"))
}

/// The kind whose times of a table are meant where no option says so: the first with memory of its own.
pub(crate) fn kind_of_tables() -> Kind {
    let kinds = device::all();
    let accelerator = kinds.iter().find(|kind| kind.memory() == MemorySpace::Device);
    *accelerator.unwrap_or(&kinds[0])
}
