// Everything a view needs to draw itself, from one place.
//
// html`<p>${text}</p>`   a preact element; what stands in ${} is always text or an attribute's value, never markup.
//                        Data from the service is shown in this way only: nothing in the page sets innerHTML.
// useState, useEffect, useRef, useMemo, useCallback, useLayoutEffect, useId    preact's hooks
// signal, computed, effect, batch, useSignal, useComputed, useSignalEffect     signals; a component that reads
//                        `s.value` is drawn again when it changes
// render, Fragment       preact's own
import { h } from "preact";
import htm from "htm";

export const html = htm.bind(h);
export { h, render, Fragment } from "preact";
export { useState, useEffect, useRef, useMemo, useCallback, useLayoutEffect, useId } from "preact/hooks";
export { signal, computed, effect, batch, useSignal, useComputed, useSignalEffect } from "@preact/signals";
