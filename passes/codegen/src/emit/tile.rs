//! Tile registers of x86 CPUs (AMX): eight matrices of at most 16 rows of 64 bytes.

use super::{Builder, V};
use divi_onnx::DType;

/// Number of tile registers, and the bytes of one.
const REGISTERS: i64 = 8;
const BYTES: i64 = 1024;
/// Bytes of a full row.
const ROW: i64 = 64;
/// Elements of half precision in a full row.
pub(crate) const TILE_COLUMNS: usize = ROW as usize / 2;
/// Offsets in a configuration: bytes of a row, two for each register, and numbers of rows.
const ROW_BYTES: i64 = 16;
const ROWS: i64 = 48;

/// Support for tile registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tiles {
    /// None.
    Absent,
    /// Registers and instructions of the processor.
    Registers,
    /// Loops over registers in memory: so kernels are tested on other processors.
    Emulated,
}

/// Size of a tile register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TileShape {
    pub(crate) rows: u8,
    /// Bytes of a row.
    pub(crate) bytes: u8,
}

impl Builder {
    /// Returns a pointer to a configuration of the tile registers, which is stored here.
    pub(crate) fn tile_configuration(&self, shapes: &[TileShape; REGISTERS as usize]) -> V {
        let mut bytes = [0; 64];
        // Palette 1 is the only one that processors have.
        bytes[0] = 1;
        for (register, shape) in shapes.iter().enumerate() {
            bytes[ROW_BYTES as usize + 2 * register] = shape.bytes;
            bytes[ROWS as usize + register] = shape.rows;
        }
        let configuration = self.alloca(8, self.i64());
        for (index, word) in bytes.chunks_exact(8).enumerate() {
            let word = i64::from_le_bytes(word.try_into().expect("chunks have eight bytes"));
            self.store(self.index(word), configuration, DType::I64, self.index(index as i64));
        }
        configuration
    }

    /// Configures the tile registers, which become zero.
    pub(crate) fn configure_tiles(&self, configuration: V) {
        if let Some(memory) = self.emulated_tiles() {
            return self.repeat(8, |word| {
                let value = self.load(configuration, DType::I64, word);
                self.store(value, memory, DType::I64, word);
            });
        }
        self.uses_tiles.set(true);
        self.intrinsic("llvm.x86.ldtilecfg", &[configuration]);
    }

    /// Ends the use of tile registers, which would otherwise be saved whenever the thread is interrupted.
    pub(crate) fn release_tiles(&self) {
        if self.emulated_tiles().is_none() {
            self.intrinsic("llvm.x86.tilerelease", &[]);
        }
    }

    pub(crate) fn zero_tile(&self, register: u8) {
        if let Some(memory) = self.emulated_tiles() {
            let zero = self.zero(self.f32());
            return self.repeat(BYTES / 4, |i| self.store(zero, memory, DType::F32, self.plus(i, first(register) / 4)));
        }
        self.intrinsic("llvm.x86.tilezero", &[self.register(register)]);
    }

    /// Loads a tile from a matrix whose rows have a distance of `stride` elements.
    pub(crate) fn load_tile(&self, register: u8, pointer: V, dtype: DType, index: V, stride: i64) {
        let size = dtype.bits() as i64 / 8;
        let address = self.address(pointer, self.int(dtype.bits() as u32), index);
        if let Some(memory) = self.emulated_tiles() {
            return self.copy_tile(register, memory, address, stride * size, true);
        }
        let stride = self.index(stride * size);
        self.intrinsic("llvm.x86.tileloadd64", &[self.register(register), address, stride]);
    }

    /// Stores a tile of `f32` into a matrix whose rows have a distance of `stride` elements.
    pub(crate) fn store_tile(&self, register: u8, pointer: V, index: V, stride: i64) {
        let address = self.address(pointer, self.f32(), index);
        if let Some(memory) = self.emulated_tiles() {
            return self.copy_tile(register, memory, address, stride * 4, false);
        }
        self.intrinsic("llvm.x86.tilestored64", &[self.register(register), address, self.index(stride * 4)]);
    }

    /// Adds the product of two tiles of `bf16` to a tile of `f32`. Rows of the right tile have pairs of rows of the matrix.
    pub(crate) fn multiply_tiles(&self, sums: u8, left: u8, right: u8) {
        let Some(memory) = self.emulated_tiles() else {
            let registers = [sums, left, right].map(|register| self.register(register));
            return self.intrinsic("llvm.x86.tdpbf16ps", &registers);
        };
        let count = |bytes: V| self.div(bytes, self.index(4), true);
        let columns = count(self.row_bytes(memory, sums));
        let pairs = count(self.row_bytes(memory, left));
        let at = |register: u8, size: i64, row: V, column: V| {
            self.plus(self.add(self.times(row, ROW / size), column), first(register) / size)
        };
        self.for_each(self.index(0), self.rows(memory, sums), 1, |row| {
            self.for_each(self.index(0), columns, 1, |column| {
                self.for_each(self.index(0), pairs, 1, |pair| {
                    let place = at(sums, 4, row, column);
                    let mut sum = self.load(memory, DType::F32, place);
                    for half in 0..2 {
                        let a = self.load(memory, DType::BF16, at(left, 2, row, self.plus(self.times(pair, 2), half)));
                        let b =
                            self.load(memory, DType::BF16, at(right, 2, pair, self.plus(self.times(column, 2), half)));
                        sum = self.fma(a, b, sum);
                    }
                    self.store(sum, memory, DType::F32, place);
                });
            });
        });
    }

    fn register(&self, register: u8) -> V {
        self.integer(register.into(), self.int(8))
    }

    /// Returns the memory of emulated tile registers: a configuration, then the registers.
    fn emulated_tiles(&self) -> Option<V> {
        if self.form.tiles != Tiles::Emulated {
            return None;
        }
        if self.emulated.get().is_none() {
            self.emulated.set(Some(self.alloca((64 + REGISTERS * BYTES) / 8, self.i64())));
        }
        self.emulated.get()
    }

    fn rows(&self, memory: V, register: u8) -> V {
        self.resize(self.load(memory, DType::U8, self.index(ROWS + i64::from(register))), self.i64(), true)
    }

    fn row_bytes(&self, memory: V, register: u8) -> V {
        self.resize(self.load(memory, DType::U8, self.index(ROW_BYTES + 2 * i64::from(register))), self.i64(), true)
    }

    /// Copies an emulated tile from or to a matrix whose rows have a distance of `stride` bytes.
    fn copy_tile(&self, register: u8, memory: V, matrix: V, stride: i64, is_load: bool) {
        let bytes = self.row_bytes(memory, register);
        self.for_each(self.index(0), self.rows(memory, register), 1, |row| {
            self.for_each(self.index(0), bytes, 1, |byte| {
                let inside = self.plus(self.add(self.times(row, ROW), byte), first(register));
                let outside = self.add(self.times(row, stride), byte);
                let ((from, source), (to, target)) = match is_load {
                    true => ((matrix, outside), (memory, inside)),
                    false => ((memory, inside), (matrix, outside)),
                };
                self.store(self.load(from, DType::U8, source), to, DType::U8, target);
            });
        });
    }
}

/// Returns the offset of an emulated register.
fn first(register: u8) -> i64 {
    64 + i64::from(register) * BYTES
}
