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
//! 1. [`app`]: the table of routes. A route is data, and a `POST` without a policy for duplicates stops the server from
//!    starting. Around all of it stands [`logs::trace`], which gives each request its id and its line.
//! 2. [`idempotency::guard`]: the middleware around every handler. API key, idempotency key, media type, size, syntax: all
//!    that can be judged without the database. It leaves an [`idempotency::Call`] and a [`wire::body::Body`] in the
//!    request, which [`db::Tx`] and [`wire::Payload`] take out again when the handler asks for them.
//! 3. [`charges::handlers`]: asks for a [`db::Tx`] and hands it one closure: parse, one call, answer.
//! 4. [`db::Tx::run`]: takes the request to a database thread, once.
//! 5. [`idempotency::execute`]: the protocol, a run of named steps. Look up, begin, claim, look again, *the closure*,
//!    remember, commit.
//! 6. [`charges::create`]: the closure's one call. The card is found or kept, [`card_network::authorise`] decides, and the
//!    charge is written with its events and its row of the ledger in one statement of `charges::queries`.
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

pub mod app;
pub mod audit;
pub mod auth;
pub mod balance;
pub mod card_network;
pub mod charges;
pub mod cli;
pub mod config;
pub mod customers;
pub mod db;
pub mod disputes;
pub mod embedded;
pub mod error;
pub mod events;
pub mod faults;
pub mod idempotency;
pub mod logs;
pub mod metrics;
pub mod notifications;
pub mod payment_intents;
pub mod payment_methods;
pub mod refunds;
pub mod schema;
pub mod secrets;
pub mod sweeper;
pub mod tokens;
pub mod types;
pub mod webhooks;
pub mod wire;
