//! One test binary. Each test has a real server on a real PostgreSQL, with a database of its own, and all run in
//! parallel. A test is a sentence; what it needs from the world is in [`support`].

mod support;

mod audit;
mod bad_bodies;
mod bad_http;
mod bad_input;
mod balance;
mod charges;
mod contract_answers;
mod contract_keys;
mod contract_order;
mod contract_same_request;
mod customers;
mod declines;
mod embedded;
mod errors;
mod events;
mod expand;
mod four_cases;
mod fuzz;
mod key_look_up;
mod kill_storm;
mod lists;
mod log_lines;
mod migrations;
mod money;
mod money_storm;
mod outcomes;
mod plans;
mod program;
mod races;
mod readme;
mod readme_receiver;
mod receivers;
mod refunds;
mod riskiest;
mod round_trips;
mod sdk;
mod sweeping;
mod tokens;
mod webhook_delivery;
mod webhook_storm;
mod webhook_targets;
mod webhooks;
