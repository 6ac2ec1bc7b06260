//! The request for a list: a page and a filter.

use diesel::QueryResult;
use diesel::pg::PgConnection;

use super::directory::Directory;
use super::params::{Parameters, Params, Reference};
use crate::error::Error;
use crate::types::{Cause, Kind, Page, PageRequest};

/// The parameters of a list: its page, and the filter of the noun.
pub struct List<K, F> {
    pub page: PageRequest,
    pub filter: F,
    /// The objects that the cursor and the filter name.
    references: Vec<Reference>,
    directory: &'static Directory,
    kind: std::marker::PhantomData<fn() -> K>,
}

impl<K: Kind, F: Parameters> Parameters for List<K, F> {
    fn read(params: &mut Params) -> Result<Self, Error> {
        let page = params.page::<K>()?;
        let filter = F::read(params)?;
        let (references, directory) = (params.references(), params.directory());
        Ok(Self { page, filter, references, directory, kind: std::marker::PhantomData })
    }
}

impl<K, F> List<K, F> {
    /// Checks that the objects named by the cursor and the filter exist, and loads the page.
    ///
    /// # Errors
    /// [`Error::ReferenceNotFound`].
    pub fn load<T>(
        &self,
        connection: &mut PgConnection,
        cause: &Cause,
        query: impl FnOnce(&mut PgConnection, &PageRequest, &F) -> QueryResult<Vec<T>>,
    ) -> Result<Page<T>, Error> {
        for Reference { param, noun, id } in &self.references {
            if self.directory.load(connection, cause.account, &[id])?.is_empty() {
                return Err(Error::ReferenceNotFound { noun, id: id.clone(), param: param.clone() });
            }
        }
        Ok(self.page.page(query(connection, &self.page, &self.filter)?))
    }
}
