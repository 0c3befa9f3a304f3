// The site as a whole: what GET /api says, asked every five seconds while the page is seen.
//
// site          a signal: null until it is known, then the object of GET /api
// siteError     a signal: the ApiError of the last question, or null
// may(role)     whether this client may do what `role` may: "read", "subscribe" or "administer"; reads `site`
// refresh()     ask now, as after a registration
import { signal } from "./html.js";
import { get, token } from "./api.js";

const EVERY = 5000;
const ROLES = ["read", "subscribe", "administer"];

export const site = signal(null);
export const siteError = signal(null);

let timer = 0;

export function may(role) {
  return ROLES.indexOf(site.value?.role ?? "read") >= ROLES.indexOf(role);
}

export async function refresh() {
  clearTimeout(timer);
  if (!document.hidden) {
    try {
      site.value = await get("");
      siteError.value = null;
    } catch (error) {
      siteError.value = error;
    }
  }
  clearTimeout(timer);
  timer = setTimeout(refresh, EVERY);
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) refresh();
});
token.subscribe(() => {
  refresh();
});
