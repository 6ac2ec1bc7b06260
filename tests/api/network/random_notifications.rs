//! Chance at the news of the network: refunds and disputes succeed, fail, open and close in any order, twice and more, on
//! two instances, while the account refunds, captures, defends itself and gives up. The books balance, whoever is first.

use std::collections::BTreeMap;
use std::sync::Mutex;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::network::{claim, fresh_id, verdict};
use crate::support::{Random, TestApp, fresh_key};

const TASKS: usize = 8;
const CALLS: usize = 35;
const CHARGES: usize = 6;

/// What all tasks know.
#[derive(Default)]
struct World {
    /// Each charge with the one dispute that it may have.
    charges: Vec<(String, String)>,
    refunds: Mutex<Vec<String>>,
    sent: Mutex<Vec<Value>>,
    /// What was taken of the news, by its text.
    taken: Mutex<BTreeMap<String, Vec<u8>>>,
}

#[tokio::test]
async fn news_in_any_order_at_once_with_everything_else_leave_the_books_in_balance() {
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
                hear(app, &world, &mut random).await;
            } else {
                act(app, &world, &mut random).await;
            }
        }
    });
    join_all(tasks).await;
    apps[0].database.assert_clean();
    // Everything that was taken is taken again, on the other instance, and changes nothing.
    let before = apps[0].database.contents();
    let taken = world.taken.lock().unwrap().clone();
    for (news, bytes) in &taken {
        let again = apps[1].notify(&serde_json::from_str(news).unwrap()).await.expect(200);
        assert!(again.is_replay() && again.bytes == *bytes, "{news}");
    }
    assert_eq!(apps[0].database.contents(), before);
    the_states_add_up(&apps[0], &world).await;
}

/// The network tells something new, or something that it has told before.
async fn hear(app: &TestApp, world: &World, random: &mut Random) {
    let sent = world.sent.lock().unwrap().clone();
    let news = if !sent.is_empty() && random.once_in(3) {
        sent[sent.len() - 1 - random.below(sent.len().min(TASKS))].clone()
    } else {
        let news = something_new(app, world, random);
        world.sent.lock().unwrap().push(news.clone());
        news
    };
    let reply = app.notify(&news).await;
    match (reply.status, reply.code()) {
        (200, _) => {
            let first = world.taken.lock().unwrap().insert(news.to_string(), reply.bytes.clone());
            assert!(first.is_none_or(|first| first == reply.bytes));
        }
        // What is not captured cannot be disputed.
        (400, _) => assert_eq!(reply.param(), "data[charge]", "{news}: {}", reply.body),
        (409, "idempotency_key_in_use" | "lock_timeout") | (503, _) => {}
        _ => panic!("{news}: {reply:?}"),
    }
}

fn something_new(app: &TestApp, world: &World, random: &mut Random) -> Value {
    let refunds = world.refunds.lock().unwrap().clone();
    let (charge, dispute) = random.pick(&world.charges);
    match random.below(6) {
        0 | 1 if !refunds.is_empty() => {
            app.news("refund.succeeded", json!({ "refund": random.pick(&refunds) }))
        }
        2 | 3 if !refunds.is_empty() => app.news("refund.failed", json!({ "refund": random.pick(&refunds) })),
        4 if random.once_in(2) => {
            let outcome = random.pick(&["won", "won", "lost"]);
            app.news("dispute.closed", verdict(&dispute, &charge, outcome))
        }
        _ => app.news("dispute.created", claim(&dispute, &charge, random.once_in(4))),
    }
}

/// The account does something.
async fn act(app: &TestApp, world: &World, random: &mut Random) {
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

/// The balance, from what the API shows of charges, refunds and disputes alone.
async fn the_states_add_up(app: &TestApp, world: &World) {
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
    assert!(failed > 0 && closed > 0, "{failed} failed, {closed} closed: there was no storm");
}
