//! NumPy files: round trips, and rejection of malformed files.

use divi_npy::{npy, npz};
use divi_runtime::{DType, TensorData};

fn tensor() -> TensorData {
    TensorData::from_f32(&[64], &[1.0; 64]).expect("the shape has 64 elements")
}

fn header(text: &str, data: &[u8]) -> Vec<u8> {
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((text.len() as u16).to_le_bytes());
    file.extend(text.as_bytes());
    file.extend(data);
    file
}

#[test]
fn arrays_round_trip() {
    for &dtype in DType::ALL {
        for shape in [&[][..], &[3], &[2, 3], &[0, 4]] {
            let mut tensor = TensorData::zeroed(dtype, shape).unwrap();
            let count = shape.iter().product::<u64>();
            if dtype.bits() < 8 {
                // The padding bits after the last element stay zero.
                (0..count)
                    .for_each(|i| tensor.bytes_mut()[(i * dtype.bits() / 8) as usize] |= 1 << (i * dtype.bits() % 8));
            } else {
                tensor.bytes_mut().iter_mut().enumerate().for_each(|(i, byte)| *byte = i as u8);
            }
            let file = npy::write(tensor.view());
            let again = npy::reinterpret(npy::read(&file).unwrap(), dtype).unwrap();
            assert_eq!((again.dtype(), again.shape(), again.bytes()), (dtype, shape, tensor.bytes()), "{dtype}");
        }
    }
}

#[test]
fn arrays_are_written_as_numpy_writes_them() {
    let file = npy::write(TensorData::from_f32(&[2], &[1.0, 2.0]).unwrap().view());
    let expected = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
    assert_eq!(&file[..10], b"\x93NUMPY\x01\x00\x76\x00");
    assert_eq!(std::str::from_utf8(&file[10..128]).unwrap().trim_end(), expected);
    assert_eq!(file.len(), 128 + 8);
}

#[test]
fn column_major_and_big_endian_arrays_are_converted() {
    let text = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3)}\n";
    let tensor = npy::read(&header(text, &[0, 1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6])).unwrap();
    assert_eq!((tensor.dtype(), tensor.shape()), (DType::I16, &[2, 3][..]));
    assert_eq!(tensor.bytes(), [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0]);
    let text = "{'descr': '>c8', 'fortran_order': False, 'shape': (1,)}\n";
    assert_eq!(npy::read(&header(text, &[1, 2, 3, 4, 5, 6, 7, 8])).unwrap().bytes(), [4, 3, 2, 1, 8, 7, 6, 5]);
}

#[test]
fn malformed_arrays_are_rejected() {
    let whole = npy::write(tensor().view());
    for length in 0..whole.len() {
        assert!(npy::read(&whole[..length]).is_err());
    }
    let refused = |text, expected: &str| assert_eq!(npy::read(&header(text, &[])).unwrap_err(), expected);
    let other = "its elements are of NumPy's type '<U5', which no tensor has";
    refused("{'descr': '<U5', 'fortran_order': False, 'shape': (1,)}", other);
    refused("{'fortran_order': False, 'shape': (1,)}", "its header has no valid 'descr'");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "its header has no valid 'shape'");
    let huge = "{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999)}";
    refused(huge, "its shape is larger than any file");
    refused(
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}",
        "its elements have several fields each, which no tensor has",
    );
}

#[test]
fn archives_round_trip() {
    let (a, b) = (tensor(), TensorData::new(DType::U8, &[3], &[1, 2, 3]).unwrap());
    let archive = npz::write(&[("a", a.view()), ("b/c", b.view())]).unwrap();
    let arrays = npz::read(&archive).unwrap();
    let names: Vec<_> = arrays.iter().map(|(name, _)| &name[..]).collect();
    assert_eq!(names, ["a", "b/c"]);
    assert_eq!((arrays[0].1.bytes(), arrays[1].1.bytes()), (a.bytes(), b.bytes()));
    for length in 0..archive.len() {
        assert!(npz::read(&archive[..length]).is_err());
    }
    let mut damaged = archive.clone();
    damaged[300] ^= 1;
    assert_eq!(npz::read(&damaged).unwrap_err(), "entry 'a.npy': its data are damaged");
}

#[test]
fn names_that_do_not_fit_into_an_archive_are_rejected() {
    let tensor = tensor();
    let name = "n".repeat(65_531);
    let archive = npz::write(&[(&name, tensor.view())]).unwrap();
    assert_eq!(npz::read(&archive).unwrap()[0].0, name);
    let expected = "an array has a name of 65532 bytes, and archives have names of up to 65531";
    assert_eq!(npz::write(&[(&format!("{name}n"), tensor.view())]).unwrap_err(), expected);
}

#[test]
fn archives_written_by_numpy_are_read() {
    // Written by `np.savez_compressed(f, x=np.array([1, 2], np.int8))`.
    let archive = include_bytes!("numpy_compressed.npz");
    let arrays = npz::read(archive).unwrap();
    assert_eq!((&arrays[0].0[..], arrays[0].1.dtype(), arrays[0].1.bytes()), ("x", DType::I8, &[1, 2][..]));
    for index in 0..archive.len() {
        let mut damaged = archive.to_vec();
        damaged[index] ^= 0xff;
        // Must not panic.
        let _ = npz::read(&damaged);
    }
}

/// Builds an archive whose entries all refer to the same compressed file.
fn compressed(names: &[&str], contents: &[u8], claimed_size: u32) -> Vec<u8> {
    let packed = miniz_oxide::deflate::compress_to_vec(contents, 1);
    let fields = |name: &str| {
        // Version, flags, method, time and date; then checksum and sizes.
        let mut fields = [20, 0, 8, 0, 0x21_u16].map(u16::to_le_bytes).concat();
        let numbers = [crc32fast::hash(contents), packed.len() as u32, claimed_size];
        numbers.iter().for_each(|number| fields.extend(number.to_le_bytes()));
        [name.len() as u16, 0].iter().for_each(|number| fields.extend(number.to_le_bytes()));
        fields
    };
    let mut archive = [&0x0403_4b50_u32.to_le_bytes()[..], &fields("x.npy"), b"x.npy", &packed].concat();
    let start = archive.len() as u32;
    for name in names {
        archive
            .extend([&0x0201_4b50_u32.to_le_bytes()[..], &[20, 0], &fields(name), &[0; 14], name.as_bytes()].concat());
    }
    let size = archive.len() as u32 - start;
    archive.extend([&0x0605_4b50_u32.to_le_bytes()[..], &[0; 4]].concat());
    [names.len() as u16; 2].iter().for_each(|count| archive.extend(count.to_le_bytes()));
    [size, start].iter().for_each(|number| archive.extend(number.to_le_bytes()));
    archive.extend([0, 0]);
    archive
}

#[test]
fn decompression_bombs_are_rejected() {
    let contents = npy::write(TensorData::zeroed(DType::U8, &[1 << 26]).unwrap().view());
    let size = contents.len() as u32;
    let arrays = npz::read(&compressed(&["x.npy"], &contents, size)).unwrap();
    assert_eq!((&arrays[0].0[..], arrays[0].1.bytes().len()), ("x", 1 << 26));
    let bounded = |archive: &[u8]| npz::read_bounded(archive, |_, bytes| Err(format!("{bytes} bytes"))).unwrap_err();
    assert_eq!(bounded(&compressed(&["x.npy"], &contents, size)), format!("entry 'x.npy': {size} bytes"));
    // Seventeen entries of 64 MiB that share the same bytes of the archive.
    let names: Vec<_> = (0..17).map(|index| format!("{index}.npy")).collect();
    let names: Vec<_> = names.iter().map(|name| &name[..]).collect();
    let expected = "entry '15.npy': the arrays have more than 1073741824 bytes together";
    assert_eq!(npz::read(&compressed(&names, &contents, size)).unwrap_err(), expected);
    assert_eq!(npz::read(&compressed(&["x.npy"; 2], &contents, size)).unwrap_err(), "there are two entries 'x.npy'");
    let expected = "entry 'x.npy': it cannot have as many bytes as the directory says";
    assert_eq!(npz::read(&compressed(&["x.npy"], &contents[..128], 1 << 29)).unwrap_err(), expected);
}
