//! The cost of a request: round trips to PostgreSQL, and statements that are prepared again.

use diesel::prelude::*;
use futures_util::future::join_all;
use oncepay::error::Error;
use reqwest::Method;

use crate::support::{CHARGE, HOLD, Proxy, Reply, TestApp, Traffic, fresh_key};

/// A request of this test: its method, path, form and key.
struct Request {
    method: Method,
    path: String,
    form: String,
    key: String,
}

impl Request {
    fn post(path: &str, form: &str) -> Self {
        Self { method: Method::POST, path: path.to_owned(), form: form.to_owned(), key: fresh_key() }
    }

    fn get(path: &str) -> Self {
        Self { method: Method::GET, ..Self::post(path, "") }
    }

    async fn send(&self, app: &TestApp) -> Reply {
        let call = app.call(self.method.clone(), &self.path);
        if self.method == Method::POST {
            return call.key(&self.key).form(&self.form).send().await;
        }
        call.send().await
    }
}

/// The kinds of requests whose statements must stay prepared.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Captured,
    Authorised,
    Declined,
    WithToken,
    WithCustomer,
    Capture,
    Refund,
    Replay,
    Retrieve,
    LookUp,
}

/// Each kind with its status and its round trips.
///
/// Eight are the account with the record, BEGIN, the lock, the record again, the card, the charge with ledger and
/// events, the record, COMMIT.
const KINDS: [(Kind, u16, usize); 10] = [
    (Kind::Captured, 201, 8),
    (Kind::Authorised, 201, 8),
    (Kind::Declined, 402, 8),
    (Kind::WithToken, 201, 8),
    (Kind::WithCustomer, 201, 9),
    (Kind::Capture, 200, 8),
    (Kind::Refund, 201, 8),
    (Kind::Replay, 201, 1),
    (Kind::Retrieve, 200, 4),
    (Kind::LookUp, 200, 5),
];

/// Makes a new request of a kind, and first the objects that it needs.
async fn request(app: &TestApp, kind: Kind) -> Request {
    let made = async |path: &str, form: &str| {
        let request = Request::post(path, form);
        let id = request.send(app).await.expect(201).id().to_owned();
        (request, id)
    };
    match kind {
        Kind::Captured => Request::post("/v1/charges", CHARGE),
        Kind::Authorised => Request::post("/v1/charges", HOLD),
        Kind::Declined => Request::post("/v1/charges", &format!("{CHARGE}_chargeDeclined")),
        Kind::WithToken => {
            let card = "card[number]=4242424242424242&card[exp_month]=12&card[exp_year]=2040&card[cvc]=123";
            let (_, token) = made("/v1/tokens", card).await;
            Request::post("/v1/charges", &format!("amount=1000&currency=usd&source={token}"))
        }
        Kind::WithCustomer => {
            let (_, customer) = made("/v1/customers", "source=tok_visa").await;
            Request::post("/v1/charges", &format!("amount=1000&currency=usd&customer={customer}"))
        }
        Kind::Capture => {
            let (_, charge) = made("/v1/charges", HOLD).await;
            Request::post(&format!("/v1/charges/{charge}/capture"), "")
        }
        Kind::Refund => {
            let (_, charge) = made("/v1/charges", CHARGE).await;
            Request::post("/v1/refunds", &format!("charge={charge}"))
        }
        Kind::Replay => made("/v1/charges", CHARGE).await.0,
        Kind::Retrieve => Request::get(&format!("/v1/charges/{}", made("/v1/charges", CHARGE).await.1)),
        Kind::LookUp => {
            Request::get(&format!("/v1/idempotency_keys/{}", made("/v1/charges", CHARGE).await.0.key))
        }
    }
}

/// Sends a request of a kind, and returns its traffic without that of the preparations.
async fn cost(app: &TestApp, proxy: &Proxy, kind: Kind, status: u16) -> Traffic {
    let request = request(app, kind).await;
    proxy.take();
    let reply = request.send(app).await.expect(status);
    assert_eq!(reply.is_replay(), matches!(kind, Kind::Replay), "{kind:?}");
    proxy.take()
}

#[tokio::test]
async fn a_request_takes_its_expected_round_trips_and_prepares_no_statement_twice() {
    let (app, proxy) = Proxy::with_app(|_| ());
    let mut prepared = 0;
    for (kind, status, round_trips) in KINDS {
        prepared += cost(&app, &proxy, kind, status).await.count('P');
        let traffic = cost(&app, &proxy, kind, status).await;
        assert_eq!(traffic.count('P'), 0, "{kind:?} prepared a statement again: {:#?}", traffic.statements);
        assert_eq!(traffic.round_trips(), round_trips, "{kind:?}: {:#?}", traffic.statements);
        assert_eq!(traffic.statements.len(), round_trips, "{kind:?}: {:#?}", traffic.statements);
    }
    assert!(prepared > 0, "the proxy sees no Parse at all");
    assert!(prepared_statements(&app).await > 0);
}

#[tokio::test]
async fn without_the_statement_cache_every_request_works_and_no_statement_stays_prepared() {
    let (app, proxy) = Proxy::with_app(|builder| builder.statement_cache = false);
    for (kind, status, _) in KINDS {
        let traffic = cost(&app, &proxy, kind, status).await;
        assert_eq!(traffic.count('P'), traffic.count('B'), "{kind:?}: {:#?}", traffic.statements);
    }
    assert_eq!(prepared_statements(&app).await, 0);
    app.database.assert_clean();
}

/// The statements that the server's one connection keeps prepared.
async fn prepared_statements(app: &TestApp) -> i64 {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        number: i64,
    }
    let count = app.state.engine.database.run(|connection| {
        let rows = diesel::sql_query("SELECT count(*) AS number FROM pg_prepared_statements");
        rows.get_result::<Row>(connection).map(|row| row.number).map_err(Error::from)
    });
    count.await.unwrap().unwrap()
}

#[tokio::test]
async fn a_list_takes_the_same_statements_for_two_rows_and_for_a_hundred() {
    let (app, proxy) = Proxy::with_app(|_| ());
    let customer = Request::post("/v1/customers", "source=tok_visa").send(&app).await.expect(201);
    let form = format!("amount=1000&currency=usd&customer={}", customer.id());
    let charges = (0..101).map(|_| Request::post("/v1/charges", &form)).collect::<Vec<_>>();
    for reply in join_all(charges.iter().map(|charge| charge.send(&app))).await {
        reply.expect(201);
    }
    let list = async |limit: usize| {
        let expand = "expand[]=data.customer.default_source&expand[]=data.balance_transaction";
        proxy.take();
        let page = app.get(&format!("/v1/charges?limit={limit}&{expand}")).send().await.expect(200);
        assert_eq!(page.body["data"].as_array().unwrap().len(), limit);
        assert_eq!(page.body["data"][limit - 1]["customer"]["default_source"]["object"], "card");
        assert_eq!(page.body["data"][limit - 1]["balance_transaction"]["object"], "balance_transaction");
        proxy.take().statements
    };
    let two = list(2).await;
    // The account, BEGIN, the charges, the balance transactions, the customers, the cards, ROLLBACK.
    assert_eq!(two.len(), 7, "{two:#?}");
    assert_eq!(list(100).await, two);
    // A single id is compared in another way, with the same number of statements.
    assert_eq!(list(1).await.len(), two.len());
}

#[tokio::test]
async fn bench_charge_sql_is_what_the_service_sends() {
    let (app, proxy) = Proxy::with_app(|_| ());
    cost(&app, &proxy, Kind::Captured, 201).await;
    let sent = cost(&app, &proxy, Kind::Captured, 201).await.statements;
    let sent: Vec<String> = sent
        .iter()
        .map(|statement| {
            // pgbench sends one statement a trip, so bench/run sets for the session what comes with BEGIN here.
            let mut parts = statement.split(';');
            let first = normalised(parts.next().unwrap());
            assert!(parts.all(|part| part.trim_start().starts_with("SET LOCAL ")), "{statement}");
            first
        })
        .collect();
    let script = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/bench/charge.sql")).unwrap();
    let script: String = script
        .lines()
        .filter(|line| !line.starts_with("--") && !line.starts_with('\\'))
        .map(|line| format!("{line}\n"))
        .collect();
    let script: Vec<String> =
        script.split(';').map(normalised).filter(|statement| !statement.is_empty()).collect();
    assert_eq!(script, sent);
}

/// A statement of the service or of pgbench, with `$` for each parameter, without casts and with single spaces.
fn normalised(statement: &str) -> String {
    let fresh = ["('{' || :first || :last || '}')", "(:first || :last)", "NULL"];
    let statement = fresh.iter().fold(statement.to_owned(), |text, fresh| text.replace(fresh, "$"));
    let mut characters = statement.chars().peekable();
    let mut plain = String::new();
    while let Some(character) = characters.next() {
        if character != ':' && character != '$' {
            plain.push(character);
            continue;
        }
        let is_cast = character == ':' && characters.next_if_eq(&':').is_some();
        while characters.next_if(|next| next.is_ascii_alphanumeric() || "_[]".contains(*next)).is_some() {}
        if !is_cast {
            plain.push('$');
        }
    }
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}
