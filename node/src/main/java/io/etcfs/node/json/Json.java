package io.etcfs.node.json;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.RecordComponent;
import java.time.Instant;
import java.util.Iterator;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;

/**
 * Writes values as one line of JSON (RFC 8259). Records become objects with their components in order and in snake_case; so do maps, whose keys
 * are written as they are. Iterables become arrays, {@link Instant} a string of RFC 3339 in UTC, an enum its name in lower case, null and an
 * empty {@link Optional} null. Numbers that JSON can't have (NaN, infinities) become null.
 */
public final class Json {
    private Json() {}

    public static String of(Object value) {
        StringBuilder out = new StringBuilder();
        write(out, value);
        return out.toString();
    }

    private static void write(StringBuilder out, Object value) {
        switch (value) {
            case null -> out.append("null");
            case Optional<?> optional -> write(out, optional.orElse(null));
            case CharSequence text -> string(out, text);
            case Boolean truth -> out.append(truth);
            case Double number when !Double.isFinite(number) -> out.append("null");
            case Float number when !Float.isFinite(number) -> out.append("null");
            case Number number -> out.append(number);
            case Enum<?> constant -> string(out, constant.name().toLowerCase(Locale.ROOT));
            case Record record -> object(out, record);
            case Map<?, ?> map -> object(out, map);
            case Iterable<?> values -> array(out, values);
            default -> string(out, value.toString());
        }
    }

    private static void array(StringBuilder out, Iterable<?> values) {
        out.append('[');
        for (Iterator<?> i = values.iterator(); i.hasNext();) {
            write(out, i.next());
            if (i.hasNext()) {
                out.append(',');
            }
        }
        out.append(']');
    }

    private static void object(StringBuilder out, Map<?, ?> map) {
        char separator = '{';
        for (Map.Entry<?, ?> entry : map.entrySet()) {
            out.append(separator);
            string(out, entry.getKey().toString());
            out.append(':');
            write(out, entry.getValue());
            separator = ',';
        }
        out.append(separator == '{' ? "{}" : "}");
    }

    private static void object(StringBuilder out, Record record) {
        char separator = '{';
        for (RecordComponent component : record.getClass().getRecordComponents()) {
            out.append(separator);
            string(out, snakeCase(component.getName()));
            out.append(':');
            write(out, valueOf(record, component));
            separator = ',';
        }
        out.append(separator == '{' ? "{}" : "}");
    }

    private static Object valueOf(Record record, RecordComponent component) {
        try {
            component.getAccessor().setAccessible(true);
            return component.getAccessor().invoke(record);
        } catch (IllegalAccessException | InvocationTargetException e) {
            throw new AssertionError("record " + record.getClass() + " hides " + component.getName(), e);
        }
    }

    static String snakeCase(String camelCase) {
        StringBuilder out = new StringBuilder();
        for (char c : camelCase.toCharArray()) {
            if (Character.isUpperCase(c)) {
                out.append('_').append(Character.toLowerCase(c));
            } else {
                out.append(c);
            }
        }
        return out.toString();
    }

    private static void string(StringBuilder out, CharSequence text) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            switch (c) {
                case '"' -> out.append("\\\"");
                case '\\' -> out.append("\\\\");
                case '\n' -> out.append("\\n");
                case '\t' -> out.append("\\t");
                case '\r' -> out.append("\\r");
                default -> {
                    if (c < 0x20 || c == 0x7f) {
                        out.append(String.format("\\u%04x", (int) c));
                    } else {
                        out.append(c);
                    }
                }
            }
        }
        out.append('"');
    }
}
