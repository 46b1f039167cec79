package io.etcfs.aws;

import io.etcfs.core.fence.Fencer;
import io.etcfs.core.fence.FencerService;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;
import software.amazon.awssdk.core.exception.SdkException;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.imds.Ec2MetadataClient;
import software.amazon.awssdk.imds.Ec2MetadataRetryPolicy;

/** Finds out where this node runs (IMDSv2) and which volume the device is. Credentials are those of the SDK's usual chain: environment, profile, the instance's role. */
public final class EbsFencerService implements FencerService {
    /** The user names the volume where the device does not tell it. */
    static final String VOLUME = "volume";

    private static final Pattern VOLUME_ID = Pattern.compile("vol-[0-9a-f]{8,17}");
    private static final Duration IMDS_LIMIT = Duration.ofSeconds(2);
    private static final int IMDS_TRIES = 3;

    private final Path sysfs;

    public EbsFencerService() {
        this(Path.of("/sys"));
    }

    EbsFencerService(Path sysfs) {
        this.sysfs = sysfs;
    }

    @Override
    public String name() {
        return "ebs";
    }

    @Override
    public Fencer open(Path device, Map<String, String> settings) throws IOException {
        String volume = volume(device, settings.get(VOLUME));
        try (Ec2MetadataClient imds = Ec2MetadataClient.builder().httpClient(UrlConnectionHttpClient.builder().connectionTimeout(IMDS_LIMIT).socketTimeout(IMDS_LIMIT).build())
                .retryPolicy(Ec2MetadataRetryPolicy.builder().numRetries(IMDS_TRIES - 1).build()).build()) {
            String instance = imds.get("/latest/meta-data/instance-id").asString().strip();
            String region = imds.get("/latest/meta-data/placement/region").asString().strip();
            return new EbsFencer(new Ec2Volume(region, volume), instance, EbsFencer.PATIENCE);
        } catch (SdkException e) {
            throw new IOException("the instance's metadata can't be read (" + e.getMessage() + "): is this an EC2 instance that may use IMDSv2, and is the hop limit enough?");
        }
    }

    private String volume(Path device, String named) throws IOException {
        Optional<String> told = serial(device);
        if (named != null && !VOLUME_ID.matcher(named).matches()) {
            throw new IOException("--ebs-volume '" + named + "' is no name of a volume, as vol-0123456789abcdef0");
        }
        if (named != null && told.isPresent() && !told.get().equals(named)) {
            throw new IOException("--ebs-volume " + named + ": " + device + " is " + told.get());
        }
        return Optional.ofNullable(named).or(() -> told).orElseThrow(() -> new IOException(device + " does not tell its volume: give --ebs-volume"));
    }

    /** An EBS volume's NVMe controller has its name, without the dash, as its serial number. */
    private Optional<String> serial(Path device) throws IOException {
        Path serial = sysfs.resolve("class/block").resolve(device.toRealPath().getFileName().toString()).resolve("device/serial");
        if (!Files.exists(serial)) {
            return Optional.empty();
        }
        String id = Files.readString(serial).strip().replaceFirst("^vol-?", "vol-");
        return VOLUME_ID.matcher(id).matches() ? Optional.of(id) : Optional.empty();
    }
}
