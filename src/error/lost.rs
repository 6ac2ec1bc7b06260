//! What PostgreSQL and libpq say when a connection is of no use any more, and when there is no room. diesel passes on no
//! SQLSTATE of these errors, so they are known by their English text.

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

/// Whether a message says that something is full: a disk, memory, a limit, the table of locks or of connections. These are
/// PostgreSQL's errors of class 53, and 58030 (docs: PostgreSQL, appendix A).
pub fn has_no_room(message: &str) -> bool {
    let full = [
        "No space left on device",
        "Disk quota exceeded",
        "Input/output error",
        "could not extend file",
        "could not write to file",
        "could not write block",
        "out of memory",
        "out of shared memory",
        "too many clients",
        "too many connections",
        "remaining connection slots are reserved",
        "exceeds temp_file_limit",
        "Too many open files",
    ];
    full.iter().any(|words| message.contains(words))
}
