// Subscriptions: the list of all, or one of them.
//
// #/subscriptions?search=&stream=&kind=&origin=&state=&sort=&order=    the list
// #/subscriptions/NAME                                                one
import { html } from "../html.js";
import { inline } from "../text.js";
import { SubscriptionList } from "./subscriptions/list.js";
import { OneSubscription } from "./subscriptions/one.js";

export const title = (params) => (params.name === null ? "Subscriptions" : inline(params.name));

export default function Subscriptions({ params }) {
  return params.name === null
    ? html`<${SubscriptionList} query=${params.query} />`
    : html`<${OneSubscription} key=${params.name} name=${params.name} />`;
}
