package io.etcfs.node.daemon;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.fence.Fencer;
import io.etcfs.linux.call.LinuxException;
import io.etcfs.linux.device.DirectDevice;
import io.etcfs.linux.iscsi.IscsiAddress;
import io.etcfs.linux.iscsi.IscsiDevice;
import io.etcfs.linux.scsi.ReservationFencer;
import io.etcfs.node.host.DeviceUse;
import io.etcfs.node.host.Refusal;
import java.nio.file.Path;

/**
 * The device, opened by the name that a user gave: a path, or an iscsi:// address.
 *
 * @param fencer how others are cut off from it
 */
public record SharedDevice(BlockDevice device, Fencer fencer) {
    /** Whether others can be cut off from a device of that name. */
    public static boolean canFence(String name) {
        return IscsiAddress.isMeant(name);
    }

    /** Checks what can be checked by the name alone. */
    public static void requireName(String name, int exitCode) throws Refusal {
        if (IscsiAddress.isMeant(name)) {
            address(name, exitCode);
        }
    }

    private static IscsiAddress address(String name, int exitCode) throws Refusal {
        return IscsiAddress.parse(name).orElseThrow(() -> new Refusal(exitCode, "device '" + name + "' is not usable: iscsi://ADDRESS[:PORT]/TARGET/LUN, as in iscsi://10.0.0.7/iqn.2025-01.org.example:disk/1"));
    }

    /**
     * @param opener   for a target of the network: who opens it, the same each time
     * @param fenced   whether others are to be cut off
     * @param gone     called when a target can't be reached for too long, and must not return
     * @param exitCode of a refusal
     */
    public static SharedDevice open(String name, String opener, boolean fenced, Runnable gone, int exitCode) throws Refusal {
        if (!IscsiAddress.isMeant(name)) {
            return new SharedDevice(openPath(Path.of(name), exitCode), Fencer.none());
        }
        IscsiAddress address = address(name, exitCode);
        try {
            IscsiDevice device = IscsiDevice.open(address, opener, gone);
            return new SharedDevice(device, fenced ? new ReservationFencer(device) : Fencer.none());
        } catch (DeviceException e) {
            throw new Refusal(exitCode, "cannot open the device (" + e.getMessage() + "): check that the target is there and lets this host in");
        }
    }

    /** Takes the device from whoever has it reserved, if that can be. */
    public void seize() throws DeviceException {
        if (device instanceof IscsiDevice unit) {
            ReservationFencer.clear(unit);
        }
    }

    private static DirectDevice openPath(Path path, int exitCode) throws Refusal {
        DeviceUse.requireDevice(path, exitCode);
        try {
            return DirectDevice.open(path);
        } catch (LinuxException e) {
            throw new Refusal(exitCode, "cannot open the device (" + e.getMessage() + "): check --device");
        }
    }
}
