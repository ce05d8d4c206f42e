use super::*;
use proptest::prelude::*;

#[test]
fn sizes_are_exact() {
    let bytes = |text| Bytes::parse(text).map(|bytes| bytes.0);
    assert_eq!(bytes("80 GiB"), Ok(80 << 30));
    assert_eq!(bytes("80GB"), Ok(80_000_000_000));
    assert_eq!(bytes("  1.5   KiB "), Ok(1536));
    assert_eq!(bytes("0.001 kB"), Ok(1));
    assert_eq!(bytes("1e-3 kB"), Ok(1));
    assert_eq!(bytes("1.410e2 GB"), Ok(141_000_000_000));
    assert_eq!(bytes("9223372036854775807 B"), Ok(i64::MAX as u64));
    assert_eq!(bytes("0.5 B"), Err(UnitError::FractionalBytes));
    assert_eq!(bytes("0.3 KiB"), Err(UnitError::FractionalBytes));
    assert_eq!(bytes("9223372036854775808 B"), Err(UnitError::TooLarge));
    assert_eq!(bytes("1e40 TB"), Err(UnitError::TooLarge));
    assert_eq!(bytes("1e-4000 TB"), Err(UnitError::FractionalBytes));
    assert_eq!(bytes("0 B"), Err(UnitError::NotPositive));
    assert_eq!(bytes("0.00 TiB"), Err(UnitError::NotPositive));
    assert_eq!(bytes("-1 GiB"), Err(UnitError::NotPositive));
}

#[test]
fn rates_are_rounded_once() {
    assert_eq!(BytesPerSecond::parse("54 GB/s"), Ok(BytesPerSecond(54e9)));
    assert_eq!(BytesPerSecond::parse("54.2 GB/s"), Ok(BytesPerSecond(54.2e9)));
    assert_eq!(BytesPerSecond::parse("1 GiB/s"), Ok(BytesPerSecond(1_073_741_824.0)));
    assert_eq!(BytesPerSecond::parse("400 Gbit/s"), Ok(BytesPerSecond(50e9)));
    assert_eq!(FlopsPerSecond::parse("66.9 TFLOP/s"), Ok(FlopsPerSecond(66.9e12)));
    assert_eq!(FlopsPerSecond::parse("312 TFLOPS"), Ok(FlopsPerSecond(312e12)));
    assert_eq!(FlopsPerSecond::parse("0.6 POPS"), Ok(FlopsPerSecond(0.6e15)));
    assert_eq!(FlopsPerSecond::parse("0 TFLOPS"), Err(UnitError::NotPositive));
    assert_eq!(BytesPerSecond::parse("1e30 GB/s"), Err(UnitError::TooLarge));
}

#[test]
fn durations_accept_both_micro_signs() {
    for text in ["10 us", "10 \u{b5}s", "10\u{3bc}s", "0.01 ms", "10000 ns", "1e-5 s"] {
        assert_eq!(Seconds::parse(text), Ok(Seconds(10e-6)), "{text}");
    }
    assert_eq!(Seconds::parse("0 s"), Ok(Seconds(0.0)));
    assert!(Seconds::parse("-0 s").unwrap().0.is_sign_positive());
    assert_eq!(Seconds::parse("-1 us"), Err(UnitError::Negative));
    assert_eq!(Seconds(10e-6).micros(), 10.0);
}

#[test]
fn errors_contain_remedies() {
    let message = |text| Bytes::parse(text).unwrap_err().to_string();
    assert_eq!(message("80 XiB"), "unknown unit 'XiB' (use B, kB, KiB, MB, MiB, GB, GiB, TB, TiB)");
    assert_eq!(message("80"), "it needs a unit, as in \"80 GiB\"");
    assert_eq!(message(""), "'' is not a number");
    assert_eq!(message("GiB"), "'GiB' is not a number");
    assert_eq!(message("1.2.3 GiB"), "'1.2.3' is not a number");
    assert_eq!(message("1_000 GiB"), "'1_000' is not a number");
    assert_eq!(message("nan GiB"), "'nan GiB' is not a number");
    assert_eq!(message("1e GiB"), "unknown unit 'e GiB' (use B, kB, KiB, MB, MiB, GB, GiB, TB, TiB)");
    assert_eq!(Seconds::parse("1 h").unwrap_err().to_string(), "unknown unit 'h' (use ns, us, ms, s)");
    assert_eq!(Seconds::parse("inf s").unwrap_err().to_string(), "'inf s' is not a number");
}

#[test]
fn sizes_print_in_a_readable_unit() {
    assert_eq!(Bytes(80 << 30).to_string(), "80.0 GiB");
    assert_eq!(Bytes(1536).to_string(), "1.5 KiB");
    assert_eq!(Bytes(0).to_string(), "0 B");
}

proptest! {
    #[test]
    fn integral_sizes_are_exact(count in 1u64..1_000_000, unit in 0..SIZES.len()) {
        let (name, ten, two) = SIZES[unit];
        let expected = (count * 10u64.pow(ten as u32)) << two;
        prop_assert_eq!(Bytes::parse(&format!("{count} {name}")), Ok(Bytes(expected)));
    }

    #[test]
    fn moving_the_point_and_the_exponent_changes_nothing(digits in 1u64..u64::from(u32::MAX), places in 0usize..9) {
        let plain = format!("{digits} kB/s");
        let padded = format!("{digits:0>width$}", width = places + 1);
        let (whole, fraction) = padded.split_at(padded.len() - places);
        let shifted = match fraction {
            "" => format!("{whole}e0 kB/s"),
            fraction => format!("{whole}.{fraction}e{places} kB/s"),
        };
        prop_assert_eq!(BytesPerSecond::parse(&plain), BytesPerSecond::parse(&shifted));
    }

    #[test]
    fn decimal_prefixes_agree(count in 1u32..1_000_000) {
        let micros = Seconds::parse(&format!("{count} us")).unwrap();
        prop_assert_eq!(Seconds::parse(&format!("{count}000 ns")).unwrap(), micros);
        prop_assert_eq!(Seconds::parse(&format!("{count}e-3 ms")).unwrap(), micros);
    }

    #[test]
    fn any_text_is_a_quantity_or_an_error(text in "\\PC{0,40}") {
        let _ = Bytes::parse(&text);
        let _ = BytesPerSecond::parse(&text);
        let _ = FlopsPerSecond::parse(&text);
        let _ = Seconds::parse(&text);
    }

    #[test]
    fn plausible_quantities_do_not_overflow(text in "[-+0-9.eE_]{0,30} ?(GiB|TB|GB/s|TFLOPS|us|s)") {
        for value in [BytesPerSecond::parse(&text).map(|rate| rate.0), Seconds::parse(&text).map(|time| time.0)]
            .into_iter()
            .flatten()
        {
            prop_assert!(value.is_finite() && value >= 0.0);
        }
        prop_assert!(Bytes::parse(&text).is_ok_and(|bytes| bytes.0 > 0) || Bytes::parse(&text).is_err());
    }
}
