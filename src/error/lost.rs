//! What PostgreSQL and libpq say when a connection is of no use any more.

/// Whether an error says that the connection is gone, or of no use any more.
pub fn is_lost(error: &diesel::result::Error) -> bool {
    use diesel::result::DatabaseErrorKind::{
        ClosedConnection, ReadOnlyTransaction, UnableToSendCommand, Unknown,
    };
    use diesel::result::Error::{BrokenTransactionManager, DatabaseError};
    match error {
        DatabaseError(ClosedConnection | UnableToSendCommand, _) | BrokenTransactionManager => true,
        DatabaseError(ReadOnlyTransaction, _) => true,
        // "… due to administrator command", "… due to unexpected postmaster exit", "… because of crash of another
        // server process": what the server says with its last breath has no kind of its own, and neither has what
        // libpq says where the server had no breath left.
        DatabaseError(Unknown, info) => {
            let last_words = [
                "terminating connection",
                "the database system is",
                "no connection to the server",
                "server closed the connection",
                "could not send data to server",
                "could not receive data from server",
                "connection not open",
                // A server that has become a standby.
                "during recovery",
                "SSL connection has been closed",
                "SSL SYSCALL error",
            ];
            last_words.iter().any(|words| info.message().contains(words))
        }
        _ => false,
    }
}
