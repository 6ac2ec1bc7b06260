//! Logging to standard error.

use std::io::Write;

use chrono::{SecondsFormat, Utc};
use log::kv::{self, Key, Value, VisitSource};
use log::{Level, Log, Metadata, Record};

/// How lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts logging to standard error, panics too. `RUST_LOG` says what is logged; by default warnings, and info of
/// oncepay.
pub fn init(format: Format) {
    let filter = env_logger::Env::default().default_filter_or("warn,oncepay=info");
    let mut builder = env_logger::Builder::from_env(filter);
    if format == Format::Json {
        builder.format(|out, record| {
            let mut members = Members::default();
            members
                .0
                .insert("time".to_owned(), Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true).into());
            members.0.insert("level".to_owned(), record.level().as_str().into());
            members.0.insert("target".to_owned(), record.target().into());
            members.0.insert("message".to_owned(), record.args().to_string().into());
            let _ = record.key_values().visit(&mut members);
            writeln!(out, "{}", serde_json::Value::Object(members.0))
        });
    }
    let lines = Lines(builder.build());
    log::set_max_level(lines.0.filter());
    log::set_boxed_logger(Box::new(lines)).expect("logging is started once");
    std::panic::set_hook(Box::new(|panic| log::error!(target: "oncepay::panic", "{panic}")));
}

/// Crates that read requests. What they log for their own developers has whole headers in it, so nobody gets to see
/// it, whatever `RUST_LOG` says.
const READERS: [&str; 3] = ["actix_http", "actix_web", "actix_router"];

/// The logger of env_logger, but for what [`READERS`] say below info.
struct Lines(env_logger::Logger);

impl Log for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let told_by = metadata.target().split("::").next().unwrap_or_default();
        (metadata.level() <= Level::Info || !READERS.contains(&told_by)) && self.0.enabled(metadata)
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            self.0.log(record);
        }
    }

    fn flush(&self) {
        self.0.flush();
    }
}

/// The pairs of a log record as members of a JSON object.
#[derive(Default)]
struct Members(serde_json::Map<String, serde_json::Value>);

impl<'kvs> VisitSource<'kvs> for Members {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), kv::Error> {
        let value = match (value.to_i64(), value.to_f64()) {
            (Some(integer), _) => integer.into(),
            (None, Some(number)) => number.into(),
            _ => value.to_string().into(),
        };
        self.0.insert(key.as_str().to_owned(), value);
        Ok(())
    }
}
