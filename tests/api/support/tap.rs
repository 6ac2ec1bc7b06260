//! Listens in between a server and its database, and counts what is sent.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::postgres::TestDatabase;

/// A way to a test's database that counts statements.
pub struct Tap {
    pub url: String,
    statements: Arc<AtomicUsize>,
    stopped: Arc<AtomicBool>,
    socket: PathBuf,
    _directory: tempfile::TempDir,
}

impl Tap {
    pub fn on(database: &TestDatabase) -> Self {
        // As in postgresql://user@%2Fpath:5432/name.
        let (user, rest) = database.url.split_once('@').expect("the url has a user");
        let (host, port_and_name) = rest.split_once(':').expect("the url has a port");
        let (port, _) = port_and_name.split_once('/').expect("the url has a database");
        let name = format!(".s.PGSQL.{port}");
        let host = percent_encoding::percent_decode_str(host).decode_utf8().expect("a path of UTF-8");
        let server = Path::new(&*host).join(&name);
        let directory = tempfile::tempdir().expect("there is room for a socket");
        let socket = directory.path().join(&name);
        let listener = UnixListener::bind(&socket).expect("a socket can be made");
        let (statements, stopped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (counter, end) = (Arc::clone(&statements), Arc::clone(&stopped));
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if end.load(Ordering::SeqCst) {
                    return;
                }
                let server = UnixStream::connect(&server).expect("the database listens");
                let (counter, answers) = (Arc::clone(&counter), (server.try_clone(), client.try_clone()));
                std::thread::spawn(move || pass_on(client, server, &counter));
                if let (Ok(mut server), Ok(mut client)) = answers {
                    std::thread::spawn(move || std::io::copy(&mut server, &mut client));
                }
            }
        });
        let host = directory.path().to_str().expect("a path of ASCII").replace('/', "%2F");
        let url = format!("{user}@{host}:{port_and_name}");
        Self { url, statements, stopped, socket, _directory: directory }
    }

    /// How many statements were sent so far.
    pub fn statements(&self) -> usize {
        self.statements.load(Ordering::SeqCst)
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes the listener.
        let _ = UnixStream::connect(&self.socket);
    }
}

/// Passes a client's messages on, and counts those that run a statement: Query and Execute.
fn pass_on(mut client: UnixStream, mut server: UnixStream, statements: &AtomicUsize) -> Option<()> {
    // The first message has no type.
    let mut type_length = 0;
    loop {
        let mut head = vec![0; type_length + 4];
        client.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes(head[type_length..].try_into().ok()?);
        let mut rest = vec![0; length as usize - 4];
        client.read_exact(&mut rest).ok()?;
        if type_length == 1 && matches!(head[0], b'Q' | b'E') {
            statements.fetch_add(1, Ordering::SeqCst);
        }
        server.write_all(&head).and_then(|()| server.write_all(&rest)).ok()?;
        type_length = 1;
    }
}
