//! Chance at the money: many tasks, two instances and few charges. Whoever wins each race, the books balance, and what
//! was answered once is answered again.

use std::collections::BTreeMap;
use std::sync::Mutex;

use futures_util::future::join_all;

use crate::support::{HOLD, Random, Reply, TestApp, fresh_key};

const TASKS: usize = 8;
const CALLS: usize = 40;

/// A call and the key it was sent with.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Sent {
    key: String,
    path: String,
    body: String,
}

/// What all tasks know.
#[derive(Default)]
struct World {
    charges: Mutex<Vec<String>>,
    customers: Mutex<Vec<String>>,
    sent: Mutex<Vec<Sent>>,
    /// The answers that were remembered, by what was sent.
    remembered: Mutex<BTreeMap<Sent, Vec<Reply>>>,
}

#[tokio::test]
async fn random_operations_at_once_on_few_charges_leave_the_books_in_balance() {
    let seed = Random::seed();
    let apps = {
        let first = TestApp::spawn();
        let second = first.second_instance();
        [first, second]
    };
    let world = World::default();
    for _ in 0..2 {
        let charge = apps[0].charge().await;
        world.charges.lock().unwrap().push(charge);
        let hold = apps[0].post("/v1/charges").key(&fresh_key()).form(HOLD).send().await.expect(201);
        world.charges.lock().unwrap().push(hold.id().to_owned());
    }
    let tasks = (0..TASKS).map(async |task| {
        let mut random = Random::new(seed.wrapping_add(task as u64));
        for _ in 0..CALLS {
            one_call(&apps, &world, &mut random).await;
        }
    });
    join_all(tasks).await;
    apps[0].database.assert_clean();
    the_answers_add_up(&apps[0], &world);
    everything_remembered_is_replayed(&apps[1], &world).await;
    apps[0].database.assert_clean();
}

async fn one_call(apps: &[TestApp; 2], world: &World, random: &mut Random) {
    let app = &apps[random.below(2)];
    if random.once_in(12) {
        let customer = random.pick(&with(&world.customers.lock().unwrap(), "cus_none"));
        let reply = app.delete(&format!("/v1/customers/{customer}")).send().await;
        assert!([200, 404, 409].contains(&reply.status), "{}", reply.body);
        return;
    }
    let sent = next(world, random);
    let reply = app.post(&sent.path).key(&sent.key).form(&sent.body).send().await;
    check(&sent, &reply);
    if matches!(reply.status, 200 | 201 | 402)
        && (reply.status != 402 || !reply.body["error"]["charge"].is_null())
    {
        if reply.status == 201 && sent.path == "/v1/charges" && random.once_in(4) {
            world.charges.lock().unwrap().push(reply.id().to_owned());
        }
        if reply.status == 201 && sent.path == "/v1/customers" {
            world.customers.lock().unwrap().push(reply.id().to_owned());
        }
        world.remembered.lock().unwrap().entry(sent).or_default().push(reply);
    }
}

/// Something new, or something that was sent before.
fn next(world: &World, random: &mut Random) -> Sent {
    let mut all = world.sent.lock().unwrap();
    if !all.is_empty() && random.once_in(4) {
        // The latest are the most likely to be running still.
        let recent = all.len().min(TASKS);
        return all[all.len() - 1 - random.below(recent)].clone();
    }
    let charge = random.pick(&world.charges.lock().unwrap());
    let customer = random.pick(&with(&world.customers.lock().unwrap(), "cus_none"));
    let amount = 50 + random.below(600);
    let card = random.pick(&[
        "tok_visa",
        "tok_mastercard",
        "tok_chargeDeclined",
        "tok_chargeDeclinedInsufficientFunds",
    ]);
    let money = format!("amount={amount}&currency=usd");
    let (path, body) = match random.below(10) {
        0 => ("/v1/charges".to_owned(), format!("{money}&source={card}")),
        1 => ("/v1/charges".to_owned(), format!("{money}&source={card}&capture=false")),
        2 => ("/v1/charges".to_owned(), format!("{money}&customer={customer}")),
        3 => (format!("/v1/charges/{charge}/capture"), String::new()),
        4 => (format!("/v1/charges/{charge}/capture"), format!("amount={amount}")),
        5 | 6 => ("/v1/refunds".to_owned(), format!("charge={charge}&amount={amount}")),
        7 => (format!("/v1/charges/{charge}"), format!("description={amount}&metadata[a]={amount}")),
        8 => ("/v1/customers".to_owned(), format!("name={amount}&source=tok_visa")),
        _ => (format!("/v1/customers/{customer}"), format!("name={amount}&source=tok_visa")),
    };
    let sent = Sent { key: fresh_key(), path, body };
    all.push(sent.clone());
    sent
}

/// The list, or this stranger while it is empty.
fn with(list: &[String], stranger: &str) -> Vec<String> {
    if list.is_empty() { vec![stranger.to_owned()] } else { list.to_vec() }
}

/// Whoever loses a race is told so, and never by a fault of ours.
#[track_caller]
fn check(sent: &Sent, reply: &Reply) {
    let (status, code) = (reply.status, reply.code().to_owned());
    let allowed = match status {
        200 | 201 | 400 | 402 | 404 => true,
        409 => ["idempotency_key_in_use", "lock_timeout"].contains(&code.as_str()),
        _ => false,
    };
    assert!(allowed, "{} {}: {status} {}", sent.path, sent.body, reply.body);
}

/// What callers were told about refunds and captures is what the database says, computed from their answers alone.
fn the_answers_add_up(app: &TestApp, world: &World) {
    let remembered = world.remembered.lock().unwrap();
    let count = |status: u16, path: &str| {
        let matches =
            |(sent, replies): &(&Sent, &Vec<Reply>)| sent.path == path && replies[0].status == status;
        i64::try_from(remembered.iter().filter(matches).count()).unwrap()
    };
    // The four that the test began with were not told to a task.
    assert_eq!(app.database.count("charges WHERE status <> 'failed'"), count(201, "/v1/charges") + 4);
    assert_eq!(app.database.count("charges WHERE status = 'failed'"), count(402, "/v1/charges"));
    assert_eq!(app.database.count("customers"), count(201, "/v1/customers"));
    assert_eq!(app.database.count("refunds"), count(201, "/v1/refunds"));
    let refunded: i64 = remembered
        .iter()
        .filter(|(sent, _)| sent.path == "/v1/refunds")
        .map(|(_, replies)| replies[0].body["amount"].as_i64().unwrap())
        .sum();
    let sum = "SELECT coalesce(sum(amount_refunded), 0)::bigint AS number FROM charges";
    assert_eq!(app.database.number(sum), refunded);
    assert!(count(201, "/v1/charges") > 0 && count(201, "/v1/refunds") > 0 && count(402, "/v1/charges") > 0);
}

async fn everything_remembered_is_replayed(app: &TestApp, world: &World) {
    let remembered = std::mem::take(&mut *world.remembered.lock().unwrap());
    for (sent, replies) in remembered {
        let again = app.post(&sent.path).key(&sent.key).form(&sent.body).send().await;
        assert!(again.is_replay(), "{}: {} {}", sent.path, again.status, again.body);
        for reply in &replies {
            assert_eq!((reply.status, &reply.bytes), (again.status, &again.bytes), "{}", sent.path);
        }
        assert!(replies.iter().filter(|reply| !reply.is_replay()).count() <= 1, "{} ran twice", sent.path);
    }
}
