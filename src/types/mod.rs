//! Values that cannot be wrong, and what is handed on together.
//!
//! An [`Id`], an [`Amount`], a [`Currency`] and [`Metadata`] have private fields, and whatever makes one of a caller's
//! text or number checks it; so whoever holds one need not check again. What the database holds was checked when it was
//! written. A [`Page`], what is asked of it, and a [`Cause`] only keep together what belongs together.

pub mod cause;
mod clock;
mod column;
pub mod ids;
pub mod metadata;
pub mod money;
pub mod page;

pub use cause::Cause;
pub use clock::{Clock, Watch};
pub(crate) use column::{jsonb_column, text_column};
pub use column::{read_jsonb, write_json, write_jsonb};
pub use ids::{Id, Kind};
pub use metadata::{Metadata, MetadataPatch};
pub use money::{Amount, Currency};
pub use page::{Page, PageRequest};
