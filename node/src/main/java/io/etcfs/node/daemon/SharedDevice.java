package io.etcfs.node.daemon;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.fence.Fencer;
import io.etcfs.core.fence.FencerService;
import io.etcfs.linux.call.ErrorNumbers;
import io.etcfs.linux.call.LinuxException;
import io.etcfs.linux.device.DirectDevice;
import io.etcfs.linux.iscsi.IscsiAddress;
import io.etcfs.linux.iscsi.IscsiDevice;
import io.etcfs.linux.scsi.KernelUnit;
import io.etcfs.linux.scsi.ReservationFencer;
import io.etcfs.node.host.DeviceUse;
import io.etcfs.node.host.Refusal;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.ServiceLoader;

/**
 * The device, opened by the name that a user gave: a path, or an iscsi:// address.
 *
 * @param fencer how others are cut off from it
 */
public record SharedDevice(BlockDevice device, Fencer fencer) {
    /** Checks what can be checked by the name alone. */
    public static void requireName(String name, int exitCode) throws Refusal {
        if (IscsiAddress.isMeant(name)) {
            address(name, exitCode);
        }
    }

    private static IscsiAddress address(String name, int exitCode) throws Refusal {
        return IscsiAddress.parse(name).orElseThrow(() -> new Refusal(exitCode, "device '" + name + "' is not usable: the form is iscsi://ADDRESS[:PORT]/TARGET/LUN, as in iscsi://10.0.0.7/iqn.2025-01.org.example:disk/1"));
    }

    /**
     * @param opener   for a target of the network: who opens it, the same each time
     * @param choice   how others are to be cut off
     * @param gone     called when a target can't be reached for too long, and must not return
     * @param exitCode of a refusal
     */
    public static SharedDevice open(String name, String opener, FencerChoice choice, Runnable gone, int exitCode) throws Refusal {
        if (!IscsiAddress.isMeant(name)) {
            Path path = Path.of(name);
            DirectDevice device = openPath(path, exitCode);
            try {
                return new SharedDevice(device, fencer(path, device, choice, exitCode));
            } catch (Refusal e) {
                device.close();
                throw e;
            }
        }
        IscsiAddress address = address(name, exitCode);
        try {
            IscsiDevice device = IscsiDevice.open(address, opener, gone);
            if (choice.kind() == FencerChoice.Kind.PR) {
                return new SharedDevice(device, new ReservationFencer(device));
            }
            endEarlier(device);
            return new SharedDevice(device, Fencer.none());
        } catch (DeviceException e) {
            throw new Refusal(exitCode, unopened(address, opener, e));
        }
    }

    /** libiscsi says what it was doing, which is not always what is wrong. */
    private static String unopened(IscsiAddress address, String opener, DeviceException e) {
        if (e.errno() != ErrorNumbers.ENOTCONN) {
            return "cannot open the device (" + e.getMessage() + ")";
        }
        return "cannot open " + address + ": " + Portal.trouble(address.portal()).orElseGet(() -> address.portal() + " answers, but does not let this host in, or not to unit " + address.lun() + " ("
                + e.getMessage().substring(e.getMessage().indexOf(": ") + 2).strip() + "): check the target's name, the unit's number, and that the target admits initiator " + IscsiDevice.initiatorName(opener));
    }

    /**
     * What a killed process of this node had sent can be under way in the target still, where a local device would have kept the process until it was done. Others take
     * the node's next session for a proof that it is not. With reservations the admission of that session sees to it.
     */
    private static void endEarlier(IscsiDevice device) throws DeviceException {
        try {
            if (!device.reset()) {
                throw new DeviceException(ErrorNumbers.EIO, "the target refuses a LOGICAL UNIT RESET");
            }
        } catch (DeviceException e) {
            device.close();
            throw e;
        }
    }

    private static Fencer fencer(Path path, DirectDevice device, FencerChoice choice, int exitCode) throws Refusal {
        if (choice.kind() == FencerChoice.Kind.PR && !device.isClaimed()) {
            // Reservations know hosts. A node that was cut off and has not ended would write on under the key of the next one here.
            throw new Refusal(exitCode, "--fencer pr: another process of this host uses " + path + ": end it first, a host can have one node of a device only");
        }
        return switch (choice.kind()) {
            case NONE -> Fencer.none();
            case PR -> reservations(path, exitCode);
            case EBS -> service("ebs", path, choice.volume() == null ? Map.of() : Map.of("volume", choice.volume()), exitCode);
        };
    }

    private static Fencer reservations(Path device, int exitCode) throws Refusal {
        try {
            return new ReservationFencer(KernelUnit.open(device));
        } catch (DeviceException e) {
            throw new Refusal(exitCode, "--fencer pr: " + e.getMessage() + ": use a device that has them, or another --fencer");
        }
    }

    private static Fencer service(String name, Path device, Map<String, String> settings, int exitCode) throws Refusal {
        FencerService found = ServiceLoader.load(FencerService.class).stream().map(ServiceLoader.Provider::get).filter(s -> s.name().equals(name)).findFirst()
                .orElseThrow(() -> new Refusal(exitCode, "--fencer " + name + " is not in this installation: lib/aws is missing"));
        try {
            return found.open(device, settings);
        } catch (IOException e) {
            throw new Refusal(exitCode, "--fencer " + name + ": " + e.getMessage());
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
