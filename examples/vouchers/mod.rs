//! Vouchers: a value that can be redeemed once. This folder is the noun of the recipes in CONTRIBUTING.md.

pub mod handlers;
mod queries;
mod schema;

use chrono::{DateTime, Utc};
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use oncepay::error::Error;
use oncepay::types::ids::{AccountId, RequestId};
use oncepay::types::{Amount, Cause, Currency, Id, Kind};
use oncepay::wire::ids;
use serde_json::{Value, json};

use schema::vouchers;

/// A voucher.
#[derive(Debug, Queryable, Selectable, Insertable)]
#[diesel(table_name = vouchers, check_for_backend(Pg), treat_none_as_default_value = false)]
pub struct Voucher {
    pub account_id: AccountId,
    pub id: Id<Voucher>,
    pub request_id: RequestId,
    pub amount: i64,
    pub currency: Currency,
    pub created_at: DateTime<Utc>,
    pub redeemed_at: Option<DateTime<Utc>>,
}

impl Kind for Voucher {
    const PREFIX: &'static str = "vch";
    const NOUN: &'static str = "voucher";
}

/// What a caller sends to create a voucher.
pub struct CreateVoucher {
    pub amount: Amount,
    pub currency: Currency,
}

/// Creates a voucher.
pub fn create(connection: &mut PgConnection, cause: &Cause, create: CreateVoucher) -> Result<Voucher, Error> {
    let voucher = Voucher {
        account_id: cause.account,
        id: cause.new_id(),
        request_id: cause.request_id,
        amount: create.amount.minor(),
        currency: create.currency,
        created_at: cause.now,
        redeemed_at: None,
    };
    queries::insert(connection, &voucher)?;
    Ok(voucher)
}

/// Finds a voucher of the caller's account.
///
/// # Errors
/// [`Error::NotFound`].
pub fn retrieve(connection: &mut PgConnection, cause: &Cause, id: &str) -> Result<Voucher, Error> {
    ids::in_path(id, |id| queries::find(connection, cause.account, id))
}

/// Redeems a voucher.
///
/// # Errors
/// [`Error::NotFound`], or the voucher was redeemed before.
pub fn redeem(connection: &mut PgConnection, cause: &Cause, id: &str) -> Result<Voucher, Error> {
    // Ends the race of two requests that redeem one voucher under different keys: the second one waits here, and
    // then reads what the first one wrote.
    let mut voucher = ids::in_path(id, |id| queries::lock(connection, cause.account, id))?;
    if voucher.redeemed_at.is_some() {
        return Err(Error::not_allowed("voucher_redeemed", "This voucher has already been redeemed."));
    }
    voucher.redeemed_at = Some(cause.now);
    queries::update_redeemed(connection, &voucher)?;
    Ok(voucher)
}

impl Voucher {
    /// The object on the wire.
    pub fn object(&self) -> Value {
        json!({
            "id": self.id,
            "object": "voucher",
            "amount": self.amount,
            "created": self.created_at.timestamp(),
            "currency": self.currency.as_str(),
            "livemode": false,
            "redeemed_at": self.redeemed_at.map(|time| time.timestamp()),
        })
    }
}
