//! Random notifications: refunds and disputes succeed, fail, open and close in any order, twice and more, on two
//! instances, while the account refunds, captures, submits evidence and accepts. The books balance, whoever is first.

use std::collections::BTreeMap;
use std::sync::Mutex;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::network::{closed_dispute, fresh_id, opened_dispute};
use crate::support::{Random, TestApp, fresh_key};

const TASKS: usize = 8;
const CALLS: usize = 35;
const CHARGES: usize = 6;

/// The state that all tasks share.
#[derive(Default)]
struct World {
    /// Each charge with the one dispute that it may have.
    charges: Vec<(String, String)>,
    refunds: Mutex<Vec<String>>,
    sent: Mutex<Vec<Value>>,
    /// The answers to the notifications that were taken, by the text of the notification.
    taken: Mutex<BTreeMap<String, Vec<u8>>>,
}

#[tokio::test]
async fn notifications_in_any_order_and_at_once_with_requests_leave_the_books_in_balance() {
    let seed = Random::seed();
    let first = TestApp::spawn();
    let second = first.second_instance();
    let apps = [first, second];
    let mut world = World::default();
    for number in 0..CHARGES {
        let capture = number % 3 != 0;
        let form = format!("amount=1000&currency=usd&source=tok_pendingRefund&capture={capture}");
        let charge = apps[0].submit("/v1/charges", &form).await.expect(201);
        world.charges.push((charge.id().to_owned(), fresh_id("dp")));
    }
    let tasks = (0..TASKS).map(async |task| {
        let mut random = Random::new(seed.wrapping_add(task as u64));
        for _ in 0..CALLS {
            let app = &apps[random.below(2)];
            if random.below(5) < 3 {
                notify_at_random(app, &world, &mut random).await;
            } else {
                request_at_random(app, &world, &mut random).await;
            }
        }
    });
    join_all(tasks).await;
    apps[0].database.assert_clean();
    // The other instance replays every notification that was taken, and changes nothing.
    let before = apps[0].database.contents();
    let taken = world.taken.lock().unwrap().clone();
    for (notification, bytes) in &taken {
        let again = apps[1].notify(&serde_json::from_str(notification).unwrap()).await.expect(200);
        assert!(again.is_replay() && again.bytes == *bytes, "{notification}");
    }
    assert_eq!(apps[0].database.contents(), before);
    assert_states_add_up(&apps[0], &world).await;
}

/// Sends a new notification, or one that was sent before.
async fn notify_at_random(app: &TestApp, world: &World, random: &mut Random) {
    let sent = world.sent.lock().unwrap().clone();
    let notification = if !sent.is_empty() && random.once_in(3) {
        sent[sent.len() - 1 - random.below(sent.len().min(TASKS))].clone()
    } else {
        let notification = new_notification(app, world, random);
        world.sent.lock().unwrap().push(notification.clone());
        notification
    };
    let reply = app.notify(&notification).await;
    match (reply.status, reply.code()) {
        (200, _) => {
            let first = world.taken.lock().unwrap().insert(notification.to_string(), reply.bytes.clone());
            assert!(first.is_none_or(|first| first == reply.bytes));
        }
        // A charge that is not captured cannot be disputed.
        (400, _) => assert_eq!(reply.param(), "data[charge]", "{notification}: {}", reply.body),
        (409, "idempotency_key_in_use" | "lock_timeout") | (503, _) => {}
        _ => panic!("{notification}: {reply:?}"),
    }
}

fn new_notification(app: &TestApp, world: &World, random: &mut Random) -> Value {
    let refunds = world.refunds.lock().unwrap().clone();
    let (charge, dispute) = random.pick(&world.charges);
    match random.below(6) {
        0 | 1 if !refunds.is_empty() => {
            app.notification("refund.succeeded", json!({ "refund": random.pick(&refunds) }))
        }
        2 | 3 if !refunds.is_empty() => {
            app.notification("refund.failed", json!({ "refund": random.pick(&refunds) }))
        }
        4 if random.once_in(2) => {
            let outcome = random.pick(&["won", "won", "lost"]);
            app.notification("dispute.closed", closed_dispute(&dispute, &charge, outcome))
        }
        _ => app.notification("dispute.created", opened_dispute(&dispute, &charge, random.once_in(4))),
    }
}

/// Sends a random request of the account.
async fn request_at_random(app: &TestApp, world: &World, random: &mut Random) {
    let (charge, dispute) = random.pick(&world.charges);
    let amount = 50 + random.below(500);
    let (path, form) = match random.below(10) {
        0..5 => ("/v1/refunds".to_owned(), format!("charge={charge}&amount={amount}")),
        5 => (format!("/v1/charges/{charge}/capture"), format!("amount={amount}")),
        6 => (format!("/v1/disputes/{dispute}"), format!("metadata[a]={amount}")),
        7 => (format!("/v1/disputes/{dispute}"), "evidence[uncategorized_text]=winning_evidence".to_owned()),
        8 if random.once_in(3) => (format!("/v1/disputes/{dispute}/close"), String::new()),
        _ => (format!("/v1/charges/{charge}"), format!("description={amount}")),
    };
    let reply = app.post(&path).key(&fresh_key()).form(&form).send().await;
    match (reply.status, reply.code()) {
        (201, _) => world.refunds.lock().unwrap().push(reply.id().to_owned()),
        (200 | 400 | 404 | 503, _) | (409, "lock_timeout") => {}
        _ => panic!("{path} {form}: {reply:?}"),
    }
}

/// Checks the balance against the charges, refunds and disputes that the API shows.
async fn assert_states_add_up(app: &TestApp, world: &World) {
    let mut expected = 0;
    let (mut failed, mut closed) = (0, 0);
    for (charge, dispute) in &world.charges {
        let shown = app.read(&format!("/v1/charges/{charge}")).await;
        let captured = shown["amount_captured"].as_i64().unwrap();
        let mut refunded = 0;
        let refunds = app.read(&format!("/v1/refunds?charge={charge}&limit=100")).await;
        for refund in refunds["data"].as_array().unwrap() {
            if refund["status"] == "failed" {
                failed += 1;
            } else {
                refunded += refund["amount"].as_i64().unwrap();
            }
        }
        assert!(refunded <= captured, "{charge}: {refunded} of {captured}");
        expected += captured - refunded;
        let disputed = app.get(&format!("/v1/disputes/{dispute}")).send().await;
        assert_eq!(disputed.status == 200, shown["disputed"] == true, "{charge}");
        let status = disputed.body["status"].as_str().unwrap_or("none");
        if ["needs_response", "under_review", "lost"].contains(&status) {
            expected -= disputed.body["amount"].as_i64().unwrap();
        }
        closed += i32::from(["won", "lost", "warning_closed"].contains(&status));
    }
    assert_eq!(app.usd().await, expected);
    assert!(failed > 0 && closed > 0, "{failed} failed, {closed} closed: the run was too quiet");
}
