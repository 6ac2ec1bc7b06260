//! What goes over the wire: parameters in, as JSON or as a form, and Stripe's shapes out.
//!
//! A noun knows its own shape (`shape` in its `mod.rs`); here is what all of them share.

pub mod body;
pub mod expand;
pub mod form;
mod from_parameter;
mod metadata;
mod page;
pub mod params;
pub mod shared;
pub mod unread;
mod unsupported;

pub use body::Payload;
pub use expand::Expand;
pub use params::{FromParameter, Parameter, Parameters, Params, Update};
pub use shared::{Nothing, created, declined, found, listed};
pub use unsupported::{SEARCHES, is_unsupported_path};
