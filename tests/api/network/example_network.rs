//! The example `card_network.py`, run as it is: the card network, played by hand.

use tokio::process::Command;

use crate::support::{TestApp, sdk};

#[tokio::test]
async fn the_card_network_can_be_played_by_hand() {
    let app = TestApp::spawn();
    let play = async |arguments: &[&str]| {
        let mut python = Command::new("python3");
        python
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/card_network.py"))
            .args(arguments)
            .env("ONCEPAY", format!("http://{}", app.address))
            .env("API_KEY", &app.database.api_key);
        let told = sdk::finish(python).await;
        assert!(
            told.contains("Idempotent-Replayed: false") && told.contains("Idempotent-Replayed: true"),
            "{told}"
        );
    };
    let charge = app.charge().await;
    play(&["dispute.created", &charge]).await;
    let disputes = app.read("/v1/disputes").await;
    let dispute = disputes["data"][0]["id"].as_str().unwrap();
    play(&["dispute.closed", &charge, dispute, "won"]).await;
    assert_eq!(app.read(&format!("/v1/disputes/{dispute}")).await["status"], "won");
    let refund = app.submit("/v1/refunds", &format!("charge={charge}")).await.expect(201);
    play(&["refund.failed", refund.id()]).await;
    assert_eq!(app.read(&format!("/v1/refunds/{}", refund.id())).await["status"], "failed");
    assert_eq!(app.usd().await, 1000);
    app.database.assert_clean();
}
