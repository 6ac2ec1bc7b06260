//! What is written to `charges`, as parts of one statement: other nouns write with them what changes together with
//! something of theirs.

use diesel::pg::Pg;
use diesel::query_builder::{QueryFragment, QueryId};

use super::Charge;
use crate::db::{Part, update_row};
use crate::schema::charges;

/// A new charge.
pub fn insert(charge: &Charge) -> Part<impl QueryFragment<Pg> + QueryId> {
    Part::new("charge", diesel::insert_into(charges::table).values(charge))
}

/// A charge that was read under its lock, as it is now.
pub fn update(charge: &Charge) -> Part<impl QueryFragment<Pg> + QueryId> {
    Part::new("charge", update_row(charges::table, charge.account_id, charge.id, charge))
}
