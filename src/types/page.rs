//! Pages of a list by keyset: a page begins at an id and not at an offset, so rows that are written between two requests
//! make no row appear twice or go missing.
//!
//! Ids begin with their time (see [`crate::types::ids`]), so a cursor and a filter on `created` both become a range of ids,
//! and the primary key is the only index that a page needs.

use uuid::Uuid;

/// A caller's request for a page, as a range of ids, a limit and a direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    low: u128,
    high: u128,
    limit: u8,
    direction: Direction,
}

/// The end of the range from which rows are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The newest rows of the range.
    Newest,
    /// The oldest rows of the range, which `ending_before` asks for. They are still shown newest first.
    Oldest,
}

/// One page, newest first.
#[derive(Debug, PartialEq, Eq)]
pub struct Page<T> {
    pub rows: Vec<T>,
    pub has_more: bool,
}

impl<T> Page<T> {
    /// Changes each row of the page.
    pub fn map<U>(self, change: impl FnMut(T) -> U) -> Page<U> {
        Page { rows: self.rows.into_iter().map(change).collect(), has_more: self.has_more }
    }
}

/// A cursor: the row before or after which a page begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cursor {
    StartingAfter(Uuid),
    EndingBefore(Uuid),
}

impl PageRequest {
    /// The newest `limit` rows; `limit` is 1–100.
    pub fn new(limit: u8) -> Self {
        debug_assert!((1..=100).contains(&limit), "the parameter was checked when it was read");
        Self { low: 0, high: u128::MAX, limit, direction: Direction::Newest }
    }

    /// Restricts the page to rows after the cursor, or before it.
    pub fn at(mut self, cursor: Cursor) -> Self {
        match cursor {
            Cursor::StartingAfter(id) => self.high = self.high.min(id.as_u128()),
            Cursor::EndingBefore(id) => {
                self.low = self.low.max(id.as_u128().saturating_add(1));
                self.direction = Direction::Oldest;
            }
        }
        self
    }

    /// Restricts the page to rows created at `seconds` or later.
    pub fn created_from(mut self, seconds: u64) -> Self {
        self.low = self.low.max(first_id_of(seconds));
        self
    }

    /// Restricts the page to rows created before `seconds`.
    pub fn created_before(mut self, seconds: u64) -> Self {
        self.high = self.high.min(first_id_of(seconds));
        self
    }

    /// The lowest id in the range.
    pub fn low(&self) -> Uuid {
        Uuid::from_u128(self.low)
    }

    /// The first id above the range.
    pub fn high(&self) -> Uuid {
        Uuid::from_u128(self.high)
    }

    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// The number of rows to fetch: one more than the page shows, which tells whether there are more.
    pub fn rows_to_fetch(&self) -> i64 {
        i64::from(self.limit) + 1
    }

    /// Makes a page of the fetched rows, which are in the order of [`PageRequest::direction`].
    pub fn page<T>(&self, mut rows: Vec<T>) -> Page<T> {
        let has_more = rows.len() > usize::from(self.limit);
        rows.truncate(usize::from(self.limit));
        if self.direction == Direction::Oldest {
            rows.reverse();
        }
        Page { rows, has_more }
    }
}

/// The lowest UUIDv7 of a second; its first 48 bits are milliseconds (RFC 9562).
fn first_id_of(seconds: u64) -> u128 {
    u128::from(seconds.saturating_mul(1000)).min((1 << 48) - 1) << 80
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Does what the database does, on a sorted list.
    fn fetch(ids: &[u128], request: &PageRequest) -> Page<u128> {
        let mut found: Vec<u128> =
            ids.iter().copied().filter(|id| (request.low..request.high).contains(id)).collect();
        if request.direction() == Direction::Newest {
            found.reverse();
        }
        found.truncate(usize::try_from(request.rows_to_fetch()).unwrap());
        request.page(found)
    }

    proptest! {
        #[test]
        fn pages_forwards_and_backwards_are_the_list(count in 0_usize..60, limit in 1_u8..12) {
            let ids: Vec<u128> = (1..=count as u128).map(|n| n * 7).collect();
            let newest_first: Vec<u128> = ids.iter().rev().copied().collect();
            for forwards in [true, false] {
                let (mut seen, mut cursor) = (Vec::new(), None);
                loop {
                    let request = match cursor {
                        None if forwards => PageRequest::new(limit),
                        None => PageRequest::new(limit).at(Cursor::EndingBefore(Uuid::from_u128(0))),
                        Some(id) if forwards => PageRequest::new(limit).at(Cursor::StartingAfter(Uuid::from_u128(id))),
                        Some(id) => PageRequest::new(limit).at(Cursor::EndingBefore(Uuid::from_u128(id))),
                    };
                    let page = fetch(&ids, &request);
                    prop_assert!(!(page.has_more && page.rows.is_empty()));
                    cursor = if forwards { page.rows.last().copied() } else { page.rows.first().copied() };
                    if forwards { seen.extend(page.rows) } else { seen.splice(0..0, page.rows); }
                    if !page.has_more { break }
                }
                prop_assert_eq!(&seen, &newest_first);
            }
        }

        #[test]
        fn no_cursor_panics(id in any::<u128>(), edge in prop::sample::select(vec![0, 1, u128::MAX - 1, u128::MAX])) {
            for id in [id, edge].map(Uuid::from_u128) {
                let after = PageRequest::new(1).at(Cursor::StartingAfter(id));
                prop_assert!(!(after.low()..after.high()).contains(&id));
                let before = PageRequest::new(1).at(Cursor::EndingBefore(id));
                prop_assert!(!(before.low()..before.high()).contains(&id));
            }
        }

        #[test]
        fn a_filter_on_created_is_a_range_of_ids(second in 1_u64..4_000_000_000, milliseconds in 0_u64..1000) {
            let id = Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, second, u32::try_from(milliseconds * 1_000_000).unwrap()));
            let inside = |request: &PageRequest| (request.low()..request.high()).contains(&id);
            prop_assert!(inside(&PageRequest::new(1).created_from(second).created_before(second + 1)));
            prop_assert!(!inside(&PageRequest::new(1).created_from(second + 1)));
            prop_assert!(!inside(&PageRequest::new(1).created_before(second)));
        }
    }
}
