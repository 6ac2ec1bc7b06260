//! Sample requests of the keyed routes of payment intents and payment methods, for the four cases.

use futures_util::FutureExt;

use super::{Sample, Sampler, make};

const METHODS: &str = "/v1/payment_methods";
const INTENTS: &str = "/v1/payment_intents";

const CARD: &str = "type=card&card[token]=tok_visa";
const PRICE: &str = "amount=1000&currency=usd";
const HELD: &str = "amount=1000&currency=usd&payment_method=pm_card_visa&capture_method=manual&confirm=true";

/// A sample for each of these routes.
pub const SAMPLERS: &[Sampler] = &[
    Sampler {
        path: "/v1/payment_methods",
        make: |_| {
            async {
                Sample {
                    path: METHODS.to_owned(),
                    body: CARD,
                    another_body: "card[token]=tok_amex",
                    again: 201,
                }
            }
            .boxed_local()
        },
    },
    Sampler {
        path: "/v1/payment_methods/{method}",
        make: |app| {
            async move {
                let path = format!("{METHODS}/{}", make(app, METHODS, CARD).await);
                Sample { path, body: "metadata[a]=1", another_body: "metadata[a]=2", again: 200 }
            }
            .boxed_local()
        },
    },
    Sampler {
        path: "/v1/payment_methods/{method}/attach",
        make: |app| {
            async move {
                let customer = make(app, "/v1/customers", "name=Ada").await;
                // A test method is made anew, so it can be attached once more.
                let path = format!("{METHODS}/pm_card_visa/attach");
                let body = format!("customer={customer}").leak();
                let another_body = format!("customer={customer}&expand[]=customer").leak();
                Sample { path, body, another_body, again: 200 }
            }
            .boxed_local()
        },
    },
    Sampler {
        path: "/v1/payment_methods/{method}/detach",
        make: |app| {
            async move {
                let customer = make(app, "/v1/customers", "name=Ada").await;
                let method = make(app, METHODS, &format!("{CARD}&customer={customer}")).await;
                let path = format!("{METHODS}/{method}/detach");
                // It runs again, and finds that the method is nobody's any more.
                Sample { path, body: "", another_body: "expand[]=customer", again: 400 }
            }
            .boxed_local()
        },
    },
    Sampler {
        path: "/v1/payment_intents",
        make: |_| {
            let body = "amount=1000&currency=usd&payment_method=pm_card_visa&confirm=true";
            let another_body = "amount=1000&currency=usd&payment_method=pm_card_visa&confirm=false";
            async move { Sample { path: INTENTS.to_owned(), body, another_body, again: 201 } }.boxed_local()
        },
    },
    Sampler {
        path: "/v1/payment_intents/{intent}",
        make: |app| {
            async move {
                let path = format!("{INTENTS}/{}", make(app, INTENTS, PRICE).await);
                // A test method is made anew each time.
                let body = "payment_method=pm_card_visa";
                Sample { path, body, another_body: "payment_method=pm_card_amex", again: 200 }
            }
            .boxed_local()
        },
    },
    Sampler {
        path: "/v1/payment_intents/{intent}/confirm",
        make: |app| {
            async move {
                let path = format!("{INTENTS}/{}/confirm", make(app, INTENTS, PRICE).await);
                let body = "payment_method=pm_card_visa";
                // It runs again, and finds that the first run has paid.
                Sample { path, body, another_body: "payment_method=pm_card_amex", again: 400 }
            }
            .boxed_local()
        },
    },
    Sampler {
        path: "/v1/payment_intents/{intent}/capture",
        make: |app| {
            async move {
                let path = format!("{INTENTS}/{}/capture", make(app, INTENTS, HELD).await);
                let (body, another_body) = ("amount_to_capture=600", "amount_to_capture=601");
                Sample { path, body, another_body, again: 400 }
            }
            .boxed_local()
        },
    },
    Sampler {
        path: "/v1/payment_intents/{intent}/cancel",
        make: |app| {
            async move {
                let path = format!("{INTENTS}/{}/cancel", make(app, INTENTS, HELD).await);
                let (body, another_body) = ("cancellation_reason=abandoned", "cancellation_reason=duplicate");
                Sample { path, body, another_body, again: 400 }
            }
            .boxed_local()
        },
    },
];
