// RUN: divi-opt %s --split-input-file --divi-rebatch=batch=2 --verify-diagnostics | FileCheck %s
// RUN: divi-opt %s --split-input-file --divi-rebatch=batch=2 2>&1 >/dev/null | FileCheck %s --check-prefix=WARNING
// WARNING-COUNT-9: warning: mixes the inputs of a batch, so it runs once for each: 

// Tests that operators that mix inputs are reported and unrolled; results of one are passed to another run by run.
// CHECK-LABEL: func.func @mixing(
// CHECK-SAME:    %[[X:.*]]: tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-DAG:     %[[ZERO:.*]] = onnx.Constant dense<0> : tensor<1xi64>
// CHECK-DAG:     %[[ONE:.*]] = onnx.Constant dense<1> : tensor<1xi64>
// CHECK-DAG:     %[[TWO:.*]] = onnx.Constant dense<2> : tensor<1xi64>
// CHECK-DAG:     %[[A:.*]] = "onnx.Slice"(%[[X]], %[[ZERO]], %[[ONE]], %[[ZERO]], %[[ONE]]) {{.*}} -> tensor<1x3xf32>
// CHECK-DAG:     %[[B:.*]] = "onnx.Slice"(%[[X]], %[[ONE]], %[[TWO]], %[[ZERO]], %[[ONE]]) {{.*}} -> tensor<1x3xf32>
// CHECK:         %[[SA:.*]] = "onnx.Softmax"(%[[A]]) {{.*}}onnx_node_name = "/softmax#0"{{.*}} : (tensor<1x3xf32>) -> tensor<1x3xf32>
// CHECK:         %[[SB:.*]] = "onnx.Softmax"(%[[B]]) {{.*}}onnx_node_name = "/softmax#1"{{.*}} : (tensor<1x3xf32>) -> tensor<1x3xf32>
// CHECK:         %[[HA:.*]] = "onnx.Hardmax"(%[[SA]])
// CHECK:         %[[HB:.*]] = "onnx.Hardmax"(%[[SB]])
// CHECK:         %[[H:.*]] = "onnx.Concat"(%[[HA]], %[[HB]]) {{.*}}onnx_node_name = "/hardmax#concat"{{.*}} -> tensor<2x3xf32>
// CHECK-NOT:     onnx.Concat
// CHECK:         return %[[H]]
// expected-warning @below {{mixes the inputs of a batch, so it runs once for each: 'onnx.Softmax' op '/softmax', 'onnx.Hardmax' op '/hardmax'}}
module {
  func.func @mixing(%x: tensor<1x3xf32>) -> tensor<1x3xf32> {
    %0 = "onnx.Softmax"(%x) {axis = 0 : si64, onnx_node_name = "/softmax"} : (tensor<1x3xf32>) -> tensor<1x3xf32>
    %1 = "onnx.Hardmax"(%0) {axis = 0 : si64, onnx_node_name = "/hardmax"} : (tensor<1x3xf32>) -> tensor<1x3xf32>
    return %1 : tensor<1x3xf32>
  }
}

// -----

// Tests that results without the batch's axis are concatenated on the first, and that the batch is followed from there.
// CHECK-LABEL: func.func @reduced(
// CHECK:         "onnx.ReduceMax"{{.*}} -> tensor<3xf32>
// CHECK:         "onnx.ReduceMax"{{.*}} -> tensor<3xf32>
// CHECK:         "onnx.Concat"{{.*}} -> tensor<6xf32>
// CHECK:         "onnx.Relu"{{.*}} -> tensor<6xf32>
// expected-warning @below {{'onnx.ReduceMax' op}}
module {
  func.func @reduced(%x: tensor<1x3xf32>) -> tensor<3xf32> {
    %axes = onnx.Constant dense<0> : tensor<1xi64>
    %0 = "onnx.ReduceMax"(%x, %axes) {keepdims = 0 : si64} : (tensor<1x3xf32>, tensor<1xi64>) -> tensor<3xf32>
    %1 = "onnx.Relu"(%0) : (tensor<3xf32>) -> tensor<3xf32>
    return %1 : tensor<3xf32>
  }
}

// -----

// Tests that scalars stay separate, that their users are unrolled, and that they get an axis if they are returned.
// CHECK-LABEL: func.func @scalars(
// CHECK-SAME:    -> (tensor<2x3xf32>, tensor<2xf32>)
// CHECK:         %[[A:.*]] = "onnx.ReduceMax"{{.*}} -> tensor<f32>
// CHECK:         %[[B:.*]] = "onnx.ReduceMax"{{.*}} -> tensor<f32>
// CHECK:         "onnx.Sub"(%{{.*}}, %[[A]]) : (tensor<1x3xf32>, tensor<f32>) -> tensor<1x3xf32>
// CHECK:         "onnx.Sub"(%{{.*}}, %[[B]]) : (tensor<1x3xf32>, tensor<f32>) -> tensor<1x3xf32>
// CHECK:         "onnx.Concat"{{.*}} -> tensor<2x3xf32>
// CHECK:         "onnx.Unsqueeze"(%[[A]]
// CHECK:         "onnx.Unsqueeze"(%[[B]]
// CHECK:         "onnx.Concat"{{.*}} -> tensor<2xf32>
// expected-warning @below {{'onnx.ReduceMax' op, 'onnx.Sub' op}}
module {
  func.func @scalars(%x: tensor<1x3xf32>) -> (tensor<1x3xf32>, tensor<f32>) {
    %none = "onnx.NoValue"() {value} : () -> none
    %0 = "onnx.ReduceMax"(%x, %none) {keepdims = 0 : si64} : (tensor<1x3xf32>, none) -> tensor<f32>
    %1 = "onnx.Sub"(%x, %0) : (tensor<1x3xf32>, tensor<f32>) -> tensor<1x3xf32>
    return %1, %0 : tensor<1x3xf32>, tensor<f32>
  }
}

// -----

// Tests that a cluster is unrolled as a whole if one of its members has to be.
// CHECK-LABEL: func.func @cluster(
// CHECK:         divi.cluster "c"(%{{.*}} : tensor<1x3xf32>) -> tensor<1x3xf32>
// CHECK:           "onnx.Relu"{{.*}} -> tensor<1x3xf32>
// CHECK:           "onnx.Softmax"{{.*}} -> tensor<1x3xf32>
// CHECK:         divi.cluster "c"(%{{.*}} : tensor<1x3xf32>) -> tensor<1x3xf32>
// CHECK:         "onnx.Concat"{{.*}} -> tensor<2x3xf32>
// expected-warning @below {{'divi.cluster' op}}
module {
  func.func @cluster(%x: tensor<1x3xf32>) -> tensor<1x3xf32> {
    %0 = divi.cluster "c"(%x : tensor<1x3xf32>) -> tensor<1x3xf32> {
    ^bb0(%a: tensor<1x3xf32>):
      %1 = "onnx.Relu"(%a) : (tensor<1x3xf32>) -> tensor<1x3xf32>
      %2 = "onnx.Softmax"(%1) {axis = 0 : si64} : (tensor<1x3xf32>) -> tensor<1x3xf32>
      divi.yield %2 : tensor<1x3xf32>
    }
    return %0 : tensor<1x3xf32>
  }
}

// -----

// Tests that unknown operators and calls are unrolled; the callee is not changed.
// CHECK-LABEL: func.func private @f(
// CHECK-SAME:    tensor<1x3xf32>) -> tensor<1x3xf32>
// CHECK-LABEL: func.func @unknown(
// CHECK-COUNT-2: "onnx.Custom"{{.*}} : (tensor<1x3xf32>) -> tensor<1x3xf32>
// CHECK-COUNT-2: call @f({{.*}}) : (tensor<1x3xf32>) -> tensor<1x3xf32>
// CHECK:         "onnx.Concat"{{.*}} -> tensor<2x3xf32>
// expected-warning @below {{'onnx.Custom' op '/custom', 'func.call' op}}
module {
  func.func private @f(%x: tensor<1x3xf32>) -> tensor<1x3xf32> {
    return %x : tensor<1x3xf32>
  }
  func.func @unknown(%x: tensor<1x3xf32>) -> tensor<1x3xf32> {
    %0 = "onnx.Custom"(%x) {function_name = "F", domain_name = "d", onnx_node_name = "/custom"} : (tensor<1x3xf32>) -> tensor<1x3xf32>
    %1 = call @f(%0) : (tensor<1x3xf32>) -> tensor<1x3xf32>
    return %1 : tensor<1x3xf32>
  }
}

// -----

// Tests that subgraphs use slices of values from outside.
// CHECK-LABEL: func.func @subgraph(
// CHECK:         %[[A:.*]] = "onnx.Slice"
// CHECK:         %[[B:.*]] = "onnx.Slice"
// CHECK:         "onnx.If"
// CHECK:           "onnx.Relu"(%[[A]])
// CHECK:         "onnx.If"
// CHECK:           "onnx.Relu"(%[[B]])
// CHECK:         "onnx.Concat"{{.*}} -> tensor<2x3xf32>
// expected-warning @below {{'onnx.If' op}}
module {
  func.func @subgraph(%x: tensor<1x3xf32>, %c: tensor<i1>) -> tensor<1x3xf32> {
    %0 = "onnx.If"(%c) ({
      %1 = "onnx.Relu"(%x) : (tensor<1x3xf32>) -> tensor<1x3xf32>
      onnx.Yield %1 : tensor<1x3xf32>
    }, {
      onnx.Yield %x : tensor<1x3xf32>
    }) : (tensor<i1>) -> tensor<1x3xf32>
    return %0 : tensor<1x3xf32>
  }
}

// -----

// Tests that the runs of a batch that is merged with preceding dimensions are sliced correctly.
// CHECK-LABEL: func.func @merged(
// CHECK:         "onnx.Reshape"{{.*}} : (tensor<10x3xf32>, tensor<3xi64>) -> tensor<5x2x3xf32>
// CHECK:         "onnx.Slice"{{.*}} : (tensor<5x2x3xf32>, {{.*}}) -> tensor<5x1x3xf32>
// CHECK:         "onnx.Reshape"{{.*}} : (tensor<5x1x3xf32>, tensor<2xi64>) -> tensor<5x3xf32>
// CHECK:         "onnx.Softmax"{{.*}} -> tensor<5x3xf32>
// expected-warning @below {{'onnx.Softmax' op}}
module {
  func.func @merged(%x: tensor<1x5x3xf32>) -> tensor<5x3xf32> {
    %0 = "onnx.Transpose"(%x) {perm = [1, 0, 2]} : (tensor<1x5x3xf32>) -> tensor<5x1x3xf32>
    %rows = onnx.Constant dense<[5, 3]> : tensor<2xi64>
    %1 = "onnx.Reshape"(%0, %rows) {allowzero = 0 : si64} : (tensor<5x1x3xf32>, tensor<2xi64>) -> tensor<5x3xf32>
    %2 = "onnx.Softmax"(%1) {axis = 0 : si64} : (tensor<5x3xf32>) -> tensor<5x3xf32>
    return %2 : tensor<5x3xf32>
  }
}

// -----

// Tests that scalars are transferred, and passed to clusters, one by one.
// CHECK-LABEL: func.func @moved(
// CHECK-COUNT-2: divi.transfer %{{.*}} from @cpu0 to @gpu0 : tensor<f32>
// CHECK-COUNT-2: divi.cluster "c"(%{{.*}}, %{{.*}} : tensor<1x3xf32>, tensor<f32>) -> tensor<1x3xf32>
// CHECK:         "onnx.Concat"{{.*}} -> tensor<2x3xf32>
// expected-warning @below {{'onnx.ReduceMax' op, 'divi.transfer' op, 'divi.cluster' op}}
module {
  divi.device @cpu0 {kind = "cpu", memory = 1024 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1024 : i64}
  func.func @moved(%x: tensor<1x3xf32>) -> tensor<1x3xf32> {
    %none = "onnx.NoValue"() {value} : () -> none
    %0 = "onnx.ReduceMax"(%x, %none) {keepdims = 0 : si64} : (tensor<1x3xf32>, none) -> tensor<f32>
    %1 = divi.transfer %0 from @cpu0 to @gpu0 : tensor<f32>
    %y = divi.transfer %x from @cpu0 to @gpu0 : tensor<1x3xf32>
    %2 = divi.cluster "c"(%y, %1 : tensor<1x3xf32>, tensor<f32>) -> tensor<1x3xf32> {
    ^bb0(%a: tensor<1x3xf32>, %b: tensor<f32>):
      %3 = "onnx.Sub"(%a, %b) : (tensor<1x3xf32>, tensor<f32>) -> tensor<1x3xf32>
      divi.yield %3 : tensor<1x3xf32>
    }
    return %2 : tensor<1x3xf32>
  }
}

// -----

// Tests that a cluster inside an unrolled one is unchanged.
// CHECK-LABEL: func.func @nested(
// CHECK-COUNT-2: divi.cluster "outer"(%{{.*}} : tensor<1x3xf32>) -> tensor<1x3xf32>
// CHECK:         "onnx.Concat"{{.*}} -> tensor<2x3xf32>
// expected-warning @below {{so it runs once for each: 'divi.cluster' op}}
module {
  func.func @nested(%x: tensor<1x3xf32>) -> tensor<1x3xf32> {
    %0 = divi.cluster "outer"(%x : tensor<1x3xf32>) -> tensor<1x3xf32> {
    ^bb0(%a: tensor<1x3xf32>):
      %1 = divi.cluster "inner"(%a : tensor<1x3xf32>) -> tensor<1x3xf32> {
      ^bb0(%b: tensor<1x3xf32>):
        %2 = "onnx.Relu"(%b) : (tensor<1x3xf32>) -> tensor<1x3xf32>
        divi.yield %2 : tensor<1x3xf32>
      }
      %3 = "onnx.Softmax"(%1) {axis = 0 : si64} : (tensor<1x3xf32>) -> tensor<1x3xf32>
      divi.yield %3 : tensor<1x3xf32>
    }
    return %0 : tensor<1x3xf32>
  }
}
