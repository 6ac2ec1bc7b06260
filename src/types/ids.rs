//! Ids: a prefix that names the noun, then a UUIDv7 in hex, as in `ch_0199…`.
//!
//! A UUIDv7 begins with its time in milliseconds. So ids sort by creation, one index on the id is enough for every list,
//! and a filter on `created` is a range of ids (see [`crate::types::page`]).

use std::fmt;
use std::marker::PhantomData;

use chrono::{DateTime, Utc};
use diesel::backend::Backend;
use diesel::deserialize::{self, FromSql, FromSqlRow};
use diesel::expression::AsExpression;
use diesel::pg::Pg;
use diesel::serialize::{self, Output, ToSql};
use diesel::sql_types;
use uuid::{ContextV7, Timestamp, Uuid};

/// A noun that has ids.
pub trait Kind: 'static {
    /// The part of an id before the underscore, as in `cus`.
    const PREFIX: &'static str;
    /// The noun in error messages, as in "No such customer".
    const NOUN: &'static str;
    /// The value of `param` in the error for an id in a path.
    const PATH_PARAM: &'static str = "id";
}

/// Declares, for each line of the table below, a kind (an enum without values) and the type of its ids.
macro_rules! kinds {
    ($($(#[$doc:meta])* $id:ident = $kind:ident($prefix:literal, $noun:literal $(, $path_param:literal)?);)+) => {
        /// The nouns that have ids. They are declared together below all nouns, because rows name rows of other nouns.
        pub mod kinds {
            $(
                #[derive(Debug)]
                pub enum $kind {}

                impl super::Kind for $kind {
                    const PREFIX: &'static str = $prefix;
                    const NOUN: &'static str = $noun;
                    $(const PATH_PARAM: &'static str = $path_param;)?
                }
            )+
        }
        $($(#[$doc])* pub type $id = Id<kinds::$kind>;)+
    };
}

kinds! {
    /// The owner of customers, charges and API keys.
    AccountId = Account("acct", "account");
    /// One call of the API.
    RequestId = Request("req", "request");
    CustomerId = Customer("cus", "customer");
    PaymentMethodId = PaymentMethod("pm", "PaymentMethod");
    /// A payment method under its name in Stripe's older API.
    CardId = Card("card", "source");
    TokenId = Token("tok", "token");
    PaymentIntentId = PaymentIntent("pi", "payment_intent", "intent");
    ChargeId = Charge("ch", "charge");
    RefundId = Refund("re", "refund");
    DisputeId = Dispute("dp", "dispute");
    /// A row of the ledger.
    BalanceTransactionId = BalanceTransaction("txn", "balance transaction");
    EventId = Event("evt", "event");
    WebhookEndpointId = WebhookEndpoint("we", "webhook endpoint");
    /// A message of the card network; the id is the idempotency key of its deliveries.
    NotificationId = Notification("ntf", "notification");
}

/// The id of a `K`. Ids of two nouns have different types, so the compiler refuses one in the place of the other.
#[derive(AsExpression, FromSqlRow)]
#[diesel(sql_type = sql_types::Uuid)]
pub struct Id<K: Kind> {
    uuid: Uuid,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Id<K> {
    /// Makes an id that sorts at `now`, and after every earlier id of the same `context`.
    pub fn new(now: DateTime<Utc>, context: &ContextV7) -> Self {
        let seconds = u64::try_from(now.timestamp()).unwrap_or(0);
        let timestamp = Timestamp::from_unix(context, seconds, now.timestamp_subsec_nanos());
        Self::from_uuid(Uuid::new_v7(timestamp))
    }

    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self { uuid, kind: PhantomData }
    }

    /// Reads `prefix_` and 32 lower-case hex digits; anything else is `None`, because no object can have such an id.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix(K::PREFIX)?.strip_prefix('_')?;
        if hex.len() != 32 || hex.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return None;
        }
        Uuid::try_parse(hex).ok().map(Self::from_uuid)
    }

    /// The time in the id; `None` if it is not a UUIDv7.
    pub fn made_at(self) -> Option<DateTime<Utc>> {
        if self.uuid.get_version() != Some(uuid::Version::SortRand) {
            return None;
        }
        let (seconds, nanoseconds) = self.uuid.get_timestamp()?.to_unix();
        DateTime::from_timestamp(i64::try_from(seconds).ok()?, nanoseconds)
    }

    /// The id of the same row under another noun's prefix.
    pub const fn renamed<L: Kind>(self) -> Id<L> {
        Id::from_uuid(self.uuid)
    }

    pub const fn uuid(&self) -> Uuid {
        self.uuid
    }
}

impl<K: Kind> fmt::Display for Id<K> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}_{}", K::PREFIX, self.uuid.simple())
    }
}

impl<K: Kind> fmt::Debug for Id<K> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl<K: Kind> serde::Serialize for Id<K> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, K: Kind> serde::Deserialize<'de> for Id<K> {
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(reader)?;
        Self::parse(&text).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "no such {}: an id is {}_ and 32 hex digits",
                K::NOUN,
                K::PREFIX
            ))
        })
    }
}

// These traits are not derived, because a derive would require them of `K` too.
impl<K: Kind> Clone for Id<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Kind> Copy for Id<K> {}

impl<K: Kind> PartialEq for Id<K> {
    fn eq(&self, other: &Self) -> bool {
        self.uuid == other.uuid
    }
}

impl<K: Kind> Eq for Id<K> {}

impl<K: Kind> std::hash::Hash for Id<K> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.uuid.hash(state);
    }
}

impl<K: Kind> ToSql<sql_types::Uuid, Pg> for Id<K> {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        ToSql::<sql_types::Uuid, Pg>::to_sql(&self.uuid, out)
    }
}

impl<K: Kind> FromSql<sql_types::Uuid, Pg> for Id<K> {
    fn from_sql(bytes: <Pg as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        <Uuid as FromSql<sql_types::Uuid, Pg>>::from_sql(bytes).map(Self::from_uuid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Thing;

    impl Kind for Thing {
        const PREFIX: &'static str = "thing";
        const NOUN: &'static str = "thing";
    }

    #[test]
    fn an_id_reads_back_what_it_shows() {
        let id = Id::<Thing>::new(Utc::now(), &ContextV7::new());
        assert_eq!(Id::parse(&id.to_string()), Some(id));
        assert_eq!(id.to_string().len(), "thing_".len() + 32);
    }

    #[test]
    fn what_is_not_an_id_of_this_noun_is_none() {
        let hex = "0199aabbccdd7eef8011223344556677";
        assert!(Id::<Thing>::parse(&format!("thing_{hex}")).is_some());
        for text in [
            hex.to_owned(),
            format!("other_{hex}"),
            format!("thing{hex}"),
            format!("thing_{}", hex.to_uppercase()),
            format!("thing_{hex}0"),
            "thing_".to_owned(),
            "thing_é".to_owned(),
            String::new(),
        ] {
            assert_eq!(Id::<Thing>::parse(&text), None, "{text:?}");
        }
    }

    #[test]
    fn ids_of_one_context_sort_in_the_order_they_were_made() {
        let (now, context) = (Utc::now(), ContextV7::new());
        let ids: Vec<Uuid> = (0..1000).map(|_| Id::<Thing>::new(now, &context).uuid()).collect();
        assert!(ids.is_sorted());
    }
}
