//! Robustness: no input, no load and no size of the tables breaks the service, its books or its speed.

mod audit;
mod audit_of_intents;
mod errors_of_every_route;
mod head_requests;
mod locked_table;
mod malformed_http;
mod malformed_input;
mod no_room;
mod query_plans;
mod random_payments;
mod random_requests;
mod round_trips;
mod slow_and_endless_bodies;
