//! Protobuf's wire format without a schema: a message as a tree that can be edited.

/// One field of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Field number.
    pub number: u64,
    /// Value of the field.
    pub payload: Payload,
}

/// Value of a field. Bytes that parse as a message are represented as one.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// Wire type 0.
    Varint(u64),
    /// Wire type 1.
    Fixed64([u8; 8]),
    /// Wire type 5.
    Fixed32([u8; 4]),
    /// Wire type 2, not a message.
    Bytes(Vec<u8>),
    /// Wire type 2, a message.
    Message(Vec<Field>),
}

/// Parses a message; `None` if it is invalid or does not round-trip to the same bytes.
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

/// Serializes a message.
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

/// Serializes a varint.
pub fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Byte offsets of a field in the file.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Start of the key.
    pub start: usize,
    /// End of the key: start of the length, or of the value if there is no length.
    pub after_key: usize,
    /// Start of the length-delimited content; the end of the field if there is none.
    pub content: usize,
    /// End of the field.
    pub end: usize,
}

/// Returns the extents of all fields at every depth.
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

/// Returns the paths of all messages of a tree; the root's is empty.
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

/// Returns the fields of the message at a path from [`messages`].
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
fn messages_round_trip() {
    let models = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../models");
    let bytes = std::fs::read(models.join("alexnet.onnx")).unwrap();
    let fields = read(&bytes).unwrap();
    assert_eq!(write(&fields), bytes);
    let extents = extents(&fields);
    assert!(extents.len() > 500);
    assert!(extents.iter().all(|e| e.start < e.after_key && e.after_key < e.end && e.content <= e.end));
    assert_eq!(extents.iter().map(|e| e.end).max(), Some(bytes.len()));
}
