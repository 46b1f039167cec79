package io.etcfs.aws;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.sun.net.httpserver.HttpServer;
import io.etcfs.core.fence.Fencer;
import io.etcfs.core.fence.FencerService;
import io.etcfs.core.fence.Severing;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.ec2.Ec2Client;

/** The SDK with moto in the place of EC2 and its metadata service. ETCFS_MOTO names the program, which ./dev test it installs. */
@Timeout(180)
class Ec2Test {
    private static final String REGION = "us-west-2";

    private static Process moto;
    private static int motoPort;
    private static Gateway gateway;
    private static Ec2Client client;
    private static String own;
    private static String victim;
    private String volume;

    @BeforeAll
    static void start(@TempDir Path directory) throws Exception {
        String program = System.getenv("ETCFS_MOTO");
        assumeTrue(program != null && Files.isExecutable(Path.of(program)), "no moto: ./dev test it installs it, ETCFS_MOTO names it");
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            motoPort = free.getLocalPort();
        }
        Path log = Files.createTempFile("etcfs-moto", ".log");
        log.toFile().deleteOnExit();
        moto = new ProcessBuilder(program, "-H", "127.0.0.1", "-p", Integer.toString(motoPort)).redirectErrorStream(true).redirectOutput(log.toFile()).start();
        for (int i = 0; !answers(); i++) {
            assertTrue(i < 1_800 && moto.isAlive(), Files.readString(log));
            Thread.sleep(100);
        }
        gateway = new Gateway(motoPort);
        System.setProperty("aws.accessKeyId", "test");
        System.setProperty("aws.secretAccessKey", "test");
        System.setProperty("aws.endpointUrlEc2", gateway.endpoint());
        client = Ec2Client.builder().region(Region.of(REGION)).httpClient(UrlConnectionHttpClient.create()).build();
        own = instance();
        victim = instance();
        gateway.volumes = Ec2Test::withOwnAttachment;
    }

    private static boolean answers() {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), motoPort)) {
            return true;
        } catch (IOException e) {
            return false;
        }
    }

    private static String instance() {
        return client.runInstances(r -> r.imageId("ami-12c6146b").minCount(1).maxCount(1)).instances().getFirst().instanceId();
    }

    private static String withOwnAttachment(String answer) {
        String item = "<item><instanceId>" + own + "</instanceId><device>/dev/sdf</device><status>attached</status></item>";
        return answer.replaceFirst("<attachmentSet>", "<attachmentSet>" + item).replaceFirst("<attachmentSet\\s*/>", "<attachmentSet>" + item + "</attachmentSet>");
    }

    @AfterAll
    static void stop() throws Exception {
        if (gateway != null) {
            gateway.close();
        }
        if (moto != null) {
            moto.destroyForcibly().waitFor();
        }
        List.of("aws.accessKeyId", "aws.secretAccessKey", "aws.endpointUrlEc2").forEach(System::clearProperty);
    }

    @BeforeEach
    void volume() {
        volume = client.createVolume(r -> r.availabilityZone(REGION + "a").size(10)).volumeId();
        client.attachVolume(r -> r.volumeId(volume).instanceId(victim).device("/dev/sdf"));
        assertEquals(1, client.describeVolumes(r -> r.volumeIds(volume)).volumes().getFirst().attachments().stream().filter(a -> a.instanceId().equals(victim)).count());
    }

    @AfterEach
    void noFault() {
        if (gateway != null) {
            gateway.fault = action -> null;
        }
    }

    private Severing sever(String region, String instance, int limitMs) {
        try (Ec2Volume asked = new Ec2Volume(region, volume)) {
            return new EbsFencer(asked, own, new EbsFencer.Patience(Duration.ofMillis(50), Duration.ofMillis(limitMs)))
                    .sever(new Fencer.Vanished("n2", 100, List.of(7L), List.of(instance + "/" + volume)));
        }
    }

    private boolean attachedToVictim() {
        return client.describeVolumes(r -> r.volumeIds(volume)).volumes().getFirst().attachments().stream().anyMatch(a -> a.instanceId().equals(victim));
    }

    @Test
    void detaches() {
        Severing severing = sever(REGION, victim, 20_000);
        assertTrue(severing.confirmed(), severing.saw());
        assertFalse(attachedToVictim());
        assertTrue(sever(REGION, victim, 20_000).confirmed(), "once more: it is attached nowhere now");
    }

    @Test
    void throttlingIsWaitedForButNotForEver() {
        AtomicInteger refusals = new AtomicInteger();
        gateway.fault = action -> refusals.incrementAndGet() <= 7 ? Gateway.Answer.error(503, "RequestLimitExceeded") : null;
        Severing severing = sever(REGION, victim, 60_000);
        assertTrue(severing.confirmed(), severing.saw());
        assertTrue(refusals.get() > 7);
        assertFalse(attachedToVictim());
        gateway.fault = action -> Gateway.Answer.error(503, "RequestLimitExceeded");
        severing = sever(REGION, victim, 1_000);
        assertFalse(severing.confirmed());
        assertTrue(severing.saw().startsWith("EC2 throttles ec2:DetachVolume (RequestLimitExceeded"), severing.saw());
    }

    @Test
    void aDenialNamesTheAction() {
        for (String denied : List.of("DetachVolume", "DescribeVolumes")) {
            gateway.fault = action -> action.equals(denied) ? Gateway.Answer.error(403, "UnauthorizedOperation") : null;
            Severing severing = sever(REGION, victim, 20_000);
            assertFalse(severing.confirmed());
            assertTrue(severing.saw().startsWith("EC2 refuses ec2:" + denied + " (UnauthorizedOperation"), severing.saw());
            assertTrue(severing.saw().endsWith("needs ec2:DescribeVolumes and ec2:DetachVolume"), severing.saw());
        }
    }

    /** EC2 accepts it and nothing follows, as where the instance's kernel holds on to the device; later it does. */
    @Test
    void whatStaysAttachedIsNotConfirmed() {
        gateway.fault = action -> action.equals("DetachVolume") ? new Gateway.Answer(200, "<DetachVolumeResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><requestId>r</requestId><volumeId>"
                + volume + "</volumeId><instanceId>" + victim + "</instanceId><status>detaching</status></DetachVolumeResponse>") : null;
        Severing severing = sever(REGION, victim, 1_500);
        assertFalse(severing.confirmed());
        assertEquals("volume " + volume + " is still 'attached' at " + victim, severing.saw());
        gateway.fault = action -> null;
        assertTrue(sever(REGION, victim, 20_000).confirmed());
    }

    @Test
    void theWrongRegionIsSaid() {
        Severing severing = sever("eu-central-1", victim, 20_000);
        assertFalse(severing.confirmed());
        assertTrue(severing.saw().contains("there is no volume " + volume + " in region eu-central-1"), severing.saw());
        assertTrue(attachedToVictim());
    }

    @Test
    void anInstanceThatIsGoneHasNothingAttached() {
        Severing severing = sever(REGION, "i-0123456789abcdef0", 20_000);
        assertTrue(severing.confirmed(), severing.saw());
        assertTrue(attachedToVictim(), "nobody else is meant");
    }

    @Test
    void whoDoesNotAnswerConfirmsNothing() {
        String endpoint = System.getProperty("aws.endpointUrlEc2");
        System.setProperty("aws.endpointUrlEc2", "http://127.0.0.1:1");
        try {
            Severing severing = sever(REGION, victim, 20_000);
            assertFalse(severing.confirmed());
            assertTrue(severing.saw().startsWith("EC2 can't be asked (ec2:DetachVolume)"), severing.saw());
        } finally {
            System.setProperty("aws.endpointUrlEc2", endpoint);
        }
    }

    /** Region and instance come from IMDSv2, the volume from the device. */
    @Test
    void theServiceFindsOutWhereItIs(@TempDir Path directory) throws Exception {
        FencerService found = ServiceLoader.load(FencerService.class).findFirst().orElseThrow();
        assertEquals("ebs", found.name());
        Path device = Files.createFile(directory.resolve("nvme1n1"));
        Path serial = directory.resolve("sys/class/block/nvme1n1/device/serial");
        Files.createDirectories(serial.getParent());
        Files.writeString(serial, volume.replace("-", "") + "\n");
        EbsFencerService service = new EbsFencerService(directory.resolve("sys"));
        HttpServer imds = imds();
        System.setProperty("aws.ec2MetadataServiceEndpoint", "http://127.0.0.1:" + imds.getAddress().getPort());
        try {
            Fencer fencer = service.open(device, Map.of());
            assertEquals(own + "/" + volume, fencer.machine());
            fencer.admit(8, List.of(), List.of(), true, () -> true);
            assertTrue(fencer.sever(new Fencer.Vanished("n2", 100, List.of(7L), List.of(victim + "/" + volume))).confirmed());
            assertEquals(own + "/" + volume, service.open(device, Map.of("volume", volume)).machine());
            assertTrue(assertThrows(IOException.class, () -> service.open(device, Map.of("volume", "vol-00000000"))).getMessage().contains("is " + volume));
            assertTrue(assertThrows(IOException.class, () -> service.open(device, Map.of("volume", "sdf"))).getMessage().contains("no name of a volume"));
            Path other = Files.createFile(directory.resolve("loop0"));
            assertTrue(assertThrows(IOException.class, () -> service.open(other, Map.of())).getMessage().contains("give --ebs-volume"));
            assertEquals(own + "/vol-00000000", service.open(other, Map.of("volume", "vol-00000000")).machine());
        } finally {
            imds.stop(0);
        }
        assertTrue(assertThrows(IOException.class, () -> service.open(device, Map.of())).getMessage().startsWith("the instance's metadata can't be read"));
        System.clearProperty("aws.ec2MetadataServiceEndpoint");
    }

    private static HttpServer imds() throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> {
            boolean put = exchange.getRequestMethod().equals("PUT");
            String answer = switch (exchange.getRequestURI().getPath()) {
                case "/latest/api/token" -> put ? "token" : null;
                case "/latest/meta-data/instance-id" -> own;
                case "/latest/meta-data/placement/region" -> REGION;
                default -> null;
            };
            boolean allowed = put || "token".equals(exchange.getRequestHeaders().getFirst("x-aws-ec2-metadata-token"));
            byte[] bytes = answer == null || !allowed ? new byte[0] : answer.getBytes();
            if (put) {
                exchange.getResponseHeaders().set("x-aws-ec2-metadata-token-ttl-seconds", "21600");
            }
            exchange.sendResponseHeaders(!allowed ? 401 : answer == null ? 404 : 200, bytes.length == 0 ? -1 : bytes.length);
            exchange.getResponseBody().write(bytes);
            exchange.close();
        });
        server.start();
        return server;
    }
}
