//! One test binary. Each test has a real server on a real PostgreSQL, with a database of its own, and all run in
//! parallel. A test is a sentence; what it needs from the world is in [`support`].

mod support;

mod attachment;
mod audit_intents;
mod embedded;
mod holds;
mod intent_charges;
mod intent_costs;
mod intent_declines;
mod intent_expand;
mod intent_model;
mod intent_parameters;
mod intent_races;
mod intent_states;
mod payment_intents;
mod payment_methods;
mod readme;
mod riskiest;
