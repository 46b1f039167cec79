/**
 * What EtcFS keeps in etcd: where each record is and how its key is read back.
 *
 * <p>Start with {@link io.etcfs.core.record.Keys}, the whole key schema in one class. The values are the generated classes of
 * {@code io.etcfs.core.record.proto}; {@code records.proto} says what each field means. {@link io.etcfs.core.record.NameHash} makes
 * the number under which a name is found in its directory.
 *
 * <p>Not here: the store itself ({@code io.etcfs.core.store}), and any rule about when a record may be written.
 */
package io.etcfs.core.record;
