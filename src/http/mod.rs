//! HTTP: only this module, [`crate::app`] and each noun's `handlers.rs` know actix.
//!
//! A request passes through [`trace`](trace::trace) and [`guard`](guard::guard). Its handler then extracts [`Tx`] to write
//! or [`Db`] to read, and [`Payload`] for its parameters.

pub mod body;
pub mod guard;
pub mod hosts;
mod look_up;
pub mod metrics;
mod respond;
pub mod route;
mod state;
pub mod trace;
mod transaction;
pub mod unread;

pub use body::Payload;
pub use hosts::Hosts;
pub use metrics::Metrics;
pub use route::{Policy, Route, RouteError};
pub use state::{Shared, State};
pub use transaction::{Db, Tx};
