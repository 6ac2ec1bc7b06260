//! A card as it is kept and shown: never its number or security code.

use diesel::deserialize::FromSqlRow;
use diesel::expression::AsExpression;
use diesel::sql_types::Jsonb;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::BillingDetails;
use crate::card_network;
use crate::types::jsonb_column;

/// What is known of a card; it stands in a payment method, and as it was then in each of its charges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, AsExpression, FromSqlRow)]
#[diesel(sql_type = Jsonb)]
pub struct CardSnapshot {
    pub test_card: String,
    pub expiry_month: i16,
    pub expiry_year: i16,
    pub cvc_given: bool,
    pub billing_details: BillingDetails,
}

impl CardSnapshot {
    /// `payment_method_details` of a charge.
    pub fn details(&self, authorised: i64) -> Value {
        let face = Face::of(&self.test_card);
        json!({
            "type": "card",
            "card": {
                "amount_authorized": authorised,
                "authorization_code": null,
                "brand": face.brand,
                "checks": self.checks(),
                "country": face.country,
                "exp_month": self.expiry_month,
                "exp_year": self.expiry_year,
                "fingerprint": fingerprint(&self.test_card),
                "funding": face.funding,
                "installments": null,
                "last4": face.last4,
                "mandate": null,
                "network": face.brand,
                "network_token": { "used": false },
                "network_transaction_id": null,
                "regulated_status": "unregulated",
                "three_d_secure": null,
                "wallet": null,
            },
        })
    }

    /// `card` of a payment method.
    pub fn method_object(&self) -> Value {
        let face = Face::of(&self.test_card);
        json!({
            "brand": face.brand,
            "checks": self.checks(),
            "country": face.country,
            "display_brand": face.brand,
            "exp_month": self.expiry_month,
            "exp_year": self.expiry_year,
            "fingerprint": fingerprint(&self.test_card),
            "funding": face.funding,
            "generated_from": null,
            "last4": face.last4,
            "networks": { "available": [face.brand], "preferred": null },
            "regulated_status": "unregulated",
            "three_d_secure_usage": { "supported": true },
            "wallet": null,
        })
    }

    /// The card as a source of the older API, under its name there, and whose it is.
    pub fn source_object(&self, id: impl Serialize, customer: impl Serialize) -> Value {
        let address = &self.billing_details.address;
        let face = Face::of(&self.test_card);
        json!({
            "id": id,
            "object": "card",
            "address_city": address.city,
            "address_country": address.country,
            "address_line1": address.line1,
            "address_line1_check": address.line1.as_ref().map(|_| "pass"),
            "address_line2": address.line2,
            "address_state": address.state,
            "address_zip": address.postal_code,
            "address_zip_check": address.postal_code.as_ref().map(|_| "pass"),
            "brand": shown_brand(face.brand),
            "country": face.country,
            "customer": customer,
            "cvc_check": self.cvc_given.then_some("pass"),
            "dynamic_last4": null,
            "exp_month": self.expiry_month,
            "exp_year": self.expiry_year,
            "fingerprint": fingerprint(&self.test_card),
            "funding": face.funding,
            "last4": face.last4,
            "metadata": {},
            "name": self.billing_details.name,
            "regulated_status": "unregulated",
            "tokenization_method": null,
            "wallet": null,
        })
    }

    fn checks(&self) -> Value {
        let address = &self.billing_details.address;
        json!({
            "address_line1_check": address.line1.as_ref().map(|_| "pass"),
            "address_postal_code_check": address.postal_code.as_ref().map(|_| "pass"),
            "cvc_check": self.cvc_given.then_some("pass"),
        })
    }
}

/// What is printed on a card.
struct Face {
    brand: &'static str,
    funding: &'static str,
    country: &'static str,
    last4: &'static str,
}

impl Face {
    /// A card that this version no longer knows still has a face, so that old charges can be shown.
    fn of(name: &str) -> Self {
        match card_network::by_name(name) {
            Some(card) => {
                Self { brand: card.brand, funding: card.funding, country: card.country, last4: card.last4() }
            }
            None => Self { brand: "unknown", funding: "unknown", country: "US", last4: "0000" },
        }
    }
}

/// The same for the same card, whoever typed it. It is made of the test card's name, and no number is in it.
fn fingerprint(name: &str) -> String {
    hex::encode(&Sha256::digest(format!("oncepay card {name}"))[..8])
}

/// Sources write brands as people do.
fn shown_brand(brand: &str) -> &str {
    match brand {
        "visa" => "Visa",
        "mastercard" => "MasterCard",
        "amex" => "American Express",
        "discover" => "Discover",
        "diners" => "Diners Club",
        "jcb" => "JCB",
        "unionpay" => "UnionPay",
        _ => "Unknown",
    }
}

jsonb_column!(CardSnapshot);
