// The service, as the page speaks to it (docs/service.md).
//
// get(path, {query, signal})        -> parsed JSON; `path` below /api, each part already encoded: see `at`
// post(path, body, {signal}), put(path, body, ...), remove(path, ...)   likewise; null for an empty answer
// at("subscriptions", name)         "/subscriptions/NAME", encoded
// ApiError                          what they throw: {status, message, hint, line, column, code}; status 0 where the
//                                   service could not be reached. An aborted request throws the usual AbortError:
//                                   ask aborted(error)
// events(path, {query, after, onEvent, onState, signal})   an event stream, until `signal` is aborted or it ends:
//     onEvent({id, event, data})    for each event, in order
//     onState(state, error)         "connecting" | "open" | "waiting" (will try again) | "resting" (the page is hidden)
//                                   | "ended" (an event `end`, or a refusal that waiting does not mend, told by `error`)
//     It asks again with Last-Event-ID after a break, waiting longer each time, and closes while the page is hidden,
//     so that background tabs hold no connection: by the position nothing is lost.
//     Returns a function that closes it.
// token                             a signal: the token in use, kept for this tab; setToken(text) changes it
// needsToken                        a signal: true where the service has asked for a token; the shell then asks the user
import { signal } from "./html.js";

const KEY = "anabranch-token";

export const token = signal(sessionStorage.getItem(KEY) ?? "");
export const needsToken = signal(false);

export function setToken(text) {
  token.value = text;
  if (text) sessionStorage.setItem(KEY, text);
  else sessionStorage.removeItem(KEY);
  needsToken.value = false;
}

export class ApiError extends Error {
  constructor(status, body) {
    super(typeof body?.message === "string" ? body.message : `the service answered with status ${status}`);
    this.name = "ApiError";
    this.status = status;
    this.hint = body?.hint ?? null;
    this.line = body?.line ?? null;
    this.column = body?.column ?? null;
    this.code = body?.code ?? null;
  }
}

export function aborted(error) {
  return error?.name === "AbortError";
}

export function at(...parts) {
  return parts.map((part) => `/${encodeURIComponent(part)}`).join("");
}

function address(path, query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const behind = new URLSearchParams(kept).toString();
  return `/api${path}${behind ? `?${behind}` : ""}`;
}

function headers(more = {}) {
  return token.value ? { ...more, Authorization: `Bearer ${token.value}` } : more;
}

async function request(method, path, { query, body, signal: stop, accept, more } = {}) {
  let answer;
  try {
    answer = await fetch(address(path, query), {
      method,
      headers: headers({
        Accept: accept ?? "application/json",
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
        ...more,
      }),
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: stop,
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
    });
  } catch (error) {
    if (aborted(error)) throw error;
    throw new ApiError(0, { message: "the service cannot be reached", hint: "is 'anabranch serve' running?" });
  }
  if (answer.ok) return answer;
  let told = null;
  try {
    told = await answer.json();
  } catch (error) {
    if (aborted(error)) throw error; // a refusal that is no JSON is told by its status
  }
  if (answer.status === 401) needsToken.value = true;
  throw new ApiError(answer.status, told);
}

async function json(method, path, options) {
  const answer = await request(method, path, options);
  if (answer.status === 204) return null;
  return await answer.json();
}

export const get = (path, options) => json("GET", path, options);
export const post = (path, body, options) => json("POST", path, { ...options, body });
export const put = (path, body, options) => json("PUT", path, { ...options, body });
export const remove = (path, options) => json("DELETE", path, options);

// The events in a stream of text, as the standard for server-sent events reads them.
export function eventParser(onEvent) {
  let rest = "";
  let id = "";
  let event = "";
  let data = [];
  const line = (text) => {
    if (text === "") {
      if (data.length) onEvent({ id, event: event || "message", data: data.join("\n") });
      event = "";
      data = [];
      return;
    }
    const colon = text.indexOf(":");
    if (colon === 0) return; // a comment
    const field = colon < 0 ? text : text.slice(0, colon);
    let value = colon < 0 ? "" : text.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (field === "data") data.push(value);
    else if (field === "event") event = value;
    else if (field === "id" && !value.includes("\0")) id = value;
  };
  return (chunk) => {
    rest += chunk;
    let from = 0;
    for (;;) {
      let end = from;
      while (end < rest.length && rest[end] !== "\n" && rest[end] !== "\r") end += 1;
      if (end === rest.length || (rest[end] === "\r" && end + 1 === rest.length)) break; // a \n may follow
      line(rest.slice(from, end));
      from = rest[end] === "\r" && rest[end + 1] === "\n" ? end + 2 : end + 1;
    }
    rest = rest.slice(from);
  };
}

const LASTING = new Set([400, 401, 403, 404, 409, 422]); // refusals that asking again does not mend

export function events(path, { query = {}, after = null, onEvent, onState = () => {}, signal: outer } = {}) {
  let position = after;
  let closed = false;
  let attempt = 0;
  let current = null; // the request that runs
  let timer = 0;

  function close() {
    closed = true;
    clearTimeout(timer);
    current?.abort();
    document.removeEventListener("visibilitychange", seen);
  }

  function take(event) {
    if (closed) return;
    if (event.id) position = event.id;
    onEvent(event);
    if (event.event === "end") {
      close();
      onState("ended", null);
    }
  }

  async function run() {
    if (closed || current || document.hidden) return;
    const mine = new AbortController();
    current = mine;
    onState("connecting", null);
    try {
      const answer = await request("GET", path, {
        query,
        accept: "text/event-stream",
        more: position === null ? {} : { "Last-Event-ID": position },
        signal: mine.signal,
      });
      attempt = 0;
      onState("open", null);
      const reader = answer.body.getReader();
      const decoder = new TextDecoder();
      const parse = eventParser(take);
      for (;;) {
        const { done, value } = await reader.read();
        if (done || closed) break;
        parse(decoder.decode(value, { stream: true }));
      }
      again(null);
    } catch (error) {
      again(error);
    } finally {
      if (current === mine) current = null;
    }
  }

  function again(error) {
    current = null;
    if (closed) return;
    if (document.hidden) {
      onState("resting", null);
      return;
    }
    if (error instanceof ApiError && LASTING.has(error.status)) {
      close();
      onState("ended", error);
      return;
    }
    const wait = Math.min(15000, 500 * 2 ** Math.min(attempt, 5)) * (0.75 + Math.random() / 2);
    attempt += 1;
    onState("waiting", error);
    timer = setTimeout(run, wait);
  }

  function seen() {
    if (document.hidden) {
      clearTimeout(timer);
      current?.abort();
    } else {
      attempt = 0;
      clearTimeout(timer);
      run();
    }
  }

  document.addEventListener("visibilitychange", seen);
  outer?.addEventListener("abort", close);
  if (document.hidden) onState("resting", null);
  run();
  return close;
}
