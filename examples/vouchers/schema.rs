//! The table, as `diesel print-schema` writes it. In the crate it stands in `src/schema.rs`.

diesel::table! {
    /// A value that can be redeemed once.
    vouchers (account_id, id) {
        account_id -> Uuid,
        id -> Uuid,
        /// The request that made it.
        request_id -> Uuid,
        amount -> Int8,
        currency -> Text,
        created_at -> Timestamptz,
        redeemed_at -> Nullable<Timestamptz>,
    }
}
