// CodeMirror as a component: one that a keyboard can leave, with errors underlined at their place.
//
// <${Editor} given=${{text, turn}} onChange=${(text) => ...} language="xquery" | "sql" label="Query"
//            errors=${[{line, column, length, message}]} hint=${(cm) => ({list, from, to})}
//            place=${{line, column, turn}} />
// `given.text` is put into it when `given.turn` changes, as a change that undo takes back; what is typed is told by onChange
// and never set again, for it may have gone on meanwhile. `place` moves the cursor and the focus when its `turn` changes.
// Tab leaves it, as everywhere; Ctrl-Space completes. Until CodeMirror is there, a plain text area does the same.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { CodeMirror } from "../library.js";
import { modeOf } from "./code.js";

const OPENING = /[/."$@]$/; // what a name may follow

function underline(mirror, { line, column, length }) {
  if (!line) return null;
  const last = mirror.lastLine();
  const row = Math.min(line - 1, last);
  const width = mirror.getLine(row).length;
  const from = Math.min(Math.max(0, (column ?? 1) - 1), width);
  let to = Math.min(width, from + Math.max(1, length ?? 1));
  const start = from === to && from > 0 ? from - 1 : from; // an error at the end of a line underlines what is in front
  if (start === to) to = width;
  return mirror.markText({ line: row, ch: start }, { line: row, ch: to }, { className: "editor-error", inclusiveRight: false });
}

export function Editor({ given, onChange, language, label, errors = [], hint, place }) {
  const box = useRef(null);
  const [mirror, setMirror] = useState(null);
  const told = useRef({ typed: given.text, turn: given.turn });
  told.current.onChange = onChange;
  told.current.hint = hint;

  useEffect(() => {
    let gone = false;
    let made = null;
    CodeMirror()
      .then((Mirror) => {
        if (gone) return;
        made = Mirror(box.current, {
          value: told.current.typed,
          mode: modeOf(language),
          theme: "page",
          lineNumbers: true,
          lineWrapping: true,
          matchBrackets: true,
          viewportMargin: 50,
          inputStyle: "contenteditable",
          spellcheck: false,
          extraKeys: {
            Tab: false,
            "Shift-Tab": false,
            "Ctrl-Space": (cm) => complete(cm),
          },
        });
        const field = made.getInputField();
        field.setAttribute("aria-label", label);
        field.setAttribute("role", "textbox");
        field.setAttribute("aria-multiline", "true");
        const complete = (cm) =>
          cm.showHint({ hint: (one) => told.current.hint?.(one), completeSingle: false, closeCharacters: /[\s()[\]{};>,]/ });
        made.on("change", (cm) => {
          told.current.onChange(cm.getValue());
        });
        made.on("inputRead", (cm, change) => {
          if (!cm.state.completionActive && OPENING.test(change.text[0])) complete(cm);
        });
        setMirror(made);
      })
      .catch(() => {}); // the plain text area stays
    return () => {
      gone = true;
      made?.closeHint?.();
    };
  }, []);

  useEffect(() => {
    if (told.current.turn === given.turn) return;
    told.current.turn = given.turn;
    told.current.typed = given.text;
    if (mirror) {
      const end = { line: mirror.lastLine(), ch: mirror.getLine(mirror.lastLine()).length };
      mirror.replaceRange(given.text, { line: 0, ch: 0 }, end);
    }
  }, [mirror, given.turn]);
  useEffect(() => {
    mirror?.setOption("mode", modeOf(language));
  }, [mirror, language]);
  useEffect(() => {
    if (!mirror) return undefined;
    const marks = mirror.operation(() => errors.map((error) => underline(mirror, error)));
    const field = mirror.getInputField();
    if (errors.length) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
    return () => mirror.operation(() => marks.forEach((mark) => mark?.clear()));
  }, [mirror, JSON.stringify(errors)]);
  useLayoutEffect(() => { // before the next key is read: what is typed behind the click belongs to the editor
    if (!mirror || !place) return;
    mirror.focus();
    mirror.setCursor({ line: place.line - 1, ch: Math.max(0, (place.column ?? 1) - 1) });
  }, [mirror, place?.turn]);

  return html`<div class="editor" ref=${box}>
    ${!mirror && html`<textarea class="mono" rows="10" aria-label=${label} spellcheck=${false} value=${told.current.typed} onInput=${(event) => {
      told.current.typed = event.currentTarget.value;
      onChange(told.current.typed);
    }}></textarea>`}
  </div>`;
}
