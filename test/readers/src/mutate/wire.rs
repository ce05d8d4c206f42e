//! Protobuf's wire format, without a schema: a message as a tree whose parts can be moved about.

/// One field of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub number: u64,
    pub payload: Payload,
}

/// What a field holds. Text that happens to read as a message is taken for one, which does no harm.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    Varint(u64),
    Fixed64([u8; 8]),
    Fixed32([u8; 4]),
    Bytes(Vec<u8>),
    Message(Vec<Field>),
}

/// Reads a message; `None` if it is none, or if writing it again would give other bytes.
pub fn read(bytes: &[u8]) -> Option<Vec<Field>> {
    let fields = read_fields(bytes, 0)?;
    (write(&fields) == bytes).then_some(fields)
}

fn read_fields(mut bytes: &[u8], depth: usize) -> Option<Vec<Field>> {
    let mut fields = vec![];
    while !bytes.is_empty() {
        let key = read_varint(&mut bytes)?;
        let payload = match key & 7 {
            0 => Payload::Varint(read_varint(&mut bytes)?),
            1 => Payload::Fixed64(take(&mut bytes, 8)?.try_into().ok()?),
            2 => {
                let length = read_varint(&mut bytes)?;
                let content = take(&mut bytes, usize::try_from(length).ok()?)?;
                let message = if depth < 32 && content.len() > 1 { read_fields(content, depth + 1) } else { None };
                message.map_or_else(|| Payload::Bytes(content.to_vec()), Payload::Message)
            }
            5 => Payload::Fixed32(take(&mut bytes, 4)?.try_into().ok()?),
            _ => return None,
        };
        if key >> 3 == 0 || key >> 3 > 100 {
            return None;
        }
        fields.push(Field { number: key >> 3, payload });
    }
    Some(fields)
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(head)
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

pub fn write(fields: &[Field]) -> Vec<u8> {
    let mut out = vec![];
    for field in fields {
        match &field.payload {
            Payload::Varint(value) => {
                write_varint(field.number << 3, &mut out);
                write_varint(*value, &mut out);
            }
            Payload::Fixed64(bytes) => {
                write_varint(field.number << 3 | 1, &mut out);
                out.extend(bytes);
            }
            Payload::Fixed32(bytes) => {
                write_varint(field.number << 3 | 5, &mut out);
                out.extend(bytes);
            }
            Payload::Bytes(bytes) => write_chunk(field.number, bytes, &mut out),
            Payload::Message(fields) => write_chunk(field.number, &write(fields), &mut out),
        }
    }
    out
}

fn write_chunk(number: u64, bytes: &[u8], out: &mut Vec<u8>) {
    write_varint(number << 3 | 2, out);
    write_varint(bytes.len() as u64, out);
    out.extend(bytes);
}

pub fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Where the parts of a field lie in the file.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// The key.
    pub start: usize,
    /// The length, or the value where there is none.
    pub after_key: usize,
    /// What the length counts; the end of the field where there is none.
    pub content: usize,
    pub end: usize,
}

/// The extents of all fields that a file has, at every depth.
pub fn extents(fields: &[Field]) -> Vec<Extent> {
    fn visit(fields: &[Field], mut offset: usize, extents: &mut Vec<Extent>) {
        for field in fields {
            let size = write(std::slice::from_ref(field)).len();
            let mut key = vec![];
            write_varint(field.number << 3, &mut key);
            let content = match &field.payload {
                Payload::Bytes(bytes) => size - bytes.len(),
                Payload::Message(fields) => size - write(fields).len(),
                _ => size,
            };
            let (after_key, content, end) = (offset + key.len(), offset + content, offset + size);
            extents.push(Extent { start: offset, after_key, content, end });
            if let Payload::Message(fields) = &field.payload {
                visit(fields, content, extents);
            }
            offset = end;
        }
    }
    let mut extents = vec![];
    visit(fields, 0, &mut extents);
    extents
}

/// Every message of a tree by the way that leads to it, the root's being empty.
pub fn messages(fields: &[Field]) -> Vec<Vec<usize>> {
    fn visit(fields: &[Field], path: &mut Vec<usize>, paths: &mut Vec<Vec<usize>>) {
        paths.push(path.clone());
        for (i, field) in fields.iter().enumerate() {
            if let Payload::Message(fields) = &field.payload {
                path.push(i);
                visit(fields, path, paths);
                path.pop();
            }
        }
    }
    let mut paths = vec![];
    visit(fields, &mut vec![], &mut paths);
    paths
}

/// The fields of the message at the end of a path from [`messages`].
pub fn message<'a>(mut fields: &'a mut Vec<Field>, path: &[usize]) -> &'a mut Vec<Field> {
    for &i in path {
        match &mut fields[i].payload {
            Payload::Message(inner) => fields = inner,
            payload => unreachable!("the path leads to messages, not to {payload:?}"),
        }
    }
    fields
}

#[test]
fn what_is_read_is_written_again() {
    let models = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../models");
    let bytes = std::fs::read(models.join("alexnet.onnx")).unwrap();
    let fields = read(&bytes).unwrap();
    assert_eq!(write(&fields), bytes);
    let extents = extents(&fields);
    assert!(extents.len() > 500);
    assert!(extents.iter().all(|e| e.start < e.after_key && e.after_key < e.end && e.content <= e.end));
    assert_eq!(extents.iter().map(|e| e.end).max(), Some(bytes.len()));
}
