//! The parameter `expand[]`: the properties that a caller wants as objects instead of ids, up to four levels deep.

use std::collections::BTreeMap;

use super::directory::Directory;
use super::params::Params;
use crate::error::{Error, quoted};

/// The most levels that a path may have.
const MAX_LEVELS: usize = 4;

/// The paths that a caller wants expanded, as in `data.customer.default_source`.
#[derive(Debug, Clone)]
pub struct Expand {
    paths: Vec<String>,
    pub directory: &'static Directory,
}

/// Paths as a tree, in which paths with the same beginning share a branch.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tree(pub BTreeMap<String, Tree>);

impl Expand {
    /// Reads the parameter `expand`, which every route takes.
    ///
    /// # Errors
    /// The parameter is not a list of texts.
    pub fn read(params: &mut Params) -> Result<Self, Error> {
        Ok(Self { paths: params.take("expand")?.unwrap_or_default(), directory: params.directory() })
    }

    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Checks the paths, and returns them as a tree; in a list, each path begins with `prefix`.
    ///
    /// # Errors
    /// A property that cannot be expanded, or a path with too many levels.
    pub fn tree(&self, object: &str, prefix: Option<&str>) -> Result<Tree, Error> {
        let mut root = Tree::default();
        for (number, path) in self.paths.iter().enumerate() {
            let refused = |what: String| Error::invalid(&format!("expand[{number}]"), what);
            let unknown = || refused(format!("This property cannot be expanded ({}).", quoted(path)));
            let inner = match prefix {
                Some(prefix) => path.strip_prefix(prefix).ok_or_else(unknown)?,
                None => path,
            };
            let levels = path.split('.').count();
            if levels > MAX_LEVELS {
                return Err(refused(format!(
                    "You cannot expand more than {MAX_LEVELS} levels of a property ({}).",
                    quoted(path)
                )));
            }
            let (mut objects, mut tree) = (vec![object], &mut root);
            for property in inner.split('.') {
                objects = self.directory.targets(&objects, property);
                if objects.is_empty() {
                    return Err(unknown());
                }
                tree = tree.0.entry(property.to_owned()).or_default();
            }
            if !objects.iter().any(|object| self.directory.is_object(object)) {
                return Err(unknown());
            }
        }
        Ok(root)
    }
}
