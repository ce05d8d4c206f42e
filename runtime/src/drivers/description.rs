//! Reading and writing of descriptions: parsing of all versions, and validation by the format and by the drivers of the
//! devices.

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

/// Maximum size of a description; that of a large model has some megabytes.
const MOST_BYTES: u64 = 1 << 30;

impl Bundle {
    /// Reads and validates the description of the bundle in a folder. The other files are not read: see [`Bundle::check`].
    pub fn read(folder: &Path) -> Result<Self> {
        Self::read_for(folder, &Drivers::default())
    }

    /// As [`Bundle::read`], with the given drivers.
    pub fn read_for(folder: &Path, drivers: &Drivers) -> Result<Self> {
        Self::read_file(&folder.join(DESCRIPTION), drivers)
    }

    /// Reads and validates the program of the bundle in a folder that runs without a node.
    pub fn read_without(folder: &Path, node: usize, drivers: &Drivers) -> Result<Self> {
        let whole = Self::read_for(folder, drivers)?;
        let file = whole.file_without(node).map_err(|problem| Error::NoReplacement { problem })?;
        let path = &folder.join(file);
        let other = Self::read_file(path, drivers)?;
        whole.check_replacement(&other).map_err(|reason| Error::malformed(path, reason))?;
        Ok(other)
    }

    fn read_file(path: &Path, drivers: &Drivers) -> Result<Self> {
        let text = files::read(path, MOST_BYTES)?;
        let malformed = |reason| Error::malformed(path, reason);
        let (bundle, is_intact) = parse(&text).map_err(|reason| match named_format(&text) {
            Ok(format) if is_newer(&format) => Error::Newer { path: path.to_owned(), format, newest: FORMAT },
            _ => malformed(reason),
        })?;
        if !is_intact {
            return Err(Error::damaged(path, "its SHA-256 does not match its contents"));
        }
        bundle.validate_for(drivers).map_err(malformed)?;
        Ok(bundle)
    }

    /// Parses a description of any supported version. Neither its hash nor its contents are checked.
    pub fn from_text(text: &[u8]) -> std::result::Result<Self, String> {
        parse(text).map(|(bundle, _)| bundle)
    }

    /// Validates the description and writes it atomically, with its hash. The files that it lists must exist:
    /// [`File::of`](crate::bundle::File::of) describes them.
    pub fn write(&mut self, folder: &Path) -> Result<()> {
        let malformed = |reason| Error::malformed(&folder.join(DESCRIPTION), reason);
        if self.lacks_extents {
            return Err(malformed("version 1 lacks the extents of calls; compile the model again".into()));
        }
        self.validate().map_err(malformed)?;
        self.write_unvalidated(folder)
    }

    /// As [`Bundle::write`], for the program of a bundle that runs without a node. Returns the name of its file, which the
    /// description of the bundle lists ([`Bundle::losses`]).
    pub fn write_without(&mut self, folder: &Path, node: usize) -> Result<String> {
        let file = format!("without-{node}.json");
        let path = &folder.join(&file);
        self.validate().map_err(|reason| Error::malformed(path, reason))?;
        self.write_file(path)?;
        Ok(file)
    }

    /// Validates the description with this crate's drivers.
    pub fn validate(&self) -> std::result::Result<(), String> {
        self.validate_for(&Drivers::default())
    }

    /// Validates the description; drivers check the parts that concern their devices.
    pub fn validate_for(&self, drivers: &Drivers) -> std::result::Result<(), String> {
        self.validate_format()?;
        drivers.validate(self)
    }
}

/// Parses a description of any supported version. The flag is true if its SHA-256 matches its contents.
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
