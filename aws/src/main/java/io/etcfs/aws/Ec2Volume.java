package io.etcfs.aws;

import io.etcfs.aws.Ec2Exception.Kind;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import software.amazon.awssdk.awscore.exception.AwsServiceException;
import software.amazon.awssdk.core.exception.SdkException;
import software.amazon.awssdk.core.retry.RetryMode;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.ec2.Ec2Client;
import software.amazon.awssdk.services.ec2.model.VolumeAttachment;

/** Over the API of EC2. A request is repeated by the SDK, with backoff, and ends after {@link #REQUEST_LIMIT}. */
final class Ec2Volume implements Volume, AutoCloseable {
    private static final Duration ATTEMPT_LIMIT = Duration.ofSeconds(4);
    private static final Duration REQUEST_LIMIT = Duration.ofSeconds(12);
    /** The instance is gone, the volume is free, not at this instance, or on its way from it. */
    private static final Set<String> NOT_ATTACHED = Set.of("InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed", "InvalidAttachment.NotFound", "IncorrectState", "IncorrectInstanceState");
    private static final Set<String> DENIED = Set.of("UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "AuthFailure", "InvalidClientTokenId", "RequestExpired", "OptInRequired");

    private final Ec2Client client;
    private final String region;
    private final String id;

    Ec2Volume(String region, String id) {
        this.region = region;
        this.id = id;
        this.client = Ec2Client.builder().region(Region.of(region)).httpClient(UrlConnectionHttpClient.create())
                .overrideConfiguration(c -> c.apiCallAttemptTimeout(ATTEMPT_LIMIT).apiCallTimeout(REQUEST_LIMIT).retryStrategy(RetryMode.STANDARD)).build();
    }

    @Override
    public String id() {
        return id;
    }

    @Override
    public Map<String, String> attachments() throws Ec2Exception {
        return ask("DescribeVolumes", () -> {
            Map<String, String> found = new LinkedHashMap<>();
            for (VolumeAttachment a : client.describeVolumes(r -> r.volumeIds(id)).volumes().stream().flatMap(v -> v.attachments().stream()).toList()) {
                found.put(a.instanceId(), a.stateAsString());
            }
            return found;
        });
    }

    @Override
    public void detach(String instance) throws Ec2Exception {
        ask("DetachVolume", () -> client.detachVolume(r -> r.volumeId(id).instanceId(instance).force(true)));
    }

    private <T> T ask(String action, Supplier<T> request) throws Ec2Exception {
        try {
            return request.get();
        } catch (AwsServiceException e) {
            String code = e.awsErrorDetails() == null ? "" : e.awsErrorDetails().errorCode();
            String said = code + (e.awsErrorDetails() == null ? "" : ": " + e.awsErrorDetails().errorMessage());
            if (e.isThrottlingException()) {
                throw new Ec2Exception(Kind.THROTTLED, "EC2 throttles ec2:" + action + " (" + said + ")");
            }
            if (NOT_ATTACHED.contains(code)) {
                throw new Ec2Exception(Kind.NOT_ATTACHED, said);
            }
            if (DENIED.contains(code) || e.statusCode() == 403) {
                throw new Ec2Exception(Kind.OTHER, "EC2 refuses ec2:" + action + " (" + said + "): the role of this instance needs ec2:DescribeVolumes and ec2:DetachVolume");
            }
            if (code.equals("InvalidVolume.NotFound")) {
                throw new Ec2Exception(Kind.OTHER, "there is no volume " + id + " in region " + region + ": check --ebs-volume, and the region");
            }
            throw new Ec2Exception(Kind.OTHER, "ec2:" + action + " failed (" + said + ")");
        } catch (SdkException e) {
            throw new Ec2Exception(Kind.OTHER, "EC2 can't be asked (ec2:" + action + "): " + e.getMessage());
        }
    }

    @Override
    public void close() {
        client.close();
    }
}
