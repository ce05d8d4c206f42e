//! NumPy files with several arrays (`.npz`): ZIP archives of `.npy` files, stored or deflated.

use crate::npy;
use divi_runtime::{TensorData, TensorRef};
use std::{borrow::Cow, collections::HashSet};

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;
/// Value of a 32-bit field whose number is in the ZIP64 extra field.
const ELSEWHERE: u64 = u32::MAX as u64;
/// ZIP version 4.5: ZIP64.
const VERSION: u16 = 45;
/// 1980-01-01, the earliest date in ZIP. A constant, so that archives are reproducible.
const DATE: u16 = 0x21;

/// Limit on the total size of all arrays, unless the archive itself is larger. Protects against decompression bombs.
const MOST_BYTES: u64 = 1 << 30;
/// Maximum expansion factor of deflate.
const MOST_EXPANSION: u64 = 1032;

/// Reads all arrays, with their names.
pub fn read(archive: &[u8]) -> Result<Vec<(String, TensorData)>, String> {
    let most = MOST_BYTES.max(archive.len() as u64);
    let mut left = most;
    read_bounded(archive, |_, bytes| {
        left = left.checked_sub(bytes).ok_or_else(|| format!("the arrays have more than {most} bytes together"))?;
        Ok(())
    })
}

/// Reads all arrays, with their names. `may_read` is called with the name and the file size of each before any array is
/// allocated, and rejects the archive by an error.
pub fn read_bounded(
    archive: &[u8],
    mut may_read: impl FnMut(&str, u64) -> Result<(), String>,
) -> Result<Vec<(String, TensorData)>, String> {
    let entries = directory(archive)?;
    let of_entry = |entry: &Entry, reason: String| format!("entry '{}': {reason}", entry.name);
    for entry in &entries {
        may_read(entry.array(), entry.size).map_err(|reason| of_entry(entry, reason))?;
    }
    let read = |entry: &Entry| Ok((entry.array().to_owned(), npy::read(&entry.contents(archive)?)?));
    entries.iter().map(|entry| read(entry).map_err(|reason| of_entry(entry, reason))).collect()
}

/// Writes arrays, stored without compression. Fails if a name is too long for an archive.
pub fn write(tensors: &[(&str, TensorRef<'_>)]) -> Result<Vec<u8>, String> {
    let (mut file, mut central) = (Vec::new(), Vec::new());
    for (name, tensor) in tensors {
        let name = format!("{name}.npy");
        let length = u16::try_from(name.len()).map_err(|_| {
            format!(
                "an array has a name of {} bytes, and archives have names of up to {}",
                name.len() - 4,
                u16::MAX - 4
            )
        })?;
        let contents = npy::write(*tensor);
        let (offset, size) = (file.len() as u64, contents.len() as u64);
        let checksum = crc32fast::hash(&contents);
        put(&mut file, &[Field::U32(LOCAL)]);
        describe(&mut file, checksum, (&name, length), 20);
        // Sizes are always in the ZIP64 extra field, as NumPy writes them.
        put(&mut file, &[Field::U16(1), Field::U16(16), Field::U64(size), Field::U64(size)]);
        file.extend(contents);
        put(&mut central, &[Field::U32(CENTRAL), Field::U16(VERSION)]);
        describe(&mut central, checksum, (&name, length), 28);
        put(&mut central, &[Field::U16(1), Field::U16(24), Field::U64(size), Field::U64(size), Field::U64(offset)]);
    }
    let (start, size, count) = (file.len() as u64, central.len() as u64, tensors.len() as u64);
    file.extend(central);
    let end = file.len() as u64;
    let (v, w) = (Field::U16(VERSION), Field::U32(0));
    put(&mut file, &[Field::U32(END_64), Field::U64(44), v, v, w, w, Field::U64(count), Field::U64(count)]);
    put(&mut file, &[Field::U64(size), Field::U64(start)]);
    put(&mut file, &[Field::U32(LOCATOR_64), w, Field::U64(end), Field::U32(1)]);
    let (few, all) = (Field::U16(u16::MAX), Field::U32(u32::MAX));
    put(&mut file, &[Field::U32(END), Field::U16(0), Field::U16(0), few, few, all, all, Field::U16(0)]);
    Ok(file)
}

#[derive(Clone, Copy)]
enum Field {
    U16(u16),
    U32(u32),
    U64(u64),
}

fn put(file: &mut Vec<u8>, fields: &[Field]) {
    for field in fields {
        match field {
            Field::U16(number) => file.extend(number.to_le_bytes()),
            Field::U32(number) => file.extend(number.to_le_bytes()),
            Field::U64(number) => file.extend(number.to_le_bytes()),
        }
    }
}

/// Writes the fields common to the local and the central header of an entry. The sizes follow in an extra field of `extra`
/// bytes.
fn describe(file: &mut Vec<u8>, checksum: u32, (name, length): (&str, u16), extra: u16) {
    let zero = Field::U16(0);
    put(file, &[Field::U16(VERSION), zero, zero, zero, Field::U16(DATE), Field::U32(checksum)]);
    put(file, &[Field::U32(u32::MAX), Field::U32(u32::MAX), Field::U16(length), Field::U16(extra)]);
    if extra == 28 {
        put(file, &[zero, zero, zero, Field::U32(0), Field::U32(u32::MAX)]);
    }
    file.extend(name.as_bytes());
}

struct Entry {
    name: String,
    method: u16,
    checksum: u32,
    packed: u64,
    size: u64,
    offset: u64,
}

/// Bounds-checked reader of little-endian numbers at offsets of a file.
struct Numbers<'a>(&'a [u8]);

impl<'a> Numbers<'a> {
    fn slice(&self, at: u64, length: u64) -> Result<&'a [u8], String> {
        let range = usize::try_from(at).ok().zip(at.checked_add(length).and_then(|end| usize::try_from(end).ok()));
        range.and_then(|(begin, end)| self.0.get(begin..end)).ok_or_else(|| "the archive is truncated".to_owned())
    }

    fn u16(&self, at: u64) -> Result<u16, String> {
        Ok(self.slice(at, 2)?.try_into().map_or(0, u16::from_le_bytes))
    }

    fn u32(&self, at: u64) -> Result<u32, String> {
        Ok(self.slice(at, 4)?.try_into().map_or(0, u32::from_le_bytes))
    }

    fn u64(&self, at: u64) -> Result<u64, String> {
        Ok(self.slice(at, 8)?.try_into().map_or(0, u64::from_le_bytes))
    }
}

/// Parses the central directory.
fn directory(archive: &[u8]) -> Result<Vec<Entry>, String> {
    let numbers = Numbers(archive);
    // The end record may be followed by a comment of up to 64 KiB.
    let last = archive.len().checked_sub(22).ok_or("it is not an archive")?;
    let first = last.saturating_sub(usize::from(u16::MAX));
    let end = (first..=last).rev().find(|&at| archive[at..].starts_with(&END.to_le_bytes()));
    let end = end.ok_or("it is not an archive, or truncated")? as u64;
    let (mut count, mut at) = (u64::from(numbers.u16(end + 10)?), u64::from(numbers.u32(end + 16)?));
    if let Some(locator) = end.checked_sub(20).filter(|&at| numbers.u32(at) == Ok(LOCATOR_64)) {
        let end = numbers.u64(locator + 8)?;
        if numbers.u32(end)? != END_64 {
            return Err("its directory is not where it says".to_owned());
        }
        (count, at) = (numbers.u64(end.saturating_add(32))?, numbers.u64(end.saturating_add(48))?);
    }
    let mut entries = Vec::new();
    let mut names = HashSet::new();
    for _ in 0..count {
        if numbers.u32(at)? != CENTRAL {
            return Err("its directory is not where it says".to_owned());
        }
        let (name, extra) = (u64::from(numbers.u16(at + 28)?), u64::from(numbers.u16(at + 30)?));
        let comment = u64::from(numbers.u16(at + 32)?);
        let mut entry = Entry {
            name: String::from_utf8_lossy(numbers.slice(at + 46, name)?).into_owned(),
            method: numbers.u16(at + 10)?,
            checksum: numbers.u32(at + 16)?,
            packed: u64::from(numbers.u32(at + 20)?),
            size: u64::from(numbers.u32(at + 24)?),
            offset: u64::from(numbers.u32(at + 42)?),
        };
        entry.widen(&Numbers(numbers.slice(at + 46 + name, extra)?));
        if numbers.u16(at + 8)? & 1 == 1 {
            return Err(format!("entry '{}' is encrypted", entry.name));
        }
        if !names.insert(entry.name.clone()) {
            return Err(format!("there are two entries '{}'", entry.name));
        }
        entries.push(entry);
        at += 46 + name + extra + comment;
    }
    Ok(entries)
}

impl Entry {
    /// Returns the name of the array.
    fn array(&self) -> &str {
        self.name.strip_suffix(".npy").unwrap_or(&self.name)
    }

    /// Reads the numbers that do not fit into 32 bits from the ZIP64 extra field.
    fn widen(&mut self, extra: &Numbers<'_>) {
        let mut at = 0;
        while let (Ok(id), Ok(length)) = (extra.u16(at), extra.u16(at + 2)) {
            if id == 1 {
                let mut offset = at + 4;
                for number in [&mut self.size, &mut self.packed, &mut self.offset] {
                    if *number == ELSEWHERE
                        && let Ok(wide) = extra.u64(offset)
                    {
                        *number = wide;
                        offset += 8;
                    }
                }
            }
            at += 4 + u64::from(length);
        }
    }

    fn contents<'a>(&self, archive: &'a [u8]) -> Result<Cow<'a, [u8]>, String> {
        let numbers = Numbers(archive);
        if numbers.u32(self.offset)? != LOCAL {
            return Err("it is not where the directory says".to_owned());
        }
        let (name, extra) = (numbers.u16(self.offset + 26)?, numbers.u16(self.offset + 28)?);
        let packed = numbers.slice(self.offset + 30 + u64::from(name) + u64::from(extra), self.packed)?;
        let contents = match self.method {
            0 => Cow::Borrowed(packed),
            8 => {
                if self.size / MOST_EXPANSION > self.packed {
                    return Err("it cannot have as many bytes as the directory says".to_owned());
                }
                let limit = usize::try_from(self.size).map_err(|_| "it is too large")?;
                let inflated = miniz_oxide::inflate::decompress_to_vec_with_limit(packed, limit);
                Cow::Owned(inflated.map_err(|_| "its compressed data are damaged")?)
            }
            method => {
                return Err(format!("it is compressed with method {method}; stored and deflated ones can be read"));
            }
        };
        if contents.len() as u64 != self.size || crc32fast::hash(&contents) != self.checksum {
            return Err("its data are damaged".to_owned());
        }
        Ok(contents)
    }
}
