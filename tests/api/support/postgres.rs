//! One private cluster for all tests, and a database for each, made from a migrated template.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use diesel::pg::PgConnection;
use diesel::prelude::*;
use oncepay::audit::{Report, audit};
use oncepay::auth::{keys, queries};
use oncepay::db::migrate::migrate;
use oncepay::embedded::Cluster;

use super::eventually;

/// A database of one test; it is dropped with this guard.
pub struct TestDatabase {
    pub name: String,
    pub url: String,
    /// The API key of an account in it.
    pub api_key: String,
}

impl TestDatabase {
    pub fn new() -> Self {
        let name = format!("t_{}", uuid::Uuid::now_v7().simple());
        let (template, url) = with_cluster(|cluster, template| (template.to_owned(), cluster.url(&name)));
        execute_on_server(&format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY wal_log"));
        let database = Self { name, url, api_key: keys::random() };
        keys::ensure(&mut database.connect(), "the test's", &database.api_key, chrono::Utc::now()).unwrap();
        database
    }

    pub fn connect(&self) -> PgConnection {
        PgConnection::establish(&self.url).expect("the test's database can be reached")
    }

    /// Makes another account, and returns its key.
    pub fn other_account(&self) -> String {
        let key = keys::random();
        keys::ensure(&mut self.connect(), &format!("other {key}"), &key, chrono::Utc::now()).unwrap();
        key
    }

    /// Makes another API key of the test's account.
    pub fn another_key(&self) -> String {
        let key = keys::random();
        keys::ensure(&mut self.connect(), "the test's", &key, chrono::Utc::now()).unwrap();
        key
    }

    /// Revokes an API key.
    #[track_caller]
    pub fn revoke(&self, api_key: &str) {
        let credentials = oncepay::auth::Credentials::of_key(api_key);
        let revoked = queries::revoke_credentials(&mut self.connect(), &credentials, chrono::Utc::now());
        assert_eq!(revoked, Ok(1));
    }

    /// The rows of a table.
    pub fn count(&self, table: &str) -> i64 {
        self.number(&format!("SELECT count(*) AS number FROM {table}"))
    }

    /// The one `number` that a statement selects.
    pub fn number(&self, statement: &str) -> i64 {
        #[derive(QueryableByName)]
        struct Row {
            #[diesel(sql_type = diesel::sql_types::BigInt)]
            number: i64,
        }
        diesel::sql_query(statement).get_result::<Row>(&mut self.connect()).expect(statement).number
    }

    pub fn execute(&self, statement: &str) {
        diesel::sql_query(statement).execute(&mut self.connect()).expect(statement);
    }

    /// Adds copies of the oldest row of a table. Their ids come from [`id_in_sql`] of these numbers, and are older than
    /// all others. `changed` lists other columns that differ, as `'column', expression` for each; `n` is the number.
    pub fn multiply(&self, table: &str, numbers: &Range<usize>, changed: &str) {
        let Range { start, end } = numbers;
        let id = id_in_sql("n");
        let changed = if changed.is_empty() { String::new() } else { format!(", {changed}") };
        self.execute(&format!(
            "INSERT INTO {table} SELECT row.* FROM (SELECT * FROM {table} ORDER BY 1, 2 LIMIT 1) AS model \
             CROSS JOIN generate_series({start}, {end} - 1) AS n \
             CROSS JOIN LATERAL jsonb_populate_record(NULL::{table}, \
             to_jsonb(model) || jsonb_build_object('id', {id}{changed})) AS row"
        ));
    }

    /// The number of blocks of tables and indexes that were read. It waits until only one connection is left, which has
    /// to have reported its reads, because a connection reports them when it ends.
    pub fn blocks(&self) -> i64 {
        eventually("the end of all other connections", || {
            self.number(
                "SELECT count(*) AS number FROM pg_stat_activity WHERE datname = current_database() \
                 AND backend_type = 'client backend' AND pid <> pg_backend_pid()",
            ) <= 1
        });
        self.number(
            "SELECT sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0))::bigint AS number \
             FROM pg_statio_user_tables",
        )
    }

    /// The one `text` that a statement selects.
    pub fn text(&self, statement: &str) -> String {
        self.texts(statement).pop().expect(statement)
    }

    /// The `text` of each row that a statement selects.
    fn texts(&self, statement: &str) -> Vec<String> {
        #[derive(QueryableByName)]
        struct Row {
            #[diesel(sql_type = diesel::sql_types::Text)]
            text: String,
        }
        let rows = diesel::sql_query(statement).load::<Row>(&mut self.connect()).expect(statement);
        rows.into_iter().map(|row| row.text).collect()
    }

    fn tables(&self) -> Vec<String> {
        let tables = self.texts("SELECT tablename::text AS text FROM pg_tables WHERE schemaname = 'public'");
        assert!(tables.len() > 5, "{tables:?}");
        tables
    }

    /// Each table with the number of its rows and a checksum of them: equal before and after what changes nothing.
    pub fn contents(&self) -> BTreeMap<String, String> {
        let summary = |table: String| {
            let rows = self.text(&format!(
                "SELECT count(*) || ' ' || coalesce(md5(string_agg(t::text, ',' ORDER BY t::text)), '') AS text \
                 FROM {table} t"
            ));
            (table, rows)
        };
        self.tables().into_iter().map(summary).collect()
    }

    /// All rows of all tables, as text.
    pub fn dump(&self) -> String {
        // Stored bodies are bytes, whose hex would hide their text.
        let bodies =
            "SELECT coalesce(string_agg(encode(body, 'escape'), ' '), '') AS text FROM idempotency_records";
        let rows =
            |table: String| format!("SELECT coalesce(string_agg(t::text, ' '), '') AS text FROM {table} t");
        let statements = self.tables().into_iter().map(rows).chain([bodies.to_owned()]);
        statements.map(|statement| self.text(&statement)).collect()
    }

    pub fn audit(&self) -> Report {
        audit(&mut self.connect()).expect("the audit runs")
    }

    /// Checks that the data break no rule of the audit.
    #[track_caller]
    pub fn assert_clean(&self) {
        let report = self.audit();
        assert!(report.is_clean(), "{report}");
    }
}

/// The id of a row that [`TestDatabase::multiply`] made, in SQL.
pub fn id_in_sql(number: &str) -> String {
    format!("('0190' || lpad(to_hex({number}), 28, '0'))::uuid")
}

/// The same id, as the API shows it.
pub fn id_of(prefix: &str, number: usize) -> String {
    format!("{prefix}_0190{number:028x}")
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        execute_on_server(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
    }
}

fn execute_on_server(statement: &str) {
    let url = with_cluster(|cluster, _| cluster.url("postgres"));
    let mut connection = PgConnection::establish(&url).expect("the tests' cluster can be reached");
    diesel::sql_query(statement).execute(&mut connection).expect(statement);
}

struct Shared {
    cluster: Cluster,
    template: String,
}

static SHARED: OnceLock<Mutex<Option<Shared>>> = OnceLock::new();

/// Uses the cluster, started at first use and stopped when the test binary ends.
fn with_cluster<T>(work: impl FnOnce(&Cluster, &str) -> T) -> T {
    let shared = SHARED.get_or_init(|| {
        let cluster = Cluster::start(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("postgres"))
            .expect("the tests' cluster starts");
        let template = make_template(&cluster);
        // SAFETY: the handler touches nothing but this static, which lives as long as the process.
        unsafe { libc::atexit(stop_cluster) };
        Mutex::new(Some(Shared { cluster, template }))
    });
    let shared = shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let shared = shared.as_ref().expect("the cluster runs while tests do");
    work(&shared.cluster, &shared.template)
}

extern "C" fn stop_cluster() {
    if let Some(shared) = SHARED.get()
        && let Ok(mut shared) = shared.lock()
        && let Some(shared) = shared.take()
    {
        shared.cluster.stop();
    }
}

/// Makes a migrated database. Each run makes its own, since migrations may have changed, and drops the databases that a
/// killed run has left.
fn make_template(cluster: &Cluster) -> String {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = diesel::sql_types::Text)]
        datname: String,
    }
    let mut connection =
        PgConnection::establish(&cluster.url("postgres")).expect("the cluster can be reached");
    let old = "SELECT datname::text FROM pg_database d WHERE (datname LIKE 't\\_%' OR datname LIKE 'template\\_t\\_%') \
               AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.datname = d.datname) \
               AND (pg_stat_file('base/' || d.oid || '/PG_VERSION')).modification < now() - interval '1 hour'";
    for Row { datname } in diesel::sql_query(old).load(&mut connection).expect("databases can be listed") {
        let _ = diesel::sql_query(format!("DROP DATABASE IF EXISTS {datname} WITH (FORCE)"))
            .execute(&mut connection);
    }
    let template = format!("template_t_{}", uuid::Uuid::now_v7().simple());
    diesel::sql_query(format!("CREATE DATABASE {template}"))
        .execute(&mut connection)
        .expect("a template is made");
    migrate(&cluster.url(&template)).expect("the migrations apply");
    template
}
