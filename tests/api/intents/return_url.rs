//! A payer whom a payment method may redirect needs an address to come back to.

use crate::support::TestApp;
use crate::support::intents::PRICE;

const AUTOMATIC: &str = "automatic_payment_methods[enabled]=true";

#[tokio::test]
async fn automatic_methods_that_may_redirect_need_a_return_url() {
    let app = TestApp::spawn();
    let form = format!("{PRICE}&payment_method=pm_card_visa&{AUTOMATIC}");
    let created = app.submit("/v1/payment_intents", &form).await.expect(201);
    let confirm = format!("/v1/payment_intents/{}/confirm", created.id());
    let before = app.database.dump();
    for (path, form) in [
        ("/v1/payment_intents", format!("{form}&confirm=true")),
        (
            "/v1/payment_intents",
            format!("{form}&automatic_payment_methods[allow_redirects]=always&confirm=true"),
        ),
        (confirm.as_str(), String::new()),
    ] {
        assert_eq!(app.submit(path, &form).await.expect(400).param(), "return_url", "{form}");
    }
    assert_eq!(app.database.dump(), before);
    app.submit(&confirm, "return_url=https://example.com/back").await.expect(200);
    for extra in ["&automatic_payment_methods[allow_redirects]=never", "&return_url=https://example.com/back"]
    {
        app.submit("/v1/payment_intents", &format!("{form}{extra}&confirm=true")).await.expect(201);
    }
    // Who says nothing of automatic methods takes cards, and a card that needs no authentication redirects nobody.
    app.submit("/v1/payment_intents", &format!("{PRICE}&payment_method=pm_card_visa&confirm=true"))
        .await
        .expect(201);
    app.database.assert_clean();
}
