//! The required properties of every object on the wire: Stripe's published keys, and their types.

use serde_json::Value;

/// The keys of an object that are always there. A question mark means that the value may be null; a `reference` is an
/// id, or the object in its place.
pub type Shape = &'static str;

pub const ACCOUNT: Shape = "id:text object:text business_profile:object? capabilities:object charges_enabled:boolean \
    country:text created:integer default_currency:text details_submitted:boolean email:text? metadata:object \
    payouts_enabled:boolean settings:object? type:text";

pub const CUSTOMER: Shape = "id:text object:text address:object? balance:integer created:integer \
    default_source:reference? delinquent:boolean? description:text? email:text? invoice_prefix:text? \
    invoice_settings:object livemode:boolean metadata:object name:text? next_invoice_sequence:integer phone:text? \
    preferred_locales:list? shipping:object? tax_exempt:text?";

pub const TOKEN: Shape =
    "id:text object:text card:object client_ip:text? created:integer livemode:boolean type:text used:boolean";

pub const CARD: Shape =
    "id:text object:text brand:text exp_month:integer exp_year:integer funding:text last4:text";

pub const CHARGE: Shape = "id:text object:text amount:integer amount_captured:integer amount_refunded:integer \
    application:reference? application_fee:reference? application_fee_amount:integer? balance_transaction:reference? \
    billing_details:object calculated_statement_descriptor:text? captured:boolean created:integer currency:text \
    customer:reference? description:text? disputed:boolean failure_balance_transaction:reference? failure_code:text? \
    failure_message:text? fraud_details:object? livemode:boolean metadata:object on_behalf_of:reference? \
    outcome:object? paid:boolean payment_intent:reference? payment_method:text? payment_method_details:object? \
    receipt_email:text? receipt_number:text? receipt_url:text? refunded:boolean review:reference? shipping:object? \
    statement_descriptor:text? statement_descriptor_suffix:text? status:text transfer_data:object? \
    transfer_group:text?";

/// `payment_method_details.card` of a charge.
pub const CHARGED_CARD: Shape = "exp_month:integer exp_year:integer";

pub const REFUND: Shape = "id:text object:text amount:integer balance_transaction:reference? charge:reference? \
    created:integer currency:text customer:reference? metadata:object? payment_intent:reference? \
    payment_method:reference? reason:text? receipt_number:text? source_transfer_reversal:reference? status:text? \
    transfer_reversal:reference?";

pub const BALANCE: Shape = "object:text available:list livemode:boolean pending:list";

pub const BALANCE_TRANSACTION: Shape = "id:text object:text amount:integer available_on:integer balance_type:text \
    created:integer currency:text description:text? exchange_rate:integer? fee:integer fee_details:list net:integer \
    reporting_category:text source:reference? status:text type:text";

pub const DISPUTE: Shape = "id:text object:text amount:integer balance_transactions:list charge:reference created:integer \
    currency:text enhanced_eligibility_types:list evidence:object evidence_details:object \
    is_charge_refundable:boolean livemode:boolean metadata:object payment_intent:reference? reason:text status:text";

pub const EVENT: Shape = "id:text object:text api_version:text? created:integer data:object livemode:boolean \
    pending_webhooks:integer request:object? type:text";

pub const WEBHOOK_ENDPOINT: Shape = "id:text object:text api_version:text? application:text? created:integer \
    description:text? enabled_events:list livemode:boolean metadata:object status:text url:text";

pub const LIST: Shape = "object:text url:text has_more:boolean data:list";

/// Checks that every key is there and has its type.
#[track_caller]
pub fn assert_shape(object: &Value, shape: Shape) {
    for property in shape.split_whitespace() {
        let (name, kind) = property.split_once(':').expect("a name and a type");
        let value = object.get(name).unwrap_or_else(|| panic!("{name} is missing in {object}"));
        let fits = match kind.trim_end_matches('?') {
            _ if value.is_null() => kind.ends_with('?'),
            "text" => value.is_string(),
            "integer" => value.is_i64(),
            "boolean" => value.is_boolean(),
            "object" => value.is_object(),
            "list" => value.is_array(),
            "reference" => value.is_string() || value.is_object(),
            other => panic!("no type is called {other}"),
        };
        assert!(fits, "{name} is no {kind} in {object}");
    }
}

/// The same value without the properties that no two objects share: ids become their prefixes, and times 0.
pub fn without_identity(value: &Value) -> Value {
    match value {
        Value::String(text) => match text.split_once('_') {
            Some((prefix, hex)) if hex.len() == 32 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                prefix.into()
            }
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(without_identity).collect(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| match name.as_str() {
                "created" | "available_on" => (name.clone(), 0.into()),
                "invoice_prefix" => (name.clone(), "".into()),
                _ => (name.clone(), without_identity(value)),
            });
            Value::Object(members.collect())
        }
        _ => value.clone(),
    }
}
