package io.etcfs.cli;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Sizes as users write them, everywhere the same: a number of bytes, or one with K, M, G or T behind it, which are powers of 1024. */
public final class Size implements ITypeConverter<Long> {
    private static final Pattern FORM = Pattern.compile("([0-9]{1,18})([KMGT]?)", Pattern.CASE_INSENSITIVE);
    private static final String UNITS = "KMGT";

    @Override
    public Long convert(String text) {
        Matcher m = FORM.matcher(text);
        if (!m.matches()) {
            throw wrong(text);
        }
        int shift = m.group(2).isEmpty() ? 0 : 10 * (1 + UNITS.indexOf(Character.toUpperCase(m.group(2).charAt(0))));
        try {
            return Math.multiplyExact(Long.parseLong(m.group(1)), 1L << shift);
        } catch (ArithmeticException e) {
            throw wrong(text);
        }
    }

    /** The shortest form that is exact. */
    public static String text(long bytes) {
        int unit = bytes == 0 ? 0 : Math.min(UNITS.length(), Long.numberOfTrailingZeros(bytes) / 10);
        return unit == 0 ? Long.toString(bytes) : (bytes >> 10 * unit) + UNITS.substring(unit - 1, unit);
    }

    private static TypeConversionException wrong(String text) {
        return new TypeConversionException("'" + text + "' is not a size: a number of bytes, or a number with K, M, G or T (powers of 1024), as in 64M");
    }
}
