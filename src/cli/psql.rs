//! `oncepay psql`.

use std::os::unix::process::CommandExt;
use std::process::Command;

use diesel::prelude::*;

use super::Failure;
use super::server::{Server, lock};
use super::settings::Settings;

/// Replaces this program with psql; on the private cluster it stays beside it, to stop the cluster afterwards.
pub fn run(settings: &Settings, arguments: &[String]) -> Result<(), Failure> {
    let server = Server::with_data(settings)?;
    server.migrate(settings)?;
    if arguments.is_empty() {
        introduce_views(&server)?;
    }
    let program =
        server.cluster.as_ref().map_or("psql".into(), |cluster| lock(cluster).binaries().join("psql"));
    let mut command = Command::new(program);
    let (url, password) = without_password(&server.url);
    command.arg(url).args(arguments);
    if let Some(password) = password {
        command.env("PGPASSWORD", password);
    }
    if server.cluster.is_none() {
        return Err(format!("cannot run psql: {}", command.exec()).into());
    }
    // Ctrl-C is for psql, which cancels its query; this program has a cluster to stop when psql ends.
    // SAFETY: both dispositions have no preconditions, and setting one is safe between fork and exec.
    unsafe {
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        command.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        });
    }
    let status = command.status().map_err(|error| format!("cannot run psql: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("psql ended with {status}").into()) }
}

/// Lists the views, whose ids and JSON are those of the API.
fn introduce_views(server: &Server) -> Result<(), Failure> {
    #[derive(QueryableByName)]
    struct View {
        #[diesel(sql_type = diesel::sql_types::Text)]
        name: String,
        #[diesel(sql_type = diesel::sql_types::Text)]
        comment: String,
    }
    let views = diesel::sql_query(
        "SELECT c.relname AS name, coalesce(obj_description(c.oid), '') AS comment \
         FROM pg_class c WHERE c.relnamespace = 'readable'::regnamespace AND c.relkind = 'v' ORDER BY c.relname",
    );
    eprintln!("Views with the ids and the JSON of the API, for reading only:");
    for view in views.load::<View>(&mut server.connect()?)? {
        eprintln!("  readable.{:<22} {}", view.name, view.comment);
    }
    Ok(())
}

/// A URL without its password, which everybody who lists processes could read on a command line, and the password.
fn without_password(text: &str) -> (String, Option<String>) {
    let Ok(mut url) = url::Url::parse(text) else { return (text.to_owned(), None) };
    let Some(password) = url.password().map(str::to_owned) else { return (text.to_owned(), None) };
    let _ = url.set_password(None);
    let decoded = percent_encoding::percent_decode_str(&password).decode_utf8_lossy().into_owned();
    (url.into(), Some(decoded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_does_not_stand_on_a_command_line() {
        let (url, password) = without_password("postgres://me:p%40ss@host/db?x=1");
        assert_eq!((&*url, password.as_deref()), ("postgres://me@host/db?x=1", Some("p@ss")));
        assert_eq!(without_password("host=/tmp"), ("host=/tmp".to_owned(), None));
    }
}
