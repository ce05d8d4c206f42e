// Tests that neighbors that happen to have the same cost are not mistaken for one unrolled task.
// RUN: divi-opt %s --divi-partition="algorithm=heft inputs=2" --divi-outline --divi-verify-plan | FileCheck %s

module {
  divi.device @cpu0 {kind = "cpu", memory = 100000 : i64, batch_sizes = [1, 2]}
  func.func @main(%x: tensor<1x8xf32>) -> tensor<1x8xf32> {
    %0 = divi.cluster "relu"(%x : tensor<1x8xf32>) -> tensor<1x8xf32> attributes {divi.cost = #divi.cost<@cpu0 = {1 = 10.0, 2 = 12.0}>} {
    ^bb0(%a: tensor<1x8xf32>):
      %m = "onnx.Relu"(%a) {onnx_node_name = "a"} : (tensor<1x8xf32>) -> tensor<1x8xf32>
      divi.yield %m : tensor<1x8xf32>
    }
    %1 = divi.cluster "relu"(%x : tensor<1x8xf32>) -> tensor<1x8xf32> attributes {divi.cost = #divi.cost<@cpu0 = {1 = 10.0, 2 = 12.0}>} {
    ^bb0(%a: tensor<1x8xf32>):
      %m = "onnx.Relu"(%a) {onnx_node_name = "b"} : (tensor<1x8xf32>) -> tensor<1x8xf32>
      divi.yield %m : tensor<1x8xf32>
    }
    %2 = "onnx.Add"(%0, %1) {onnx_node_name = "c", divi.cost = #divi.cost<@cpu0 = {1 = 1.0, 2 = 2.0}>} : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
    return %2 : tensor<1x8xf32>
  }
}

// CHECK: value = 2.600000e+01 : f64
// CHECK: divi.launch @main.cpu0.0
