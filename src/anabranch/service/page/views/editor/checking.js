// Checking while typing: the service is asked once typing rests, and an older question gives way to a newer one.
//
// useCheck(query, language)   a hook: {checked, checking, failure}; `checked` is the answer of POST /api/check for
//                             `checked.text`, the newest text that was judged, or null; `failure` an ApiError
import { useEffect, useState } from "../../html.js";
import { post, aborted } from "../../api.js";

const REST = 250;

export function useCheck(query, language) {
  const [state, setState] = useState({ checked: null, failure: null });
  const blank = query.trim() === "";
  useEffect(() => {
    if (blank) {
      setState({ checked: null, failure: null });
      return undefined;
    }
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const answer = await post("/check", { query, ...(language ? { language } : {}) }, { signal: stop.signal });
        setState({ checked: { ...answer, text: query }, failure: null });
      } catch (error) {
        if (!aborted(error)) setState({ checked: null, failure: error });
      }
    }, REST);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [query, language, blank]);
  return { ...state, checking: !blank && state.failure === null && state.checked?.text !== query };
}
