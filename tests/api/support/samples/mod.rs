//! A sample request of each keyed route, for the tests that are generated from the table of routes.

mod intents;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;

use super::{CHARGE, HOLD, TestApp, fresh_key};

/// A request that a route understands, with what it needs made beforehand, and another one.
pub struct Sample {
    pub path: String,
    pub body: &'static str,
    pub another_body: &'static str,
    /// What the same request answers when it runs once more: mostly what it answered first.
    pub again: u16,
}

/// Makes the sample of a keyed route.
pub struct Sampler {
    pub path: &'static str,
    pub make: for<'a> fn(&'a TestApp) -> LocalBoxFuture<'a, Sample>,
}

/// A sample for each keyed route; whoever adds a route adds one here, or in a list that [`samplers`] knows.
const SAMPLERS: &[Sampler] = &[
    Sampler {
        path: "/v1/customers",
        make: |_| {
            let (body, another_body) = ("name=Ada&metadata[a]=1", "name=Ada&metadata[a]=2");
            async move { Sample { path: "/v1/customers".to_owned(), body, another_body, again: 201 } }
                .boxed_local()
        },
    },
    Sampler {
        path: "/v1/customers/{customer}",
        make: |app| {
            async move {
                let path = format!("/v1/customers/{}", make(app, "/v1/customers", "name=Ada").await);
                Sample { path, body: "name=Grace", another_body: "name=Edsger", again: 200 }
            }
            .boxed_local()
        },
    },
    Sampler {
        path: "/v1/tokens",
        make: |_| {
            let body = "card[number]=4242424242424242&card[exp_month]=12&card[exp_year]=2040&card[cvc]=123";
            let another_body = "card[number]=4242424242424242&card[exp_month]=11&card[exp_year]=2040";
            async move { Sample { path: "/v1/tokens".to_owned(), body, another_body, again: 201 } }
                .boxed_local()
        },
    },
    Sampler {
        path: "/v1/charges",
        make: |_| {
            let another_body = "amount=1001&currency=usd&source=tok_visa";
            async move { Sample { path: "/v1/charges".to_owned(), body: CHARGE, another_body, again: 201 } }
                .boxed_local()
        },
    },
    Sampler {
        path: "/v1/charges/{charge}",
        make: |app| {
            async move {
                let path = format!("/v1/charges/{}", app.charge().await);
                Sample { path, body: "description=a", another_body: "description=b", again: 200 }
            }
            .boxed_local()
        },
    },
    Sampler {
        path: "/v1/charges/{charge}/capture",
        make: |app| {
            async move {
                let path = format!("/v1/charges/{}/capture", make(app, "/v1/charges", HOLD).await);
                // It runs again, and finds that the first run has captured.
                Sample { path, body: "amount=600", another_body: "amount=601", again: 400 }
            }
            .boxed_local()
        },
    },
    Sampler {
        path: "/v1/refunds",
        make: |app| {
            async move {
                let charge: &'static str = app.charge().await.leak();
                let body = format!("charge={charge}&amount=10").leak();
                let another_body = format!("charge={charge}&amount=11").leak();
                Sample { path: "/v1/refunds".to_owned(), body, another_body, again: 201 }
            }
            .boxed_local()
        },
    },
    Sampler {
        path: "/v1/refunds/{refund}",
        make: |app| {
            async move {
                let body = format!("charge={}&amount=10", app.charge().await);
                let path = format!("/v1/refunds/{}", make(app, "/v1/refunds", &body).await);
                Sample { path, body: "metadata[a]=1", another_body: "metadata[a]=2", again: 200 }
            }
            .boxed_local()
        },
    },
    Sampler {
        path: "/v1/disputes/{dispute}",
        make: |app| {
            async move {
                let path = format!("/v1/disputes/{}", app.disputed(&app.charge().await).await);
                let (body, another_body) = ("evidence[receipt]=a", "evidence[receipt]=b");
                Sample { path, body, another_body, again: 200 }
            }
            .boxed_local()
        },
    },
    Sampler {
        path: "/v1/webhook_endpoints",
        make: |_| {
            let (body, another_body) = (ENDPOINT, "url=http://127.0.0.1:9/other&enabled_events[]=*");
            async move { Sample { path: "/v1/webhook_endpoints".to_owned(), body, another_body, again: 201 } }
                .boxed_local()
        },
    },
    Sampler {
        path: "/v1/webhook_endpoints/{endpoint}",
        make: |app| {
            async move {
                let id = make(app, "/v1/webhook_endpoints", ENDPOINT).await;
                let path = format!("/v1/webhook_endpoints/{id}");
                Sample { path, body: "description=a", another_body: "description=b", again: 200 }
            }
            .boxed_local()
        },
    },
    Sampler {
        path: "/v1/webhook_endpoints/{endpoint}/roll_secret",
        make: |app| {
            async move {
                let id = make(app, "/v1/webhook_endpoints", ENDPOINT).await;
                let path = format!("/v1/webhook_endpoints/{id}/roll_secret");
                let (body, another_body) = ("grace_period_seconds=10", "grace_period_seconds=20");
                Sample { path, body, another_body, again: 200 }
            }
            .boxed_local()
        },
    },
    Sampler {
        path: "/v1/disputes/{dispute}/close",
        make: |app| {
            async move {
                let path = format!("/v1/disputes/{}/close", app.disputed(&app.charge().await).await);
                // It runs again, and finds that the first run has closed.
                Sample { path, body: "", another_body: "expand[]=charge", again: 400 }
            }
            .boxed_local()
        },
    },
    Sampler {
        path: "/v1/events/{event}/resend",
        make: |app| {
            async move {
                let endpoint = make(app, "/v1/webhook_endpoints", ENDPOINT).await;
                let body = format!("webhook_endpoint={endpoint}").leak();
                app.charge().await;
                let events = app.read("/v1/events?limit=1").await;
                let path = format!("/v1/events/{}/resend", events["data"][0]["id"].as_str().unwrap());
                Sample { path, body, another_body: "", again: 200 }
            }
            .boxed_local()
        },
    },
];

/// All samples.
pub fn samplers() -> impl Iterator<Item = &'static Sampler> {
    SAMPLERS.iter().chain(intents::SAMPLERS)
}

/// An endpoint where nobody is called, since these tests have no worker.
const ENDPOINT: &str = "url=http://127.0.0.1:9/hook&enabled_events[]=charge.succeeded";

/// Makes an object, and gives its id.
pub async fn make(app: &TestApp, path: &str, body: &str) -> String {
    app.post(path).key(&fresh_key()).form(body).send().await.expect(201).id().to_owned()
}
