//! What is written to `webhook_deliveries` with the events themselves, as the end of their statement.

/// A delivery of each event of the part `written` to each endpoint that wants its type.
pub const DELIVER_WRITTEN: &str = "INSERT INTO webhook_deliveries \
     (account_id, event_id, endpoint_id, status, attempts, next_attempt_at) \
     SELECT written.account_id, written.id, endpoint.id, 'pending', 0, written.created_at \
     FROM written JOIN webhook_endpoints endpoint ON endpoint.account_id = written.account_id \
     AND NOT endpoint.disabled AND endpoint.deleted_at IS NULL \
     AND endpoint.enabled_events ?| ARRAY['*', written.type]";
