//! The resources: each does what its documentation says, and refuses the rest with a reason.

mod account;
mod amounts_and_currencies;
mod attached_payment_methods;
mod balance;
mod charges;
mod customers;
mod declines;
mod disputes;
mod events;
mod expand;
mod expand_lists;
mod expired_holds;
mod lists;
mod payment_methods;
mod previous_attributes;
mod races;
mod refunds;
mod released_holds;
mod single_use;
mod tokens;
