// A modal dialog: the browser's own <dialog>, which keeps the focus inside and gives it back.
//
// <${Dialog} open=${open} title="Cancel the subscription?" onClose=${() => ...} actions=${html`<button ...>`}>...</>
//                     onClose is called for Escape and for the close button; the dialog closes when `open` turns false.
// <${Confirm} open title="..." verb="Cancel it" danger onConfirm=${async () => ...} onClose=${...}>why it matters</>
//                     a question with two answers; shows the error where onConfirm throws, and stays open then
import { html, useEffect, useId, useRef, useState } from "../html.js";
import { ErrorNotice } from "./notice.js";

export function Dialog({ open, title, onClose, actions, children }) {
  const box = useRef(null);
  const id = useId();
  useEffect(() => {
    const dialog = box.current;
    if (!dialog) return;
    if (open && !dialog.open) dialog.showModal();
    if (!open && dialog.open) dialog.close();
  }, [open]);
  return html`<dialog
    ref=${box}
    class="dialog"
    aria-labelledby=${id}
    onCancel=${(event) => {
      event.preventDefault();
      onClose();
    }}
  >
    ${open &&
    html`<div class="dialog-head">
        <h2 id=${id}>${title}</h2>
        <button type="button" class="button button-plain" aria-label="Close" onClick=${onClose}>✕</button>
      </div>
      <div class="dialog-body">${children}</div>
      ${actions && html`<div class="dialog-actions">${actions}</div>`}`}
  </dialog>`;
}

export function Confirm({ open, title, verb, danger = false, onConfirm, onClose, children }) {
  const [state, setState] = useState({ busy: false, error: null });
  const confirm = async () => {
    setState({ busy: true, error: null });
    try {
      await onConfirm();
      setState({ busy: false, error: null });
    } catch (error) {
      setState({ busy: false, error });
    }
  };
  const close = () => {
    setState({ busy: false, error: null });
    onClose();
  };
  const actions = html`<button type="button" class="button" onClick=${close}>Keep it as it is</button>
    <button type="button" class=${`button ${danger ? "button-danger" : "button-main"}`} disabled=${state.busy} onClick=${confirm}>
      ${verb}
    </button>`;
  return html`<${Dialog} open=${open} title=${title} onClose=${close} actions=${actions}>
    ${children}
    <${ErrorNotice} error=${state.error} />
  <//>`;
}
