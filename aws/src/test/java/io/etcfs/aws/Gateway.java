package io.etcfs.aws;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;
import java.util.function.UnaryOperator;

/** What stands between the SDK and moto: refuses, answers itself, changes answers. Moto knows one attachment of a volume only, so that those of the asking instance are put in here. */
final class Gateway implements AutoCloseable {
    /** An answer in the place of moto's; null: moto's own. */
    interface Fault {
        Answer answer(String action);
    }

    record Answer(int status, String body) {
        static Answer error(int status, String code) {
            return new Answer(status, "<?xml version=\"1.0\"?><Response><Errors><Error><Code>" + code + "</Code><Message>a test says so</Message></Error></Errors><RequestID>r</RequestID></Response>");
        }
    }

    private final HttpServer server;
    private final HttpClient client = HttpClient.newHttpClient();
    private final int behind;
    volatile Fault fault = action -> null;
    volatile UnaryOperator<String> volumes = UnaryOperator.identity();

    Gateway(int behind) throws IOException {
        this.behind = behind;
        this.server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", this::handle);
        server.setExecutor(Executors.newVirtualThreadPerTaskExecutor());
        server.start();
    }

    String endpoint() {
        return "http://127.0.0.1:" + server.getAddress().getPort();
    }

    private void handle(HttpExchange exchange) throws IOException {
        byte[] body = exchange.getRequestBody().readAllBytes();
        String action = new String(body, StandardCharsets.UTF_8).replaceFirst("(?s).*\\bAction=([A-Za-z]+).*", "$1");
        Answer answer = fault.answer(action);
        if (answer == null) {
            HttpRequest.Builder request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + behind + exchange.getRequestURI())).POST(HttpRequest.BodyPublishers.ofByteArray(body));
            for (String name : new String[] {"Content-Type", "Authorization", "X-Amz-Date"}) {
                String value = exchange.getRequestHeaders().getFirst(name);
                if (value != null) {
                    request.header(name, value);
                }
            }
            try {
                HttpResponse<String> response = client.send(request.build(), HttpResponse.BodyHandlers.ofString());
                answer = new Answer(response.statusCode(), action.equals("DescribeVolumes") ? volumes.apply(response.body()) : response.body());
            } catch (InterruptedException e) {
                throw new IOException(e);
            }
        }
        byte[] bytes = answer.body().getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", "text/xml");
        exchange.sendResponseHeaders(answer.status(), bytes.length);
        exchange.getResponseBody().write(bytes);
        exchange.close();
    }

    @Override
    public void close() {
        server.stop(0);
    }
}
