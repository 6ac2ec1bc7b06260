//! The idempotency contract: a request runs once, and its repetition gets the same answer.

mod counted_outcomes;
mod duplicates;
mod every_keyed_route;
mod key_look_up;
mod keys;
mod official_sdk;
mod order_of_checks;
mod remembered_answers;
mod repeated_headers;
mod same_request;
mod sweeping;
