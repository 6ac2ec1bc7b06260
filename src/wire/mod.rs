//! Reads requests: text in, types out.
//!
//! This module knows no noun. The `handlers.rs` of each noun reads its parameters, and its `mod.rs` writes its JSON.

pub mod directory;
pub mod expand;
pub mod form;
mod from_parameter;
pub mod ids;
pub mod json;
mod list;
mod metadata;
mod page;
pub mod params;
pub mod shared;
pub mod signature;
mod unsupported;

/// The version of Stripe's API that objects follow.
pub const API_VERSION: &str = "2026-08-26.dahlia";

/// The names of the releases of Stripe's API, which follow the date in a version.
pub const RELEASES: [&str; 5] = ["acacia", "basil", "clover", "dahlia", "preview"];

pub use directory::Directory;
pub use expand::Expand;
pub use from_parameter::MAX_TEXT_CHARACTERS;
pub use list::List;
pub use params::{FromParameter, Parameter, Parameters, Params, Update};
pub use shared::Nothing;
pub use unsupported::{SEARCHES, is_unsupported_path};
