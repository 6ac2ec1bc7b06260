//! Crashes: whatever dies in the middle, a request is done or not done, and a retry finds out which.

mod kill_under_load;
mod lost_commits;
mod one_charge;
