//! Recognises the errors of a lost connection.

/// Whether an error means that the connection is lost or can no longer be used.
pub fn is_lost(error: &diesel::result::Error) -> bool {
    use diesel::result::DatabaseErrorKind::{
        ClosedConnection, ReadOnlyTransaction, UnableToSendCommand, Unknown,
    };
    use diesel::result::Error::{BrokenTransactionManager, DatabaseError};
    match error {
        DatabaseError(ClosedConnection | UnableToSendCommand, _) | BrokenTransactionManager => true,
        DatabaseError(ReadOnlyTransaction, _) => true,
        // diesel has no kind for these errors, so they are recognised by their texts. The server sends some before it
        // closes the connection ("… due to administrator command", "… due to unexpected postmaster exit", "… because of
        // crash of another server process"); the others are libpq's.
        DatabaseError(Unknown, info) => {
            let messages = [
                "terminating connection",
                "the database system is",
                "no connection to the server",
                "server closed the connection",
                "could not send data to server",
                "could not receive data from server",
                "connection not open",
                // The server has become a standby.
                "during recovery",
                "SSL connection has been closed",
                "SSL SYSCALL error",
            ];
            messages.iter().any(|message| info.message().contains(message))
        }
        _ => false,
    }
}
