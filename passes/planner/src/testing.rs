//! Problems for unit tests.

pub(crate) use divi_papers::generate::Rwnn;

use crate::model::error::Error;
use crate::model::problem::Problem;

/// A randomly wired network. It comes as text, since the generator's problems are those of the library that it depends on, not
/// of the one under test.
pub(crate) fn rwnn(options: &Rwnn) -> Result<Problem, Error> {
    let problem = divi_papers::generate::rwnn(options).map_err(|error| Error::Unsupported(error.to_string()))?;
    Problem::read(&problem.write())
}
