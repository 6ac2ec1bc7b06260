//! What a person needs to go on, on standard output. The log goes to standard error.

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;

use serde_json::json;

use super::demo::{self, DemoKey};
use super::logs::Format;
use super::serve::reachable;
use super::settings::Settings;

const NO_KEY_YET: &str = "Make an API key with `oncepay api-key create --account NAME`.";

/// Greets. A key that is a secret is shown on a terminal only, since standard output is often kept as a log.
pub fn greet(settings: &Settings, address: SocketAddr, demo_key: Option<&DemoKey>) {
    let mut out = io::stdout().lock();
    let is_shown = |key: &DemoKey| matches!(key, DemoKey::WellKnown) || io::stdout().is_terminal();
    let shown = demo_key.filter(|key| is_shown(key)).map(DemoKey::as_str);
    let _ = match settings.log_format {
        Format::Json => writeln!(out, "{}", json(address, demo_key, shown)),
        Format::Text => write!(out, "{}", text(settings, address, demo_key, shown)),
    };
    let _ = out.flush();
}

fn json(address: SocketAddr, demo_key: Option<&DemoKey>, shown: Option<&str>) -> serde_json::Value {
    let mut line = json!({
        "time": chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
        "level": "INFO",
        "target": "oncepay::greeting",
        "message": format!("oncepay listens on http://{address}"),
        "address": address.to_string(),
    });
    if let Some(key) = shown {
        line["demo_key"] = key.into();
    }
    if demo_key.is_none() {
        line["hint"] = NO_KEY_YET.into();
    }
    line
}

fn text(settings: &Settings, address: SocketAddr, demo_key: Option<&DemoKey>, shown: Option<&str>) -> String {
    let listens = format!("oncepay listens on http://{address}\n");
    let file = settings.data_dir.join(demo::FILE);
    let key = match (demo_key, shown) {
        (None, _) => return format!("{listens}{NO_KEY_YET}\n"),
        (Some(_), Some(key)) => format!("The key of the demo account is {key}\n"),
        (Some(DemoKey::Random(_)), None) => format!("The key of the demo account is in {}\n", file.display()),
        (Some(_), None) => "The key of the demo account is the one that --demo-key names\n".to_owned(),
    };
    let why = match demo_key {
        Some(DemoKey::Random(_)) => {
            "(Others can reach this address, so the well-known demo key is revoked, and this one is random.)\n"
        }
        _ => "",
    };
    let user = match (shown, demo_key) {
        (Some(key), _) => key.to_owned(),
        (None, Some(DemoKey::Random(_))) => format!("\"$(cat {})\"", file.display()),
        (None, _) => "\"$DEMO_API_KEY\"".to_owned(),
    };
    format!(
        "{listens}{key}{why}\nTry this, twice:\n\n  curl http://{}/v1/charges -u {user}: \
         -H 'Idempotency-Key: order-1001' \\\n    -d amount=2000 -d currency=usd -d source=tok_visa\n\n",
        reachable(address)
    )
}
