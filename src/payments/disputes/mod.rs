//! Disputes: a cardholder who says that a charge is wrong. The card network notifies this service of them
//! ([`crate::notifications`]); the account answers with evidence, or gives up.
//!
//! | status | may become | by |
//! |---|---|---|
//! | – | needs_response, warning_needs_response | the network opens it; without `warning_` the money is taken back |
//! | …needs_response | …under_review | evidence is submitted |
//! | needs_response, under_review | won, lost | the network closes it, or the account does (lost); won gives the money back |
//! | warning_… | warning_closed | the network or the account closes it |

pub mod handlers;
mod queries;

use chrono::{DateTime, Utc};
use diesel::QueryResult;
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::card_network::{DisputeNotice, DisputeReason, Verdict, VerdictNotice, simulation};
use crate::error::Error;
use crate::payments::balance::{self, BalanceTransaction, MovedBy, Movement};
use crate::payments::charges::{self, Charge};
use crate::schema::disputes;
use crate::types::ids::{AccountId, ChargeId, DisputeId, PaymentIntentId, RequestId, kinds};
use crate::types::text_column;
use crate::types::{Cause, Currency, Metadata, MetadataPatch, Page};
use crate::wire::params::patch_metadata;
use crate::wire::{List, ids};

/// A dispute.
#[derive(Debug, Clone, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = disputes, check_for_backend(Pg), treat_none_as_default_value = false, treat_none_as_null = true)]
#[diesel(primary_key(account_id, id))]
pub struct Dispute {
    pub account_id: AccountId,
    pub id: DisputeId,
    pub request_id: RequestId,
    pub charge_id: ChargeId,
    pub payment_intent_id: Option<PaymentIntentId>,
    pub status: Status,
    pub amount: i64,
    pub currency: Currency,
    pub reason: DisputeReason,
    pub evidence: Value,
    pub submissions: i32,
    pub metadata: Metadata,
    pub created_at: DateTime<Utc>,
}

text_column! {
    /// Where a dispute stands: the table above.
    pub enum Status {
        WarningNeedsResponse => "warning_needs_response",
        WarningUnderReview => "warning_under_review",
        WarningClosed => "warning_closed",
        NeedsResponse => "needs_response",
        UnderReview => "under_review",
        Won => "won",
        Lost => "lost",
    }
}

/// How far the network's clock may be ahead of ours: as far as a signature's may.
const CLOCK_SKEW: chrono::Duration = chrono::Duration::minutes(5);

/// What an account says in its defence.
pub struct UpdateDispute {
    pub evidence: Vec<(String, Option<String>)>,
    /// Whether to submit all evidence that is there; if nothing is said, then what came along is not kept back.
    pub submit: Option<bool>,
    pub metadata: MetadataPatch,
}

/// Which disputes a list holds.
#[derive(Debug, Default)]
pub struct Filter {
    pub charge: Option<ChargeId>,
    pub payment_intent: Option<PaymentIntentId>,
}

/// Opens the dispute that the network speaks of, unless it is open or over already.
///
/// # Errors
/// No such charge, it has no money of the account's, or the dispute is of another charge or of a time to come.
pub fn open(connection: &mut PgConnection, cause: &Cause, notice: DisputeNotice) -> Result<Dispute, Error> {
    // The charge is the row that guards its money: it ends the race of a dispute with refunds and with itself.
    let charge = charges::locked(connection, cause, notice.charge, "data[charge]")?;
    if let Some(dispute) = queries::find_by_charge(connection, cause.account, charge.id)? {
        return Ok(dispute);
    }
    if queries::find(connection, cause.account, notice.dispute)?.is_some() {
        return Err(Error::invalid(
            "data[dispute]",
            format!("Dispute {} is of another charge than {}.", notice.dispute, charge.id),
        ));
    }
    let unnamed =
        || Error::invalid("data[dispute]", "This dispute has no name: that is dp_ and a UUIDv7 in hex.");
    let made_at = notice.dispute.made_at().ok_or_else(unnamed)?;
    // A charge that was made before the clock was set back may lie in the future itself.
    if made_at > cause.now.max(charge.created_at) + CLOCK_SKEW {
        return Err(Error::invalid("data[dispute]", "The time in the name of this dispute is yet to come."));
    }
    let amount = charge.refundable();
    if amount <= 0 {
        return Err(Error::NotAllowedNow {
            code: None,
            message: format!("Charge {} has no money that could be disputed.", charge.id),
            param: Some("data[charge]"),
        });
    }
    let dispute = Dispute {
        account_id: cause.account,
        id: notice.dispute,
        request_id: cause.request_id,
        charge_id: charge.id,
        payment_intent_id: charge.payment_intent_id,
        status: if notice.inquiry { Status::WarningNeedsResponse } else { Status::NeedsResponse },
        amount,
        currency: charge.currency,
        reason: notice.reason,
        evidence: json!({}),
        submissions: 0,
        metadata: Metadata::default(),
        created_at: made_at,
    };
    let withdrawal = (!notice.inquiry).then(|| dispute.withdrawal(cause));
    let charge = Charge { disputed: true, ..charge };
    queries::insert(connection, cause, &dispute, &charge, withdrawal.as_ref())?;
    Ok(dispute)
}

/// A dispute by its id.
///
/// # Errors
/// [`Error::NotFound`].
pub fn retrieve(connection: &mut PgConnection, cause: &Cause, id: &str) -> Result<Dispute, Error> {
    ids::in_path(id, |id| queries::find(connection, cause.account, id))
}

/// Keeps evidence, and submits it. The simulated issuer decides by the text: `winning_evidence` wins,
/// `losing_evidence` loses, and anything else is thought over for ever.
///
/// # Errors
/// [`Error::NotFound`], it is closed, or metadata beyond the limits.
pub fn update(
    connection: &mut PgConnection,
    cause: &Cause,
    id: &str,
    update: UpdateDispute,
) -> Result<Dispute, Error> {
    // Ends the race of evidence with the verdict: whoever is second finds the dispute closed, or submitted.
    let previous = lock(connection, cause, id)?;
    previous.check_open()?;
    let mut dispute = previous.clone();
    dispute.metadata = patch_metadata(&dispute.metadata, &update.metadata)?;
    let submits = update.submit.unwrap_or(!update.evidence.is_empty());
    for (name, text) in update.evidence {
        dispute.evidence[name] = text.into();
    }
    if submits && dispute.has_evidence() {
        dispute.submissions += 1;
        dispute.status = if dispute.is_inquiry() { Status::WarningUnderReview } else { Status::UnderReview };
        let verdict = match dispute.evidence["uncategorized_text"].as_str() {
            Some("winning_evidence") => Some(Verdict::Won),
            Some("losing_evidence") => Some(Verdict::Lost),
            _ => None,
        };
        if let Some(verdict) = verdict {
            simulation::announce_verdict(connection, cause, dispute.verdict_notice(verdict))?;
        }
    }
    queries::update(connection, cause, &previous, &dispute)?;
    Ok(dispute)
}

/// Gives a dispute up.
///
/// # Errors
/// [`Error::NotFound`], or it is closed already.
pub fn close(connection: &mut PgConnection, cause: &Cause, id: &str) -> Result<Dispute, Error> {
    let dispute = lock(connection, cause, id)?;
    dispute.check_open()?;
    close_with(connection, cause, dispute, Verdict::Lost)
}

/// Closes the dispute that the network speaks of; opens it first, should that news be late. One that is closed stays
/// as it is.
///
/// # Errors
/// What [`open`] refuses, or the charge is disputed under another name.
pub fn close_by_network(
    connection: &mut PgConnection,
    cause: &Cause,
    notice: VerdictNotice,
) -> Result<Dispute, Error> {
    let named = notice.dispute;
    let opened = open(connection, cause, notice.dispute_notice())?;
    if opened.id != named {
        return Err(Error::invalid(
            "data[dispute]",
            format!("Charge {} is disputed as {}, and not as {named}.", opened.charge_id, opened.id),
        ));
    }
    let dispute = queries::lock(connection, cause.account, opened.id)?
        .ok_or_else(|| Error::Internal(format!("{} is gone", opened.id)))?;
    close_with(connection, cause, dispute, notice.outcome)
}

/// A page of disputes, the newest first.
///
/// # Errors
/// The cursor or the filter names nothing.
pub fn list(
    connection: &mut PgConnection,
    cause: &Cause,
    list: &List<kinds::Dispute, Filter>,
) -> Result<Page<Dispute>, Error> {
    list.load(connection, cause, |connection, page, filter| {
        queries::list(connection, cause.account, page, filter)
    })
}

/// These disputes as objects, with their rows of the ledger.
///
/// # Errors
/// The database's.
pub fn rendered(
    connection: &mut PgConnection,
    account: AccountId,
    disputes: &[Dispute],
) -> QueryResult<Vec<Value>> {
    let ids: Vec<DisputeId> = disputes.iter().map(|dispute| dispute.id).collect();
    let ledger = balance::of_disputes(connection, account, &ids)?;
    Ok(disputes.iter().map(|dispute| dispute.object(&ledger)).collect())
}

/// The disputes with these ids, as objects.
///
/// # Errors
/// The database's.
pub fn objects(connection: &mut PgConnection, account: AccountId, ids: &[Uuid]) -> QueryResult<Vec<Value>> {
    let disputes = queries::find_all(connection, account, ids)?;
    rendered(connection, account, &disputes)
}

/// Whether a dispute has taken the money of a charge, so that it cannot be refunded too.
///
/// # Errors
/// What the statement reports.
pub fn has_taken(connection: &mut PgConnection, charge: &Charge) -> QueryResult<bool> {
    let dispute = queries::find_by_charge(connection, charge.account_id, charge.id)?;
    Ok(dispute.is_some_and(|dispute| !dispute.is_refundable()))
}

fn close_with(
    connection: &mut PgConnection,
    cause: &Cause,
    dispute: Dispute,
    verdict: Verdict,
) -> Result<Dispute, Error> {
    if !dispute.is_open() {
        return Ok(dispute);
    }
    let (status, gives_back) = match verdict {
        _ if dispute.is_inquiry() => (Status::WarningClosed, false),
        Verdict::Won => (Status::Won, true),
        Verdict::Lost => (Status::Lost, false),
    };
    let dispute = Dispute { status, ..dispute };
    let reinstated = gives_back.then(|| dispute.reinstatement(cause));
    queries::close(connection, cause, &dispute, reinstated.as_ref())?;
    Ok(dispute)
}

fn lock(connection: &mut PgConnection, cause: &Cause, id: &str) -> Result<Dispute, Error> {
    ids::in_path(id, |id| queries::lock(connection, cause.account, id))
}

impl Dispute {
    /// The row of the ledger of its beginning: money taken.
    fn withdrawal(&self, cause: &Cause) -> BalanceTransaction {
        let price = (-self.amount, self.currency);
        let of = (self.charge_id, MovedBy::Dispute(self.id));
        BalanceTransaction::new(cause, cause.new_id(), Movement::Dispute, of, price)
    }

    /// The row of a dispute that was won: money given back.
    fn reinstatement(&self, cause: &Cause) -> BalanceTransaction {
        let price = (self.amount, self.currency);
        let of = (self.charge_id, MovedBy::Dispute(self.id));
        BalanceTransaction::new(cause, cause.new_id(), Movement::DisputeReversal, of, price)
    }

    /// What the network says when it closes this dispute.
    fn verdict_notice(&self, outcome: Verdict) -> VerdictNotice {
        let (dispute, charge, reason) = (self.id, self.charge_id, self.reason);
        VerdictNotice { dispute, charge, reason, inquiry: self.is_inquiry(), outcome }
    }

    /// Only a question yet: no money has moved.
    pub fn is_inquiry(&self) -> bool {
        use Status::{WarningClosed, WarningNeedsResponse, WarningUnderReview};
        matches!(self.status, WarningNeedsResponse | WarningUnderReview | WarningClosed)
    }

    fn is_open(&self) -> bool {
        !matches!(self.status, Status::Won | Status::Lost | Status::WarningClosed)
    }

    /// Only while the money is the account's.
    fn is_refundable(&self) -> bool {
        self.is_inquiry() || self.status == Status::Won
    }

    /// What was unset again is none.
    fn has_evidence(&self) -> bool {
        self.evidence.as_object().is_some_and(|evidence| evidence.values().any(|text| !text.is_null()))
    }

    fn check_open(&self) -> Result<(), Error> {
        if self.is_open() {
            return Ok(());
        }
        Err(Error::NotAllowedNow {
            code: None,
            message: format!("Dispute {} is closed: its status is {}.", self.id, self.status.as_str()),
            param: None,
        })
    }

    /// `ledger` holds the rows of this dispute, maybe among others.
    pub fn object(&self, ledger: &[BalanceTransaction]) -> Value {
        let own = ledger.iter().filter(|row| row.dispute_id == Some(self.id)).map(BalanceTransaction::object);
        json!({
            "id": self.id,
            "object": "dispute",
            "amount": self.amount,
            "balance_transactions": own.collect::<Vec<_>>(),
            "charge": self.charge_id,
            "created": self.created_at.timestamp(),
            "currency": self.currency,
            "enhanced_eligibility_types": [],
            "evidence": self.evidence_object(),
            "evidence_details": {
                "due_by": (self.created_at + chrono::Duration::days(7)).timestamp(),
                "enhanced_eligibility": {},
                "has_evidence": self.has_evidence(),
                "past_due": false,
                "submission_count": self.submissions,
            },
            "is_charge_refundable": self.is_refundable(),
            "livemode": false,
            "metadata": self.metadata,
            "payment_intent": self.payment_intent_id,
            "reason": self.reason,
            "status": self.status,
        })
    }

    /// All kinds of evidence there are, with what was given.
    fn evidence_object(&self) -> Value {
        let given = |name: &&str| ((*name).to_owned(), self.evidence[*name].clone());
        let mut evidence: Map<String, Value> = handlers::EVIDENCE.iter().map(given).collect();
        evidence.insert("enhanced_evidence".to_owned(), json!({}));
        Value::Object(evidence)
    }
}
