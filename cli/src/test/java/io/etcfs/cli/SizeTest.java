package io.etcfs.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import picocli.CommandLine.TypeConversionException;

class SizeTest {
    @Test
    void takesBytesAndPowersOf1024() {
        Size size = new Size();
        assertEquals(0, size.convert("0"));
        assertEquals(4096, size.convert("4096"));
        assertEquals(64L << 20, size.convert("64M"));
        assertEquals(3L << 10, size.convert("3k"));
        assertEquals(5L << 30, size.convert("5g"));
        assertEquals(2L << 40, size.convert("2T"));
        for (String text : new String[] {"", "M", "5 M", "-1", "+1", "1.5G", "5MB", "5P", "1e9", "9999999999999999999", "9999999999T"}) {
            assertThrows(TypeConversionException.class, () -> size.convert(text), text);
        }
    }

    @Test
    void saysThemInTheShortestFormThatIsExact() {
        assertEquals("0", Size.text(0));
        assertEquals("1000", Size.text(1000));
        assertEquals("1K", Size.text(1024));
        assertEquals("1025K", Size.text(1025 * 1024));
        assertEquals("3T", Size.text(3L << 40));
        assertEquals("4096T", Size.text(1L << 52));
    }
}
