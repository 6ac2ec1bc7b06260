//! Payment intents: each goes through its states, and through no others.

mod charges_and_refunds;
mod declines;
mod expand;
mod lifecycle;
mod parameters;
mod races;
mod random_calls;
mod return_url;
mod round_trips;
mod states_and_calls;
