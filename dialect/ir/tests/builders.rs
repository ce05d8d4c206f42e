//! The typed builders and accessors that are generated from the dialects' TableGen.

use divi_dialect::{BatchCost, CostAttribute, ExternalAttribute, divi, new_context, onnx};
use melior::ir::{
    Block, BlockLike, Location, Module, Type, Value,
    attribute::{FlatSymbolRefAttribute, IntegerAttribute, StringAttribute},
    operation::OperationLike,
    r#type::IntegerType,
};

#[test]
fn a_device_is_built_and_read() {
    let context = new_context();
    let location = Location::unknown(&context);
    let device = divi::DeviceOperationBuilder::new(&context, location)
        .sym_name(StringAttribute::new(&context, "gpu0"))
        .kind(StringAttribute::new(&context, "cuda"))
        .memory(IntegerAttribute::new(IntegerType::new(&context, 64).into(), 1 << 30))
        .arch(StringAttribute::new(&context, "sm_90"))
        .build();
    assert_eq!(device.kind().unwrap().value(), "cuda");
    assert_eq!(device.memory().unwrap().value(), 1 << 30);
    let module = Module::new(location);
    module.body().append_operation(device.into());
    assert!(module.as_operation().verify());
    let text = module.as_operation().to_string();
    assert!(text.contains(r#"divi.device @gpu0 {arch = "sm_90", kind = "cuda", memory = 1073741824 : i64}"#), "{text}");
}

#[test]
fn a_transfer_is_built_and_read() {
    let context = new_context();
    let location = Location::unknown(&context);
    let tensor = Type::parse(&context, "tensor<1x8xf32>").unwrap();
    let block = Block::new(&[(tensor, location)]);
    let argument: Value<'_, '_> = block.argument(0).unwrap().into();
    let transfer = divi::TransferOperationBuilder::new(&context, location)
        .input(argument)
        .from(FlatSymbolRefAttribute::new(&context, "cpu0"))
        .to(FlatSymbolRefAttribute::new(&context, "gpu0"))
        .build();
    assert_eq!(transfer.from().unwrap().value(), "cpu0");
    assert_eq!(transfer.to().unwrap().value(), "gpu0");
    assert_eq!(transfer.input().unwrap(), argument);
}

#[test]
fn an_operator_is_built_and_read() {
    let context = new_context();
    let location = Location::unknown(&context);
    let tensor = Type::parse(&context, "tensor<1x8xf32>").unwrap();
    let block = Block::new(&[(tensor, location)]);
    let argument: Value<'_, '_> = block.argument(0).unwrap().into();
    let relu = onnx::ReluOperationBuilder::new(&context, location).y(tensor).x(argument).build();
    assert_eq!(relu.x().unwrap(), argument);
    assert!(relu.as_operation().verify());
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
    assert!(CostAttribute::from_attribute(StringAttribute::new(&context, "cost").into()).is_none());
    assert!(CostAttribute::new(location, &[entry("gpu0", 0, 1.0)]).is_none(), "batch sizes start at 1");
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
