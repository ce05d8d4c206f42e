// RUN: divi-opt %s --split-input-file --verify-diagnostics

// Tests that an unknown device kind is rejected.
// expected-error @below {{has kind "tpu": expected one of cpu, cuda}}
divi.device @tpu0 {kind = "tpu", memory = 1 : i64}

// -----

// Tests that a device must have memory.
// expected-error @below {{'divi.device' op has 0 bytes of memory: it must be positive}}
divi.device @cpu0 {kind = "cpu", memory = 0 : i64}

// -----

// Tests that negative memory is rejected.
// expected-error @below {{'divi.device' op has -1 bytes of memory: it must be positive}}
divi.device @cpu0 {kind = "cpu", memory = -1 : i64}

// -----

// Tests that a batch size of zero is rejected.
// expected-error @below {{'divi.device' op has batch size 0: batch sizes start at 1}}
divi.device @cpu0 {kind = "cpu", memory = 1 : i64, batch_sizes = [4, 0]}

// -----

// Tests that batch sizes must increase.
// expected-error @below {{'divi.device' op has batch size 1 after batch size 4: batch sizes must be strictly increasing}}
divi.device @cpu0 {kind = "cpu", memory = 1 : i64, batch_sizes = [4, 1]}

// -----

// Tests that a batch size may occur only once.
// expected-error @below {{'divi.device' op has batch size 4 after batch size 4: batch sizes must be strictly increasing}}
divi.device @cpu0 {kind = "cpu", memory = 1 : i64, batch_sizes = [4, 4]}

// -----

// Tests that a device must have a kind.
// expected-error @below {{'divi.device' op requires attribute 'kind'}}
divi.device @cpu0 {memory = 1 : i64}

// -----

// Tests that devices must be at module level.
func.func @main() {
  // expected-error @below {{'divi.device' op expects parent op 'builtin.module'}}
  divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
  return
}

// -----

// Tests that device names must be unique.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64} // expected-note {{see existing symbol definition here}}
// expected-error @below {{redefinition of symbol named 'cpu0'}}
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}

// -----

// Tests that links must be at module level.
func.func @main() {
  // expected-error @below {{'divi.link' op expects parent op 'builtin.module'}}
  divi.link @cpu0 -> @cpu1 {bandwidth = 1.0 : f64, latency = 0.0 : f64}
  return
}

// -----

// Tests that a link from a device to itself is rejected.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
// expected-error @below {{'divi.link' op connects @cpu0 to itself: remove the link}}
divi.link @cpu0 -> @cpu0 {bandwidth = 1.0 : f64, latency = 0.0 : f64}

// -----

// Tests that the source of a link must be a declared device.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
// expected-error @below {{'divi.link' op names @gpu0, which is not a divi.device of this module: declare it with 'divi.device @gpu0 {kind = …, memory = …}'}}
divi.link @gpu0 -> @cpu0 {bandwidth = 1.0 : f64, latency = 0.0 : f64}

// -----

// Tests that the destination of a link must be a device, not another symbol.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
func.func private @gpu0()
// expected-error @below {{'divi.link' op names @gpu0, which is not a divi.device of this module}}
divi.link @cpu0 -> @gpu0 {bandwidth = 1.0 : f64, latency = 0.0 : f64}

// -----

// Tests that a bandwidth of zero is rejected.
// expected-error @below {{'divi.link' op needs a positive bandwidth in bytes per second}}
divi.link @cpu0 -> @cpu1 {bandwidth = 0.0 : f64, latency = 0.0 : f64}

// -----

// Tests that a negative bandwidth is rejected.
// expected-error @below {{'divi.link' op needs a positive bandwidth in bytes per second}}
divi.link @cpu0 -> @cpu1 {bandwidth = -1.0 : f64, latency = 0.0 : f64}

// -----

// Tests that a bandwidth that is NaN is rejected.
// expected-error @below {{'divi.link' op needs a positive bandwidth in bytes per second}}
divi.link @cpu0 -> @cpu1 {bandwidth = 0x7FF8000000000000 : f64, latency = 0.0 : f64}

// -----

// Tests that a negative latency is rejected.
// expected-error @below {{'divi.link' op needs a latency in seconds that is not negative}}
divi.link @cpu0 -> @cpu1 {bandwidth = 1.0 : f64, latency = -1.0 : f64}

// -----

// Tests that an infinite latency is rejected.
// expected-error @below {{'divi.link' op needs a latency in seconds that is not negative}}
divi.link @cpu0 -> @cpu1 {bandwidth = 1.0 : f64, latency = 0x7FF0000000000000 : f64}

// -----

// Tests that a second link between the same devices is rejected.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
divi.link @cpu0 -> @gpu0 {bandwidth = 1.0 : f64, latency = 0.0 : f64} // expected-note {{the first is here}}
divi.link @gpu0 -> @cpu0 {bandwidth = 1.0 : f64, latency = 0.0 : f64}
// expected-error @below {{'divi.link' op from @cpu0 to @gpu0 is declared twice: merge the two into one}}
divi.link @cpu0 -> @gpu0 {bandwidth = 2.0 : f64, latency = 0.0 : f64}

// -----

// Tests that a cluster must have a kind.
func.func @main() {
  // expected-error @below {{'divi.cluster' op needs a kind, as in "conv_bn_relu"}}
  divi.cluster ""() {
  }
  return
}

// -----

// Tests that the arguments of a cluster's body must match its operands.
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'divi.cluster' op has a body whose arguments are not its operands: give the body one argument of the same type for each of the 1 operands}}
  divi.cluster "relu"(%x : tensor<2xf32>) {
  ^bb0(%a: tensor<3xf32>):
    divi.yield
  }
  return
}

// -----

// Tests that a cluster must yield values for its results.
func.func @main(%x: tensor<2xf32>) {
  %0 = divi.cluster "relu"(%x : tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%a: tensor<2xf32>):
    // expected-error @below {{'divi.yield' op yields 0 values whose types are not those of the cluster's 1 results}}
    divi.yield
  }
  return
}

// -----

// Tests that a cluster is isolated from above.
func.func @main(%x: tensor<2xf32>) {
  // expected-note @below {{required by region isolation constraints}}
  %0 = divi.cluster "relu"() -> tensor<2xf32> {
    // expected-error @below {{'divi.yield' op using value defined outside the region}}
    divi.yield %x : tensor<2xf32>
  }
  return
}

// -----

// Tests that a yield outside a cluster is rejected.
func.func @main() {
  // expected-error @below {{'divi.yield' op expects parent op 'divi.cluster'}}
  divi.yield
}

// -----

// Tests that a transfer to the same device is rejected.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'divi.transfer' op moves a tensor from @cpu0 to itself: use the operand instead}}
  %0 = divi.transfer %x from @cpu0 to @cpu0 : tensor<2xf32>
  return
}

// -----

// Tests that the source of a transfer must be a declared device.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'divi.transfer' op names @cpu1, which is not a divi.device of this module}}
  %0 = divi.transfer %x from @cpu1 to @cpu0 : tensor<2xf32>
  return
}

// -----

// Tests that the destination of a transfer must be a declared device.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'divi.transfer' op names @cpu1, which is not a divi.device of this module}}
  %0 = divi.transfer %x from @cpu0 to @cpu1 : tensor<2xf32>
  return
}

// -----

// Tests that only tensors can be transferred.
func.func @main(%x: f32) {
  // expected-error @below {{'divi.transfer' op operand #0 must be tensor of any type values, but got 'f32'}}
  %0 = "divi.transfer"(%x) {from = @cpu0, to = @cpu1} : (f32) -> f32
  return
}

// -----

// Tests that a transfer without a link is rejected if the module declares links.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
divi.link @gpu0 -> @cpu0 {bandwidth = 1.0 : f64, latency = 0.0 : f64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'divi.transfer' op has no link: declare 'divi.link @cpu0 -> @gpu0 {…}' or transfer through a device that is linked with both}}
  %0 = divi.transfer %x from @cpu0 to @gpu0 : tensor<2xf32>
  return
}

// -----

// Tests that every transfer needs a link, not only the first.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
divi.device @gpu1 {kind = "cuda", memory = 1 : i64}
divi.link @cpu0 -> @gpu0 {bandwidth = 1.0 : f64, latency = 0.0 : f64}
func.func @main(%x: tensor<2xf32>) {
  %0 = divi.transfer %x from @cpu0 to @gpu0 : tensor<2xf32>
  // expected-error @below {{'divi.transfer' op has no link: declare 'divi.link @gpu0 -> @gpu1 {…}' or transfer through a device that is linked with both}}
  %1 = divi.transfer %0 from @gpu0 to @gpu1 : tensor<2xf32>
  return
}

// -----

// Tests that an unknown device of a later transfer is not reported as a missing link.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
divi.link @cpu0 -> @gpu0 {bandwidth = 1.0 : f64, latency = 0.0 : f64}
func.func @main(%x: tensor<2xf32>) {
  %0 = divi.transfer %x from @cpu0 to @gpu0 : tensor<2xf32>
  // expected-error @below {{'divi.transfer' op names @gpu1, which is not a divi.device of this module}}
  %1 = divi.transfer %0 from @gpu0 to @gpu1 : tensor<2xf32>
  return
}

// -----

// Tests that model inputs are on the first CPU only.
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @cpu1 {kind = "cpu", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'divi.transfer' op reads operand 0 on @cpu1, but it is on @cpu0: insert 'divi.transfer … from @cpu0 to @cpu1'}}
  %0 = divi.transfer %x from @cpu1 to @gpu0 : tensor<2xf32>
  return
}

// -----

// Tests that model inputs are on the first device if there is no CPU.
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
divi.device @gpu1 {kind = "cuda", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'divi.transfer' op reads operand 0 on @gpu1, but it is on @gpu0}}
  %0 = divi.transfer %x from @gpu1 to @gpu0 : tensor<2xf32>
  return
}

// -----

// Tests that the attribute of an argument defines its device.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func @main(%x: tensor<2xf32> {divi.device = @gpu0}) {
  // expected-error @below {{'divi.transfer' op reads operand 0 on @cpu0, but it is on @gpu0}}
  %0 = divi.transfer %x from @cpu0 to @gpu0 : tensor<2xf32>
  return
}

// -----

// Tests that a function's arguments are on its device.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func @stage(%x: tensor<2xf32>) attributes {divi.device = @gpu0} {
  // expected-error @below {{'divi.transfer' op reads operand 0 on @cpu0, but it is on @gpu0: insert 'divi.transfer … from @gpu0 to @cpu0'}}
  %0 = divi.transfer %x from @cpu0 to @gpu0 : tensor<2xf32>
  return
}

// -----

// Tests that the attribute of an argument overrides the device of its function.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func @stage(%x: tensor<2xf32> {divi.device = @cpu0}) attributes {divi.device = @gpu0} {
  %there = divi.transfer %x from @cpu0 to @gpu0 : tensor<2xf32>
  // expected-error @below {{'onnx.Relu' op reads operand 0 on @gpu0, but it is on @cpu0: insert 'divi.transfer … from @cpu0 to @gpu0'}}
  %0 = "onnx.Relu"(%x) {divi.device = @gpu0} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that all operands of an operator must be on its device.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  %0 = divi.transfer %x from @cpu0 to @gpu0 : tensor<2xf32>
  // expected-error @below {{'onnx.Add' op reads operand 1 on @gpu0, but it is on @cpu0: insert 'divi.transfer … from @cpu0 to @gpu0'}}
  %1 = "onnx.Add"(%0, %x) {divi.device = @gpu0} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that the operands of a cluster must be on its device, including results of operators with a decision.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  %there = divi.transfer %x from @cpu0 to @gpu0 : tensor<2xf32>
  %0 = "onnx.Relu"(%x) {divi.device = @cpu0} : (tensor<2xf32>) -> tensor<2xf32>
  // expected-error @below {{'divi.cluster' op reads operand 0 on @gpu0, but it is on @cpu0}}
  divi.cluster "nothing"(%0 : tensor<2xf32>) attributes {divi.device = @gpu0} {
  ^bb0(%a: tensor<2xf32>):
    divi.yield
  }
  return
}

// -----

// Tests that the result of a cluster is on the cluster's device.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  %0 = divi.cluster "same"(%x : tensor<2xf32>) -> tensor<2xf32> attributes {divi.device = @cpu0} {
  ^bb0(%a: tensor<2xf32>):
    divi.yield %a : tensor<2xf32>
  }
  // expected-error @below {{'divi.transfer' op reads operand 0 on @gpu0, but it is on @cpu0}}
  %1 = divi.transfer %0 from @gpu0 to @cpu0 : tensor<2xf32>
  return
}

// -----

// Tests that operands of unknown operators must be on the operator's device, too.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  %there = divi.transfer %x from @cpu0 to @gpu0 : tensor<2xf32>
  // expected-error @below {{'onnx.FancyNewOp' op reads operand 0 on @gpu0, but it is on @cpu0}}
  "onnx.FancyNewOp"(%x) {divi.device = @gpu0} : (tensor<2xf32>) -> ()
  return
}

// -----

// Tests that a value cannot be used on another device than the one that computed it.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func private @stage(tensor<2xf32>) -> tensor<2xf32>
func.func @main(%x: tensor<2xf32>) {
  %0 = divi.launch @stage(%x) on @cpu0 : (tensor<2xf32>) -> tensor<2xf32>
  // expected-error @below {{'divi.launch' op reads operand 0 on @gpu0, but it is on @cpu0: insert 'divi.transfer … from @cpu0 to @gpu0'}}
  %1 = divi.launch @stage(%0) on @gpu0 : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that a transferred value is on the destination only, for any operand.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func private @stage(tensor<2xf32>, tensor<2xf32>)
func.func @main(%x: tensor<2xf32>) {
  %0 = divi.transfer %x from @cpu0 to @gpu0 : tensor<2xf32>
  // expected-error @below {{'divi.launch' op reads operand 1 on @cpu0, but it is on @gpu0}}
  divi.launch @stage(%x, %0) on @cpu0 : (tensor<2xf32>, tensor<2xf32>) -> ()
  return
}

// -----

// Tests that a launch must name a declared device.
func.func private @stage()
func.func @main() {
  // expected-error @below {{'divi.launch' op names @cpu0, which is not a divi.device of this module}}
  divi.launch @stage() on @cpu0 : () -> ()
  return
}

// -----

// Tests that a launch must name a function.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
func.func @main() {
  // expected-error @below {{'divi.launch' op calls @stage, which is not a function of this module}}
  divi.launch @stage() on @cpu0 : () -> ()
  return
}

// -----

// Tests that the operands of a launch must match its callee.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
func.func private @stage(tensor<2xf32>) -> tensor<2xf32>
func.func @main() {
  // expected-error @below {{'divi.launch' op does not match the type of its callee @stage, which is '(tensor<2xf32>) -> tensor<2xf32>'}}
  %0 = divi.launch @stage() on @cpu0 : () -> tensor<2xf32>
  return
}

// -----

// Tests that the results of a launch must match its callee.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
func.func private @stage(tensor<2xf32>) -> tensor<2xf32>
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'divi.launch' op does not match the type of its callee @stage, which is '(tensor<2xf32>) -> tensor<2xf32>'}}
  %0 = divi.launch @stage(%x) on @cpu0 : (tensor<2xf32>) -> tensor<?xf32>
  return
}

// -----

// Tests that a function must be launched on its own device.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func private @stage() attributes {divi.device = @gpu0}
func.func @main() {
  // expected-error @below {{'divi.launch' op runs @stage on @cpu0, but that function is for @gpu0: launch it there or change its divi.device}}
  divi.launch @stage() on @cpu0 : () -> ()
  return
}

// -----

// Tests that a device attribute must be a symbol.
// expected-error @below {{'func.func' op attribute 'divi.device' must name a device, as in @gpu0; it is "gpu0"}}
func.func private @stage() attributes {divi.device = "gpu0"}

// -----

// Tests that a device attribute must name a declared device.
// expected-error @below {{'func.func' op attribute 'divi.device' names @gpu0, which is not a divi.device of this module: declare it with 'divi.device @gpu0 {kind = …, memory = …}'}}
func.func private @stage() attributes {divi.device = @gpu0}

// -----

// Tests that a pin must name a declared device.
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.pin' names @gpu0, which is not a divi.device of this module}}
  %0 = "onnx.Relu"(%x) {divi.pin = @gpu0} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that a pin must not be a nested symbol.
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.pin' must name a device, as in @gpu0; it is @gpu0::@core0}}
  %0 = "onnx.Relu"(%x) {divi.pin = @gpu0::@core0} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that the device of an argument must be declared.
// expected-error @below {{'func.func' op attribute 'divi.device' names @gpu0, which is not a divi.device of this module}}
func.func private @stage(tensor<2xf32> {divi.device = @gpu0})

// -----

// Tests that other divi attributes of arguments are rejected.
// expected-error @below {{'func.func' op argument 1 has attribute 'divi.start': divi.device is the only divi attribute of arguments}}
func.func private @stage(tensor<2xf32>, tensor<2xf32> {divi.start = 1.0 : f64})

// -----

// Tests that a start must be a float.
// expected-error @below {{'func.func' op attribute 'divi.start' must be a time in microseconds, as in 120.5 : f64; it is 120 : i64}}
func.func private @stage() attributes {divi.start = 120}

// -----

// Tests that a start must be a 64-bit float.
// expected-error @below {{'func.func' op attribute 'divi.start' must be a time in microseconds, as in 120.5 : f64; it is 1.205000e+02 : f32}}
func.func private @stage() attributes {divi.start = 120.5 : f32}

// -----

// Tests that a negative start is rejected.
// expected-error @below {{'func.func' op attribute 'divi.start' must be a time in microseconds, as in 120.5 : f64; it is -1.000000e+00 : f64}}
func.func private @stage() attributes {divi.start = -1.0 : f64}

// -----

// Tests that an infinite start is rejected.
// expected-error @below {{'func.func' op attribute 'divi.start' must be a time in microseconds, as in 120.5 : f64; it is 0x7FF0000000000000 : f64}}
func.func private @stage() attributes {divi.start = 0x7FF0000000000000 : f64}

// -----

// Tests that a cost must be a #divi.cost.
// expected-error @below {{'func.func' op attribute 'divi.cost' must be a #divi.cost, is 3.700000e+01 : f64}}
func.func private @stage() attributes {divi.cost = 37.0 : f64}

// -----

// Tests that costs must name declared devices.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.cost' names @nowhere, which is not a divi.device of this module: declare it with 'divi.device @nowhere {kind = …, memory = …}'}}
  %0 = "onnx.Relu"(%x) {divi.cost = #divi.cost<@cpu0 = {1 = 1.0, 2 = 1.5}, @nowhere = {1 = 1.0}>} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that members must be strings.
// expected-error @below {{'func.func' op attribute 'divi.members' must be a list of node names, is ["/conv1", 2]}}
func.func private @stage() attributes {divi.members = ["/conv1", 2]}

// -----

// Tests that members must be a list.
// expected-error @below {{'func.func' op attribute 'divi.members' must be a list of node names, is "/conv1"}}
func.func private @stage() attributes {divi.members = "/conv1"}

// -----

// Tests that bytes must be 64-bit integers.
// expected-error @below {{'func.func' op attribute 'divi.weight_bytes' must be a number of bytes, as in 4096 : i64; it is 4096 : i32}}
func.func private @stage() attributes {divi.weight_bytes = 4096 : i32}

// -----

// Tests that negative bytes are rejected.
// expected-error @below {{'func.func' op attribute 'divi.activation_bytes' must be a number of bytes, as in 4096 : i64; it is -1 : i64}}
func.func private @stage() attributes {divi.activation_bytes = -1}

// -----

// Tests that flops must be an integer.
// expected-error @below {{'func.func' op attribute 'divi.flops' must be a number of operations, as in 2048 : i64; it is 2.000000e+00 : f64}}
func.func private @stage() attributes {divi.flops = 2.0}

// -----

// Tests that a bound must be a dictionary of devices.
// expected-error @below {{'func.func' op attribute 'divi.bound' must be a dictionary of devices, is "memory"}}
func.func private @stage() attributes {divi.bound = "memory"}

// -----

// Tests that a bound must name declared devices.
// expected-error @below {{'func.func' op attribute 'divi.bound' names @gpu0, which is not a divi.device of this module: declare it with 'divi.device @gpu0 {kind = …, memory = …}'}}
func.func private @stage() attributes {divi.bound = {gpu0 = "memory"}}

// -----

// Tests that a bound must be compute, memory or launch.
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
// expected-error @below {{'func.func' op attribute 'divi.bound' must be "compute", "memory" or "launch" for each device; "gpu0" has "luck"}}
func.func private @stage() attributes {divi.bound = {gpu0 = "luck"}}

// -----

// Tests that the sources of costs must be on the module.
// expected-error @below {{'func.func' op attribute 'divi.costs' belongs on the module}}
func.func private @stage() attributes {divi.costs = {}}

// -----

// Tests that the sources of costs must be a dictionary of devices.
// expected-error @below {{'builtin.module' op attribute 'divi.costs' must be a dictionary of devices, is 1 : i64}}
module attributes {divi.costs = 1} {}

// -----

// Tests that the sources of costs must have all three counts.
// expected-error @below {{'builtin.module' op attribute 'divi.costs' must count tasks as measured, interpolated and estimated; "gpu0" has {measured = 1 : i64}}}
module attributes {divi.costs = {gpu0 = {measured = 1}}} {
  divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
}

// -----

// Tests that contention must be on the module.
// expected-error @below {{'func.func' op attribute 'divi.contention' belongs on the module}}
func.func private @stage() attributes {divi.contention = "off"}

// -----

// Tests that an unknown contention is rejected.
// expected-error @below {{'builtin.module' op attribute 'divi.contention' must be "off", "exclusive" or "shared", is "some"}}
module attributes {divi.contention = "some"} {}

// -----

// Tests that a misspelled divi attribute is rejected.
// expected-error @below {{'func.func' op has unknown attribute 'divi.devcie': use another prefix, or one of divi.device, divi.pin, divi.exclude, divi.colocate, divi.weights, divi.precision, divi.start, divi.end, divi.stage, divi.batches, divi.moves, divi.copies, divi.resident, divi.inputs, divi.cost, divi.costs, divi.bound, divi.contention, divi.cold, divi.flops, divi.members, divi.plan, divi.without, divi.reason and divi.*_bytes}}
func.func private @stage() attributes {divi.devcie = @gpu0}

// -----

// Tests that the certificate must be on the module.
// expected-error @below {{'func.func' op attribute 'divi.plan' belongs on the module}}
func.func private @stage() attributes {divi.plan = {}}

// -----

// Tests that the certificate must be a dictionary.
// expected-error @below {{'builtin.module' op attribute 'divi.plan' must be a dictionary, is "optimal"}}
module attributes {divi.plan = "optimal"} {}

// -----

// Tests that the certificate must have an objective.
// expected-error @below {{'builtin.module' op attribute 'divi.plan.objective' must be a string, is missing}}
module attributes {divi.plan = {}} {}

// -----

// Tests that strings of the certificate have the right type.
// expected-error @below {{'builtin.module' op attribute 'divi.plan.algorithm' must be a string, is 1 : i64}}
module attributes {divi.plan = {objective = "latency", bound_by = "lp", algorithm = 1}} {}

// -----

// Tests that numbers of the certificate have the right type.
// expected-error @below {{'builtin.module' op attribute 'divi.plan.bound' must be a float, is 1 : i64}}
module attributes {divi.plan = {objective = "latency", bound_by = "lp", algorithm = "milp", value = 2.0, bound = 1, gap = 0.5}} {}

// -----

// Tests that an unknown objective is rejected.
// expected-error @below {{'builtin.module' op attribute 'divi.plan.objective' is "speed": it must be latency, batch or pipeline}}
module attributes {divi.plan = {objective = "speed", bound_by = "lp", algorithm = "milp", value = 2.0, bound = 1.0, gap = 0.5}} {}

// -----

// Tests that a bound above the value is rejected.
// expected-error @below {{'builtin.module' op attribute 'divi.plan' has a bound above its value: no plan can be better than its bound}}
module attributes {divi.plan = {objective = "batch", bound_by = "lp", algorithm = "milp", value = 1.0, bound = 2.0, gap = 0.5}} {}

// -----

// Tests that an unknown proof is rejected.
// expected-error @below {{'builtin.module' op attribute 'divi.plan.proof' is "optimal": it must be exact, safe-dual or solver}}
module attributes {divi.plan = {objective = "batch", bound_by = "lp", proof = "optimal", algorithm = "milp", value = 2.0, bound = 1.0, gap = 0.5}} {}

// -----

// expected-error @below {{'builtin.module' op attribute 'divi.plan.proof' must be a string, is 1 : i64}}
module attributes {divi.plan = {objective = "batch", bound_by = "lp", proof = 1, algorithm = "milp", value = 2.0, bound = 1.0, gap = 0.5}} {}

// -----

// Tests that only a bound reported by a solver can have a verified bound, which must be weaker.
// expected-error @below {{'builtin.module' op attribute 'divi.plan.verified_bound' is for bounds whose proof is "solver", not "exact"}}
module attributes {divi.plan = {objective = "batch", bound_by = "lp", proof = "exact", verified_bound = 0.5, algorithm = "milp", value = 2.0, bound = 1.0, gap = 0.5}} {}

// -----

// expected-error @below {{'builtin.module' op attribute 'divi.plan.verified_bound' is above the bound}}
module attributes {divi.plan = {objective = "batch", bound_by = "lp", proof = "solver", verified_bound = 1.5, algorithm = "milp", value = 2.0, bound = 1.0, gap = 0.5}} {}

// -----

// Tests that an external constant must have a path.
// expected-error @below {{#divi.external needs the path of a file}}
module attributes {test.a = #divi.external<"", offset = 0, length = 4> : tensor<1xf32>} {}

// -----

// Tests that the path of an external constant must be UTF-8.
// expected-error @below {{#divi.external needs a path in UTF-8, has}}
module attributes {test.a = #divi.external<"\FFw.bin", offset = 0, length = 4> : tensor<1xf32>} {}

// -----

// Tests that the length of an external constant must match its type.
// expected-error @below {{#divi.external has length 5, but 'tensor<1xf32>' takes 4 bytes}}
module attributes {test.a = #divi.external<"w.bin", offset = 0, length = 5> : tensor<1xf32>} {}

// -----

// Tests that elements of less than a byte are packed.
// expected-error @below {{#divi.external has length 3, but 'tensor<3xi4>' takes 2 bytes}}
module attributes {test.a = #divi.external<"w.bin", offset = 0, length = 3> : tensor<3xi4>} {}

// -----

// Tests that a size that overflows is rejected.
// expected-error @below {{#divi.external has length 0, but 'tensor<4611686018427387904x4xf32>' is larger than any file}}
module attributes {test.a = #divi.external<"w.bin", offset = 0, length = 0> : tensor<4611686018427387904x4xf32>} {}

// -----

// Tests that an external constant must have a static shape.
// expected-error @below {{#divi.external needs a tensor type of static shape, has 'tensor<?xf32>'}}
module attributes {test.a = #divi.external<"w.bin", offset = 0, length = 4> : tensor<?xf32>} {}

// -----

// Tests that an external constant must be a tensor.
// expected-error @below {{#divi.external needs a tensor type of static shape, has 'f32'}}
module attributes {test.a = #divi.external<"w.bin", offset = 0, length = 4> : f32} {}

// -----

// Tests that an external constant cannot hold strings.
// expected-error @below {{#divi.external cannot hold elements of type '!onnx.String'}}
module attributes {test.a = #divi.external<"w.bin", offset = 0, length = 4> : tensor<1x!onnx.String>} {}

// -----

// Tests that a device may occur only once in a cost.
// expected-error @below {{#divi.cost names @a twice: put all its batch sizes into one {…}}}
module attributes {test.a = #divi.cost<@a = {1 = 1.0}, @b = {1 = 1.0}, @a = {2 = 1.0}>} {}

// -----

// Tests that a cost for a batch size of zero is rejected.
// expected-error @below {{#divi.cost has batch size 0 for @a: batch sizes start at 1}}
module attributes {test.a = #divi.cost<@a = {0 = 1.0}>} {}

// -----

// Tests that a negative cost is rejected.
// expected-error @below {{#divi.cost has a time for @a that is negative or not finite: omit devices that do not support the task}}
module attributes {test.a = #divi.cost<@a = {1 = -1.0}>} {}

// -----

// Tests that an infinite cost is rejected.
// expected-error @below {{#divi.cost has a time for @a that is negative or not finite: omit devices that do not support the task}}
module attributes {test.a = #divi.cost<@a = {1 = 1.0e999}>} {}

// -----

// Tests that a batch size may occur only once for a device.
// expected-error @below {{#divi.cost gives batch size 4 twice for @a}}
module attributes {test.a = #divi.cost<@a = {4 = 1.0, 4 = 2.0}>} {}

// -----

// Tests that a slice is on the device of its operand.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func private @stage(tensor<2x3xf32>)
func.func @main(%x: tensor<4x3xf32>) {
  %0 = divi.slice %x[0, 3] of 4 axis 0 : tensor<4x3xf32> -> tensor<2x3xf32>
  // expected-error @below {{'divi.launch' op reads operand 0 on @gpu0, but it is on @cpu0: insert 'divi.transfer … from @cpu0 to @gpu0'}}
  divi.launch @stage(%0) on @gpu0 : (tensor<2x3xf32>) -> ()
  return
}

// -----

// Tests that a slice of inputs out of range is rejected.
func.func @main(%x: tensor<4x3xf32>) {
  // expected-error @below {{'divi.slice' op takes input 4 of 4, counted from 0}}
  %0 = divi.slice %x[0, 4] of 4 axis 0 : tensor<4x3xf32> -> tensor<2x3xf32>
  return
}

// -----

// Tests that an empty slice is rejected.
func.func @main(%x: tensor<4x3xf32>) {
  // expected-error @below {{'divi.slice' op takes no input: it must take at least one}}
  %0 = divi.slice %x[] of 4 axis 0 : tensor<4x3xf32> -> tensor<0x3xf32>
  return
}

// -----

// Tests that the axis of inputs must exist.
func.func @main(%x: tensor<4x3xf32>) {
  // expected-error @below {{'divi.slice' op has its inputs on axis 2, which 'tensor<4x3xf32>' does not have}}
  %0 = divi.slice %x[0] of 4 axis 2 : tensor<4x3xf32> -> tensor<1x3xf32>
  return
}

// -----

// Tests that the number of inputs must be positive.
func.func @main(%x: tensor<4x3xf32>) {
  // expected-error @below {{'divi.slice' op has 0 inputs in each of 1 parts: both must be positive}}
  %0 = divi.slice %x[0] of 0 axis 0 : tensor<4x3xf32> -> tensor<1x3xf32>
  return
}

// -----

// Tests that the number of inputs in all parts must not overflow.
func.func @main(%x: tensor<?x3xf32>) {
  // expected-error @below {{'divi.slice' op has 4611686018427387904 inputs in each of 2 parts, whose product overflows}}
  %0 = divi.slice %x[0] of 4611686018427387904 axis 0 outer 2 : tensor<?x3xf32> -> tensor<?x3xf32>
  return
}

// -----

// Tests that the size of a slice that repeats inputs must not overflow.
func.func @main(%x: tensor<4611686018427387904xi8>) {
  // expected-error @below {{'divi.slice' op has 2 inputs of 'tensor<4611686018427387904xi8>', whose size on axis 0 overflows}}
  %0 = divi.slice %x[0, 0] of 1 axis 0 : tensor<4611686018427387904xi8> -> tensor<?xi8>
  return
}

// -----

// Tests that the size of a gather must not overflow.
func.func @main(%x: tensor<4611686018427387904xi8>) {
  // expected-error @below {{'divi.gather' op has 2 inputs of 'tensor<4611686018427387904xi8>', whose size on axis 0 overflows}}
  %0 = divi.gather %x of 1, %x of 1 axis 0 : (tensor<4611686018427387904xi8>, tensor<4611686018427387904xi8>) -> tensor<?xi8>
  return
}

// -----

// Tests that the number of gathered inputs must not overflow.
func.func @main(%x: tensor<?xi8>) {
  // expected-error @below {{'divi.gather' op has input counts whose sum overflows}}
  %0 = divi.gather %x of 9223372036854775807, %x of 1 axis 0 : (tensor<?xi8>, tensor<?xi8>) -> tensor<?xi8>
  return
}

// -----

// Tests that slices and gathers that use each other, as an unreachable block may have, do not stop the verification.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
divi.link @gpu0 -> @cpu0 {bandwidth = 1.0 : f64, latency = 0.0 : f64}
func.func @main() {
  return
^unreachable:
  %0 = divi.slice %1[0] of 1 axis 0 : tensor<2xf32> -> tensor<2xf32>
  %1 = divi.gather %0 of 1 axis 0 : (tensor<2xf32>) -> tensor<2xf32>
  // expected-error @below {{'divi.transfer' op has no link: declare 'divi.link @cpu0 -> @gpu0 {…}'}}
  %2 = divi.transfer %1 from @cpu0 to @gpu0 : tensor<2xf32>
  return
}

// -----

// Tests that the number of inputs must divide the size of the axis.
func.func @main(%x: tensor<6x3xf32>) {
  // expected-error @below {{'divi.slice' op has 4 inputs in each of 1 parts, which do not divide axis 0 of 'tensor<6x3xf32>'}}
  %0 = divi.slice %x[0] of 4 axis 0 : tensor<6x3xf32> -> tensor<1x3xf32>
  return
}

// -----

// Tests that the result type of a slice must match its inputs.
func.func @main(%x: tensor<4x3xf32>) {
  // expected-error @below {{'divi.slice' op has result type 'tensor<3x3xf32>', but 2 inputs of 'tensor<4x3xf32>' have type 'tensor<2x3xf32>'}}
  %0 = divi.slice %x[0, 1] of 4 axis 0 : tensor<4x3xf32> -> tensor<3x3xf32>
  return
}

// -----

// Tests that gathered tensors must have the same type for one input.
func.func @main(%x: tensor<4x3xf32>, %y: tensor<4x2xf32>) {
  // expected-error @below {{'divi.gather' op concatenates inputs of different types: 'tensor<1x3xf32>' and 'tensor<1x2xf32>'}}
  %0 = divi.gather %x of 4, %y of 4 axis 0 : (tensor<4x3xf32>, tensor<4x2xf32>) -> tensor<8x3xf32>
  return
}

// -----

// Tests that the result type of a gather must match its inputs.
func.func @main(%x: tensor<4x3xf32>, %y: tensor<2x3xf32>) {
  // expected-error @below {{'divi.gather' op has result type 'tensor<8x3xf32>', but 6 inputs of 'tensor<1x3xf32>' have type 'tensor<6x3xf32>'}}
  %0 = divi.gather %x of 4, %y of 2 axis 0 : (tensor<4x3xf32>, tensor<2x3xf32>) -> tensor<8x3xf32>
  return
}

// -----

// Tests that the start of a batch must be a non-negative finite time.
// expected-error @below {{#divi.batch has a start that is negative or not finite}}
module attributes {test.batch = #divi.batch<@a, start = -1.0, inputs = [0]>} {}

// -----

// Tests that a batch without inputs is rejected.
// expected-error @below {{#divi.batch has no inputs: remove it}}
module attributes {test.batch = #divi.batch<@a, start = 0.0, inputs = []>} {}

// -----

// Tests that an input may occur only once in a batch.
// expected-error @below {{#divi.batch has input 1 after input 1: inputs must be strictly increasing}}
module attributes {test.batch = #divi.batch<@a, start = 0.0, inputs = [0, 1, 1]>} {}

// -----

// Tests that a negative input is rejected.
// expected-error @below {{#divi.batch has input -1: inputs are counted from 0}}
module attributes {test.batch = #divi.batch<@a, start = 0.0, inputs = [-1, 1]>} {}

// -----

// Tests that batches must be a list of #divi.batch.
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.batches' must be a list of batches, as in [#divi.batch<@gpu0, start = 0.0, inputs = [0, 1]>]; it is [0]}}
  %0 = "onnx.Relu"(%x) {divi.batches = [0]} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that an input in two batches is rejected.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.batches' has input 1 in two batches}}
  %0 = "onnx.Relu"(%x) {divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1]>, #divi.batch<@cpu0, start = 1.0, inputs = [1]>]} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that batches must name declared devices.
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.batches' names @gpu0, which is not a divi.device of this module}}
  %0 = "onnx.Relu"(%x) {divi.batches = [#divi.batch<@gpu0, start = 0.0, inputs = [0, 1]>]} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that excluded devices must be a list.
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.exclude' must be a list of devices, as in [@gpu0]; it is @gpu0}}
  %0 = "onnx.Relu"(%x) {divi.exclude = @gpu0} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that excluded devices must be declared.
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.exclude' names @gpu0, which is not a divi.device of this module}}
  %0 = "onnx.Relu"(%x) {divi.exclude = [@gpu0]} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that the name of a group must be a string.
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.colocate' must be the name of a group, is 1 : i64}}
  %0 = "onnx.Relu"(%x) {divi.colocate = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that a negative stage is rejected.
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.stage' must be a number of preceding stages, as in 2 : i64; it is -1 : i64}}
  %0 = "onnx.Relu"(%x) {divi.stage = -1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that an unknown location of weights is rejected.
// expected-error @below {{'func.func' op attribute 'divi.weights' must be "host" or "device", is "disk"}}
func.func @weights_elsewhere() attributes {divi.weights = "disk"} {
  return
}

// -----

// Tests that an unknown element type is rejected.
// expected-error @below {{'func.func' op attribute 'divi.precision' must be "f32", "bf16" or "f16", is "int8"}}
func.func @precision_of_integers() attributes {divi.precision = "int8"} {
  return
}

// -----

// Tests that weights can be streamed only to devices with their own memory.
// expected-error @below {{'divi.device' op has weights "streamed", which devices of kind cpu do not support}}
divi.device @cpu0 {kind = "cpu", memory = 1 : i64, weights = "streamed"}

// -----

// Tests that an unknown residency of weights is rejected.
// expected-error @below {{'divi.device' op has weights "lost": expected resident or streamed}}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64, weights = "lost"}

// -----

// Tests that a move of a negative index is rejected.
// expected-error @below {{#divi.move has index -1: indices start at 0}}
module attributes {test.move = #divi.move<-1, @a -> @b, start = 0.0, end = 1.0>} {}

// -----

// Tests that a move to the same device is rejected.
// expected-error @below {{#divi.move moves a tensor from @a to itself: remove it}}
module attributes {test.move = #divi.move<0, @a -> @a, start = 0.0, end = 1.0>} {}

// -----

// Tests that a move with a negative start is rejected.
// expected-error @below {{#divi.move has a start that is negative, or an end that is before it or not finite}}
module attributes {test.move = #divi.move<0, @a -> @b, start = -1.0, end = 1.0>} {}

// -----

// Tests that a move that ends before it starts is rejected.
// expected-error @below {{#divi.move has a start that is negative, or an end that is before it or not finite}}
module attributes {test.move = #divi.move<0, @a -> @b, start = 2.0, end = 1.0>} {}

// -----

// Tests that moves must be a list of #divi.move.
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.moves' must be a list of moves, as in [#divi.move<0, @gpu0 -> @gpu1, start = 0.0, end = 1.5>]; it is [1]}}
  %0 = "onnx.Relu"(%x) {divi.moves = [1]} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that moves must name declared devices.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.moves' names @gpu0, which is not a divi.device of this module}}
  %0 = "onnx.Relu"(%x) {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 1.0>]} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that moves must be of existing results.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.moves' moves result 1, but there is 1, counted from 0}}
  %0 = "onnx.Relu"(%x) {divi.moves = [#divi.move<1, @cpu0 -> @gpu0, start = 0.0, end = 1.0>]} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that a result may be moved only once to a device.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.moves' moves result 0 from @cpu0 to @gpu0 twice}}
  %0 = "onnx.Relu"(%x) {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 1.0>, #divi.move<0, @cpu0 -> @gpu0, start = 2.0, end = 3.0>]} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that the moves of a function must be of its arguments.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
// expected-error @below {{'func.func' op attribute 'divi.moves' moves argument 2, but there are 2, counted from 0}}
func.func private @main(tensor<2xf32>, tensor<2xf32>) attributes {divi.moves = [#divi.move<2, @cpu0 -> @gpu0, start = 0.0, end = 1.0>]}

// -----

// Tests that the parameters of a task have index 0.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.copies' has index 1: the parameters of an operation have index 0}}
  %0 = "onnx.Relu"(%x) {divi.copies = [#divi.move<1, @cpu0 -> @gpu0, start = 0.0, end = 1.0>]} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that parameters may be copied only once to a device.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.copies' moves the parameters from @cpu0 to @gpu0 twice}}
  %0 = "onnx.Relu"(%x) {divi.copies = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 1.0>, #divi.move<0, @cpu0 -> @gpu0, start = 2.0, end = 3.0>]} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that the end of a transfer must be a time.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'divi.transfer' op attribute 'divi.end' must be a time in microseconds, as in 120.5 : f64; it is 3 : i64}}
  %0 = divi.transfer %x from @cpu0 to @gpu0 {divi.end = 3 : i64} : tensor<2xf32>
  return
}

// -----

// Tests that the device of resident parameters must be a symbol.
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.resident' must name a device, as in @gpu0; it is "gpu0"}}
  %0 = "onnx.Relu"(%x) {divi.resident = "gpu0"} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that a cold start must be on the module.
// expected-error @below {{'func.func' op attribute 'divi.cold' belongs on the module}}
func.func private @stage() attributes {divi.cold}

// -----

// Tests that a cold start must be a unit attribute.
// expected-error @below {{'builtin.module' op attribute 'divi.cold' must be a unit attribute, is 1 : i64}}
module attributes {divi.cold = 1 : i64} {}

// -----

// Tests that a negative node is rejected.
// expected-error @below {{'divi.device' op is part of node -1: nodes are counted from 0}}
divi.device @cpu0 {kind = "cpu", memory = 1 : i64, node = -1 : i64}

// -----

// expected-error @below {{attribute 'divi.without' belongs on a nested module, the plan for the loss of a node}}
func.func @main() attributes {divi.without = 1 : i64} {
  return
}

// -----

// expected-error @below {{attribute 'divi.without' must be a number of preceding nodes, as in 1 : i64; it is "n1"}}
module attributes {divi.without = "n1"} {
}

// -----

// expected-error @below {{divi.reason}}
module attributes {divi.reason = 1 : i64} {
}
