//! One test binary. Each test has a real server on a real PostgreSQL with a database of its own, and all tests run in
//! parallel. A test is a sentence; what it needs from the world is in [`support`].
//!
//! What each folder proves:
//!
//! - [`contract`]: a request runs once, and its repetition gets the same answer;
//! - [`crashes`]: whatever dies in the middle, a request is done or not done, and a retry finds out which;
//! - [`nouns`]: each resource does what its documentation says, and refuses the rest with a reason;
//! - [`intents`]: a payment intent goes through its states, and through no others;
//! - [`webhooks`]: each event reaches each endpoint that wants it, signed, and goes nowhere else;
//! - [`network`]: what the card network says later is applied once, in whichever order it arrives;
//! - [`robustness`]: no input, no load and no size of the tables breaks the service, its books or its speed;
//! - [`program`]: the commands, the settings, the log and the README do what a user reads about them.

mod support;

mod contract;
mod crashes;
mod intents;
mod network;
mod nouns;
mod program;
mod robustness;
mod webhooks;
