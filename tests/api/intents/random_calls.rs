//! Intents against a small model of them, driven by chance: after each call both say the same.

use serde_json::{Value, json};

use crate::support::intents::path_of;
use crate::support::{Random, TestApp};

/// What a card does when it is charged.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Card {
    Good,
    Bad,
    /// Its holder must confirm.
    Asking,
}

/// An intent, as simply as its rules can be said.
#[derive(Debug, Clone, PartialEq)]
struct Model {
    amount: i64,
    card: Option<Card>,
    is_manual: bool,
    has_failed: bool,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    Open,
    Asked,
    Held,
    /// What was captured of the amount, and what of that was refunded.
    Paid {
        captured: i64,
        refunded: i64,
    },
    /// Whether a hold was let go.
    Canceled {
        was_held: bool,
    },
}

#[derive(Debug, Clone, Copy)]
enum Call {
    Describe,
    Price(i64),
    Change(Option<Card>),
    Manual(bool),
    Confirm { card: Option<Card>, off_session: bool },
    Capture(Option<i64>),
    Cancel,
    Refund(Option<i64>),
}

impl Card {
    fn name(self) -> &'static str {
        match self {
            Card::Good => "pm_card_visa",
            Card::Bad => "pm_card_chargeCustomerFail",
            Card::Asking => "pm_card_authenticationRequired",
        }
    }
}

impl Model {
    /// The status of the answer to a call; the model changes as the intent should.
    fn call(&mut self, call: Call) -> u16 {
        let is_open = matches!(self.stage, Stage::Open | Stage::Asked);
        match call {
            Call::Describe => {
                if matches!(self.stage, Stage::Canceled { .. }) {
                    400
                } else {
                    200
                }
            }
            Call::Price(_) | Call::Change(_) | Call::Manual(_) | Call::Confirm { .. } if !is_open => 400,
            Call::Price(amount) => {
                if !(50..=99_999_999).contains(&amount) {
                    return 400;
                }
                (self.amount, self.stage) = (amount, Stage::Open);
                200
            }
            Call::Change(card) => {
                (self.card, self.stage) = (card, Stage::Open);
                200
            }
            Call::Manual(is_manual) => {
                self.is_manual = is_manual;
                200
            }
            Call::Confirm { card, off_session } => {
                let Some(card) = card.or(self.card) else { return 400 };
                self.has_failed = card == Card::Bad || (card == Card::Asking && off_session);
                self.card = if self.has_failed { None } else { Some(card) };
                self.stage = match card {
                    _ if self.has_failed => Stage::Open,
                    Card::Asking => Stage::Asked,
                    _ if self.is_manual => Stage::Held,
                    _ => Stage::Paid { captured: self.amount, refunded: 0 },
                };
                if self.has_failed { 402 } else { 200 }
            }
            Call::Capture(part) => {
                let captured = part.unwrap_or(self.amount);
                if self.stage != Stage::Held || !(1..=self.amount).contains(&captured) {
                    return 400;
                }
                self.stage = Stage::Paid { captured, refunded: 0 };
                200
            }
            Call::Cancel => match self.stage {
                Stage::Open | Stage::Asked | Stage::Held => {
                    self.stage = Stage::Canceled { was_held: self.stage == Stage::Held };
                    200
                }
                _ => 400,
            },
            Call::Refund(part) => {
                let Stage::Paid { captured, refunded } = &mut self.stage else { return 400 };
                let part = part.unwrap_or(*captured - *refunded);
                if part < 1 || *refunded + part > *captured {
                    return 400;
                }
                *refunded += part;
                201
            }
        }
    }

    /// Status, amount, capturable and received.
    fn shown(&self) -> Value {
        let (status, capturable, received) = match self.stage {
            Stage::Open if self.card.is_none() => ("requires_payment_method", 0, 0),
            Stage::Open => ("requires_confirmation", 0, 0),
            Stage::Asked => ("requires_action", 0, 0),
            Stage::Held => ("requires_capture", self.amount, 0),
            Stage::Paid { captured, .. } => ("succeeded", 0, captured),
            Stage::Canceled { .. } => ("canceled", 0, 0),
        };
        json!([status, self.amount, capturable, received, self.has_failed])
    }

    /// What the charge shows as refunded, with what was let go.
    fn let_go(&self) -> Option<i64> {
        match self.stage {
            Stage::Held => Some(0),
            Stage::Paid { captured, refunded } => Some(self.amount - captured + refunded),
            Stage::Canceled { was_held: true } => Some(self.amount),
            _ => None,
        }
    }
}

fn any_call(random: &mut Random) -> Call {
    let card = random.pick(&[None, Some(Card::Good), Some(Card::Good), Some(Card::Bad), Some(Card::Asking)]);
    let part = random.pick(&[None, None, Some(0), Some(1), Some(300), Some(1000), Some(1001)]);
    match random.below(14) {
        0 => Call::Describe,
        1 | 2 => Call::Price(random.pick(&[49, 50, 500, 1000, 100_000_000])),
        3 | 4 => Call::Change(card),
        5 => Call::Manual(random.once_in(2)),
        6..=8 => Call::Confirm { card, off_session: random.once_in(3) },
        9 | 10 => Call::Capture(part),
        11 => Call::Cancel,
        _ => Call::Refund(part),
    }
}

fn request(call: Call, intent: &Value) -> (String, String) {
    let path = path_of(intent);
    let named = |name: &str, part: Option<i64>| part.map_or(String::new(), |part| format!("{name}={part}"));
    match call {
        Call::Describe => (path, "description=x".to_owned()),
        Call::Price(amount) => (path, format!("amount={amount}")),
        Call::Change(card) => (path, format!("payment_method={}", card.map_or("", Card::name))),
        Call::Manual(is_manual) => {
            (path, format!("capture_method={}", if is_manual { "manual" } else { "automatic" }))
        }
        Call::Confirm { card, off_session } => {
            let card = card.map_or(String::new(), |card| format!("&payment_method={}", card.name()));
            (format!("{path}/confirm"), format!("off_session={off_session}{card}"))
        }
        Call::Capture(part) => (format!("{path}/capture"), named("amount_to_capture", part)),
        Call::Cancel => (format!("{path}/cancel"), String::new()),
        Call::Refund(part) => {
            let id = intent["id"].as_str().unwrap();
            ("/v1/refunds".to_owned(), format!("payment_intent={id}&{}", named("amount", part)))
        }
    }
}

#[tokio::test]
async fn whatever_is_called_an_intent_stands_where_its_model_stands() {
    let app = TestApp::spawn();
    let mut random = Random::new(Random::seed());
    let mut reached = std::collections::BTreeSet::new();
    for _ in 0..14 {
        let mut intents = Vec::new();
        for is_manual in [false, true] {
            let form = if is_manual { "capture_method=manual" } else { "" };
            let stage = Stage::Open;
            let model = Model { amount: 1000, card: None, is_manual, has_failed: false, stage };
            intents.push((app.intent(form).await, model, Vec::new()));
        }
        for _ in 0..24 {
            let chosen = random.below(intents.len());
            let (intent, model, history) = &mut intents[chosen];
            let call = any_call(&mut random);
            history.push(call);
            let (path, form) = request(call, intent);
            let expected = model.call(call);
            let reply = app.submit(&path, &form).await;
            assert_eq!(reply.status, expected, "{history:?}: {}", reply.body);
            let now = app.intent_now(intent).await;
            let shown = json!([
                now["status"],
                now["amount"],
                now["amount_capturable"],
                now["amount_received"],
                now["last_payment_error"].is_object()
            ]);
            assert_eq!(shown, model.shown(), "{history:?}");
            reached.insert(now["status"].to_string());
            if let Some(let_go) = model.let_go() {
                let charge =
                    app.read(&format!("/v1/charges/{}", now["latest_charge"].as_str().unwrap())).await;
                assert_eq!(charge["amount_refunded"], let_go, "{history:?}");
            }
        }
    }
    assert_eq!(reached.len(), 6, "chance reached only {reached:?}");
    app.database.assert_clean();
}
