//! oncepay: a Stripe-compatible payments service on PostgreSQL, and a reference implementation of idempotency.
//!
//! # The law
//!
//! *An answer is remembered exactly when its effect is committed.* One PostgreSQL transaction holds the claim on the
//! `Idempotency-Key`, every write of the handler, and the stored answer. A request is done or not done; it can
//! never be half done. There is no lock timeout to tune for crashes and no cleanup after them, because the database
//! does both.
//!
//! # The path of `POST /v1/charges`
//!
//! 1. [`src/app.rs`](app): the table of routes. A route is data; a `POST` cannot be written without a policy for
//!    duplicates, and a wrong one stops the server from starting ([`src/app/routes.rs`](app::Route)). Around every
//!    answer stands [`src/logs.rs`](logs::trace), which gives each request its id and its line in the log.
//! 2. [`src/idempotency/guard.rs`](idempotency::guard): the middleware around every handler. API key, idempotency key,
//!    media type, size, syntax: all that can be judged without the database, before a connection is taken. It leaves
//!    what it read for the handler to ask for.
//! 3. [`src/charges/handlers.rs`](charges::handlers): asks for a `Tx` and hands it one closure: parse, one call,
//!    answer.
//! 4. [`src/db/tx.rs`](db::Tx): takes the request to a database thread ([`src/db.rs`](db)), once. One job on one
//!    thread, which no await point can split, so a client that hangs up changes nothing.
//! 5. [`src/idempotency/mod.rs`](idempotency::execute): the protocol, a run of named steps: look up, `BEGIN`, claim the
//!    key (`pg_try_advisory_xact_lock`, so a duplicate never waits), look again, the closure, remember the answer,
//!    `COMMIT`.
//! 6. [`src/charges/mod.rs`](charges::create): the closure's one call. The card is found or kept, the card network
//!    decides, and in one statement of `src/charges/queries.rs` the charge is written with its row of the ledger, its
//!    events and their deliveries to webhook endpoints.
//!
//! # The modules, in reading order
//!
//! [`idempotency`] · [`db`] · [`charges`] · [`payment_intents`] · [`refunds`] · [`customers`] · [`tokens`] ·
//! [`payment_methods`] · [`balance`] · [`events`] · [`webhooks`] · [`notifications`] · [`disputes`] ·
//! [`card_network`] · [`types`] · [`wire`] · [`error`] · [`auth`] · [`secrets`] · [`app`] · [`logs`] ·
//! [`metrics`] · [`sweeper`] · [`audit`] · [`config`] · [`cli`] · [`embedded`] · [`faults`]
//!
//! # Simplifications, confessed
//!
//! The card network is a pure function; a real one would be a call over HTTP, which no transaction can roll back, and
//! would stand between the two halves of [`charges::create`]. Money is available at once, fees are zero, and nothing
//! is ever paid out.

pub mod answers;
pub mod app;
pub mod audit;
pub mod auth;
pub mod card_network;
pub mod cli;
pub mod db;
pub mod embedded;
pub mod error;
pub mod events;
pub mod http;
pub mod idempotency;
pub mod notifications;
pub mod payments;
pub mod schema;
pub mod secrets;
pub mod types;
pub mod webhooks;
pub mod wire;
