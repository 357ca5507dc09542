// SPDX-License-Identifier: MIT

import java.util.HexFormat;
import javax.smartcardio.Card;
import javax.smartcardio.CardTerminal;
import javax.smartcardio.CommandAPDU;
import javax.smartcardio.ResponseAPDU;
import javax.smartcardio.TerminalFactory;

/** Sends the commands that it is given to the card in the first terminal, inside one exclusive access; prints ATR and answers. */
public class SelectHost {
    public static void main(String[] commands) throws Exception {
        CardTerminal terminal = TerminalFactory.getDefault().terminals().list().get(0);
        terminal.waitForCardPresent(5000);
        Card card = terminal.connect("*");
        HexFormat hex = HexFormat.of().withUpperCase();
        System.out.println(hex.formatHex(card.getATR().getBytes()));
        card.beginExclusive();
        for (String command : commands) {
            ResponseAPDU answer = card.getBasicChannel().transmit(new CommandAPDU(hex.parseHex(command)));
            System.out.println(hex.formatHex(answer.getBytes()));
        }
        card.endExclusive();
        card.disconnect(true);
    }
}
