//! A proxy between oncepay and PostgreSQL: it counts what oncepay sends, and can lose it.
//!
//! It listens on a Unix socket, as the tests' cluster does, and reads the frontend's side of the protocol (PostgreSQL's
//! manual, "Message Formats"); the server's side it only hands on.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use tempfile::TempDir;

use super::app::{Builder, TestApp};
use super::postgres::TestDatabase;

/// What oncepay sent since the last look.
#[derive(Debug, Clone, Default)]
pub struct Traffic {
    /// How many messages of each type: `P` is Parse, `B` Bind, `S` Sync, `Q` a simple query.
    pub messages: BTreeMap<char, usize>,
    /// The text of each statement that was run, in order.
    pub statements: Vec<String>,
}

impl Traffic {
    pub fn count(&self, message: char) -> usize {
        self.messages.get(&message).copied().unwrap_or(0)
    }

    /// How often an answer was waited for: the server answers each Sync and each simple query with one ReadyForQuery.
    pub fn round_trips(&self) -> usize {
        self.count('S') + self.count('Q')
    }
}

/// How the connection breaks at a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The statement never reaches the server.
    Before,
    /// The server runs it, and its answer is lost.
    After,
}

/// A running proxy to the database of a test. Its socket is gone with this value.
pub struct Proxy {
    url: String,
    shared: Arc<Shared>,
    _directory: TempDir,
}

#[derive(Default)]
struct Shared {
    traffic: Mutex<Traffic>,
    /// The beginning of the next statement at which a connection is cut.
    cut: Mutex<Option<(String, Cut)>>,
}

impl Proxy {
    pub fn new(database: &TestDatabase) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (user, address) = database.url.split_once('@').expect("the URL names a user");
        let (host, rest) = address.split_once(':').expect("the URL names a port");
        let port = rest.split('/').next().unwrap();
        let socket = format!(".s.PGSQL.{port}");
        let server = PathBuf::from(percent_decode_str(host).decode_utf8().unwrap().as_ref()).join(&socket);
        let listener = UnixListener::bind(directory.path().join(&socket)).unwrap();
        let shared = Arc::new(Shared::default());
        let accepted = Arc::clone(&shared);
        // The thread waits for connections until the process ends.
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (server, shared) = (server.clone(), Arc::clone(&accepted));
                std::thread::spawn(move || serve(&client, &server, &shared));
            }
        });
        let directory_name = directory.path().to_str().unwrap();
        let host = percent_encode(directory_name.as_bytes(), NON_ALPHANUMERIC);
        Self { url: format!("{user}@{host}:{rest}"), shared, _directory: directory }
    }

    /// Starts a server with one connection, which goes through a proxy.
    pub fn with_app(configure: impl FnOnce(&mut Builder)) -> (TestApp, Self) {
        let database = Arc::new(TestDatabase::new());
        let proxy = Self::new(&database);
        let app = TestApp::with(|builder| {
            builder.url = Some(proxy.url().to_owned());
            builder.database = Some(database);
            builder.pool_size = 1;
            configure(builder);
        });
        (app, proxy)
    }

    /// The database of the test, through this proxy.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What was sent since the last look.
    pub fn take(&self) -> Traffic {
        std::mem::take(&mut self.shared.traffic.lock().unwrap())
    }

    /// Cuts the connection of the next statement that begins so.
    pub fn cut_next(&self, statement: &str, cut: Cut) {
        *self.shared.cut.lock().unwrap() = Some((statement.to_owned(), cut));
    }
}

/// Hands everything on in both directions, until one side ends.
fn serve(client: &UnixStream, server: &std::path::Path, shared: &Shared) {
    let Ok(server) = UnixStream::connect(server) else { return };
    let is_cut = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            answer(&server, client, &is_cut);
            let _ = client.shutdown(Shutdown::Both);
        });
        let _ = forward(client, &server, shared, &is_cut);
        // The server does what it was sent, sees that there is no more, and ends. A client that is cut off notices it
        // only then: so its next request finds everything done, or nothing.
        let _ = server.shutdown(Shutdown::Write);
    });
}

/// The server's bytes to the client, and nowhere once the connection is cut.
fn answer(mut server: &UnixStream, mut client: &UnixStream, is_cut: &AtomicBool) {
    let mut buffer = [0; 8192];
    while let Ok(read @ 1..) = server.read(&mut buffer) {
        if !is_cut.load(Ordering::SeqCst) && client.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
}

/// The frontend's messages, counted, to the server, until the client ends or is cut off.
fn forward(
    mut client: &UnixStream,
    mut server: &UnixStream,
    shared: &Shared,
    is_cut: &AtomicBool,
) -> io::Result<()> {
    // The first message has no type.
    server.write_all(&read_message(client)?)?;
    let mut prepared = HashMap::new();
    let mut cut = None;
    loop {
        let mut kind = [0];
        client.read_exact(&mut kind)?;
        let message = read_message(client)?;
        if let Some(statement) = shared.note(char::from(kind[0]), &message, &mut prepared) {
            cut = shared.cut_at(&statement);
        }
        is_cut.store(cut.is_some(), Ordering::SeqCst);
        if cut == Some(Cut::Before) {
            return Ok(());
        }
        server.write_all(&kind)?;
        server.write_all(&message)?;
        // A statement that is prepared takes several messages, and Sync is the last.
        if cut.is_some() && matches!(&kind, b"Q" | b"S") {
            return Ok(());
        }
    }
}

impl Shared {
    /// Counts a message, and gives the text of the statement that it runs.
    fn note(&self, kind: char, message: &[u8], prepared: &mut HashMap<String, String>) -> Option<String> {
        let mut texts =
            message[4..].split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
        let mut text = || texts.next().unwrap_or_default();
        let statement = match kind {
            'Q' => Some(text()),
            'P' => {
                prepared.insert(text(), text());
                None
            }
            'B' => {
                let _portal = text();
                prepared.get(&text()).cloned()
            }
            _ => None,
        };
        let mut traffic = self.traffic.lock().unwrap();
        *traffic.messages.entry(kind).or_default() += 1;
        traffic.statements.extend(statement.clone());
        statement
    }

    /// Whether the connection is to be cut at this statement.
    fn cut_at(&self, statement: &str) -> Option<Cut> {
        let mut cut = self.cut.lock().unwrap();
        cut.take_if(|(beginning, _)| statement.starts_with(beginning.as_str())).map(|(_, cut)| cut)
    }
}

/// Length and body.
fn read_message(mut from: &UnixStream) -> io::Result<Vec<u8>> {
    let mut message = vec![0; 4];
    from.read_exact(&mut message)?;
    let length = u32::from_be_bytes(message[..4].try_into().expect("four bytes")) as usize;
    message.resize(length.max(4), 0);
    from.read_exact(&mut message[4..])?;
    Ok(message)
}
