// RUN: divi-opt %s -split-input-file --divi-emit-problem=inputs=2 -o /dev/null | FileCheck %s --match-full-lines --strict-whitespace
// RUN: bash -c 'not divi-opt %s -split-input-file --divi-emit-problem=inputs=2 -o /dev/null 2>&1 > /dev/full' | FileCheck %s --check-prefix=FULL

// Tests that a failed write to stdout is an error.
// FULL: error: cannot write to stdout: No space left on device

// Tests that inputs and outputs are tasks of no time on the host, that units are those of the format, and that pins,
// idle devices and two results of one task are preserved.
//      CHECK:{
// CHECK-NEXT:  "format": "divi-problem/1",
// CHECK-NEXT:  "name": "split",
// CHECK-NEXT:  "L": 2,
// CHECK-NEXT:  "devices": [
// CHECK-NEXT:    {"id": 0, "name": "cpu0", "memory": 4096, "batch_sizes": [1, 2]},
// CHECK-NEXT:    {"id": 1, "name": "gpu0", "memory": 8192, "batch_sizes": [1, 2]}
// CHECK-NEXT:  ],
// CHECK-NEXT:  "bandwidth": [
// CHECK-NEXT:    [null, 16000],
// CHECK-NEXT:    [8000, null]
// CHECK-NEXT:  ],
// CHECK-NEXT:  "link_latency": [
// CHECK-NEXT:    [0, 10],
// CHECK-NEXT:    [0, 0]
// CHECK-NEXT:  ],
// CHECK-NEXT:  "bus": [
// CHECK-NEXT:    [null, "pcie0"],
// CHECK-NEXT:    [null, null]
// CHECK-NEXT:  ],
// CHECK-NEXT:  "contention": "shared",
// CHECK-NEXT:  "memory_model": "liveness",
// CHECK-NEXT:  "nodes": [
// CHECK-NEXT:    {"id": 0, "name": "input x", "time": {"1": [null, null], "2": [0, null]}, "weight": 0, "input": 0, "output": 16, "pin": 0},
// CHECK-NEXT:    {"id": 1, "name": "split", "time": {"1": [3.5, 1], "2": [6, 1.5]}, "weight": 0, "input": 16, "output": 16, "scratch": 64},
// CHECK-NEXT:    {"id": 2, "name": "join", "time": {"1": [null, 2], "2": [null, 2]}, "weight": 8, "input": 16, "output": 24, "pin": 1},
// CHECK-NEXT:    {"id": 3, "name": "cut", "time": {"1": [1, null], "2": [1, null]}, "weight": 32, "input": 24, "output": 16},
// CHECK-NEXT:    {"id": 4, "name": "output y", "time": {"1": [null, null], "2": [0, null]}, "weight": 0, "input": 16, "output": 0, "pin": 0},
// CHECK-NEXT:    {"id": 5, "name": "output 1", "time": {"1": [null, null], "2": [0, null]}, "weight": 0, "input": 8, "output": 0, "pin": 0}
// CHECK-NEXT:  ],
// CHECK-NEXT:  "tensors": [
// CHECK-NEXT:    {"from": 0, "bytes": 16, "to": [1]},
// CHECK-NEXT:    {"from": 1, "bytes": 8, "to": [2]},
// CHECK-NEXT:    {"from": 1, "bytes": 8, "to": [2, 5]},
// CHECK-NEXT:    {"from": 2, "bytes": 24, "to": [3]},
// CHECK-NEXT:    {"from": 3, "bytes": 16, "to": [4]}
// CHECK-NEXT:  ]
// CHECK-NEXT:}
module @split attributes {divi.contention = "shared"} {
  divi.device @cpu0 {kind = "cpu", memory = 4096 : i64, batch_sizes = [1, 2]}
  divi.device @gpu0 {kind = "cuda", memory = 8192 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.6e10 : f64, latency = 1.0e-5 : f64, bus = "pcie0"}
  divi.link @gpu0 -> @cpu0 {bandwidth = 8.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x4xf32> {onnx.name = "x"}, %unused: tensor<1xf32>) -> (tensor<1x4xf32> {onnx.name = "y"}, tensor<1x2xf32>) {
    %starts = onnx.Constant dense<[0, 0]> : tensor<2xi64>
    %ends = onnx.Constant dense<[1, 4]> : tensor<2xi64>
    %none = "onnx.NoValue"() <{value}> : () -> none
    %a:2 = "onnx.Split"(%x, %none) <{axis = 1 : si64, num_outputs = 2 : si64}> {onnx_node_name = "split", divi.cost = #divi.cost<@cpu0 = {1 = 3.5, 2 = 6.0}, @gpu0 = {1 = 1.0, 2 = 1.5}>, divi.input_bytes = 16 : i64, divi.scratch_bytes = 64 : i64} : (tensor<1x4xf32>, none) -> (tensor<1x2xf32>, tensor<1x2xf32>)
    %b = "onnx.Concat"(%a#0, %a#1, %a#0) <{axis = 1 : si64}> {onnx_node_name = "join", divi.pin = @gpu0, divi.cost = #divi.cost<@gpu0 = {1 = 2.0, 2 = 2.0}>, divi.input_bytes = 16 : i64, divi.weight_bytes = 8 : i64} : (tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x6xf32>
    %c = "onnx.Slice"(%b, %starts, %ends, %none, %none) {onnx_node_name = "cut", divi.cost = #divi.cost<@cpu0 = {1 = 1.0, 2 = 1.0}>} : (tensor<1x6xf32>, tensor<2xi64>, tensor<2xi64>, none, none) -> tensor<1x4xf32>
    return %c, %a#1 : tensor<1x4xf32>, tensor<1x2xf32>
  }
}

// -----

// Tests that tasks with one result each have edges.
// CHECK:  "edges": [
// CHECK-NEXT:    [0, 1],
// CHECK-NEXT:    [1, 2]
// CHECK-NEXT:  ]
module {
  divi.device @cpu0 {kind = "cpu", memory = 4096 : i64, batch_sizes = [2]}
  func.func @main(%x: tensor<1x4xf32>) -> tensor<1x4xf32> {
    %0 = "onnx.Relu"(%x) {divi.cost = #divi.cost<@cpu0 = {2 = 1.0}>} : (tensor<1x4xf32>) -> tensor<1x4xf32>
    return %0 : tensor<1x4xf32>
  }
}

// -----

// Tests that values that a branch reads from outside are edges, that pins of members apply, and that tasks of no time
// are not split into batches: cpu0 gets the size of the queue, for which other tasks have no time.
// CHECK:    {"id": 0, "name": "cpu0", "memory": 4096, "batch_sizes": [1, 2]},
// CHECK:    {"id": 0, "name": "input 0", "time": {"1": [null, null], "2": [0, null]}, "weight": 0, "input": 0, "output": 1, "pin": 0},
// CHECK:    {"id": 3, "name": "if", "time": {"1": [null, 1], "2": [null, 2]}, "weight": 0, "input": 9, "output": 8, "pin": 1},
// CHECK:  "edges": [
// CHECK-NEXT:    [0, 3],
// CHECK-NEXT:    [1, 2],
// CHECK-NEXT:    [2, 3],
// CHECK-NEXT:    [3, 4]
// CHECK-NEXT:  ]
module {
  divi.device @cpu0 {kind = "cpu", memory = 4096 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 4096 : i64, batch_sizes = [1, 2]}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%condition: tensor<i1>, %x: tensor<1x2xf32>) -> tensor<1x2xf32> {
    %0 = "onnx.Relu"(%x) {divi.cost = #divi.cost<@gpu0 = {1 = 1.0, 2 = 1.0}>} : (tensor<1x2xf32>) -> tensor<1x2xf32>
    %1 = "onnx.If"(%condition) ({
      %2 = "onnx.Neg"(%0) {divi.pin = @gpu0} : (tensor<1x2xf32>) -> tensor<1x2xf32>
      onnx.Yield %2 : tensor<1x2xf32>
    }, {
      onnx.Yield %0 : tensor<1x2xf32>
    }) {onnx_node_name = "if", divi.cost = #divi.cost<@gpu0 = {1 = 1.0, 2 = 2.0}>} : (tensor<i1>) -> tensor<1x2xf32>
    return %1 : tensor<1x2xf32>
  }
}
