//! Whatever is full: 503, and everything works again when there is room.

use crate::support::{CHARGE, TestApp, fresh_key};

/// What PostgreSQL says, by class 53 of its error codes and 58030.
const FULL: [&str; 6] = [
    "could not extend file \"base/16384/16402\": No space left on device",
    "could not write to file \"pg_wal/xlogtemp.1\": No space left on device",
    "could not write block 7 of temporary file: Disk quota exceeded",
    "out of shared memory",
    "out of memory",
    "could not read block 1 in file \"base/1/2\": Input/output error",
];

#[tokio::test]
async fn a_request_for_which_there_is_no_room_is_503_and_its_key_works_when_there_is() {
    let app = TestApp::spawn();
    for (number, message) in FULL.into_iter().enumerate() {
        app.database.execute(&format!(
            "CREATE FUNCTION full_{number}() RETURNS trigger LANGUAGE plpgsql AS $body$ BEGIN \
                 RAISE EXCEPTION USING ERRCODE = '53100', MESSAGE = '{message}'; END $body$"
        ));
        // Where the charge is written, where the answer is stored, and at COMMIT.
        for (table, when) in [("charges", ""), ("idempotency_records", ""), ("charges", "deferred")] {
            let kind = if when.is_empty() { "TRIGGER" } else { "CONSTRAINT TRIGGER" };
            let deferred = if when.is_empty() { "" } else { "DEFERRABLE INITIALLY DEFERRED" };
            app.database.execute(&format!(
                "CREATE {kind} no_room AFTER INSERT ON {table} {deferred} FOR EACH ROW EXECUTE FUNCTION full_{number}()"
            ));
            let (before, key) = (app.database.dump(), fresh_key());
            for _ in 0..2 {
                let refused = app.post("/v1/charges").key(&key).form(CHARGE).send().await.expect(503);
                assert_eq!(refused.body["error"]["retry"], "same_key", "{message}");
                assert_eq!(refused.header("Stripe-Should-Retry"), Some("true"));
                assert!(
                    refused.header("Retry-After").is_some_and(|seconds| seconds.parse::<u8>().is_ok()),
                    "{message}"
                );
                assert!(!refused.body.to_string().contains("device"), "{}", refused.body);
            }
            assert_eq!(app.database.dump(), before);
            app.database.execute(&format!("DROP TRIGGER no_room ON {table}"));
            app.post("/v1/charges").key(&key).form(CHARGE).send().await.expect(201);
        }
    }
    app.database.assert_clean();
}
