// RUN: divi-opt %s --split-input-file --canonicalize | FileCheck %s

divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
func.func private @stage(tensor<2xf32>) -> tensor<2xf32>

// Tests that a round trip of transfers is replaced by the tensor itself, also over several devices.
// CHECK-LABEL: func.func @there_and_back(
// CHECK-SAME:    %[[X:.*]]: tensor<2xf32>
// CHECK-NEXT:    return %[[X]]
func.func @there_and_back(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = divi.transfer %x from @cpu0 to @gpu0 : tensor<2xf32>
  %1 = divi.transfer %0 from @gpu0 to @cpu0 : tensor<2xf32>
  %2 = divi.transfer %1 from @cpu0 to @gpu0 : tensor<2xf32>
  %3 = divi.transfer %2 from @gpu0 to @cpu0 : tensor<2xf32>
  return %3 : tensor<2xf32>
}

// Tests that a tensor with a use on the other device keeps its transfer there, but not the one back.
// CHECK-LABEL: func.func @used_on_the_way(
// CHECK-SAME:    %[[X:.*]]: tensor<2xf32>
// CHECK-NEXT:    %[[THERE:.*]] = divi.transfer %[[X]] from @cpu0 to @gpu0
// CHECK-NEXT:    %[[RESULT:.*]] = divi.launch @stage(%[[THERE]]) on @gpu0
// CHECK-NEXT:    %[[BACK:.*]] = divi.transfer %[[RESULT]] from @gpu0 to @cpu0
// CHECK-NEXT:    return %[[X]], %[[BACK]]
func.func @used_on_the_way(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = divi.transfer %x from @cpu0 to @gpu0 : tensor<2xf32>
  %1 = divi.transfer %0 from @gpu0 to @cpu0 : tensor<2xf32>
  %2 = divi.launch @stage(%0) on @gpu0 : (tensor<2xf32>) -> tensor<2xf32>
  %3 = divi.transfer %2 from @gpu0 to @cpu0 : tensor<2xf32>
  return %1, %3 : tensor<2xf32>, tensor<2xf32>
}

// Tests that unused transfers are removed, but launches are not, because they have side effects.
// CHECK-LABEL: func.func @unused(
// CHECK-NEXT:    divi.launch @stage
// CHECK-NEXT:    return
func.func @unused(%x: tensor<2xf32>) {
  %0 = divi.transfer %x from @cpu0 to @gpu0 : tensor<2xf32>
  %1 = divi.launch @stage(%x) on @cpu0 : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

divi.device @cpu0 {kind = "cpu", memory = 1 : i64}
divi.device @gpu0 {kind = "cuda", memory = 1 : i64}
divi.device @gpu1 {kind = "cuda", memory = 1 : i64}

// Tests that a transfer to a third device is not a round trip.
// CHECK-LABEL: func.func @onwards(
// CHECK-NEXT:    divi.transfer %{{.*}} from @cpu0 to @gpu0
// CHECK-NEXT:    divi.transfer %{{.*}} from @gpu0 to @gpu1
// CHECK-NEXT:    return
func.func @onwards(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = divi.transfer %x from @cpu0 to @gpu0 : tensor<2xf32>
  %1 = divi.transfer %0 from @gpu0 to @gpu1 : tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// Tests that an unused cluster of pure operators is removed, and that constants stay inside a used one.
// CHECK-LABEL: func.func @clusters(
// CHECK-NOT:     divi.cluster "unused"
// CHECK:         divi.cluster "used"
// CHECK-NEXT:      onnx.Constant
// CHECK-NEXT:      divi.yield
func.func @clusters() -> tensor<f32> {
  %0 = divi.cluster "unused"() -> tensor<f32> {
    %1 = onnx.Constant dense<1.0> : tensor<f32>
    divi.yield %1 : tensor<f32>
  }
  %2 = divi.cluster "used"() -> tensor<f32> {
    %3 = onnx.Constant dense<1.0> : tensor<f32>
    divi.yield %3 : tensor<f32>
  }
  return %2 : tensor<f32>
}
