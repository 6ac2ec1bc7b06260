//! Pages of lists: bounds, cursors, times, and that pages put together are the list.

use std::cell::RefCell;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::support::TestApp;
use crate::support::shapes::{LIST, assert_shape};

/// Every list.
const LISTS: [&str; 5] =
    ["/v1/customers", "/v1/charges", "/v1/refunds", "/v1/balance_transactions", "/v1/events"];

fn ids(list: &Value) -> Vec<String> {
    list["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

/// A few of everything.
async fn populate(app: &TestApp, count: usize) {
    for _ in 0..count {
        app.submit("/v1/customers", "").await.expect(201);
        let charge = app.charge().await;
        app.submit("/v1/refunds", &format!("charge={charge}&amount=1")).await.expect(201);
    }
}

#[tokio::test]
async fn every_list_is_newest_first_and_keeps_to_its_bounds() {
    let app = TestApp::spawn();
    for path in LISTS {
        let empty = app.read(path).await;
        assert_eq!(empty, json!({ "object": "list", "url": path, "has_more": false, "data": [] }));
    }
    populate(&app, 12).await;
    for path in LISTS {
        let list = app.read(path).await;
        assert_shape(&list, LIST);
        assert_eq!([&list["object"], &list["url"]], ["list", path]);
        assert_eq!(ids(&list).len(), 10, "{path} has a default limit");
        assert_eq!(list["has_more"], true);
        let all = app.read(&format!("{path}?limit=100")).await;
        assert_eq!(all["has_more"], false);
        let all = ids(&all);
        assert!(all.is_sorted_by(|newer, older| newer > older), "{path}");
        let one = app.read(&format!("{path}?limit=1")).await;
        assert_eq!((ids(&one), &one["has_more"]), (all[..1].to_vec(), &json!(true)));
        // As many as there are is not more.
        let exact = app.read(&format!("{path}?limit={}", all.len())).await;
        assert_eq!((ids(&exact), &exact["has_more"]), (all.clone(), &json!(false)));
        for (query, code) in [
            ("limit=0", "parameter_invalid_integer"),
            ("limit=101", "parameter_invalid_integer"),
            ("limit=-1", "parameter_invalid_integer"),
            ("limit=ten", "parameter_invalid_integer"),
            ("limit=", "parameter_invalid_integer"),
            ("limit=99999999999999999999", "parameter_invalid_integer"),
        ] {
            let error = app.get(&format!("{path}?{query}")).send().await.expect_error(400, code);
            assert_eq!(error.param(), "limit", "{path} {query}");
        }
        let both = format!("{path}?starting_after={}&ending_before={}", all[0], all[2]);
        app.get(&both).send().await.expect_error(400, "");
        // The ends of the list.
        let past_the_end = app.read(&format!("{path}?starting_after={}", all.last().unwrap())).await;
        let before_the_begin = app.read(&format!("{path}?ending_before={}", all[0])).await;
        for page in [past_the_end, before_the_begin] {
            assert_eq!([&page["data"], &page["has_more"]], [&json!([]), &json!(false)], "{path}");
        }
    }
}

#[tokio::test]
async fn a_page_before_a_cursor_is_right_above_it_and_newest_first_too() {
    let app = TestApp::spawn();
    populate(&app, 5).await;
    for path in LISTS {
        let all = ids(&app.read(&format!("{path}?limit=100")).await);
        let page = app.read(&format!("{path}?ending_before={}&limit=2", all[4])).await;
        assert_eq!((ids(&page), &page["has_more"]), (all[2..4].to_vec(), &json!(true)), "{path}");
        let page = app.read(&format!("{path}?ending_before={}&limit=2", all[2])).await;
        assert_eq!((ids(&page), &page["has_more"]), (all[..2].to_vec(), &json!(false)), "{path}");
    }
}

#[tokio::test]
async fn a_cursor_may_be_a_customer_that_was_deleted_since() {
    let app = TestApp::spawn();
    populate(&app, 3).await;
    let all = ids(&app.read("/v1/customers").await);
    app.delete(&format!("/v1/customers/{}", all[1])).send().await.expect(200);
    assert_eq!(ids(&app.read("/v1/customers").await), [all[0].clone(), all[2].clone()]);
    let rest = app.read(&format!("/v1/customers?starting_after={}", all[1])).await;
    assert_eq!(ids(&rest), all[2..]);
}

#[tokio::test]
async fn every_list_can_be_narrowed_to_a_time() {
    let app = TestApp::spawn();
    populate(&app, 1).await;
    app.state.clock.advance(Duration::from_secs(1000));
    populate(&app, 1).await;
    app.state.clock.advance(Duration::from_secs(1000));
    populate(&app, 1).await;
    for path in LISTS {
        let all = app.read(&format!("{path}?limit=100")).await;
        let rows: Vec<(i64, String)> = all["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (row["created"].as_i64().unwrap(), row["id"].as_str().unwrap().to_owned()))
            .collect();
        let (newest, oldest) = (rows[0].0, rows.last().unwrap().0);
        let middle = rows[rows.len() / 2].0;
        assert!(oldest < middle && middle < newest);
        type Test = fn(i64, i64) -> bool;
        let operators: [(&str, Test); 5] = [
            ("", |created, at| created == at),
            ("[gt]", |created, at| created > at),
            ("[gte]", |created, at| created >= at),
            ("[lt]", |created, at| created < at),
            ("[lte]", |created, at| created <= at),
        ];
        for (operator, holds) in operators {
            for at in [oldest - 1, oldest, middle, middle + 1, newest, newest + 1, 0, 253_402_300_799] {
                let query = format!("created{operator}={at}");
                let expected: Vec<String> = rows
                    .iter()
                    .filter(|(created, _)| holds(*created, at))
                    .map(|(_, id)| id.clone())
                    .collect();
                let list = app.read(&format!("{path}?{query}&limit=100")).await;
                assert_eq!(ids(&list), expected, "{path} {query}");
            }
        }
        let between = format!("{path}?created%5Bgt%5D={oldest}&created%5Blt%5D={newest}&limit=100");
        let between = app.read(&between).await;
        assert!(between["data"].as_array().unwrap().iter().all(|row| row["created"] != json!(oldest)));
        assert!(!ids(&between).is_empty());
        let nothing = app.read(&format!("{path}?created[gt]={newest}&created[lt]={oldest}")).await;
        assert_eq!([&nothing["data"], &nothing["has_more"]], [&json!([]), &json!(false)]);
        for wrong in ["created=x", "created[gt]=", "created=-1", "created=253402300800", "created[gte]=1.5"] {
            let error = app.get(&format!("{path}?{wrong}")).send().await;
            let error = error.expect_error(400, "parameter_invalid_integer");
            assert!(error.param().starts_with("created"), "{wrong}");
        }
    }
}

#[test]
fn pages_put_together_are_the_list_forwards_and_backwards() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let app = TestApp::spawn();
    let made = RefCell::new(Vec::<String>::new());
    let mut runner = TestRunner::new(Config { cases: 12, failure_persistence: None, ..Config::default() });
    // Each case makes the list longer, and pages it with a limit of its own from both ends.
    let result = runner.run(&(0_usize..7, 1_usize..9), |(more, limit)| {
        runtime.block_on(async {
            for _ in 0..more {
                let customer = app.submit("/v1/customers", "").await.expect(201);
                made.borrow_mut().insert(0, customer.id().to_owned());
            }
            let made = made.borrow().clone();
            prop_assert_eq!(&forwards(&app, limit).await, &made);
            // The first cursor is the oldest, which is not on its own page.
            prop_assert_eq!(
                backwards(&app, limit, &made).await,
                made.split_last().map_or(&[][..], |(_, rest)| rest)
            );
            Ok(())
        })
    });
    result.unwrap();
}

/// All pages from the newest on, as SDKs turn them.
async fn forwards(app: &TestApp, limit: usize) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    loop {
        let cursor = seen.last().map(|id| format!("&starting_after={id}")).unwrap_or_default();
        let page = app.read(&format!("/v1/customers?limit={limit}{cursor}")).await;
        let found = ids(&page);
        let has_more = page["has_more"] == true;
        assert!(found.len() <= limit && !(has_more && found.is_empty()));
        seen.extend(found);
        if !has_more {
            return seen;
        }
    }
}

/// All pages above the oldest, which is the first cursor.
async fn backwards(app: &TestApp, limit: usize, made: &[String]) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    let Some(mut cursor) = made.last().cloned() else { return seen };
    loop {
        let page = app.read(&format!("/v1/customers?limit={limit}&ending_before={cursor}")).await;
        let found = ids(&page);
        let has_more = page["has_more"] == true;
        assert!(found.len() <= limit && !(has_more && found.is_empty()));
        if let Some(first) = found.first() {
            cursor.clone_from(first);
        }
        seen.splice(0..0, found);
        if !has_more {
            return seen;
        }
    }
}
