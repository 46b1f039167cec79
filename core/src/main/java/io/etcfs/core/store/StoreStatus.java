package io.etcfs.core.store;

import java.util.List;

/**
 * @param clusterId   of the etcd cluster
 * @param revision    the newest that any of the members has that answered; all of them may be behind
 * @param dbSizeBytes physical size of the answering member's database; {@code dbInUseBytes} without free pages
 * @param quotaBytes  the member's quota, 0 where it does not say
 * @param noSpaceAlarm some member has raised the alarm NOSPACE
 * @param members     all that were asked
 */
public record StoreStatus(long clusterId, long revision, long dbSizeBytes, long dbInUseBytes, long quotaBytes, boolean noSpaceAlarm, List<Member> members) {
    /** {@code error} is null for a member that answered; the other fields are then its own. Each member's database grows and is defragmented by itself. */
    public record Member(String endpoint, String version, long memberId, boolean leader, long dbSizeBytes, long dbInUseBytes, String error) {
        public static Member silent(String endpoint, String error) {
            return new Member(endpoint, null, 0, false, 0, 0, error);
        }
    }
}
