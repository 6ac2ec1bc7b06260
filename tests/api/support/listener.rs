//! A port that accepts connections until its listener is dropped.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A running listener. Dropping it refuses new connections; those that are open may finish.
pub struct Listener {
    pub address: SocketAddr,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Serves each connection in a thread of its own, which ends with the connection.
    pub fn start(attend: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (attend, stopped) = (Arc::new(attend), Arc::new(AtomicBool::new(false)));
        let is_over = Arc::clone(&stopped);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
                let attend = Arc::clone(&attend);
                std::thread::spawn(move || attend(stream));
            }
        });
        Self { address, stopped, thread: Some(thread) }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // The connection wakes the thread, which then finds that it is stopped.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
