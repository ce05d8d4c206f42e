//! Computations of the stub GPUs: the kernels of tests, as in `tests/runtime/kernels.c`, and a library's products.

use crate::drivers::cuda::{
    driver::Address,
    launch::{Epilogue, MatMul},
};
use std::{ptr, slice};

fn floats(address: u64, count: usize) -> &'static mut [f32] {
    // SAFETY: the buffers of the tests' kernels have the size of their extent.
    unsafe { slice::from_raw_parts_mut(ptr::with_exposed_provenance_mut(address as usize), count) }
}

/// Runs a kernel by name.
pub(super) fn run(name: &str, arguments: &[u64]) {
    match (name, arguments) {
        ("add", &[out, left, right, extent]) => {
            let count = extent as usize;
            let (left, right) = (floats(left, count).to_vec(), floats(right, count).to_vec());
            floats(out, count)
                .iter_mut()
                .zip(left.iter().zip(right))
                .for_each(|(out, (left, right))| *out = left + right);
        }
        ("scale", &[out, numbers, by, extent]) => {
            let (numbers, by) = (floats(numbers, extent as usize).to_vec(), floats(by, 1)[0]);
            floats(out, extent as usize).iter_mut().zip(numbers).for_each(|(out, number)| *out = number * by);
        }
        ("root", &[out, numbers, extent, status]) => {
            let numbers = floats(numbers, extent as usize).to_vec();
            if numbers.iter().any(|&number| number < 0.0) {
                // SAFETY: the argument is the address of the status.
                unsafe { ptr::with_exposed_provenance_mut::<i32>(status as usize).write(3) };
                return;
            }
            floats(out, extent as usize).iter_mut().zip(numbers).for_each(|(out, number)| *out = number * number);
        }
        ("product", &[left, right, out, extent]) => {
            let size = (extent as f64).sqrt() as u32;
            multiply(&square(size), &[left, right, out]);
        }
        _ => panic!("no kernel '{name}' takes {} arguments", arguments.len()),
    }
}

/// Returns a product of square matrices.
pub(crate) fn square(size: u32) -> MatMul {
    MatMul {
        count: 1,
        left_stride: 0,
        right_stride: 0,
        output_stride: 0,
        rows: size,
        columns: size,
        depth: size,
        left_is_transposed: false,
        right_is_transposed: false,
        alpha: 1.0_f32.to_bits(),
        has_bias: false,
        epilogue: Epilogue::None,
    }
}

pub(super) fn multiply(product: &MatMul, buffers: &[Address]) {
    let size = product.rows as usize;
    let matrix = |index: usize| floats(buffers[index], size * size);
    let (left, right) = (matrix(0).to_vec(), matrix(1).to_vec());
    for (place, out) in matrix(2).iter_mut().enumerate() {
        let (row, column) = (place / size, place % size);
        *out = (0..size).map(|k| left[row * size + k] * right[k * size + column]).sum();
    }
}
