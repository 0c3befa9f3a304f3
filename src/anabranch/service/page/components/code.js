// A query with its syntax in colours, and the language of a text.
//
// <${Code} text=${query} language="xquery" | "sql" label="Query" />   coloured once CodeMirror is there, plain until then
// modeOf(language)     CodeMirror's name of a language's mode
//
// CodeMirror's runMode only cuts the text into tokens here; they are put into spans as text.
import { html, useEffect, useState } from "../html.js";
import { CodeMirror } from "../library.js";
import { visible } from "../text.js";

const LONGEST = 50_000; // characters that are coloured

export function modeOf(language) {
  return language === "sql" ? "text/x-pgsql" : "anabranch";
}

export function Code({ text, language, label = "Query" }) {
  const [tokens, setTokens] = useState(null);
  const shown = visible(text);
  useEffect(() => {
    let gone = false;
    setTokens(null);
    if (shown.length > LONGEST) return undefined;
    CodeMirror()
      .then((Mirror) => {
        const found = [];
        Mirror.runMode(shown, modeOf(language), (token, style) => found.push([token, style]));
        if (!gone) setTokens(found);
      })
      .catch(() => {}); // it stays plain
    return () => {
      gone = true;
    };
  }, [shown, language]);
  return html`<pre class="code cm-s-page" tabindex="0" role="region" aria-label=${label}>${tokens
    ? tokens.map(([token, style]) => (style ? html`<span class=${style.replace(/(\S+)/g, "cm-$1")}>${token}</span>` : token))
    : shown}</pre>`;
}
