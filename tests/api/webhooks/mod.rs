//! Webhooks: each event reaches each endpoint that wants it, signed, and goes nowhere else.

mod delivery;
mod delivery_under_load;
mod endpoints;
mod example_receivers;
mod private_addresses;
