//! oncepay: a Stripe-compatible payments service on PostgreSQL, and a reference implementation of idempotency.
//!
//! # The law
//!
//! *An answer is remembered exactly when its effect is committed.* One PostgreSQL transaction holds the claim on the
//! `Idempotency-Key`, every write of the handler, and the stored answer. A request is done or not done. It is never
//! half done. No lock needs a timeout for crashes, and nothing needs to be cleaned up after them: the database does
//! both.
//!
//! # The path of `POST /v1/charges`
//!
//! 1. [`src/app/mod.rs`](app): the table of routes. A route is data. A `POST` needs a policy for duplicates, and
//!    a route without one stops the server from starting. The trace stands around every answer; it gives each request its id
//!    and its line in the log.
//! 2. [`src/http/guard.rs`](http::guard): the middleware around every handler. It checks API key, idempotency key,
//!    media type, size and syntax before a database connection is taken, and leaves what it read for the handler.
//! 3. [`src/payments/charges/handlers.rs`](payments::charges::handlers): the handler asks for a `Tx` and hands it one
//!    closure: parse, one call, answer.
//! 4. [`src/http/transaction.rs`](http::Tx): `Tx` takes the request to a database thread, once. It is one job
//!    on one thread. No await point can split it, so a client that hangs up changes nothing.
//! 5. [`src/idempotency/protocol.rs`](idempotency::execute): the protocol, in named steps: look up, `BEGIN`, claim
//!    the key (`pg_try_advisory_xact_lock`, so a duplicate never waits), look again, run the closure, remember the answer,
//!    `COMMIT`.
//! 6. [`src/payments/charges/mod.rs`](payments::charges::create): the closure's one call. It resolves the card and asks
//!    the card network. One statement then writes the charge, its ledger row, its events and their webhook deliveries.
//!
//! # The floors
//!
//! Each room stands on those below it, and none uses a room above; the test `layers` holds that. From the top, which is
//! also the order to read in:
//!
//! | room | what it is |
//! |---|---|
//! | [`cli`] | the program: settings and subcommands |
//! | [`app`] | the table of routes, the middleware in order, what runs beside the requests |
//! | [`payments`] | the nouns: customers, payment methods, charges, refunds … |
//! | [`notifications`], [`events`], [`webhooks`] | what the card network says; what happened; who is told |
//! | [`card_network`] | the question to the network and its answer, and the simulation behind them |
//! | [`answers`] | how objects and lists are answered, and expanded |
//! | [`http`] | routes, guard, transactions of requests, log lines |
//! | [`idempotency`] | the protocol; it knows neither HTTP nor payments |
//! | [`auth`], [`wire`] | API keys; text in, types out |
//! | [`db`] | threads, transactions, statements, migrations |
//! | [`error`] | everything that can go wrong, and what the caller is told |
//! | [`types`], [`secrets`], [`schema`] | ids, money, time; what is sealed and hashed; the tables |
//!
//! Beside them stand [`audit`], which recomputes every rule, and [`embedded`], the private PostgreSQL.
//!
//! # Simplifications, confessed
//!
//! The card network is a pure function. A real one is a call over HTTP, which no transaction can roll back; it would stand
//! between the two halves of [`payments::charges::create`]. Money is available at once, fees are zero, and nothing is
//! ever paid out.

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
