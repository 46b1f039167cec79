package io.etcfs.core.store;

/** One change of a watched key. For a delete {@code keyValue} has the key, an empty value and the delete's revision as mod revision. */
public record WatchEvent(Kind kind, KeyValue keyValue) {
    public enum Kind { PUT, DELETE }
}
