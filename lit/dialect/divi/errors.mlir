// RUN: divi-opt %s --split-input-file --verify-diagnostics

// Tests that devices are of a kind that divi knows.
// expected-error @below {{has kind "tpu": expected one of cpu, cuda}}
divi.device @tpu0 {kind = "tpu", memory = 1 : i64}

// -----

// Tests that devices have memory.
// expected-error @below {{'divi.device' op has 0 bytes of memory: it must be positive}}
divi.device @cpu0 {kind = "cpu", memory = 0 : i64}

// -----

// Tests that memory is not negative.
// expected-error @below {{'divi.device' op has -1 bytes of memory: it must be positive}}
divi.device @cpu0 {kind = "cpu", memory = -1 : i64}

// -----

// Tests that batch sizes start at one.
// expected-error @below {{'divi.device' op has batch size 0: batch sizes start at 1}}
divi.device @cpu0 {kind = "cpu", memory = 1 : i64, batch_sizes = [4, 0]}

// -----

// Tests that a device says what it is.
// expected-error @below {{'divi.device' op requires attribute 'kind'}}
divi.device @cpu0 {memory = 1 : i64}

// -----

// Tests that devices belong to the module.
func.func @main() {
  // expected-error @below {{'divi.device' op expects parent op 'builtin.module'}}
  divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
  return
}

// -----

// Tests that two devices have two names.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64} // expected-note {{see existing symbol definition here}}
// expected-error @below {{redefinition of symbol named 'cpu0'}}
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}

// -----

// Tests that links belong to the module.
func.func @main() {
  // expected-error @below {{'divi.link' op expects parent op 'builtin.module'}}
  divi.link @cpu0 -> @cpu1 {bandwidth = 1.0 : f64, latency = 0.0 : f64}
  return
}

// -----

// Tests that a link does not lead where it comes from.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
// expected-error @below {{'divi.link' op goes from @cpu0 to itself: a tensor is where it is without a link}}
divi.link @cpu0 -> @cpu0 {bandwidth = 1.0 : f64, latency = 0.0 : f64}

// -----

// Tests that a link comes from a device.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
// expected-error @below {{'divi.link' op names @gpu0, which is no divi.device of this module: declare it with 'divi.device @gpu0 {kind = …, memory = …}'}}
divi.link @gpu0 -> @cpu0 {bandwidth = 1.0 : f64, latency = 0.0 : f64}

// -----

// Tests that a link leads to a device, not to just any symbol.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
func.func private @gpu0()
// expected-error @below {{'divi.link' op names @gpu0, which is no divi.device of this module}}
divi.link @cpu0 -> @gpu0 {bandwidth = 1.0 : f64, latency = 0.0 : f64}

// -----

// Tests that a link moves something.
// expected-error @below {{'divi.link' op needs a positive bandwidth in bytes per second}}
divi.link @cpu0 -> @cpu1 {bandwidth = 0.0 : f64, latency = 0.0 : f64}

// -----

// Tests that bandwidth is not negative.
// expected-error @below {{'divi.link' op needs a positive bandwidth in bytes per second}}
divi.link @cpu0 -> @cpu1 {bandwidth = -1.0 : f64, latency = 0.0 : f64}

// -----

// Tests that bandwidth is a number.
// expected-error @below {{'divi.link' op needs a positive bandwidth in bytes per second}}
divi.link @cpu0 -> @cpu1 {bandwidth = 0x7FF8000000000000 : f64, latency = 0.0 : f64}

// -----

// Tests that nothing arrives before it is sent.
// expected-error @below {{'divi.link' op needs a latency in seconds that is not negative}}
divi.link @cpu0 -> @cpu1 {bandwidth = 1.0 : f64, latency = -1.0 : f64}

// -----

// Tests that what is sent arrives.
// expected-error @below {{'divi.link' op needs a latency in seconds that is not negative}}
divi.link @cpu0 -> @cpu1 {bandwidth = 1.0 : f64, latency = 0x7FF0000000000000 : f64}

// -----

// Tests that there is one link from a device to another.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
divi.link @cpu0 -> @gpu0 {bandwidth = 1.0 : f64, latency = 0.0 : f64} // expected-note {{the first is here}}
divi.link @gpu0 -> @cpu0 {bandwidth = 1.0 : f64, latency = 0.0 : f64}
// expected-error @below {{'divi.link' op from @cpu0 to @gpu0 is declared twice: merge the two into one}}
divi.link @cpu0 -> @gpu0 {bandwidth = 2.0 : f64, latency = 0.0 : f64}

// -----

// Tests that a cluster says what kind of task it is.
func.func @main() {
  // expected-error @below {{'divi.cluster' op needs a kind, as in "conv_bn_relu"}}
  divi.cluster ""() {
  }
  return
}

// -----

// Tests that a cluster's body has the operands as arguments.
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'divi.cluster' op has a body whose arguments are not its operands: give the body one argument of the same type for each of the 1 operands}}
  divi.cluster "relu"(%x : tensor<2xf32>) {
  ^bb0(%a: tensor<3xf32>):
    divi.yield
  }
  return
}

// -----

// Tests that a cluster yields its results.
func.func @main(%x: tensor<2xf32>) {
  %0 = divi.cluster "relu"(%x : tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%a: tensor<2xf32>):
    // expected-error @below {{'divi.yield' op yields 0 values whose types are not those of the cluster's 1 results}}
    divi.yield
  }
  return
}

// -----

// Tests that a cluster sees nothing but its operands.
func.func @main(%x: tensor<2xf32>) {
  // expected-note @below {{required by region isolation constraints}}
  %0 = divi.cluster "relu"() -> tensor<2xf32> {
    // expected-error @below {{'divi.yield' op using value defined outside the region}}
    divi.yield %x : tensor<2xf32>
  }
  return
}

// -----

// Tests that only clusters yield.
func.func @main() {
  // expected-error @below {{'divi.yield' op expects parent op 'divi.cluster'}}
  divi.yield
}

// -----

// Tests that a transfer goes somewhere else.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'divi.transfer' op moves a tensor from @cpu0 to itself: use the tensor where it is}}
  %0 = divi.transfer %x from @cpu0 to @cpu0 : tensor<2xf32>
  return
}

// -----

// Tests that a transfer comes from a device.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'divi.transfer' op names @cpu1, which is no divi.device of this module}}
  %0 = divi.transfer %x from @cpu1 to @cpu0 : tensor<2xf32>
  return
}

// -----

// Tests that a transfer goes to a device.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'divi.transfer' op names @cpu1, which is no divi.device of this module}}
  %0 = divi.transfer %x from @cpu0 to @cpu1 : tensor<2xf32>
  return
}

// -----

// Tests that tensors are what is transferred.
func.func @main(%x: f32) {
  // expected-error @below {{'divi.transfer' op operand #0 must be tensor of any type values, but got 'f32'}}
  %0 = "divi.transfer"(%x) {from = @cpu0, to = @cpu1} : (f32) -> f32
  return
}

// -----

// Tests that a module that declares links declares all of them.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
divi.link @gpu0 -> @cpu0 {bandwidth = 1.0 : f64, latency = 0.0 : f64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'divi.transfer' op has no link to go by: declare 'divi.link @cpu0 -> @gpu0 {…}' or transfer over a device that is linked with both}}
  %0 = divi.transfer %x from @cpu0 to @gpu0 : tensor<2xf32>
  return
}

// -----

// Tests that inputs arrive on the first cpu, and are not anywhere else.
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @cpu1 {kind = "cpu", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'divi.transfer' op reads operand 0 on @cpu1, but it is on @cpu0: insert 'divi.transfer … from @cpu0 to @cpu1'}}
  %0 = divi.transfer %x from @cpu1 to @gpu0 : tensor<2xf32>
  return
}

// -----

// Tests that inputs arrive on the first device where there is no cpu.
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
divi.device @gpu1 {kind = "cuda", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'divi.transfer' op reads operand 0 on @gpu1, but it is on @gpu0}}
  %0 = divi.transfer %x from @gpu1 to @gpu0 : tensor<2xf32>
  return
}

// -----

// Tests that an argument is where its attribute says.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func @main(%x: tensor<2xf32> {divi.device = @gpu0}) {
  // expected-error @below {{'divi.transfer' op reads operand 0 on @cpu0, but it is on @gpu0}}
  %0 = divi.transfer %x from @cpu0 to @gpu0 : tensor<2xf32>
  return
}

// -----

// Tests that a function's arguments are on the device that it is for.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func @stage(%x: tensor<2xf32>) attributes {divi.device = @gpu0} {
  // expected-error @below {{'divi.transfer' op reads operand 0 on @cpu0, but it is on @gpu0: insert 'divi.transfer … from @gpu0 to @cpu0'}}
  %0 = divi.transfer %x from @cpu0 to @gpu0 : tensor<2xf32>
  return
}

// -----

// Tests that an argument that says where it is need not be where its function is.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func @stage(%x: tensor<2xf32> {divi.device = @cpu0}) attributes {divi.device = @gpu0} {
  %there = divi.transfer %x from @cpu0 to @gpu0 : tensor<2xf32>
  // expected-error @below {{'onnx.Relu' op reads operand 0 on @gpu0, but it is on @cpu0: insert 'divi.transfer … from @cpu0 to @gpu0'}}
  %0 = "onnx.Relu"(%x) {divi.device = @gpu0} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that an operator runs where its operands are, whichever operand it is.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  %0 = divi.transfer %x from @cpu0 to @gpu0 : tensor<2xf32>
  // expected-error @below {{'onnx.Add' op reads operand 1 on @gpu0, but it is on @cpu0: insert 'divi.transfer … from @cpu0 to @gpu0'}}
  %1 = "onnx.Add"(%0, %x) {divi.device = @gpu0} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that a cluster runs where its operands are, and that those of an operator with a decision are there.
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

// Tests that a transfer starts where a cluster ran.
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

// Tests that operators that divi does not know run where their operands are, too.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  %there = divi.transfer %x from @cpu0 to @gpu0 : tensor<2xf32>
  // expected-error @below {{'onnx.FancyNewOp' op reads operand 0 on @gpu0, but it is on @cpu0}}
  "onnx.FancyNewOp"(%x) {divi.device = @gpu0} : (tensor<2xf32>) -> ()
  return
}

// -----

// Tests that a value is used on the device that it was produced on.
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

// Tests that a value is used on the device that it was transferred to, whichever operand it is.
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

// Tests that a launch runs on a device.
func.func private @stage()
func.func @main() {
  // expected-error @below {{'divi.launch' op names @cpu0, which is no divi.device of this module}}
  divi.launch @stage() on @cpu0 : () -> ()
  return
}

// -----

// Tests that a launch runs a function.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
func.func @main() {
  // expected-error @below {{'divi.launch' op calls @stage, which is no function of this module}}
  divi.launch @stage() on @cpu0 : () -> ()
  return
}

// -----

// Tests that a launch gives its callee what that takes.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
func.func private @stage(tensor<2xf32>) -> tensor<2xf32>
func.func @main() {
  // expected-error @below {{'divi.launch' op has another type than its callee @stage, which is '(tensor<2xf32>) -> tensor<2xf32>'}}
  %0 = divi.launch @stage() on @cpu0 : () -> tensor<2xf32>
  return
}

// -----

// Tests that a launch gives back what its callee gives.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
func.func private @stage(tensor<2xf32>) -> tensor<2xf32>
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'divi.launch' op has another type than its callee @stage, which is '(tensor<2xf32>) -> tensor<2xf32>'}}
  %0 = divi.launch @stage(%x) on @cpu0 : (tensor<2xf32>) -> tensor<?xf32>
  return
}

// -----

// Tests that a function runs on the device it is for.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func private @stage() attributes {divi.device = @gpu0}
func.func @main() {
  // expected-error @below {{'divi.launch' op runs @stage on @cpu0, but that function is for @gpu0: launch it there or change its divi.device}}
  divi.launch @stage() on @cpu0 : () -> ()
  return
}

// -----

// Tests that a decision names a device.
// expected-error @below {{'func.func' op attribute 'divi.device' must name a device, as in @gpu0; it is "gpu0"}}
func.func private @stage() attributes {divi.device = "gpu0"}

// -----

// Tests that a decision names a device of the module.
// expected-error @below {{'func.func' op attribute 'divi.device' names @gpu0, which is no divi.device of this module: declare it with 'divi.device @gpu0 {kind = …, memory = …}'}}
func.func private @stage() attributes {divi.device = @gpu0}

// -----

// Tests that a constraint names a device of the module.
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.pin' names @gpu0, which is no divi.device of this module}}
  %0 = "onnx.Relu"(%x) {divi.pin = @gpu0} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that a constraint names a device.
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.pin' must name a device, as in @gpu0; it is @gpu0::@core0}}
  %0 = "onnx.Relu"(%x) {divi.pin = @gpu0::@core0} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that an argument is on a device of the module.
// expected-error @below {{'func.func' op attribute 'divi.device' names @gpu0, which is no divi.device of this module}}
func.func private @stage(tensor<2xf32> {divi.device = @gpu0})

// -----

// Tests that arguments carry nothing else of divi's.
// expected-error @below {{'func.func' op argument 1 has attribute 'divi.start': the only one that divi puts on arguments is divi.device}}
func.func private @stage(tensor<2xf32>, tensor<2xf32> {divi.start = 1.0 : f64})

// -----

// Tests that times are times.
// expected-error @below {{'func.func' op attribute 'divi.start' must be a time in microseconds, as in 120.5 : f64; it is 120 : i64}}
func.func private @stage() attributes {divi.start = 120}

// -----

// Tests that times are doubles.
// expected-error @below {{'func.func' op attribute 'divi.start' must be a time in microseconds, as in 120.5 : f64; it is 1.205000e+02 : f32}}
func.func private @stage() attributes {divi.start = 120.5 : f32}

// -----

// Tests that nothing starts before the beginning.
// expected-error @below {{'func.func' op attribute 'divi.start' must be a time in microseconds, as in 120.5 : f64; it is -1.000000e+00 : f64}}
func.func private @stage() attributes {divi.start = -1.0 : f64}

// -----

// Tests that costs are costs.
// expected-error @below {{'func.func' op attribute 'divi.cost' must be a #divi.cost, is 3.700000e+01 : f64}}
func.func private @stage() attributes {divi.cost = 37.0 : f64}

// -----

// Tests that costs are those of devices of the module.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.cost' names @nowhere, which is no divi.device of this module: declare it with 'divi.device @nowhere {kind = …, memory = …}'}}
  %0 = "onnx.Relu"(%x) {divi.cost = #divi.cost<@cpu0 = {1 = 1.0, 2 = 1.5}, @nowhere = {1 = 1.0}>} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that members are names.
// expected-error @below {{'func.func' op attribute 'divi.members' must be a list of node names, is ["/conv1", 2]}}
func.func private @stage() attributes {divi.members = ["/conv1", 2]}

// -----

// Tests that members are a list.
// expected-error @below {{'func.func' op attribute 'divi.members' must be a list of node names, is "/conv1"}}
func.func private @stage() attributes {divi.members = "/conv1"}

// -----

// Tests that bytes are counted in 64 bits.
// expected-error @below {{'func.func' op attribute 'divi.weight_bytes' must be a number of bytes, as in 4096 : i64; it is 4096 : i32}}
func.func private @stage() attributes {divi.weight_bytes = 4096 : i32}

// -----

// Tests that nothing has fewer than no bytes.
// expected-error @below {{'func.func' op attribute 'divi.activation_bytes' must be a number of bytes, as in 4096 : i64; it is -1 : i64}}
func.func private @stage() attributes {divi.activation_bytes = -1}

// -----

// Tests that operations are counted in whole numbers.
// expected-error @below {{'func.func' op attribute 'divi.flops' must be a number of operations, as in 2048 : i64; it is 2.000000e+00 : f64}}
func.func private @stage() attributes {divi.flops = 2.0}

// -----

// Tests that what limits a task is said by device.
// expected-error @below {{'func.func' op attribute 'divi.bound' must be a dictionary of devices, is "memory"}}
func.func private @stage() attributes {divi.bound = "memory"}

// -----

// Tests that what limits a task is said of devices that there are.
// expected-error @below {{'func.func' op attribute 'divi.bound' names @gpu0, which is no divi.device of this module: declare it with 'divi.device @gpu0 {kind = …, memory = …}'}}
func.func private @stage() attributes {divi.bound = {gpu0 = "memory"}}

// -----

// Tests that a task is limited by compute, memory or launches.
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
// expected-error @below {{'func.func' op attribute 'divi.bound' must be "compute", "memory" or "launch" for each device; "gpu0" has "luck"}}
func.func private @stage() attributes {divi.bound = {gpu0 = "luck"}}

// -----

// Tests that where times come from is said on the module.
// expected-error @below {{'func.func' op attribute 'divi.costs' belongs on the module}}
func.func private @stage() attributes {divi.costs = {}}

// -----

// Tests that where times come from is said by device.
// expected-error @below {{'builtin.module' op attribute 'divi.costs' must be a dictionary of devices, is 1 : i64}}
module attributes {divi.costs = 1} {}

// -----

// Tests that tasks are counted by where their times come from.
// expected-error @below {{'builtin.module' op attribute 'divi.costs' must count tasks as measured, interpolated and estimated; "gpu0" has {measured = 1 : i64}}}
module attributes {divi.costs = {gpu0 = {measured = 1}}} {
  divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
}

// -----

// Tests that what transfers do to each other is said on the module.
// expected-error @below {{'func.func' op attribute 'divi.contention' belongs on the module}}
func.func private @stage() attributes {divi.contention = "off"}

// -----

// Tests that transfers do something to each other that divi knows.
// expected-error @below {{'builtin.module' op attribute 'divi.contention' must be "off", "exclusive" or "shared", is "some"}}
module attributes {divi.contention = "some"} {}

// -----

// Tests that a misspelt attribute is not taken for a comment.
// expected-error @below {{'func.func' op attribute 'divi.devcie' is not one that divi knows: use another prefix, or one of divi.device, divi.pin, divi.exclude, divi.colocate, divi.weights, divi.start, divi.end, divi.stage, divi.batches, divi.moves, divi.copies, divi.resident, divi.inputs, divi.cost, divi.costs, divi.bound, divi.contention, divi.cold, divi.flops, divi.members, divi.plan and divi.*_bytes}}
func.func private @stage() attributes {divi.devcie = @gpu0}

// -----

// Tests that the certificate is the module's.
// expected-error @below {{'func.func' op attribute 'divi.plan' belongs on the module}}
func.func private @stage() attributes {divi.plan = {}}

// -----

// Tests that the certificate has parts.
// expected-error @below {{'builtin.module' op attribute 'divi.plan' must be a dictionary, is "optimal"}}
module attributes {divi.plan = "optimal"} {}

// -----

// Tests that the certificate says what was minimised.
// expected-error @below {{'builtin.module' op attribute 'divi.plan.objective' must be a string, is missing}}
module attributes {divi.plan = {}} {}

// -----

// Tests that the certificate's texts are texts.
// expected-error @below {{'builtin.module' op attribute 'divi.plan.algorithm' must be a string, is 1 : i64}}
module attributes {divi.plan = {objective = "latency", bound_by = "lp", algorithm = 1}} {}

// -----

// Tests that the certificate's numbers are numbers.
// expected-error @below {{'builtin.module' op attribute 'divi.plan.bound' must be a float, is 1 : i64}}
module attributes {divi.plan = {objective = "latency", bound_by = "lp", algorithm = "milp", value = 2.0, bound = 1, gap = 0.5}} {}

// -----

// Tests that the objective is one that divi has.
// expected-error @below {{'builtin.module' op attribute 'divi.plan.objective' is "speed": it must be latency, batch or pipeline}}
module attributes {divi.plan = {objective = "speed", bound_by = "lp", algorithm = "milp", value = 2.0, bound = 1.0, gap = 0.5}} {}

// -----

// Tests that no plan is better than its bound.
// expected-error @below {{'builtin.module' op attribute 'divi.plan' has a bound above its value: no plan can be better than its bound}}
module attributes {divi.plan = {objective = "batch", bound_by = "lp", algorithm = "milp", value = 1.0, bound = 2.0, gap = 0.5}} {}

// -----

// Tests what a bound may rest on.
// expected-error @below {{'builtin.module' op attribute 'divi.plan.proof' is "optimal": it must be exact, safe-dual or solver}}
module attributes {divi.plan = {objective = "batch", bound_by = "lp", proof = "optimal", algorithm = "milp", value = 2.0, bound = 1.0, gap = 0.5}} {}

// -----

// expected-error @below {{'builtin.module' op attribute 'divi.plan.proof' must be a string, is 1 : i64}}
module attributes {divi.plan = {objective = "batch", bound_by = "lp", proof = 1, algorithm = "milp", value = 2.0, bound = 1.0, gap = 0.5}} {}

// -----

// Tests that only a solver's word has a verified bound beside it, which is weaker.
// expected-error @below {{'builtin.module' op attribute 'divi.plan.verified_bound' is for bounds whose proof is "solver", not "exact"}}
module attributes {divi.plan = {objective = "batch", bound_by = "lp", proof = "exact", verified_bound = 0.5, algorithm = "milp", value = 2.0, bound = 1.0, gap = 0.5}} {}

// -----

// expected-error @below {{'builtin.module' op attribute 'divi.plan.verified_bound' is above the bound}}
module attributes {divi.plan = {objective = "batch", bound_by = "lp", proof = "solver", verified_bound = 1.5, algorithm = "milp", value = 2.0, bound = 1.0, gap = 0.5}} {}

// -----

// Tests that a reference says which file.
// expected-error @below {{#divi.external needs the path of a file}}
module attributes {test.a = #divi.external<"", offset = 0, length = 4> : tensor<1xf32>} {}

// -----

// Tests that a reference is to a file that every program can name.
// expected-error @below {{#divi.external needs a path in UTF-8, has}}
module attributes {test.a = #divi.external<"\FFw.bin", offset = 0, length = 4> : tensor<1xf32>} {}

// -----

// Tests that a reference is as long as its type.
// expected-error @below {{#divi.external has length 5, but 'tensor<1xf32>' takes 4 bytes}}
module attributes {test.a = #divi.external<"w.bin", offset = 0, length = 5> : tensor<1xf32>} {}

// -----

// Tests that elements below a byte are packed.
// expected-error @below {{#divi.external has length 3, but 'tensor<3xi4>' takes 2 bytes}}
module attributes {test.a = #divi.external<"w.bin", offset = 0, length = 3> : tensor<3xi4>} {}

// -----

// Tests that a size that overflows is not taken for a small one.
// expected-error @below {{#divi.external has length 0, but 'tensor<4611686018427387904x4xf32>' is larger than any file}}
module attributes {test.a = #divi.external<"w.bin", offset = 0, length = 0> : tensor<4611686018427387904x4xf32>} {}

// -----

// Tests that a reference's shape is known.
// expected-error @below {{#divi.external needs a tensor type of static shape, has 'tensor<?xf32>'}}
module attributes {test.a = #divi.external<"w.bin", offset = 0, length = 4> : tensor<?xf32>} {}

// -----

// Tests that a reference is a tensor.
// expected-error @below {{#divi.external needs a tensor type of static shape, has 'f32'}}
module attributes {test.a = #divi.external<"w.bin", offset = 0, length = 4> : f32} {}

// -----

// Tests that a reference holds numbers.
// expected-error @below {{#divi.external cannot hold elements of type '!onnx.String'}}
module attributes {test.a = #divi.external<"w.bin", offset = 0, length = 4> : tensor<1x!onnx.String>} {}

// -----

// Tests that all times of a device are together.
// expected-error @below {{#divi.cost names @a twice: put all its batch sizes into one {…}}}
module attributes {test.a = #divi.cost<@a = {1 = 1.0}, @b = {1 = 1.0}, @a = {2 = 1.0}>} {}

// -----

// Tests that costs are of at least one input.
// expected-error @below {{#divi.cost has batch size 0 for @a: batch sizes start at 1}}
module attributes {test.a = #divi.cost<@a = {0 = 1.0}>} {}

// -----

// Tests that no task takes less than no time.
// expected-error @below {{#divi.cost has a time for @a that is negative or not finite: leave a device out that does not support the task}}
module attributes {test.a = #divi.cost<@a = {1 = -1.0}>} {}

// -----

// Tests that no task takes forever.
// expected-error @below {{#divi.cost has a time for @a that is negative or not finite: leave a device out that does not support the task}}
module attributes {test.a = #divi.cost<@a = {1 = 1.0e999}>} {}

// -----

// Tests that a task has one time for a device and batch size.
// expected-error @below {{#divi.cost gives batch size 4 twice for @a}}
module attributes {test.a = #divi.cost<@a = {4 = 1.0, 4 = 2.0}>} {}

// -----

// Tests that a slice of a batch is where the batch is.
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

// Tests that a slice takes inputs that there are.
func.func @main(%x: tensor<4x3xf32>) {
  // expected-error @below {{'divi.slice' op takes input 4 of 4, counted from 0}}
  %0 = divi.slice %x[0, 4] of 4 axis 0 : tensor<4x3xf32> -> tensor<2x3xf32>
  return
}

// -----

// Tests that a slice takes something.
func.func @main(%x: tensor<4x3xf32>) {
  // expected-error @below {{'divi.slice' op takes no input: it must take one at least}}
  %0 = divi.slice %x[] of 4 axis 0 : tensor<4x3xf32> -> tensor<0x3xf32>
  return
}

// -----

// Tests that inputs lie on an axis of the tensor.
func.func @main(%x: tensor<4x3xf32>) {
  // expected-error @below {{'divi.slice' op has its inputs on axis 2, which 'tensor<4x3xf32>' does not have}}
  %0 = divi.slice %x[0] of 4 axis 2 : tensor<4x3xf32> -> tensor<1x3xf32>
  return
}

// -----

// Tests that an axis is made of its inputs.
func.func @main(%x: tensor<6x3xf32>) {
  // expected-error @below {{'divi.slice' op has 4 inputs in 1 parts, which axis 0 of 'tensor<6x3xf32>' is not made of}}
  %0 = divi.slice %x[0] of 4 axis 0 : tensor<6x3xf32> -> tensor<1x3xf32>
  return
}

// -----

// Tests that a slice has the type of what it takes.
func.func @main(%x: tensor<4x3xf32>) {
  // expected-error @below {{'divi.slice' op gives 'tensor<3x3xf32>', but 2 inputs of 'tensor<4x3xf32>' are 'tensor<2x3xf32>'}}
  %0 = divi.slice %x[0, 1] of 4 axis 0 : tensor<4x3xf32> -> tensor<3x3xf32>
  return
}

// -----

// Tests that what is put together is alike.
func.func @main(%x: tensor<4x3xf32>, %y: tensor<4x2xf32>) {
  // expected-error @below {{'divi.gather' op puts together inputs of different types: 'tensor<1x3xf32>' and 'tensor<1x2xf32>'}}
  %0 = divi.gather %x of 4, %y of 4 axis 0 : (tensor<4x3xf32>, tensor<4x2xf32>) -> tensor<8x3xf32>
  return
}

// -----

// Tests that what is put together has the type of all its inputs.
func.func @main(%x: tensor<4x3xf32>, %y: tensor<2x3xf32>) {
  // expected-error @below {{'divi.gather' op gives 'tensor<8x3xf32>', but 6 inputs of 'tensor<1x3xf32>' are 'tensor<6x3xf32>'}}
  %0 = divi.gather %x of 4, %y of 2 axis 0 : (tensor<4x3xf32>, tensor<2x3xf32>) -> tensor<8x3xf32>
  return
}

// -----

// Tests that a batch has a start that is a time.
// expected-error @below {{#divi.batch has a start that is negative or not finite}}
module attributes {test.batch = #divi.batch<@a, start = -1.0, inputs = [0]>} {}

// -----

// Tests that a batch has inputs.
// expected-error @below {{#divi.batch has no inputs: leave it out}}
module attributes {test.batch = #divi.batch<@a, start = 0.0, inputs = []>} {}

// -----

// Tests that a batch names each input once.
// expected-error @below {{#divi.batch has input 1 behind input 1: each is named once, in increasing order}}
module attributes {test.batch = #divi.batch<@a, start = 0.0, inputs = [0, 1, 1]>} {}

// -----

// Tests that inputs are counted from zero.
// expected-error @below {{#divi.batch has input -1: inputs are counted from 0}}
module attributes {test.batch = #divi.batch<@a, start = 0.0, inputs = [-1, 1]>} {}

// -----

// Tests that launches are batches.
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.batches' must be a list of batches, as in [#divi.batch<@gpu0, start = 0.0, inputs = [0, 1]>]; it is [0]}}
  %0 = "onnx.Relu"(%x) {divi.batches = [0]} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that no input runs twice.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.batches' has input 1 in two batches}}
  %0 = "onnx.Relu"(%x) {divi.batches = [#divi.batch<@cpu0, start = 0.0, inputs = [0, 1]>, #divi.batch<@cpu0, start = 1.0, inputs = [1]>]} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that batches run on devices of the module.
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.batches' names @gpu0, which is no divi.device of this module}}
  %0 = "onnx.Relu"(%x) {divi.batches = [#divi.batch<@gpu0, start = 0.0, inputs = [0, 1]>]} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that devices are excluded as a list.
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.exclude' must be a list of devices, as in [@gpu0]; it is @gpu0}}
  %0 = "onnx.Relu"(%x) {divi.exclude = @gpu0} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that excluded devices are those of the module.
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.exclude' names @gpu0, which is no divi.device of this module}}
  %0 = "onnx.Relu"(%x) {divi.exclude = [@gpu0]} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that groups have names.
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.colocate' must be the name of a group, is 1 : i64}}
  %0 = "onnx.Relu"(%x) {divi.colocate = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that stages are counted.
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.stage' must be a number of stages before it, as in 2 : i64; it is -1 : i64}}
  %0 = "onnx.Relu"(%x) {divi.stage = -1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that weights are somewhere.
// expected-error @below {{'func.func' op attribute 'divi.weights' must be "host" or "device", is "disk"}}
func.func @weights_elsewhere() attributes {divi.weights = "disk"} {
  return
}

// -----

// Tests that weights are streamed to devices with memory of their own.
// expected-error @below {{'divi.device' op has weights "streamed": a cpu device reads them where they are}}
divi.device @cpu0 {kind = "cpu", memory = 1 : i64, weights = "streamed"}

// -----

// Tests how devices hold weights.
// expected-error @below {{'divi.device' op has weights "lost": they are resident or streamed}}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64, weights = "lost"}

// -----

// Tests that a move is of a result that there can be.
// expected-error @below {{#divi.move is of result -1: results are counted from 0}}
module attributes {test.move = #divi.move<-1, @a -> @b, start = 0.0, end = 1.0>} {}

// -----

// Tests that a move goes somewhere.
// expected-error @below {{#divi.move goes from @a to itself: leave it out}}
module attributes {test.move = #divi.move<0, @a -> @a, start = 0.0, end = 1.0>} {}

// -----

// Tests that a move does not begin before all begins.
// expected-error @below {{#divi.move has a start that is negative, or an end that is before it or not finite}}
module attributes {test.move = #divi.move<0, @a -> @b, start = -1.0, end = 1.0>} {}

// -----

// Tests that a move does not end before it begins.
// expected-error @below {{#divi.move has a start that is negative, or an end that is before it or not finite}}
module attributes {test.move = #divi.move<0, @a -> @b, start = 2.0, end = 1.0>} {}

// -----

// Tests that moves are such.
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.moves' must be a list of moves, as in [#divi.move<0, @gpu0 -> @gpu1, start = 0.0, end = 1.5>]; it is [1]}}
  %0 = "onnx.Relu"(%x) {divi.moves = [1]} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that moves are between devices of the module.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.moves' names @gpu0, which is no divi.device of this module}}
  %0 = "onnx.Relu"(%x) {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 1.0>]} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that moves are of results that there are.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.moves' moves result 1, but there is 1, counted from 0}}
  %0 = "onnx.Relu"(%x) {divi.moves = [#divi.move<1, @cpu0 -> @gpu0, start = 0.0, end = 1.0>]} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that a result moves once to a device.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.moves' moves result 0 from @cpu0 to @gpu0 twice}}
  %0 = "onnx.Relu"(%x) {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 1.0>, #divi.move<0, @cpu0 -> @gpu0, start = 2.0, end = 3.0>]} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that the moves of a function are of its arguments.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
// expected-error @below {{'func.func' op attribute 'divi.moves' moves argument 2, but there are 2, counted from 0}}
func.func private @main(tensor<2xf32>, tensor<2xf32>) attributes {divi.moves = [#divi.move<2, @cpu0 -> @gpu0, start = 0.0, end = 1.0>]}

// -----

// Tests that parameters count as one.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.copies' moves parameters 1, but there is 1, counted from 0}}
  %0 = "onnx.Relu"(%x) {divi.copies = [#divi.move<1, @cpu0 -> @gpu0, start = 0.0, end = 1.0>]} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that a transfer ends at a time.
divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'divi.transfer' op attribute 'divi.end' must be a time in microseconds, as in 120.5 : f64; it is 3 : i64}}
  %0 = divi.transfer %x from @cpu0 to @gpu0 {divi.end = 3 : i64} : tensor<2xf32>
  return
}

// -----

// Tests that parameters are on a device.
func.func @main(%x: tensor<2xf32>) {
  // expected-error @below {{'onnx.Relu' op attribute 'divi.resident' must name a device, as in @gpu0; it is "gpu0"}}
  %0 = "onnx.Relu"(%x) {divi.resident = "gpu0"} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// Tests that a cold start is the module's.
// expected-error @below {{'func.func' op attribute 'divi.cold' belongs on the module}}
func.func private @stage() attributes {divi.cold}

// -----

// Tests that a cold start says no more.
// expected-error @below {{'builtin.module' op attribute 'divi.cold' must be without a value, is 1 : i64}}
module attributes {divi.cold = 1 : i64} {}

// -----

// Tests that nodes are counted from zero.
// expected-error @below {{'divi.device' op is part of node -1: nodes are counted from 0}}
divi.device @cpu0 {kind = "cpu", memory = 1 : i64, node = -1 : i64}
