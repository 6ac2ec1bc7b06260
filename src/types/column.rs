//! Columns with a type of our own: enums stored as text, and JSON.

use std::io::Write;

use diesel::deserialize;
use diesel::pg::{Pg, PgValue};
use diesel::serialize::{self, IsNull, Output};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Declares an enum that is a column of `text` and a string in JSON; each variant names its text.
macro_rules! text_column {
    (
        $(#[$of_all:meta])*
        pub enum $column:ident {
            $($(#[$of_one:meta])* $variant:ident => $text:literal,)+
        }
    ) => {
        $(#[$of_all])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, diesel::expression::AsExpression, diesel::deserialize::FromSqlRow,
        )]
        #[diesel(sql_type = diesel::sql_types::Text)]
        pub enum $column {
            $($(#[$of_one])* $variant,)+
        }

        impl $column {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text),+
                }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == text)
            }
        }

        impl AsRef<str> for $column {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl serde::Serialize for $column {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $column {
            fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(reader)?;
                Self::parse(&text).ok_or_else(|| {
                    let words: Vec<&str> = Self::ALL.iter().map(|known| known.as_str()).collect();
                    serde::de::Error::custom(format!("must be one of {}", words.join(", ")))
                })
            }
        }

        impl diesel::serialize::ToSql<diesel::sql_types::Text, diesel::pg::Pg> for $column {
            fn to_sql<'b>(
                &'b self,
                out: &mut diesel::serialize::Output<'b, '_, diesel::pg::Pg>,
            ) -> diesel::serialize::Result {
                diesel::serialize::ToSql::<diesel::sql_types::Text, diesel::pg::Pg>::to_sql(
                    self.as_str(),
                    &mut out.reborrow(),
                )
            }
        }

        impl diesel::deserialize::FromSql<diesel::sql_types::Text, diesel::pg::Pg> for $column {
            fn from_sql(value: diesel::pg::PgValue<'_>) -> diesel::deserialize::Result<Self> {
                let text = std::str::from_utf8(value.as_bytes())?;
                Self::parse(text).ok_or_else(|| format!("not a {}: {text:?}", stringify!($column)).into())
            }
        }
    };
}
pub(crate) use text_column;

/// Writes `value` as `jsonb`, whose binary form is a version byte and the text.
pub fn write_jsonb(value: &impl Serialize, out: &mut Output<'_, '_, Pg>) -> serialize::Result {
    out.write_all(&[1])?;
    write_json(value, out)
}

/// Makes a type that serde knows a column of `jsonb`.
macro_rules! jsonb_column {
    ($column:ty) => {
        impl diesel::serialize::ToSql<diesel::sql_types::Jsonb, diesel::pg::Pg> for $column {
            fn to_sql<'b>(
                &'b self,
                out: &mut diesel::serialize::Output<'b, '_, diesel::pg::Pg>,
            ) -> diesel::serialize::Result {
                $crate::types::write_jsonb(self, out)
            }
        }

        impl diesel::deserialize::FromSql<diesel::sql_types::Jsonb, diesel::pg::Pg> for $column {
            fn from_sql(value: diesel::pg::PgValue<'_>) -> diesel::deserialize::Result<Self> {
                $crate::types::read_jsonb(value)
            }
        }
    };
}
pub(crate) use jsonb_column;

/// Writes `value` as `json`, whose binary form is the text.
pub fn write_json(value: &impl Serialize, out: &mut Output<'_, '_, Pg>) -> serialize::Result {
    serde_json::to_writer(out, value)?;
    Ok(IsNull::No)
}

/// Reads what [`write_jsonb`] wrote.
///
/// # Errors
/// The value has an unknown version, or its JSON is not that of a `T`.
pub fn read_jsonb<T: DeserializeOwned>(value: PgValue<'_>) -> deserialize::Result<T> {
    match value.as_bytes() {
        [1, text @ ..] => Ok(serde_json::from_slice(text)?),
        _ => Err("an unknown form of jsonb".into()),
    }
}
