//! The card network: what it says later is applied once, in whichever order it arrives.

mod example_network;
mod notifications;
mod random_notifications;
mod refund_notifications;
mod simulated_network;
