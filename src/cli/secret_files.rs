//! Secrets that the program makes and keeps in files.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::Failure;
use super::settings::Settings;
use crate::embedded;
use crate::secrets::{Secrets, random_text};

/// The secret of the settings, or the one in the data directory, made at first use.
pub fn secrets(settings: &Settings) -> Result<Secrets, Failure> {
    let given = settings.secret_keys();
    if !given.is_empty() {
        return Ok(Secrets::new(given)?);
    }
    if settings.database_url().is_some() {
        return Err(
            "with a database URL, a secret is needed: set SECRET_KEY to 16 random characters or more, \
                    the same for all instances (`openssl rand -hex 32` makes one)"
                .into(),
        );
    }
    embedded::make_directory(&settings.data_dir)?;
    Ok(Secrets::new(vec![kept_secret(&settings.data_dir.join("secret-key"), || random_text(32))?])?)
}

/// The text in a file that only its owner can read, made at first use. It is written whole beside its place and then
/// linked there, which one of several starters can do, and none of them by half.
pub fn kept_secret(path: &Path, make: impl FnOnce() -> String) -> Result<String, Failure> {
    let unreadable = |error: io::Error| format!("cannot keep a secret in {}: {error}", path.display());
    if !path.exists() {
        let draft = path.with_extension(random_text(8));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft)
            .and_then(|mut file| file.write_all(make().as_bytes()).and_then(|()| file.sync_all()))
            .and_then(|()| match fs::hard_link(&draft, path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                _ => Ok(()),
            });
        let _ = fs::remove_file(&draft);
        written.map_err(unreadable)?;
    }
    let secret = fs::read_to_string(path).map_err(unreadable)?.trim().to_owned();
    if secret.is_empty() {
        return Err(format!("{} is empty: remove it, and a new secret is made", path.display()).into());
    }
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_made_once_whoever_comes_first_and_never_by_half() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret-key");
        let starters: Vec<_> = (0..8)
            .map(|_| {
                let path = path.clone();
                std::thread::spawn(move || kept_secret(&path, || random_text(32)).unwrap())
            })
            .collect();
        let secrets: Vec<String> = starters.into_iter().map(|starter| starter.join().unwrap()).collect();
        assert!(secrets.iter().all(|secret| *secret == secrets[0] && secret.len() == 64));
        let names = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["secret-key"]);
        fs::write(&path, "").unwrap();
        assert!(kept_secret(&path, || random_text(32)).unwrap_err().to_string().contains("is empty"));
    }
}
