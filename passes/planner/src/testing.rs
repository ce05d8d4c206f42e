//! Problems for unit tests.

pub(crate) use divi_papers::generate::Rwnn;

use crate::model::error::Error;
use crate::model::problem::Problem;

/// Generates a randomly wired network. It is passed as text, since the generator's `Problem` is that of the library it is
/// linked with, not of the crate under test.
pub(crate) fn rwnn(options: &Rwnn) -> Result<Problem, Error> {
    let problem = divi_papers::generate::rwnn(options).map_err(|error| Error::Unsupported(error.to_string()))?;
    Problem::read(&problem.write())
}
