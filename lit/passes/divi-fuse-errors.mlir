// RUN: not divi-opt %s --divi-fuse=level=all 2>&1 | FileCheck %s --check-prefix=LEVEL
// RUN: not divi-opt %s --divi-fuse=max-cluster-ops=-1 2>&1 | FileCheck %s --check-prefix=LIMIT

// Tests that invalid options are errors that list the valid ones.
// LEVEL: error: level is 'all': it must be none, conv or full
// LIMIT: error: max-cluster-ops is -1: it must be positive, or 0 for no limit
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
