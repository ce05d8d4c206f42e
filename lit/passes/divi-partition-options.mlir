// Options of the pass are satisfied, or rejected with the reason.
// RUN: divi-opt %s --divi-partition=placement=%S/Inputs/placement.json | FileCheck %s --check-prefix=PLACED
// RUN: divi-opt %s --divi-partition="pin=fast=gpu0 contention=shared pose-only" | FileCheck %s --check-prefix=POSED --implicit-check-not=divi.start
// RUN: divi-opt %s --divi-partition="iterations=0 min-gain=0" | FileCheck %s --check-prefix=ZERO
// RUN: not divi-opt %s --divi-partition=placement=%S/Inputs/placement-unused.json 2>&1 | FileCheck %s --check-prefix=UNUSED
// RUN: not divi-opt %s --divi-partition=placement=%S/Inputs/placement-broken.json 2>&1 | FileCheck %s --check-prefix=BROKEN
// RUN: not divi-opt %s --divi-partition=placement=%S/Inputs/placement-nowhere.json 2>&1 | FileCheck %s --check-prefix=NOWHERE
// RUN: not divi-opt %s --divi-partition=placement=%S/Inputs/placement-misspelled.json 2>&1 | FileCheck %s --check-prefix=MISSPELLED
// RUN: not divi-opt %s --divi-partition=placement=%S/Inputs/nothing.json 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not divi-opt %s --divi-partition=pin=fasst=gpu0 2>&1 | FileCheck %s --check-prefix=FITS-NOTHING
// RUN: not divi-opt %s --divi-partition=pin=fast=gpu7 2>&1 | FileCheck %s --check-prefix=NO-DEVICE
// RUN: not divi-opt %s --divi-partition=pin=fast 2>&1 | FileCheck %s --check-prefix=NO-VALUE
// RUN: not divi-opt %s --divi-partition=pin=fast=gpu0,f*=cpu0 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not divi-opt %s --divi-partition="pin=fast=gpu0 exclude=fast=gpu0" 2>&1 | FileCheck %s --check-prefix=EXCLUDED
// RUN: not divi-opt %s --divi-partition="exclude=fast=gpu0,fast=cpu0" 2>&1 | FileCheck %s --check-prefix=NOT-ANYWHERE
// RUN: not divi-opt %s --divi-partition="colocate=fast=a,slow=a,fast=b" 2>&1 | FileCheck %s --check-prefix=GROUPS
// RUN: not divi-opt %s --divi-partition=objective=speed 2>&1 | FileCheck %s --check-prefix=OBJECTIVE
// RUN: not divi-opt %s --divi-partition=objective=batch 2>&1 | FileCheck %s --check-prefix=QUEUE
// RUN: not divi-opt %s --divi-partition="objective=latency inputs=2" 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: not divi-opt %s --divi-partition="inputs=-1" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not divi-opt %s --divi-partition="iterations=1 time-limit=1" 2>&1 | FileCheck %s --check-prefix=LIMITS
// RUN: not divi-opt %s --divi-partition="algorithm=magic" 2>&1 | FileCheck %s --check-prefix=ALGORITHM
// RUN: not divi-opt %s --divi-partition="k=2" 2>&1 | FileCheck %s --check-prefix=STAGES
// RUN: not divi-opt %s --divi-partition="contention=some" 2>&1 | FileCheck %s --check-prefix=CONTENTION
// RUN: not divi-opt %s --divi-partition="resident=-1" 2>&1 | FileCheck %s --check-prefix=RESIDENT
// RUN: not divi-opt %s --divi-partition="resident=nan" 2>&1 | FileCheck %s --check-prefix=RESIDENT
// RUN: not divi-opt %s --divi-partition="resident=1.5" 2>&1 | FileCheck %s --check-prefix=MORE-THAN-ALL
// RUN: not divi-opt %s --divi-partition="iterations=-1" 2>&1 | FileCheck %s --check-prefix=ITERATIONS
// RUN: not divi-opt %s --divi-partition="time-limit=-1" 2>&1 | FileCheck %s --check-prefix=SECONDS

module {
  divi.device @cpu0 {kind = "cpu", memory = 1000000 : i64}
  divi.device @gpu0 {kind = "cuda", memory = 1000000 : i64}
  divi.link @cpu0 -> @gpu0 {bandwidth = 1.0e9 : f64, latency = 0.0 : f64}
  divi.link @gpu0 -> @cpu0 {bandwidth = 1.0e9 : f64, latency = 0.0 : f64}
  func.func @main(%x: tensor<1x25xf32>) -> tensor<1x25xf32> {
    %0 = "onnx.Relu"(%x) {divi.cost = #divi.cost<@cpu0 = {1 = 10.0}, @gpu0 = {1 = 50.0}>, onnx_node_name = "fast"} : (tensor<1x25xf32>) -> tensor<1x25xf32>
    %1 = "onnx.Abs"(%0) {divi.cost = #divi.cost<@cpu0 = {1 = 20.0}, @gpu0 = {1 = 1.0}>, onnx_node_name = "slow"} : (tensor<1x25xf32>) -> tensor<1x25xf32>
    %2 = "onnx.Neg"(%1) {divi.cost = #divi.cost<@cpu0 = {1 = 20.0}, @gpu0 = {1 = 1.0}>, onnx_node_name = "last"} : (tensor<1x25xf32>) -> tensor<1x25xf32>
    return %2 : tensor<1x25xf32>
  }
}

// An id is a pin, a kind allows all devices of it, and "" allows all devices; the first matching entry applies.
// PLACED: "onnx.Relu"{{.*}}divi.device = @gpu0, divi.pin = @gpu0
// PLACED: "onnx.Abs"{{.*}}divi.device = @cpu0, divi.exclude = [@gpu0]
// PLACED: "onnx.Neg"{{.*}}divi.device = @gpu0, divi.start = {{[^,]*}}, onnx_node_name = "last"}

// POSED: module attributes {divi.contention = "shared"}
// POSED: "onnx.Relu"{{.*}}divi.pin = @gpu0
// ZERO: divi.plan

// UNUSED: error: placement '{{.*}}placement-unused.json': entry 0 matches no operator: none has type 'onnx.Conv' and name '.*'
// BROKEN: error: placement '{{.*}}placement-broken.json': 'node_type' of entry 0 is not a regular expression: {{.*}}
// NOWHERE: error: placement '{{.*}}placement-nowhere.json': entry 0 names unknown device 'nnpa'; expected one of cpu0, gpu0
// MISSPELLED: error: placement '{{.*}}placement-misspelled.json': device_placement[0].node_typ: unknown field `node_typ`, expected one of `device`, `node_type`, `onnx_node_name`
// MISSING: error: placement '{{.*}}nothing.json': No such file or directory
// FITS-NOTHING: error: pin 'fasst=gpu0' matches no operator: there are 'fast', 'slow', 'last', …
// NO-DEVICE: error: pin names unknown device 'gpu7'; expected one of cpu0, gpu0
// NO-VALUE: error: pin is 'fast': it must be PATTERN=DEVICE
// TWICE: error: 'onnx.Relu' op 'fast' is one task, pinned to @gpu0 and to @cpu0: remove one of the pins, or separate its operators with a lower fusion level
// EXCLUDED: error: 'onnx.Relu' op 'fast' is pinned to @gpu0, and excluded from it: remove one of the two
// NOT-ANYWHERE: error: 'onnx.Relu' op 'fast' is excluded from @gpu0, @cpu0, and no other device supports it: allow one of them
// GROUPS: error: 'onnx.Relu' op 'fast' is in groups "a" and "b": make them one group
// OBJECTIVE: error: objective: unknown objective 'speed'; expected one of latency, batch, pipeline
// QUEUE: error: objective batch needs the number of queued inputs: set inputs=L
// ONE: error: objective latency takes one input, not 2: use objective batch for several
// NEGATIVE: error: inputs is -1: it must be a number from 1 to 4294967295
// LIMITS: error: only one of iterations and time-limit can be given
// ALGORITHM: error: unknown algorithm 'magic'
// STAGES: error: a number of stages is for objective pipeline, not latency
// CONTENTION: error: contention is 'some': it must be off, exclusive or shared
// RESIDENT: error: resident must be a fraction from 0 to 1
// MORE-THAN-ALL: error: resident is 1.5: it must be a fraction from 0 to 1
// ITERATIONS: error: iterations must not be negative
// SECONDS: error: time-limit must be a non-negative number of seconds
