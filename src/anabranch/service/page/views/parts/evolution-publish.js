// The form by which an accent is published: its fields, a preview of whom it concerns, and the question before it is done.
//
// <${Publish} stream=${STREAM} onPublished=${(answer) => ...} />   STREAM as the service describes it, with `learned`
//
// Nothing is published that was not previewed just so: a change in any field takes the preview back.
// An error of the service stands at the field that it names, or above the buttons.
import { html, useEffect, useId, useMemo, useRef, useState } from "../../html.js";
import { aborted, at, post } from "../../api.js";
import { may, site } from "../../site.js";
import { inline, plural, visible } from "../../text.js";
import { Confirm } from "../../components/dialog.js";
import { ErrorNotice, Notice } from "../../components/notice.js";
import { accentText, fieldOf } from "./evolution-text.js";
import { Reactions } from "./evolution-names.js";

const KINDS = [
  { key: "alter", label: "Alter" },
  { key: "add", label: "Add" },
  { key: "drop", label: "Drop" },
  { key: "text", label: "As text" },
];
const BLANK = { kind: "alter", path: "", by: "", type: "", where: "", partition: "all", text: "" };

export function Publish({ stream, onPublished }) {
  const [form, setForm] = useState(BLANK);
  const [preview, setPreview] = useState(null);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const [asking, setAsking] = useState(false);
  const [done, setDone] = useState(null);
  const asked = useRef(null);
  const box = useRef(null);
  const told = useRef(null);
  useEffect(() => {
    if (done) told.current?.focus(); // the button that was pressed is no longer there
  }, [done]);
  useEffect(() => () => asked.current?.abort(), []);

  const json = /json/.test(stream.format ?? "");
  const text = form.kind === "text" ? form.text : accentText(form, json);
  const change = (changed) => {
    asked.current?.abort();
    setForm((old) => ({ ...old, ...changed }));
    setPreview(null);
    setError(null);
    setDone(null);
    setBusy(false);
  };
  const choose = (kind) =>
    change({
      kind,
      ...(kind === "text" && !form.text ? { text: form.path || form.by || form.where ? text : "" } : {}),
    });
  const partition = stream.partitions > 1 ? (form.partition === "all" ? "all" : Number(form.partition)) : null;
  const missing =
    form.kind === "text"
      ? form.text.trim()
        ? null
        : "text"
      : !form.path.trim()
        ? "path"
        : form.kind === "alter" && !form.by.trim()
          ? "by"
          : null;

  const send = (published) =>
    post(
      `${at("streams", stream.name)}/accents`,
      { accent: text, partition, preview: !published },
      { signal: asked.current?.signal },
    );
  const ask = async (event) => {
    event.preventDefault();
    setDone(null);
    if (missing) {
      setError({
        field: missing,
        message: { path: "which path changes?", by: "how do its values change?", text: "there is no accent" }[missing],
      });
      box.current?.querySelector(`[name="${missing}"]`)?.focus();
      return;
    }
    asked.current?.abort();
    asked.current = new AbortController();
    setBusy(true);
    setError(null);
    try {
      setPreview(await send(false));
    } catch (refusal) {
      if (aborted(refusal)) return;
      const field = form.kind === "text" ? "text" : fieldOf(refusal.message);
      setError({
        field: refusal.status >= 400 && refusal.status < 500 && refusal.status !== 403 ? field : null,
        message: refusal.message,
        hint: refusal.hint,
        refusal,
      });
    }
    setBusy(false);
  };
  const publish = async () => {
    asked.current = null;
    const answer = await send(true);
    setAsking(false);
    setPreview(null);
    setForm({ ...BLANK, kind: form.kind });
    setDone(answer);
    onPublished(answer);
  };

  if (site.value && !may("administer")) {
    return html`<${Notice} kind="info" title="Publishing needs another role">
      <p>
        An accent changes the stream for everybody who reads it, so it takes the role <em>administer</em>; yours is${" "}
        <em>${inline(site.value.role)}</em>. Ask whoever runs the site for a token with that role, or let them run${" "}
        <code>anabranch accent</code>.
      </p>
    <//>`;
  }
  const at_ = (name) => (error?.field === name ? error : null);
  const input = (name) => (common) =>
    html`<input
      ...${common}
      class="mono"
      spellcheck="false"
      autocomplete="off"
      value=${form[name]}
      onInput=${(event) => change({ [name]: event.target.value })}
    />`;
  return html`<form class="publish" ref=${box} onSubmit=${ask} novalidate>
    <div class="choice publish-kinds" role="group" aria-label="What changes">
      ${KINDS.map(
        (each) =>
          html`<button
            key=${each.key}
            type="button"
            aria-pressed=${form.kind === each.key ? "true" : "false"}
            onClick=${() => choose(each.key)}
          >
            ${each.label}
          </button>`,
      )}
    </div>
    ${
      form.kind === "text"
        ? html`<${Field} label="The accent, as it would stand in the stream" name="text" error=${at_("text")}>
            ${(common) =>
              html`<textarea ...${common} rows="5" class="mono" spellcheck="false" value=${form.text} onInput=${(event) => change({ text: event.target.value })}></textarea>`}
          <//>`
        : html`<div class="publish-fields">
            <${PathField}
              stream=${stream}
              value=${form.path}
              error=${at_("path")}
              onChange=${(path) => change({ path })}
            />
            ${
              form.kind === "alter" &&
              html`<${Field}
                label="By"
                hint="arithmetic in '.', the value as it was: (. - 32) * 5 div 9"
                name="by"
                error=${at_("by")}
              >
                ${input("by")}
              <//>`
            }
            ${
              form.kind === "add" &&
              html`<${Field} label="Type" hint="optional, as decimal or string" name="type" error=${at_("type")}>
                ${input("type")}
              <//>`
            }
            <${Field}
              label="For the items where"
              hint="empty for all items; else as in: s = 2"
              name="where"
              error=${at_("where")}
            >
              ${input("where")}
            <//>
          </div>`
    }
    ${
      stream.partitions > 1 &&
      html`<label class="field publish-partition">
        <span>In the partition</span>
        <select value=${form.partition} onChange=${(event) => change({ partition: event.target.value })}>
          <option value="all">all ${stream.partitions}</option>
          ${Array.from({ length: Math.min(stream.partitions, 500) }, (_, index) =>
            html`<option key=${index} value=${String(index)}>${index}</option>`)}
        </select>
      </label>`
    }
    ${form.kind !== "text" &&
      html`<pre class="publish-text" aria-label="The accent as text" tabindex="0">${missing ? "" : visible(text)}</pre>`}
    ${error && !error.field && html`<${ErrorNotice} error=${error.refusal} />`}
    <p class="publish-actions">
      <button type="submit" class=${`button ${preview ? "" : "button-main"}`} disabled=${busy}>
        ${busy ? "Asking…" : "Preview"}
      </button>
      ${!preview && html`<span class="quiet">Nothing changes before you have seen whom it concerns.</span>`}
    </p>
    <div class="publish-told" aria-live="polite" tabindex="-1" ref=${told}>
      ${preview && html`<${Preview} preview=${preview} stream=${stream} publish=${() => setAsking(true)} />`}
      ${done &&
        html`<${Notice} kind="good" title="Published"><p>It stands in ${done.places.map((each) => html`<code>${inline(each)}</code> `)} and takes effect with the next epoch.</p><//>`}
    </div>
    <${Confirm}
      open=${asking}
      title=${`Publish into ${inline(stream.name)}?`}
      verb="Publish it"
      onConfirm=${publish}
      onClose=${() => setAsking(false)}
    >
      <pre class="publish-text">${visible(text)}</pre>
      <p>It acts on everything behind it in the stream and cannot be taken back; ${summary(preview)}.</p>
    <//>
  </form>`;
}

function summary(preview) {
  if (!preview) return "";
  const ends = preview.reactions.find((each) => each.deed === "ends")?.count ?? 0;
  const others = preview.reactions.reduce((sum, each) => sum + (each.deed === "ends" ? 0 : each.count), 0);
  const went = `${plural(others, "subscription goes", "subscriptions go")} on with it`;
  return ends ? `${went}, ${plural(ends, "ends", "end")}` : `${went}, none ends`;
}

function Preview({ preview, stream, publish }) {
  return html`<section class="preview" aria-label="Preview">
    <h3>What would happen</h3>
    ${preview.warnings.map((each) => html`<${Notice} key=${each} kind="warning">${inline(each)}<//>`)}
    <${Reactions} reactions=${preview.reactions} reasons=${preview.reasons ?? {}} others=${preview.others ?? null} />
    <p class="quiet">
      It would stand in ${preview.places.map((each) => html`<code key=${each}>${inline(each)}</code> `)}
    </p>
    <p>
      <button type="button" class="button button-main" onClick=${publish}>Publish into ${inline(stream.name)}…</button>
    </p>
  </section>`;
}

function Field({ label, hint, name, error, children }) {
  const id = useId();
  const described = [hint && !error?.hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  const common = { id, name, "aria-invalid": error ? "true" : undefined, "aria-describedby": described || undefined };
  const draw = Array.isArray(children) ? children[0] : children;
  return html`<div class="field">
    <label for=${id}>${label}</label>
    ${draw(common)}
    ${error &&
      html`<p id=${`${id}-error`} class="field-error" role="alert">${visible(error.message)}${error.hint
        ? html`<br /><span class="quiet">${visible(error.hint)}</span>` : ""}</p>`}
    ${hint && !error?.hint && html`<p id=${`${id}-hint`} class="field-hint">${hint}</p>`}
  </div>`;
}

function PathField({ stream, value, error, onChange }) {
  const list = useId();
  const paths = useMemo(() => {
    const known = new Map();
    for (const each of stream.learned ?? []) known.set(each.path, each.values.slice(0, 3).join(", "));
    for (const each of stream.paths ?? []) if (!known.has(each.path)) known.set(each.path, each.state);
    return [...known].slice(0, 500);
  }, [stream]);
  const seen = (stream.learned ?? []).find((each) => each.path === value.trim());
  const hint = seen
    ? `its newest values: ${inline(seen.values.slice(0, 4).join(", "))}`
    : "as the items write it: coord/cel/ra";
  return html`<${Field} label="Path" hint=${hint} name="path" error=${error}>
    ${(common) =>
      html`<input
          ...${common}
          class="mono"
          list=${list}
          spellcheck="false"
          autocomplete="off"
          value=${value}
          onInput=${(event) => onChange(event.target.value)}
        />
        <datalist id=${list}>
          ${paths.map(([path, values]) => html`<option key=${path} value=${path}>${inline(values)}</option>`)}
        </datalist>`}
  <//>`;
}
