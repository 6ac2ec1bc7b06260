//! Money: an integer in the minor unit of a currency.
//!
//! Minimums, zero-decimal and three-decimal currencies are Stripe's (docs.stripe.com/currencies).

use std::fmt;

use diesel::deserialize::{self, FromSql, FromSqlRow};
use diesel::expression::AsExpression;
use diesel::pg::{Pg, PgValue};
use diesel::serialize::{self, Output, ToSql};
use diesel::sql_types::{BigInt, Text};

/// The largest amount of one payment, in minor units.
pub const MAX_AMOUNT: i64 = 99_999_999;

/// Currencies with three decimals. Cards settle only two of them, so the last digit must be 0.
const THREE_DECIMAL: [&str; 5] = ["bhd", "jod", "kwd", "omr", "tnd"];

/// Currencies without minor units that are written with two zeros all the same, for compatibility: `500` is UGX 5
/// (docs.stripe.com/currencies#special-cases).
const TWO_ZEROS: [&str; 2] = ["isk", "ugx"];

/// The smallest amount of one payment, in minor units; a currency that is not listed has 1.
const MINIMUMS: [(&str, i64); 25] = [
    ("aud", 50),
    ("brl", 50),
    ("cad", 50),
    ("chf", 50),
    ("eur", 50),
    ("inr", 50),
    ("nzd", 50),
    ("sgd", 50),
    ("usd", 50),
    ("gbp", 30),
    ("jpy", 50),
    ("mxn", 1000),
    ("sek", 300),
    ("nok", 300),
    ("dkk", 250),
    ("pln", 200),
    ("ron", 200),
    ("aed", 200),
    ("myr", 200),
    ("hkd", 400),
    ("czk", 1500),
    ("huf", 17_500),
    ("thb", 1000),
    // Three decimals: the smallest amount that cards can settle.
    ("bhd", 10),
    ("kwd", 10),
];

/// An ISO 4217 currency; lower case in answers, any case in requests.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, AsExpression, FromSqlRow)]
#[diesel(sql_type = Text)]
pub struct Currency([u8; 3]);

/// A positive amount in minor units.
///
/// The amount of a payment is within the limits of its currency. A part of a payment, such as a refund or a partial
/// capture, may be smaller; see [`Amount::part`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, AsExpression, FromSqlRow)]
#[diesel(sql_type = BigInt)]
pub struct Amount(i64);

/// Why an amount was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    #[error("Amount must be no more than {}", shown(MAX_AMOUNT, *.0))]
    TooLarge(Currency),
    #[error("Amount must be at least {}", shown(.0.minimum(), *.0))]
    TooSmall(Currency),
    #[error("Amounts in {} have three decimals, and the last one must be 0", .0.as_str().to_uppercase())]
    LastDigit(Currency),
    #[error(
        "Invalid amount. {} has no minor unit and is written with two zeros, so the amount must be divisible by 100",
        .0.as_str().to_uppercase()
    )]
    Fraction(Currency),
    #[error("This value must be greater than or equal to 1")]
    NotPositive,
}

impl Currency {
    /// Reads an ISO 4217 code in upper or lower case.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes: [u8; 3] = text.as_bytes().try_into().ok()?;
        let code = text.to_ascii_uppercase();
        iso_currency::Currency::from_code(&code)?;
        // ISO 4217 also has codes for metals, funds and tests. Of the codes that begin with X, only these are money.
        if code.starts_with('X') && !["XAF", "XCD", "XCG", "XOF", "XPF"].contains(&code.as_str()) {
            return None;
        }
        Some(Self(bytes.map(|byte| byte.to_ascii_lowercase())))
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("three ASCII letters")
    }

    /// The number of digits after the decimal point.
    pub fn decimals(self) -> usize {
        match self.as_str() {
            "bif" | "clp" | "djf" | "gnf" | "jpy" | "kmf" | "krw" | "mga" | "pyg" | "rwf" | "vnd" | "vuv"
            | "xaf" | "xof" | "xpf" => 0,
            code if TWO_ZEROS.contains(&code) => 0,
            code if THREE_DECIMAL.contains(&code) => 3,
            _ => 2,
        }
    }

    /// What an amount is a multiple of.
    fn step(self) -> i64 {
        match self.as_str() {
            code if TWO_ZEROS.contains(&code) => 100,
            code if THREE_DECIMAL.contains(&code) => 10,
            _ => 1,
        }
    }

    /// The smallest payment, in minor units.
    pub fn minimum(self) -> i64 {
        MINIMUMS.iter().find(|(code, _)| *code == self.as_str()).map_or(1, |(_, minimum)| *minimum)
    }
}

impl Amount {
    /// Checks the amount of a payment.
    ///
    /// # Errors
    /// Below the currency's minimum, above [`MAX_AMOUNT`], or not a multiple of what the currency can express.
    pub fn new(minor: i64, currency: Currency) -> Result<Self, AmountError> {
        if minor > MAX_AMOUNT {
            return Err(AmountError::TooLarge(currency));
        }
        if minor < currency.minimum() {
            return Err(AmountError::TooSmall(currency));
        }
        Self::part(minor, currency)
    }

    /// Checks a part of a payment, which has no minimum but 1.
    ///
    /// # Errors
    /// Not positive, or not a multiple of what the currency can express.
    pub fn part(minor: i64, currency: Currency) -> Result<Self, AmountError> {
        if minor < 1 {
            return Err(AmountError::NotPositive);
        }
        match currency.step() {
            step if minor % step == 0 => Ok(Self(minor)),
            100 => Err(AmountError::Fraction(currency)),
            _ => Err(AmountError::LastDigit(currency)),
        }
    }

    /// The amount in minor units.
    pub const fn minor(self) -> i64 {
        self.0
    }
}

/// An amount of minor units as a person reads it, such as USD 10.00, JPY 500 and UGX 5.
pub fn shown(minor: i64, currency: Currency) -> String {
    let (code, decimals) = (currency.as_str().to_uppercase(), currency.decimals());
    if decimals == 0 {
        return format!("{code} {}", minor / currency.step());
    }
    let unit = 10_u64.pow(u32::try_from(decimals).expect("at most 3"));
    let (sign, minor) = (if minor < 0 { "-" } else { "" }, minor.unsigned_abs());
    format!("{code} {sign}{}.{:0decimals$}", minor / unit, minor % unit)
}

impl fmt::Display for Currency {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl serde::Serialize for Currency {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl serde::Serialize for Amount {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0)
    }
}

impl ToSql<Text, Pg> for Currency {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        ToSql::<Text, Pg>::to_sql(self.as_str(), out)
    }
}

impl FromSql<Text, Pg> for Currency {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        let text = <String as FromSql<Text, Pg>>::from_sql(value)?;
        Self::parse(&text).ok_or_else(|| format!("not a currency: {text:?}").into())
    }
}

impl ToSql<BigInt, Pg> for Amount {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        ToSql::<BigInt, Pg>::to_sql(&self.0, out)
    }
}

impl FromSql<BigInt, Pg> for Amount {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        <i64 as FromSql<BigInt, Pg>>::from_sql(value).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn currency(code: &str) -> Currency {
        Currency::parse(code).unwrap()
    }

    #[test]
    fn currencies_are_read_in_any_case_and_shown_in_lower_case() {
        assert_eq!(currency("UsD").as_str(), "usd");
        for text in ["", "xxx", "XTS", "xau", "us", "usdd", "zzz", "€€", "u d", "\u{e9}a"] {
            assert_eq!(Currency::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn an_amount_is_within_its_currencys_bounds() {
        let usd = currency("usd");
        assert_eq!(Amount::new(49, usd), Err(AmountError::TooSmall(usd)));
        assert_eq!(Amount::new(50, usd).unwrap().minor(), 50);
        assert_eq!(Amount::new(MAX_AMOUNT, usd).unwrap().minor(), 99_999_999);
        assert_eq!(Amount::new(MAX_AMOUNT + 1, usd), Err(AmountError::TooLarge(usd)));
        assert_eq!(Amount::new(i64::MIN, usd), Err(AmountError::TooSmall(usd)));
    }

    #[test]
    fn a_three_decimal_amount_ends_in_zero() {
        let kwd = currency("kwd");
        assert_eq!(Amount::new(1005, kwd), Err(AmountError::LastDigit(kwd)));
        assert!(Amount::new(1010, kwd).is_ok());
        assert_eq!(Amount::part(5, kwd), Err(AmountError::LastDigit(kwd)));
    }

    #[test]
    fn a_person_reads_amounts_with_their_decimals() {
        assert_eq!(shown(5, currency("usd")), "USD 0.05");
        assert_eq!(shown(-1050, currency("eur")), "EUR -10.50");
        assert_eq!(shown(500, currency("jpy")), "JPY 500");
        assert_eq!(shown(500, currency("ugx")), "UGX 5");
        assert_eq!(shown(1010, currency("kwd")), "KWD 1.010");
        assert_eq!(AmountError::TooSmall(currency("gbp")).to_string(), "Amount must be at least GBP 0.30");
    }

    #[test]
    fn every_listed_currency_exists() {
        for (code, minimum) in MINIMUMS {
            assert_eq!(currency(code).minimum(), minimum);
        }
        for code in THREE_DECIMAL {
            assert_eq!(currency(code).decimals(), 3);
        }
    }

    proptest! {
        #[test]
        fn an_amount_that_is_accepted_obeys_every_rule(minor in any::<i64>(), code in prop::sample::select(vec!["usd", "jpy", "kwd", "huf", "zmw"])) {
            let currency = currency(code);
            if let Ok(amount) = Amount::new(minor, currency) {
                prop_assert_eq!(amount.minor(), minor);
                prop_assert!((currency.minimum()..=MAX_AMOUNT).contains(&minor));
                prop_assert!(currency.decimals() != 3 || minor % 10 == 0);
            }
        }
    }
}
