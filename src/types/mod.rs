//! Types that all nouns share: ids, money, metadata, pages, time.
//!
//! An [`Id`], an [`Amount`], a [`Currency`] and [`Metadata`] have private fields, and their constructors check the text or
//! number of a caller. So the code that receives one need not check it again. Values from the database were checked when
//! they were written.

pub mod cause;
mod clock;
mod column;
mod event_type;
pub mod ids;
pub mod metadata;
pub mod money;
pub mod page;

pub use cause::Cause;
pub use clock::{Clock, Watch};
pub(crate) use column::{jsonb_column, text_column};
pub use column::{read_jsonb, write_json, write_jsonb};
pub use event_type::EventType;
pub use ids::{Id, Kind};
pub use metadata::{Metadata, MetadataPatch};
pub use money::{Amount, Currency};
pub use page::{Page, PageRequest};
