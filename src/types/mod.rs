//! Values that cannot be wrong: each has one constructor, and whoever holds one need not check again.

pub mod cause;
pub mod ids;
pub mod metadata;
pub mod money;
pub mod page;

pub use cause::Cause;
pub use ids::{Id, Kind};
pub use metadata::{Metadata, MetadataPatch};
pub use money::{Amount, Currency};
pub use page::{Page, PageRequest};
