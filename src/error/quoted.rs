//! Prepares a caller's text for messages: short, and without card numbers.

use std::ops::Range;

use uuid::Uuid;

/// The most characters of a caller's text that a message shows.
const MAX_SHOWN: usize = 100;

/// The most characters between two groups of digits of one card number.
const MAX_SEPARATORS: usize = 3;

/// The fewest hex digits of a random text, such as an id or a secret.
const MIN_RANDOM_DIGITS: usize = 24;

/// Shortens a caller's text for a message, and redacts card numbers.
///
/// A card number is 12 to 19 digits that pass Luhn's check, in one group or in several.
pub fn quoted(text: &str) -> String {
    let shown = without_card_numbers(text);
    if shown.chars().count() <= MAX_SHOWN {
        return shown;
    }
    shown.chars().take(MAX_SHOWN).chain("…".chars()).collect()
}

fn without_card_numbers(text: &str) -> String {
    let (mut shown, mut copied) = (String::new(), 0);
    let groups = groups(text);
    let joined = |one: &Range<usize>, next: &Range<usize>| is_separator(&text[one.end..next.start]);
    for chain in groups.chunk_by(joined) {
        let mut first = 0;
        while first < chain.len() {
            let Some(end) = card_number(text, chain, first) else {
                first += 1;
                continue;
            };
            shown.push_str(&text[copied..chain[first].start]);
            shown.push_str("[redacted]");
            copied = chain[end - 1].end;
            first = end;
        }
    }
    shown + &text[copied..]
}

/// The end of the longest card number that begins with the group `first` of a chain, if there is one.
fn card_number(text: &str, chain: &[Range<usize>], first: usize) -> Option<usize> {
    let (mut digits, mut found) = (String::new(), None);
    for (number, group) in chain.iter().enumerate().skip(first) {
        digits.push_str(&text[group.clone()]);
        // Numbers of 12 digits are rare, and three groups of a longer number with a typing error can look like one.
        let is_whole = first == 0 && number + 1 == chain.len();
        let lengths = if is_whole { 12..=19 } else { 13..=19 };
        if lengths.contains(&digits.len()) && luhn::valid(&digits) {
            found = Some(number + 1);
        }
    }
    found
}

/// The groups of digits that may be parts of card numbers.
fn groups(text: &str) -> Vec<Range<usize>> {
    let mut groups = Vec::new();
    let mut rest = 0;
    while let Some(start) = text[rest..].find(|character: char| character.is_ascii_digit()) {
        let start = rest + start;
        let length = text[start..].find(|character: char| !character.is_ascii_digit());
        let end = length.map_or(text.len(), |length| start + length);
        if !is_random(text, start) && !is_fraction(text, start, end) {
            groups.push(start..end);
        }
        rest = end;
    }
    groups
}

fn is_separator(between: &str) -> bool {
    between.chars().count() <= MAX_SEPARATORS && !between.contains(char::is_alphanumeric)
}

/// Whether the digit at `at` is part of an id, a UUID or a secret, which are all hex.
fn is_random(text: &str, at: usize) -> bool {
    let is_uuid =
        Uuid::try_parse(word(text, at, |character| character.is_alphanumeric() || character == '-'));
    let word = word(text, at, char::is_alphanumeric);
    let is_hex = word.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_uuid.is_ok() || (is_hex && word.len() >= MIN_RANDOM_DIGITS)
}

/// The longest text around `at` whose characters all pass `belongs`.
fn word(text: &str, at: usize, belongs: impl Fn(char) -> bool) -> &str {
    let start = text[..at].char_indices().rev().take_while(|(_, character)| belongs(*character)).last();
    let start = start.map_or(at, |(start, _)| start);
    let end = text[at..].find(|character| !belongs(character)).map_or(text.len(), |length| at + length);
    &text[start..end]
}

/// Whether the digits are the decimals of a number, such as 1998.9999999999998.
fn is_fraction(text: &str, start: usize, end: usize) -> bool {
    let Some(whole) = text[..start].strip_suffix('.') else { return false };
    let before = whole.trim_end_matches(|character: char| character.is_ascii_digit());
    let follows = |text: &str| text.chars().next().is_some_and(|next| next == '.' || next.is_alphanumeric());
    before.len() < whole.len()
        && !before.ends_with(|last: char| last == '.' || last.is_alphanumeric())
        && !follows(&text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_caller_sent_comes_back_shortened() {
        assert_eq!(quoted("cus_x"), "cus_x");
        assert_eq!(quoted(&"é".repeat(5000)).chars().count(), 101);
    }

    #[test]
    fn a_card_number_does_not_come_back() {
        for number in [
            "4242424242424242",
            "4242 4242 4242 4242",
            "4242-4242-4242-4242",
            "4242.4242.4242.4242",
            "4242/4242/4242/4242",
            "4242 - 4242 - 4242 - 4242",
            "3782 822463 10005",
            "tok_4242424242424242",
            "x=4242-4242-4242-4242;",
            "x4242424242424242y",
            "4242424242424242.5",
            "4242424242424242 12/34 123",
            "no 7 4242424242424242",
            "4242 4242 4242 4242 123",
            "6205500000000000004",
        ] {
            let shown = quoted(number);
            assert!(shown.contains("[redacted]"), "{shown}");
            assert!(
                !shown.contains("4242") && !shown.contains("822463") && !shown.contains("0000"),
                "{shown}"
            );
        }
        assert_eq!(quoted("a 4242424242424242 b 5555555555554444 c"), "a [redacted] b [redacted] c");
    }

    #[test]
    fn other_numbers_come_back_as_they_came() {
        for text in [
            "1998.9999999999998",
            "0.30000000000000004",
            // The fraction alone would be a card number.
            "0.4242424242424242",
            // Wrong by Luhn's formula, too short, too long.
            "4242424242424241",
            "4242 4242 4242 4241",
            "42424242426",
            "42424242424242424242",
            "9223372036854775808",
            "cus_0199aabbccdd7eef8011223344556677",
            "cus_42424242424242424242424242424242",
            "4242424242424242aaaaaaaaaaaaaaaa",
            "00000000-4242-4242-8242-424242424242",
            "card[exp_month]",
            "2026-08-26.dahlia",
        ] {
            assert_eq!(quoted(text), text);
        }
    }
}
