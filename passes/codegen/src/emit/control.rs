//! Loops and branches.

use super::{Builder, Region, Type, V};

impl Builder {
    /// A block with arguments that `body` fills, and whose yields it returns.
    fn region(&self, arguments: &[Type], body: impl FnOnce(&[V]) -> Vec<V>) -> Region {
        self.region_with(arguments, |arguments| {
            let yields = body(arguments);
            self.append("scf.yield", &yields, &[], &[], vec![]);
        })
    }

    /// A loop that carries values along: `body` gets the counter and their state, and returns their next one.
    pub(crate) fn for_with(
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

    /// A loop.
    pub(crate) fn for_each(&self, from: V, to: V, step: i64, body: impl FnOnce(V)) {
        self.for_with(from, to, step, &[], |counter, _| {
            body(counter);
            vec![]
        });
    }

    /// A loop over `0..count`, which is none if it has one iteration.
    pub(crate) fn repeat(&self, count: i64, body: impl FnOnce(V)) {
        match count {
            ..=0 => {}
            1 => body(self.index(0)),
            _ => self.for_each(self.index(0), self.index(count), 1, body),
        }
    }

    /// Nested loops over all coordinates of a shape.
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

    /// A value over all coordinates of a shape: `body` gets the coordinates and the state, and returns the next one.
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
                Some((&size, rest)) => b.for_with(b.index(0), b.index(size), 1, state, |counter, state| {
                    coordinates.push(counter);
                    level(b, rest, coordinates, state, body)
                }),
            }
        }
        level(self, shape, &mut vec![], start, Box::new(body))
    }

    /// What one of two branches computes; results have the types of `then`'s.
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

    /// Code for all of `count` places, of which `index` is one, or, if the last one is special, for the others and for it.
    pub(crate) fn for_last(&self, index: V, count: i64, is_special: bool, code: impl Fn(bool)) {
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

    /// What is done under a condition.
    pub(crate) fn when(&self, condition: V, then: impl FnOnce()) {
        let then = self.region(&[], |_| {
            then();
            vec![]
        });
        // A missing branch is a region without blocks.
        self.append("scf.if", &[condition], &[], &[], vec![then, Region::empty()]);
    }

    /// A loop as long as `condition` says so: both get the state, `body` returns the next one.
    pub(crate) fn while_with(
        &self,
        start: &[V],
        condition: impl FnOnce(&[V]) -> V,
        body: impl FnOnce(&[V]) -> Vec<V>,
    ) -> Vec<V> {
        let types: Vec<_> = start.iter().map(|&value| self.type_of(value)).collect();
        let before = self.region_with(&types, |state| {
            let goes_on = condition(state);
            let mut operands = vec![goes_on];
            operands.extend(state);
            self.append("scf.condition", &operands, &[], &[], vec![]);
        });
        let after = self.region(&types, body);
        let operation = self.append("scf.while", start, &types, &[], vec![before, after]);
        (0..types.len()).map(|i| self.result(operation, i)).collect()
    }

    /// A block with arguments that `body` fills, its terminator included.
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
