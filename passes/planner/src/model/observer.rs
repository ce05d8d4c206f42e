//! What a solver tells while it works: better plans, and better bounds.

use std::fmt;
use std::sync::Arc;

use crate::units::Micros;

/// Something that a solver has found. It may not be the best that is known: several parts may be at work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum News {
    /// A plan of this value, found by this algorithm or part of a portfolio.
    Plan(Micros, &'static str),
    /// No plan is better than this, which is proven by what is named.
    Bound(Micros, &'static str),
    /// So many nodes of a search tree have been looked at since the last time.
    Explored(u64, &'static str),
    /// The plan that is given back is that of this part of a portfolio.
    Taken(&'static str),
}

/// Who is told, and who tells. By default nobody.
#[derive(Clone, Default)]
pub struct Watch {
    told: Option<Arc<dyn Fn(News) + Send + Sync>>,
    part: &'static str,
}

impl Watch {
    /// Calls back from any thread, whenever there is news.
    pub fn new(tell: impl Fn(News) + Send + Sync + 'static) -> Self {
        Self { told: Some(Arc::new(tell)), part: "" }
    }

    /// The same for an algorithm, by its name: plans that it tells of are its own.
    pub(crate) fn of(&self, part: &'static str) -> Self {
        Self { part, ..self.clone() }
    }

    /// Told of bounds, and of no plan.
    pub(crate) fn of_bounds(&self) -> Self {
        self.told_of(|news| matches!(news, News::Bound(..)))
    }

    /// Told of plans, and of no bound.
    pub(crate) fn without_bounds(&self) -> Self {
        self.told_of(|news| !matches!(news, News::Bound(..)))
    }

    fn told_of(&self, some: fn(&News) -> bool) -> Self {
        let told = self.clone();
        let tell = move |news| {
            if some(&news) {
                told.tell(news);
            }
        };
        Self { told: Some(Arc::new(tell)), part: self.part }
    }

    pub(crate) fn plan(&self, value: Micros) {
        if value.is_finite() {
            self.tell(News::Plan(value, self.part));
        }
    }

    pub(crate) fn bound(&self, value: Micros, by: &'static str) {
        if value.is_finite() {
            self.tell(News::Bound(value, by));
        }
    }

    pub(crate) fn explored(&self, nodes: u64) {
        if nodes > 0 {
            self.tell(News::Explored(nodes, self.part));
        }
    }

    /// A portfolio gives back what a part has found.
    pub(crate) fn taken(&self, value: Micros, part: &'static str) {
        self.of(part).plan(value);
        self.tell(News::Taken(part));
    }

    /// Passes news on.
    pub fn tell(&self, news: News) {
        if let Some(tell) = &self.told {
            tell(news);
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.told.is_some() { "Watch" } else { "Nobody" })
    }
}
