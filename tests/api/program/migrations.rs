//! Each migration can be taken back.

use diesel_migrations::MigrationHarness;
use oncepay::db::migrate::MIGRATIONS;

use crate::support::TestDatabase;

#[test]
fn all_migrations_can_be_reverted_and_applied_again_to_the_same_schema() {
    let database = TestDatabase::new();
    let before = schema(&database);
    assert!(before.contains("charges.amount bigint") && before.contains("PRIMARY KEY"), "{before}");
    let mut connection = database.connect();
    connection.revert_all_migrations(MIGRATIONS).expect("all can be reverted");
    assert_eq!(schema(&database), "", "nothing is left behind");
    connection.run_pending_migrations(MIGRATIONS).expect("all can be applied again");
    assert_eq!(schema(&database), before);
}

#[test]
fn each_migration_can_be_reverted_alone_and_applied_again() {
    let database = TestDatabase::new();
    let mut connection = database.connect();
    let whole = schema(&database);
    let mut steps = 0;
    while connection.revert_last_migration(MIGRATIONS).is_ok() {
        let reverted = schema(&database);
        connection.run_next_migration(MIGRATIONS).expect("it can be applied again");
        connection.revert_last_migration(MIGRATIONS).expect("and reverted again");
        assert_eq!(schema(&database), reverted);
        steps += 1;
    }
    connection.run_pending_migrations(MIGRATIONS).expect("all can be applied again");
    assert_eq!(schema(&database), whole);
    assert!(steps >= 5, "{steps}");
}

/// Columns, constraints, indexes, functions and comments, a line each; without diesel's own table.
fn schema(database: &TestDatabase) -> String {
    database.text(
        "SELECT coalesce(string_agg(line, E'\\n' ORDER BY line), '') AS text FROM ( \
             SELECT format('%s.%s %s %s %s', relname, attname, format_type(atttypid, atttypmod), attnotnull, \
                    pg_get_expr(adbin, adrelid)) AS line \
             FROM pg_class c JOIN pg_attribute ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped \
                 LEFT JOIN pg_attrdef ON adrelid = c.oid AND adnum = attnum \
             WHERE relkind IN ('r', 'v', 'm', 'S') AND relnamespace = 'public'::regnamespace \
                 AND relname <> '__diesel_schema_migrations' \
             UNION ALL \
             SELECT format('%s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint \
             WHERE connamespace = 'public'::regnamespace AND conrelid::regclass::text <> '__diesel_schema_migrations' \
             UNION ALL \
             SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> '__diesel_schema_migrations' \
             UNION ALL \
             SELECT format('function %s', oid::regprocedure) FROM pg_proc WHERE pronamespace = 'public'::regnamespace \
             UNION ALL \
             SELECT format('%s %s %s', objoid::regclass, objsubid, description) FROM pg_description \
             WHERE classoid = 'pg_class'::regclass AND objoid IN \
                 (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace)) AS lines",
    )
}
