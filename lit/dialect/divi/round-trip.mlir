// RUN: divi-opt %s | FileCheck %s
// RUN: divi-opt %s | divi-opt | FileCheck %s
// RUN: divi-opt %s --mlir-print-op-generic | divi-opt | FileCheck %s
// RUN: divi-opt %s --emit-bytecode | divi-opt | FileCheck %s
// Cases are modules of one file, because bytecode cannot be split.

// Tests that a machine, a task and an outlined plan are parsed and printed unchanged.
module {
  divi.device @cpu0 {kind = "cpu", memory = 17179869184 : i64}
  divi.device @gpu0 {kind = "cuda", arch = "sm_90", memory = 85899345920 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 5.4e10 : f64, latency = 1.0e-5 : f64, bus = "pcie0"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 5.4e10 : f64, latency = 1.0e-5 : f64, bus = "pcie0"}

  func.func private @main.gpu0.0(%x: tensor<1x8xf32> {divi.device = @gpu0}) -> tensor<1x8xf32>
      attributes {divi.device = @gpu0} {
    %0 = divi.cluster "relu"(%x : tensor<1x8xf32>) -> tensor<1x8xf32>
        attributes {divi.cost = #divi.cost<@gpu0 = {1 = 37.0, 4 = 58.1}, @cpu0 = {1 = 345.1}>,
                    divi.members = ["/relu/Relu"], divi.start = 120.5 : f64} {
    ^bb0(%a: tensor<1x8xf32>):
      %1 = "onnx.Relu"(%a) {onnx_node_name = "/relu/Relu"} : (tensor<1x8xf32>) -> tensor<1x8xf32>
      divi.yield %1 : tensor<1x8xf32>
    }
    return %0 : tensor<1x8xf32>
  }
  func.func @main(%x: tensor<1x8xf32>) -> tensor<1x8xf32> {
    %there = divi.transfer %x from @cpu0 to @gpu0 : tensor<1x8xf32>
    %result = divi.launch @main.gpu0.0(%there) on @gpu0 : (tensor<1x8xf32>) -> tensor<1x8xf32>
    %back = divi.transfer %result from @gpu0 to @cpu0 : tensor<1x8xf32>
    return %back : tensor<1x8xf32>
  }
}
// CHECK:      module {
// CHECK-NEXT: module {
// CHECK-NEXT: divi.device @cpu0 {kind = "cpu", memory = 17179869184 : i64}
// CHECK-NEXT: divi.device @gpu0 {arch = "sm_90", kind = "cuda", memory = 85899345920 : i64}
// CHECK-NEXT: divi.link @cpu0 -> @gpu0 {bandwidth = 5.400000e+10 : f64, bus = "pcie0", latency = 1.000000e-05 : f64}
// CHECK-NEXT: divi.link @gpu0 -> @cpu0 {bandwidth = 5.400000e+10 : f64, bus = "pcie0", latency = 1.000000e-05 : f64}
// CHECK-NEXT: func.func private @main.gpu0.0(%[[X:.*]]: tensor<1x8xf32> {divi.device = @gpu0}) -> tensor<1x8xf32> attributes {divi.device = @gpu0} {
// CHECK-NEXT: %[[CLUSTER:.*]] = divi.cluster "relu"(%[[X]] : tensor<1x8xf32>) -> tensor<1x8xf32> attributes {divi.cost = #divi.cost<@gpu0 = {1 = 37.0, 4 = 58.1}, @cpu0 = {1 = 345.1}>, divi.members = ["/relu/Relu"], divi.start = 1.205000e+02 : f64} {
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<1x8xf32>):
// CHECK-NEXT: %[[RELU:.*]] = "onnx.Relu"(%[[A]]) {onnx_node_name = "/relu/Relu"} : (tensor<1x8xf32>) -> tensor<1x8xf32>
// CHECK-NEXT: divi.yield %[[RELU]] : tensor<1x8xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[CLUSTER]] : tensor<1x8xf32>
// CHECK: func.func @main(%[[X:.*]]: tensor<1x8xf32>)
// CHECK-NEXT: %[[THERE:.*]] = divi.transfer %[[X]] from @cpu0 to @gpu0 : tensor<1x8xf32>
// CHECK-NEXT: %[[RESULT:.*]] = divi.launch @main.gpu0.0(%[[THERE]]) on @gpu0 : (tensor<1x8xf32>) -> tensor<1x8xf32>
// CHECK-NEXT: %[[BACK:.*]] = divi.transfer %[[RESULT]] from @gpu0 to @cpu0 : tensor<1x8xf32>
// CHECK-NEXT: return %[[BACK]] : tensor<1x8xf32>

// -----

// Tests optional attributes of devices and links.
module @machine {
  divi.device @cpu0 {kind = "cpu", memory = 1 : i64, batch_sizes = [1, 2, 8]}
  divi.device @cpu1 {kind = "cpu", memory = 1 : i64}
  divi.link @cpu0 -> @cpu1 {bandwidth = 1.0 : f64, latency = 0.0 : f64}
}
// CHECK: module @machine {
// CHECK-NEXT: divi.device @cpu0 {batch_sizes = [1, 2, 8], kind = "cpu", memory = 1 : i64}
// CHECK-NEXT: divi.device @cpu1 {kind = "cpu", memory = 1 : i64}
// CHECK-NEXT: divi.link @cpu0 -> @cpu1 {bandwidth = 1.000000e+00 : f64, latency = 0.000000e+00 : f64}

// -----

// Tests clusters without operands, with several results, and empty ones.
module @clusters {
  func.func @main() {
    %0:2 = divi.cluster "constants"() -> (tensor<f32>, tensor<2xi64>) {
      %1 = onnx.Constant dense<1.0> : tensor<f32>
      %2 = onnx.Constant dense<[1, 2]> : tensor<2xi64>
      divi.yield %1, %2 : tensor<f32>, tensor<2xi64>
    }
    divi.cluster "two"(%0#0, %0#1 : tensor<f32>, tensor<2xi64>) attributes {divi.weight_bytes = 4096 : i64} {
    ^bb0(%a: tensor<f32>, %b: tensor<2xi64>):
      divi.yield
    }
    divi.cluster "empty"() {
    }
    return
  }
}
// CHECK: module @clusters {
// CHECK: %[[CONSTANTS:.*]]:2 = divi.cluster "constants"() -> (tensor<f32>, tensor<2xi64>) {
// CHECK: divi.yield %{{.*}}, %{{.*}} : tensor<f32>, tensor<2xi64>
// CHECK: divi.cluster "two"(%[[CONSTANTS]]#0, %[[CONSTANTS]]#1 : tensor<f32>, tensor<2xi64>) attributes {divi.weight_bytes = 4096 : i64} {
// CHECK-NEXT: ^bb0(%{{.*}}: tensor<f32>, %{{.*}}: tensor<2xi64>):
// CHECK: divi.cluster "empty"() {
// CHECK-NEXT: }

// -----

// Tests launches with no operands and results, with several, and with values that are not tensors.
module @launches {
  divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
  func.func private @nothing()
  func.func private @several(tensor<2xf32>, !onnx.Seq<tensor<?xf32>>) -> (tensor<f32>, tensor<*xi64>)
  func.func @main(%x: tensor<2xf32>, %s: !onnx.Seq<tensor<?xf32>>) {
    divi.launch @nothing() on @cpu0 : () -> ()
    %0:2 = divi.launch @several(%x, %s) on @cpu0 {divi.start = 0.0 : f64} : (tensor<2xf32>, !onnx.Seq<tensor<?xf32>>) -> (tensor<f32>, tensor<*xi64>)
    return
  }
}
// CHECK: module @launches {
// CHECK: divi.launch @nothing() on @cpu0 : () -> ()
// CHECK: divi.launch @several(%{{.*}}, %{{.*}}) on @cpu0 {divi.start = 0.000000e+00 : f64} : (tensor<2xf32>, !onnx.Seq<tensor<?xf32>>) -> (tensor<f32>, tensor<*xi64>)

// -----

// Tests the certificate on a module, and constraints on operators of any dialect.
module @certificate attributes {divi.plan = {objective = "pipeline", value = 12.5 : f64, bound = 10.0 : f64,
    gap = 0.2 : f64, bound_by = "lp", algorithm = "auto", seed = 1 : i64}} {
  divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = "onnx.Relu"(%x) {divi.pin = @gpu0, divi.device = @gpu0} : (tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
// CHECK: module @certificate attributes {divi.plan = {algorithm = "auto", bound = 1.000000e+01 : f64, bound_by = "lp", gap = 2.000000e-01 : f64, objective = "pipeline", seed = 1 : i64, value = 1.250000e+01 : f64}} {
// CHECK: "onnx.Relu"(%{{.*}}) {divi.device = @gpu0, divi.pin = @gpu0}

// -----

// Tests the proof of a bound, and the verified bound beside one reported by a solver.
module @proof attributes {divi.plan = {objective = "latency", value = 12.5 : f64, bound = 10.0 : f64, gap = 0.2 : f64,
    bound_by = "milp", proof = "solver", verified_bound = 9.0 : f64, algorithm = "auto"}} {}
// CHECK: module @proof attributes {divi.plan = {{.*}}proof = "solver", value = 1.250000e+01 : f64, verified_bound = 9.000000e+00 : f64}}

// -----

// Tests that decisions, functions and arguments define the devices of values, that constants, absent operands and
// values without a decision are on all devices, and that arguments of later blocks are not those of the function.
module @decisions {
  divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
  func.func @stage(%x: tensor<2xf32>, %y: tensor<2xf32> {divi.device = @cpu0}) attributes {divi.device = @gpu0} {
    %0 = "onnx.Relu"(%x) {divi.device = @gpu0} : (tensor<2xf32>) -> tensor<2xf32>
    %1 = "onnx.Relu"(%y) {divi.device = @cpu0} : (tensor<2xf32>) -> tensor<2xf32>
    %2 = divi.transfer %1 from @cpu0 to @gpu0 : tensor<2xf32>
    %3 = onnx.Constant dense<1.0> : tensor<2xf32>
    %4 = "onnx.Add"(%2, %3) {divi.device = @gpu0} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %5 = "onnx.Add"(%0, %1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %6 = "onnx.Add"(%5, %3) {divi.device = @cpu0} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    return
  }
  func.func @main(%x: tensor<2xf32>) {
    %0 = divi.cluster "relu"(%x : tensor<2xf32>) -> tensor<2xf32> attributes {divi.device = @cpu0} {
    ^bb0(%a: tensor<2xf32>):
      %1 = "onnx.Relu"(%a) {divi.device = @cpu0} : (tensor<2xf32>) -> tensor<2xf32>
      divi.yield %1 : tensor<2xf32>
    }
    %2 = divi.transfer %0 from @cpu0 to @gpu0 : tensor<2xf32>
    %none = "onnx.NoValue"() <{value}> : () -> none
    %3 = "onnx.Clip"(%2, %none, %none) {divi.device = @gpu0} : (tensor<2xf32>, none, none) -> tensor<2xf32>
    cf.br ^bb1(%x, %3 : tensor<2xf32>, tensor<2xf32>)
  ^bb1(%b: tensor<2xf32>, %c: tensor<2xf32>):
    %4 = "onnx.Add"(%b, %c) {divi.device = @gpu0} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    return
  }
}
// CHECK: module @decisions {
// CHECK: func.func @stage(%[[X:.*]]: tensor<2xf32>, %[[Y:.*]]: tensor<2xf32> {divi.device = @cpu0}) attributes {divi.device = @gpu0} {
// CHECK-NEXT: "onnx.Relu"(%[[X]]) {divi.device = @gpu0}
// CHECK-NEXT: "onnx.Relu"(%[[Y]]) {divi.device = @cpu0}
// CHECK: func.func @main(
// CHECK-NEXT: divi.cluster "relu"(%{{.*}} : tensor<2xf32>) -> tensor<2xf32> attributes {divi.device = @cpu0} {
// CHECK: "onnx.Add"(%{{.*}}, %{{.*}}) {divi.device = @gpu0}

// -----

// Tests that times are printed as the shortest number that parses to the same value, and a cost without any device.
module @costs attributes {
  test.some = #divi.cost<@a = {1 = 0.1, 64 = 1.0e-7}, @b = {2 = 123456789012.0}, @c = {1 = 0.0}, @d = {1 = 0.30000000000000004}>,
  test.none = #divi.cost<>,
  test.huge = #divi.cost<@a = {1 = 1.7976931348623157e308}>
} {}
// CHECK: module @costs attributes {
// CHECK-SAME: test.huge = #divi.cost<@a = {1 = 1.7976931348623157e+308}>
// CHECK-SAME: test.none = #divi.cost<>
// CHECK-SAME: test.some = #divi.cost<@a = {1 = 0.1, 64 = 1.0e-07}, @b = {2 = 123456789012.0}, @c = {1 = 0.0}, @d = {1 = 0.30000000000000004}>

// -----

// Tests constants that refer to bytes in a file: whole bytes, packed ones, one byte per bool, complex numbers, no bytes.
module @external attributes {
  test.f32 = #divi.external<"weights.bin", offset = 4096, length = 37632> : tensor<64x3x7x7xf32>,
  test.i4 = #divi.external<"a b/\22w\22.bin", offset = 0, length = 2> : tensor<3xi4>,
  test.i1 = #divi.external<"../w.bin", offset = 18446744073709551615, length = 3> : tensor<3xi1>,
  test.complex = #divi.external<"w.bin", offset = 0, length = 16> : tensor<2xcomplex<f32>>,
  test.empty = #divi.external<"w.bin", offset = 0, length = 0> : tensor<0x4xbf16>,
  test.scalar = #divi.external<"w.bin", offset = 0, length = 8> : tensor<ui64>
} {}
// CHECK: module @external attributes {
// CHECK-SAME: test.complex = #divi.external<"w.bin", offset = 0, length = 16> : tensor<2xcomplex<f32>>
// CHECK-SAME: test.empty = #divi.external<"w.bin", offset = 0, length = 0> : tensor<0x4xbf16>
// CHECK-SAME: test.f32 = #divi.external<"weights.bin", offset = 4096, length = 37632> : tensor<64x3x7x7xf32>
// CHECK-SAME: test.i1 = #divi.external<"../w.bin", offset = 18446744073709551615, length = 3> : tensor<3xi1>
// CHECK-SAME: test.i4 = #divi.external<"a b/\22w\22.bin", offset = 0, length = 2> : tensor<3xi4>
// CHECK-SAME: test.scalar = #divi.external<"w.bin", offset = 0, length = 8> : tensor<ui64>

// -----

// Tests that values may cross devices implicitly as long as there are no explicit transfers.
module @decided {
  divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = "onnx.Relu"(%x) {divi.colocate = "a", divi.device = @gpu0, divi.exclude = [@cpu0], divi.stage = 0 : i64} : (tensor<2xf32>) -> tensor<2xf32>
    %1 = "onnx.Relu"(%0) {divi.batches = [#divi.batch<@cpu0, start = 0.1, inputs = [0, 2]>, #divi.batch<@gpu0, start = 1.0e9, inputs = [1]>]} : (tensor<2xf32>) -> tensor<2xf32>
    return %1 : tensor<2xf32>
  }
}
// CHECK: module @decided {
// CHECK: "onnx.Relu"(%{{.*}}) {divi.colocate = "a", divi.device = @gpu0, divi.exclude = [@cpu0], divi.stage = 0 : i64}
// CHECK: "onnx.Relu"(%{{.*}}) {divi.batches = [#divi.batch<@cpu0, start = 0.1, inputs = [0, 2]>, #divi.batch<@gpu0, start = 1.0e+09, inputs = [1]>]}

// -----

// Tests slices and gathers of batches, with inputs on any axis.
module @batches {
  divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
  func.func private @stage(tensor<2x3xf32>) -> tensor<2x3xf32>
  func.func @main(%x: tensor<4x3xf32>, %y: tensor<5x8xf32>, %z: tensor<?x3xf32>) -> tensor<6x3xf32> {
    %0 = divi.slice %x[3, 0] of 4 axis 0 : tensor<4x3xf32> -> tensor<2x3xf32>
    %1 = divi.slice %y[1] of 2 axis 1 outer 2 : tensor<5x8xf32> -> tensor<5x4xf32>
    %2 = divi.slice %z[1] of 2 axis 0 : tensor<?x3xf32> -> tensor<?x3xf32>
    %3 = divi.launch @stage(%0) on @cpu0 {divi.inputs = array<i64: 0, 3>, divi.start = 1.0 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %4 = divi.gather %3 of 2, %x of 4 axis 0 : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<6x3xf32>
    %5 = divi.gather %y of 2, %1 of 1 axis 1 outer 2 : (tensor<5x8xf32>, tensor<5x4xf32>) -> tensor<5x12xf32>
    return %4 : tensor<6x3xf32>
  }
}
// CHECK: module @batches {
// CHECK: %[[SLICE:.*]] = divi.slice %[[X:.*]][3, 0] of 4 axis 0 : tensor<4x3xf32> -> tensor<2x3xf32>
// CHECK: divi.slice %{{.*}}[1] of 2 axis 1 outer 2 : tensor<5x8xf32> -> tensor<5x4xf32>
// CHECK: divi.slice %{{.*}}[1] of 2 axis 0 : tensor<?x3xf32> -> tensor<?x3xf32>
// CHECK: %[[STAGE:.*]] = divi.launch @stage(%[[SLICE]]) on @cpu0 {divi.inputs = array<i64: 0, 3>, divi.start = 1.000000e+00 : f64}
// CHECK: divi.gather %[[STAGE]] of 2, %[[X]] of 4 axis 0 : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<6x3xf32>
// CHECK: divi.gather %{{.*}} of 2, %{{.*}} of 1 axis 1 outer 2 : (tensor<5x8xf32>, tensor<5x4xf32>) -> tensor<5x12xf32>

// -----

// Tests times of transfers and copies, on tasks of a cluster of nodes.
module @moving attributes {divi.cold} {
  divi.device @cpu0 {kind = "cpu", memory = 1 : i64, node = 0 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1 : i64, node = 1 : i64}
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32>
      attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.5, end = 1.0e3>]} {
    %0 = "onnx.Relu"(%x) {divi.copies = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 0.1>], divi.resident = @gpu0,
                          divi.moves = []} : (tensor<2xf32>) -> tensor<2xf32>
    %1 = divi.transfer %0 from @gpu0 to @cpu0 {divi.end = 2.0 : f64} : tensor<2xf32>
    return %1 : tensor<2xf32>
  }
}
// CHECK: module @moving attributes {divi.cold} {
// CHECK-NEXT: divi.device @cpu0 {kind = "cpu", memory = 1 : i64, node = 0 : i64}
// CHECK-NEXT: divi.device @gpu0 {kind = "cuda", memory = 1 : i64, node = 1 : i64}
// CHECK-NEXT: func.func @main(%{{.*}}: tensor<2xf32>) -> tensor<2xf32> attributes {divi.moves = [#divi.move<0, @cpu0 -> @gpu0, start = 0.5, end = 1000.0>]} {
// CHECK-NEXT: divi.copies = [#divi.move<0, @cpu0 -> @gpu0, start = 0.0, end = 0.1>], divi.moves = [], divi.resident = @gpu0
// CHECK-NEXT: divi.transfer %{{.*}} from @gpu0 to @cpu0 {divi.end = 2.000000e+00 : f64} : tensor<2xf32>
