// The width of an element as it changes, for pictures that are laid out by it.
//
// const [ref, width] = useWidth()   `width` is 0 until the element is on the screen
import { useLayoutEffect, useRef, useState } from "../../html.js";

export function useWidth() {
  const ref = useRef(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    if (!ref.current) return undefined;
    setWidth(Math.floor(ref.current.clientWidth));
    const watch = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    watch.observe(ref.current);
    return () => watch.disconnect();
  }, []);
  return [ref, width];
}
