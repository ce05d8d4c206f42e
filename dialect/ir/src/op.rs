//! Names of the operations of the `divi` dialect, and of those of other dialects that passes look for.

pub const CLUSTER: &str = "divi.cluster";
pub const DEVICE: &str = "divi.device";
pub const GATHER: &str = "divi.gather";
pub const LAUNCH: &str = "divi.launch";
pub const LINK: &str = "divi.link";
pub const SLICE: &str = "divi.slice";
pub const TRANSFER: &str = "divi.transfer";
pub const YIELD: &str = "divi.yield";

pub const FUNC: &str = "func.func";
pub const CALL: &str = "func.call";
pub const RETURN: &str = "func.return";
pub const ENTRY_POINT: &str = "onnx.EntryPoint";

/// Returns true for the name of an operation of the `divi` dialect.
pub fn is_divi(name: &str) -> bool {
    name.starts_with("divi.")
}
