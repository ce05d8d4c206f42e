//! Tests that operations and attributes of the two dialects are created and read back, and that their names agree with TableGen.

use divi_dialect::{
    BatchAttribute, BatchCost, Block, CostAttribute, ExternalAttribute, MoveAttribute, NamedAttribute, NewOperation,
    Operation, attr, new_context, op,
};
use melior::ir::{Attribute, Location, Module, Type};
use std::collections::BTreeSet;

#[test]
fn a_device_is_built_and_read() {
    let context = new_context();
    let location = Location::unknown(&context);
    let module = Module::new(location);
    let attributes = [
        attr::SYM_NAME.named(location.context(), "gpu0"),
        attr::KIND.named(location.context(), "cuda"),
        NamedAttribute::with_name("memory", attr::integer(&context, 1 << 30)),
        NamedAttribute::with_name("arch", attr::string(&context, "sm_90")),
    ];
    let device = NewOperation { attributes: &attributes, ..NewOperation::new(op::DEVICE, location) }.create();
    let device = device.append_to(Operation::from(&module).blocks()[0]);
    assert_eq!(device.symbol_name(), Some("gpu0"));
    assert_eq!(device.get(attr::KIND), Some("cuda"));
    assert_eq!(device.attribute("memory").and_then(attr::as_integer), Some(1 << 30));
    assert!(Operation::from(&module).verify());
    let text = module.as_operation().to_string();
    assert!(text.contains(r#"divi.device @gpu0 {arch = "sm_90", kind = "cuda", memory = 1073741824 : i64}"#), "{text}");
}

#[test]
fn integers_of_up_to_64_bits_are_read() {
    let context = new_context();
    let read = |text: &str| {
        let attribute = Attribute::parse(&context, text).unwrap();
        (attr::as_integer(attribute), attr::as_wrapping_integer(attribute))
    };
    assert_eq!(read("-3 : i8"), (Some(-3), Some(-3)));
    assert_eq!(read("7 : index"), (Some(7), Some(7)));
    assert_eq!(read("-9223372036854775808 : si64"), (Some(i64::MIN), Some(i64::MIN)));
    assert_eq!(read("18446744073709551615 : ui64"), (None, Some(-1)));
    // All 128 bits are significant.
    assert_eq!(read("170141183460469231731687303715884105727 : i128"), (None, None));
    assert_eq!(read("170141183460469231731687303715884105727 : si128"), (None, None));
    assert_eq!(read("340282366920938463463374607431768211455 : ui128"), (None, None));
    assert_eq!(read("1.0 : f64"), (None, None));
}

#[test]
fn a_transfer_is_built_and_read() {
    let context = new_context();
    let location = Location::unknown(&context);
    let tensor = Type::parse(&context, "tensor<1x8xf32>").unwrap();
    let block = Block::create(&[(tensor, location)]);
    let operands = [block.argument(0)];
    let attributes = [attr::FROM.named(location.context(), "cpu0"), attr::TO.named(location.context(), "gpu0")];
    let transfer = NewOperation {
        operands: &operands,
        results: &[tensor],
        attributes: &attributes,
        ..NewOperation::new(op::TRANSFER, location)
    };
    let transfer = transfer.create().append_to(block);
    assert_eq!((transfer.get(attr::FROM), transfer.get(attr::TO)), (Some("cpu0"), Some("gpu0")));
    assert_eq!(transfer.operands(), operands);
    assert_eq!(transfer.result(0).r#type(), tensor);
    block.destroy();
}

#[test]
fn an_operator_is_built_and_read() {
    let context = new_context();
    let location = Location::unknown(&context);
    let tensor = Type::parse(&context, "tensor<1x8xf32>").unwrap();
    let block = Block::create(&[(tensor, location)]);
    let operands = [block.argument(0)];
    let relu = NewOperation { operands: &operands, results: &[tensor], ..NewOperation::new("onnx.Relu", location) };
    let relu = relu.create().append_to(block);
    assert_eq!(relu.op().map(|op| op.name()), Some("Relu"));
    assert_eq!(relu.operands(), operands);
    assert!(relu.verify());
    block.destroy();
}

#[test]
fn costs_read_back() {
    let context = new_context();
    let location = Location::unknown(&context);
    let entry = |device: &str, batch, micros| BatchCost { device: device.into(), batch, micros };
    let entries = [entry("gpu0", 1, 37.0), entry("gpu0", 4, 58.1), entry("cpu0", 1, 345.1)];
    let cost = CostAttribute::new(location, &entries).unwrap();
    assert_eq!(cost.entries(), entries);
    assert_eq!(cost.as_attribute().to_string(), "#divi.cost<@gpu0 = {1 = 37.0, 4 = 58.1}, @cpu0 = {1 = 345.1}>");
    assert!(CostAttribute::from_attribute(attr::string(&context, "cost")).is_none());
    assert!(CostAttribute::new(location, &[entry("gpu0", 0, 1.0)]).is_none(), "batch sizes start at 1");
}

#[test]
fn batches_and_moves_read_back() {
    let context = new_context();
    let location = Location::unknown(&context);
    let batch = BatchAttribute::new(location, "gpu0", 12.5, &[0, 2]).unwrap();
    assert_eq!((batch.device(), batch.start(), batch.inputs()), ("gpu0", 12.5, vec![0, 2]));
    assert_eq!(batch.as_attribute().to_string(), "#divi.batch<@gpu0, start = 12.5, inputs = [0, 2]>");
    assert!(BatchAttribute::new(location, "gpu0", 0.0, &[2, 0]).is_none(), "inputs increase");
    let moved = MoveAttribute::new(location, 1, ["gpu0", "cpu0"], [12.5, 20.0], &[]).unwrap();
    assert_eq!((moved.index(), moved.from(), moved.to()), (1, "gpu0", "cpu0"));
    assert_eq!((moved.start(), moved.end(), moved.inputs()), (12.5, 20.0, vec![]));
    assert_eq!(moved.as_attribute().to_string(), "#divi.move<1, @gpu0 -> @cpu0, start = 12.5, end = 20.0>");
    let of_launch = MoveAttribute::new(location, 0, ["gpu0", "cpu0"], [12.5, 20.0], &[2, 3]).unwrap();
    assert_eq!(of_launch.inputs(), [2, 3]);
    let text = "#divi.move<0, @gpu0 -> @cpu0, start = 12.5, end = 20.0, inputs = [2, 3]>";
    assert_eq!(of_launch.as_attribute().to_string(), text);
    assert!(MoveAttribute::new(location, 0, ["gpu0", "gpu0"], [0.0, 1.0], &[]).is_none(), "the devices differ");
    assert!(MoveAttribute::new(location, 0, ["gpu0", "cpu0"], [0.0, 1.0], &[3, 2]).is_none(), "inputs increase");
}

#[test]
fn references_to_weights_read_back() {
    let context = new_context();
    let location = Location::unknown(&context);
    let tensor = Type::parse(&context, "tensor<2x3xf32>").unwrap();
    let external = ExternalAttribute::new(location, tensor, "weights.bin", 16, 24).unwrap();
    assert_eq!((external.path(), external.offset(), external.length()), ("weights.bin", 16, 24));
    assert!(ExternalAttribute::new(location, tensor, "weights.bin", 0, 23).is_none(), "2x3xf32 takes 24 bytes");
}

/// Returns the strings that follow `prefix` up to a quotation mark.
fn quoted<'t>(text: &'t str, prefix: &str) -> BTreeSet<&'t str> {
    text.split(prefix).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// Tests that the constants of `op` name exactly the operations of the dialect.
#[test]
fn names_of_operations_agree_with_table_gen() {
    let defined = quoted(include_str!("../td/Divi.td"), ": Divi_Op<\"");
    assert!(defined.contains("device"), "{defined:?}");
    assert_eq!(quoted(include_str!("../src/op.rs"), "&str = \"divi."), defined);
}
