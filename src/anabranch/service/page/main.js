// The shell: landmarks, navigation, the theme, the question for a token, and the view of the route.
//
// A view is a module views/NAME.js with
//     export const title = "Sharing"              or a function of `params`; it becomes the page's title
//     export default function View({params})      params: {name, parts, query}, `name` being the first part or null
// A view draws its own <h1 tabindex="-1">; the shell moves the focus there when the route's view or name changes.
// Views are loaded when they are first shown: one that does not load shows a notice, and the rest works.
import { Component } from "preact";
import { html, render, useEffect, useRef, useState, signal } from "./html.js";
import { route, link } from "./router.js";
import { needsToken, setToken, token } from "./api.js";
import { site, siteError } from "./site.js";
import { count, inline } from "./text.js";
import { Dialog } from "./components/dialog.js";
import { Empty, Loading } from "./components/empty.js";
import { ErrorNotice } from "./components/notice.js";
import { StateBadge } from "./components/badge.js";

const VIEWS = {
  now: { label: "Now", load: () => import("./views/now.js") },
  subscriptions: { label: "Subscriptions", load: () => import("./views/subscriptions.js") },
  sharing: { label: "Sharing", load: () => import("./views/sharing.js") },
  evolution: { label: "Evolution", load: () => import("./views/evolution.js") },
  past: { label: "Past", load: () => import("./views/past.js") },
  network: { label: "Network", load: () => import("./views/network.js") },
  new: { label: "New subscription", load: () => import("./views/editor.js"), hidden: true, below: "subscriptions" },
};

const loaded = signal({}); // view -> {module} or {error}

async function load(name) {
  if (loaded.peek()[name]?.module) return;
  let got;
  try {
    got = { module: await VIEWS[name].load() };
  } catch (error) {
    got = { error: new Error(`the view could not be loaded: ${error.message}`) };
  }
  loaded.value = { ...loaded.peek(), [name]: got };
}

// What a view throws while it is drawn stays in the view.
class Boundary extends Component {
  constructor() {
    super();
    this.state = { error: null };
  }

  static getDerivedStateFromError(error) {
    return { error };
  }

  render() {
    if (this.state.error) {
      return html`<${ErrorNotice}
        title="This view has failed"
        error=${this.state.error}
        again=${() => this.setState({ error: null })}
      />`;
    }
    return this.props.children;
  }
}

function Mark() {
  return html`<svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
    <path d="M3 16h6c5 0 4-7 9-7s4 7 11 7M9 16c5 0 4 7 9 7s4-7 11-7" />
  </svg>`;
}

const CHOICES = ["auto", "light", "dark"];
const THEME_LABELS = { auto: "as the system", light: "light", dark: "dark" };

function ThemeButton() {
  const [choice, setChoice] = useState(window.anabranchTheme.get());
  const turn = () => {
    const next = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length];
    window.anabranchTheme.set(next);
    setChoice(next);
  };
  const label = `Theme: ${THEME_LABELS[choice]}`;
  return html`<button type="button" class="button button-plain theme-button" aria-label=${label} title=${label} onClick=${turn}>
    <svg viewBox="0 0 20 20" aria-hidden="true" class=${`theme-icon theme-${choice}`}>
      <circle cx="10" cy="10" r="7" />
      ${choice === "auto" && html`<path d="M10 3a7 7 0 0 1 0 14z" />`}
      ${choice === "dark" && html`<path d="M10 3a7 7 0 1 1 0 14a9 9 0 0 0 0-14z" />`}
      ${choice === "light" && html`<circle cx="10" cy="10" r="2.4" class="full" />`}
    </svg>
  </button>`;
}

function RunState() {
  const error = siteError.value;
  const told = site.value;
  if (error) return html`<span class="run-state"><${StateBadge} state="failed" title=${error.message} /> out of reach</span>`;
  if (!told) return html`<span class="run-state quiet">…</span>`;
  return html`<span class="run-state" title=${`run ${told.run}, anabranch ${told.version}`}>
    <${StateBadge} state=${told.state} /><span class="quiet run-epoch">${told.epoch < 0 ? "no epoch yet" : `epoch ${count(told.epoch)}`}</span>
  </span>`;
}

function Header({ view }) {
  const shown = VIEWS[view]?.below ?? view;
  const rail = useRef(null);
  useEffect(() => {
    // on a phone the way to the view may lie outside the rail
    const here = rail.current?.querySelector('[aria-current="page"]');
    if (here) rail.current.scrollLeft = here.offsetLeft - (rail.current.clientWidth - here.offsetWidth) / 2;
  }, [shown]);
  return html`<header class="top">
    <a class="brand" href=${link("now")}>
      <${Mark} /><span class="brand-name">anabranch</span>
      ${site.value && html`<span class="brand-site quiet">${inline(site.value.site)}</span>`}
    </a>
    <nav class="views" aria-label="Views" ref=${rail}>
      ${Object.entries(VIEWS)
        .filter(([name, one]) => !one.hidden && (!site.value?.network || name === "network")) // the service of a network has nothing else
        .map(([name, one]) => html`<a key=${name} href=${link(name)} aria-current=${name === shown ? "page" : undefined}>${one.label}</a>`)}
    </nav>
    <div class="top-end"><${RunState} /><${ThemeButton} /></div>
  </header>`;
}

function TokenDialog() {
  const [text, setText] = useState("");
  const give = (event) => {
    event.preventDefault();
    if (text.trim()) setToken(text.trim());
    setText("");
  };
  return html`<${Dialog} open=${needsToken.value} title="This service asks for a token" onClose=${() => (needsToken.value = false)}>
    <form onSubmit=${give}>
      <label class="field">
        <span>Token</span>
        <input type="password" autocomplete="off" value=${text} onInput=${(event) => setText(event.currentTarget.value)} />
      </label>
      <p class="quiet">It is kept in this tab and forgotten when the tab is closed.</p>
      <p><button class="button button-main" type="submit">Use it</button></p>
    </form>
  <//>`;
}

function View({ view, params }) {
  const got = loaded.value[view];
  useEffect(() => {
    load(view);
  }, [view]);
  if (!got) return html`<${Loading} what=${VIEWS[view].label} />`;
  if (got.error) {
    return html`<h1 tabindex="-1">${VIEWS[view].label}</h1>
      <${ErrorNotice} error=${got.error} again=${() => load(view)} />`;
  }
  const Shown = got.module.default;
  return html`<${Boundary} key=${view}><${Shown} params=${params} /><//>`;
}

function titleOf(view, params) {
  const title = loaded.value[view]?.module?.title ?? VIEWS[view]?.label ?? "Not found";
  return typeof title === "function" ? title(params) : title;
}

function Shell() {
  const { view, parts, query } = route.value;
  const known = Object.hasOwn(VIEWS, view);
  const params = { name: parts[0] ?? null, parts, query };
  const here = JSON.stringify([view, params.name]);
  const main = useRef(null);
  const before = useRef(here);
  const title = titleOf(view, params);
  const ready = !known || Boolean(loaded.value[view]);

  useEffect(() => {
    document.title = `${inline(title)} · anabranch`;
  }, [title]);
  useEffect(() => {
    // the first page begins as every page does; later the focus goes to the heading of what has come
    if (!ready || before.current === here) return;
    before.current = here;
    window.scrollTo(0, 0);
    (main.current.querySelector("h1") ?? main.current).focus({ preventScroll: true });
  }, [here, ready]);

  const skip = (event) => {
    event.preventDefault(); // the hash is the route
    main.current.focus();
  };
  return html`<a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <${Header} view=${view} />
    <main id="main" class=${`view view-${known ? view : "none"}`} tabindex="-1" ref=${main}>
      ${known
        ? html`<${View} key=${`${view} ${token.value}`} view=${view} params=${params} />`
        : html`<h1 tabindex="-1">Not found</h1>
            <${Empty} title="There is no such view"><a href=${link("now")}>To what happens now</a><//>`}
    </main>
    <${TokenDialog} />`;
}

const app = document.getElementById("app");
app.replaceChildren();
render(html`<${Shell} />`, app);
