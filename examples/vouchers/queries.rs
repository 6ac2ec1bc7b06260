//! The SQL of vouchers.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use oncepay::types::Id;
use oncepay::types::ids::AccountId;

use super::Voucher;
use super::schema::vouchers;

pub fn insert(connection: &mut PgConnection, voucher: &Voucher) -> QueryResult<()> {
    diesel::insert_into(vouchers::table).values(voucher).execute(connection).map(drop)
}

pub fn find(
    connection: &mut PgConnection,
    account: AccountId,
    id: Id<Voucher>,
) -> QueryResult<Option<Voucher>> {
    vouchers::table.find((account, id)).select(Voucher::as_select()).first(connection).optional()
}

pub fn lock(
    connection: &mut PgConnection,
    account: AccountId,
    id: Id<Voucher>,
) -> QueryResult<Option<Voucher>> {
    vouchers::table
        .find((account, id))
        .select(Voucher::as_select())
        .for_no_key_update()
        .first(connection)
        .optional()
}

pub fn update_redeemed(connection: &mut PgConnection, voucher: &Voucher) -> QueryResult<()> {
    diesel::update(vouchers::table.find((voucher.account_id, voucher.id)))
        .set(vouchers::redeemed_at.eq(voucher.redeemed_at))
        .execute(connection)
        .map(drop)
}
