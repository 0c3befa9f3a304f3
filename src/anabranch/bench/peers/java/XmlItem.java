import java.io.StringReader;
import java.util.function.BiConsumer;
import javax.xml.stream.XMLInputFactory;
import javax.xml.stream.XMLStreamConstants;
import javax.xml.stream.XMLStreamReader;

/** An item of XML, whose leaves are numbers, read with the parser of the JDK. */
final class XmlItem {
    private static final ThreadLocal<XMLInputFactory> PARSERS = ThreadLocal.withInitial(() -> {
        XMLInputFactory made = XMLInputFactory.newDefaultFactory();
        made.setProperty(XMLInputFactory.SUPPORT_DTD, false);
        made.setProperty(XMLInputFactory.IS_COALESCING, true);
        return made;
    });

    private XmlItem() {}

    /** Tell the name and the text of each leaf. */
    static void leaves(String item, BiConsumer<String, String> take) throws Exception {
        XMLStreamReader reader = PARSERS.get().createXMLStreamReader(new StringReader(item));
        String name = null;
        String text = null;
        while (reader.hasNext()) {
            switch (reader.next()) {
                case XMLStreamConstants.START_ELEMENT -> name = reader.getLocalName();
                case XMLStreamConstants.CHARACTERS -> text = reader.getText();
                case XMLStreamConstants.END_ELEMENT -> {
                    if (text != null) {
                        take.accept(name, text);
                    }
                    text = null;
                }
                default -> {}
            }
        }
    }

    /** An item as JSON: JSON as it is, and the elements of XML as keys, without the one around all of them. */
    static String json(String item) throws Exception {
        if (item.charAt(0) != '<') {
            return item;
        }
        XMLStreamReader reader = PARSERS.get().createXMLStreamReader(new StringReader(item));
        StringBuilder found = new StringBuilder(item.length());
        int depth = 0;
        boolean first = true;
        boolean leaf = false;
        while (reader.hasNext()) {
            switch (reader.next()) {
                case XMLStreamConstants.START_ELEMENT -> {
                    if (depth++ > 0) {
                        found.append(first ? "{\"" : ",\"").append(reader.getLocalName()).append("\":");
                        first = true;
                    }
                    leaf = false;
                }
                case XMLStreamConstants.CHARACTERS -> {
                    found.append(reader.getText());
                    leaf = true;
                }
                case XMLStreamConstants.END_ELEMENT -> {
                    if (!leaf) {
                        found.append('}');
                    }
                    leaf = false;
                    first = false;
                    depth--;
                }
                default -> {}
            }
        }
        return found.toString();
    }
}
