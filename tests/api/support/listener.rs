//! A port on which connections are accepted until it is told to stop.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A running listener. Dropping it closes its door; who is inside may finish.
pub struct Listener {
    pub address: SocketAddr,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Attends to each connection in a thread of its own, which ends with the connection.
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
        // It wakes up to find that it is over.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
