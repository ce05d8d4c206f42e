//! Loops and branches.

use super::{Builder, Region, Type, V};

impl Builder {
    /// Creates a region of one block with arguments. `body` appends operations to it and returns the values to yield.
    fn region(&self, arguments: &[Type], body: impl FnOnce(&[V]) -> Vec<V>) -> Region {
        self.region_with(arguments, |arguments| {
            let yields = body(arguments);
            self.append("scf.yield", &yields, &[], &[], vec![]);
        })
    }

    /// Appends a loop with loop-carried values: `body` gets the counter and their current values, and returns the next ones.
    pub(crate) fn for_loop_carried(
        &self,
        from: V,
        to: V,
        step: i64,
        start: &[V],
        body: impl FnOnce(V, &[V]) -> Vec<V>,
    ) -> Vec<V> {
        let types: Vec<_> = start.iter().map(|&value| self.type_of(value)).collect();
        let mut arguments = vec![self.i64()];
        arguments.extend(&types);
        let region = self.region(&arguments, |arguments| body(arguments[0], &arguments[1..]));
        let mut operands = vec![from, to, self.index(step)];
        operands.extend(start);
        let operation = self.append("scf.for", &operands, &types, &[], vec![region]);
        (0..types.len()).map(|i| self.result(operation, i)).collect()
    }

    /// Appends a loop without loop-carried values.
    pub(crate) fn for_each(&self, from: V, to: V, step: i64, body: impl FnOnce(V)) {
        self.for_loop_carried(from, to, step, &[], |counter, _| {
            body(counter);
            vec![]
        });
    }

    /// Appends a loop over `0..count`; a single iteration is inlined.
    pub(crate) fn repeat(&self, count: i64, body: impl FnOnce(V)) {
        match count {
            ..=0 => {}
            1 => body(self.index(0)),
            _ => self.for_each(self.index(0), self.index(count), 1, body),
        }
    }

    /// Appends a loop nest over all coordinates of a shape.
    pub(crate) fn nest(&self, shape: &[i64], body: impl FnOnce(&[V])) {
        type Body<'a> = Box<dyn FnOnce(&[V]) + 'a>;
        fn level(b: &Builder, shape: &[i64], coordinates: &mut Vec<V>, body: Body<'_>) {
            match shape.split_first() {
                None => body(coordinates),
                Some((&size, rest)) => b.repeat(size, |counter| {
                    coordinates.push(counter);
                    level(b, rest, coordinates, body);
                    coordinates.pop();
                }),
            }
        }
        level(self, shape, &mut vec![], Box::new(body));
    }

    /// Appends a loop nest over all coordinates of a shape with loop-carried values: `body` gets the coordinates and the current values,
    /// and returns the next ones.
    pub(crate) fn fold_nest(&self, shape: &[i64], start: &[V], body: impl FnOnce(&[V], &[V]) -> Vec<V>) -> Vec<V> {
        type Body<'a> = Box<dyn FnOnce(&[V], &[V]) -> Vec<V> + 'a>;
        fn level(b: &Builder, shape: &[i64], coordinates: &mut Vec<V>, state: &[V], body: Body<'_>) -> Vec<V> {
            match shape.split_first() {
                None => body(coordinates, state),
                Some((0, _)) => state.to_vec(),
                Some((1, rest)) => {
                    coordinates.push(b.index(0));
                    level(b, rest, coordinates, state, body)
                }
                Some((&size, rest)) => b.for_loop_carried(b.index(0), b.index(size), 1, state, |counter, state| {
                    coordinates.push(counter);
                    level(b, rest, coordinates, state, body)
                }),
            }
        }
        level(self, shape, &mut vec![], start, Box::new(body))
    }

    /// Appends a conditional with results. Both branches must return values of the same types.
    pub(crate) fn if_else(
        &self,
        condition: V,
        then: impl FnOnce() -> Vec<V>,
        otherwise: impl FnOnce() -> Vec<V>,
    ) -> Vec<V> {
        let mut types = vec![];
        let then = self.region(&[], |_| {
            let values = then();
            types = values.iter().map(|&value| self.type_of(value)).collect();
            values
        });
        let otherwise = self.region(&[], |_| otherwise());
        let operation = self.append("scf.if", &[condition], &types, &[], vec![then, otherwise]);
        (0..types.len()).map(|i| self.result(operation, i)).collect()
    }

    /// Appends `code(false)` for index `index` of `count`. If `is_special`, the last index takes a branch with `code(true)` instead.
    pub(crate) fn specialize_last(&self, index: V, count: i64, is_special: bool, code: impl Fn(bool)) {
        if !is_special {
            return code(false);
        }
        if count == 1 {
            return code(true);
        }
        let is_usual = self.less(index, self.index(count - 1));
        let branch = |is_last| {
            code(is_last);
            vec![]
        };
        self.if_else(is_usual, || branch(false), || branch(true));
    }

    /// Appends a conditional without results.
    pub(crate) fn if_then(&self, condition: V, then: impl FnOnce()) {
        let then = self.region(&[], |_| {
            then();
            vec![]
        });
        // An absent branch is a region without blocks.
        self.append("scf.if", &[condition], &[], &[], vec![then, Region::empty()]);
    }

    /// Appends a loop that runs while `condition` holds: both closures get the loop-carried values, and `body` returns the next ones.
    pub(crate) fn while_loop(
        &self,
        start: &[V],
        condition: impl FnOnce(&[V]) -> V,
        body: impl FnOnce(&[V]) -> Vec<V>,
    ) -> Vec<V> {
        let types: Vec<_> = start.iter().map(|&value| self.type_of(value)).collect();
        let before = self.region_with(&types, |state| {
            let mut operands = vec![condition(state)];
            operands.extend(state);
            self.append("scf.condition", &operands, &[], &[], vec![]);
        });
        let after = self.region(&types, body);
        let operation = self.append("scf.while", start, &types, &[], vec![before, after]);
        (0..types.len()).map(|i| self.result(operation, i)).collect()
    }

    /// Creates a region of one block with arguments. `body` appends operations to it, including the terminator.
    fn region_with(&self, arguments: &[Type], body: impl FnOnce(&[V])) -> Region {
        let before = self.block.get();
        let block = self.ir.block(arguments);
        let region = Region::of(block);
        let arguments: Vec<_> = (0..arguments.len()).map(|i| block.argument(i)).collect();
        self.block.set(block);
        body(&arguments);
        self.block.set(before);
        region
    }
}
