//! Descriptions of bundles of all versions, checked by the format and by the drivers of their devices.

use super::{
    Drivers,
    upgrade::{self, FORMAT_1, FORMAT_2},
};
use crate::{
    bundle::{Bundle, DESCRIPTION, FORMAT, named_format},
    error::{Error, Result},
    files,
};
use std::path::Path;

/// No description is larger: that of a large model has some megabytes.
const MOST_BYTES: u64 = 1 << 30;

impl Bundle {
    /// Reads the description of the bundle in a folder and checks that it is valid by itself. The other files are not
    /// looked at: see [`Bundle::check`].
    pub fn read(folder: &Path) -> Result<Self> {
        Self::read_for(folder, &Drivers::default())
    }

    /// As [`Bundle::read`], with drivers that check their devices.
    pub fn read_for(folder: &Path, drivers: &Drivers) -> Result<Self> {
        let path = &folder.join(DESCRIPTION);
        let text = files::read(path, MOST_BYTES)?;
        let malformed = |reason| Error::malformed(path, reason);
        let (bundle, is_intact) = parse(&text).map_err(|reason| match named_format(&text) {
            Ok(format) if is_newer(&format) => Error::Newer { path: path.clone(), format, newest: FORMAT },
            _ => malformed(reason),
        })?;
        if !is_intact {
            return Err(Error::damaged(path, "its contents do not have the hash that it names"));
        }
        bundle.validate_for(drivers).map_err(malformed)?;
        Ok(bundle)
    }

    /// Parses the text of a description of any version that is known. Neither its hash nor what it says is checked.
    pub fn from_text(text: &[u8]) -> std::result::Result<Self, String> {
        parse(text).map(|(bundle, _)| bundle)
    }

    /// Writes the description into a folder, whole or not at all, with its hash. The files that it names must be there
    /// already: [`File::of`](crate::bundle::File::of) describes them.
    pub fn write(&mut self, folder: &Path) -> Result<()> {
        let malformed = |reason| Error::malformed(&folder.join(DESCRIPTION), reason);
        if self.is_unchecked {
            return Err(malformed("version 1 does not say how many bytes calls touch; compile the model again".into()));
        }
        self.validate().map_err(malformed)?;
        self.write_unvalidated(folder)
    }

    /// Checks the description, for the devices of this crate's drivers.
    pub fn validate(&self) -> std::result::Result<(), String> {
        self.validate_for(&Drivers::default())
    }

    /// Checks the description. Drivers check what it says of their devices.
    pub fn validate_for(&self, drivers: &Drivers) -> std::result::Result<(), String> {
        self.validate_format()?;
        drivers.validate(self)
    }
}

/// Parses a description of any version that is known, and compares its contents with the hash that it names.
fn parse(text: &[u8]) -> std::result::Result<(Bundle, bool), String> {
    let format = named_format(text)?;
    match &format[..] {
        FORMAT => Bundle::parse(text),
        FORMAT_1 | FORMAT_2 => upgrade::parse(text),
        _ => Err(format!("its format is '{format}', not '{FORMAT}'")),
    }
}

fn is_newer(format: &str) -> bool {
    let number = |format: &str| format.strip_prefix("divi-bundle/")?.parse::<u64>().ok();
    number(format) > number(FORMAT)
}
