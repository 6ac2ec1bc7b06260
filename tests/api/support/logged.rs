//! The log of the servers in this process.

use std::sync::{LazyLock, Mutex};

use log::kv::{self, Key, Value, VisitSource};
use log::{LevelFilter, Log, Metadata, Record};

static LINES: LazyLock<Mutex<Vec<String>>> = LazyLock::new(|| {
    log::set_logger(&Lines).expect("no test has another logger");
    log::set_max_level(LevelFilter::Info);
    Mutex::default()
});

/// Installs the logger at the first call, and returns the lines since then that contain `text`.
pub fn logged(text: &str) -> Vec<String> {
    let lines = LINES.lock().unwrap();
    lines.iter().filter(|line| line.contains(text)).cloned().collect()
}

struct Lines;

impl Log for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("oncepay")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let mut line = format!("{} {} {}", record.level(), record.target(), record.args());
            let _ = record.key_values().visit(&mut Pairs(&mut line));
            LINES.lock().unwrap().push(line);
        }
    }

    fn flush(&self) {}
}

struct Pairs<'a>(&'a mut String);

impl<'kvs> VisitSource<'kvs> for Pairs<'_> {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), kv::Error> {
        self.0.push_str(&format!(" {key}={value}"));
        Ok(())
    }
}
