// Vendored plain scripts, fetched when a view first needs them.
//
// uPlot()        -> Promise of the constructor uPlot
// CodeMirror()   -> Promise of CodeMirror 5 with the modes anabranch and sql, hints, runMode and matching brackets
const begun = new Map();

function script(path) {
  if (!begun.has(path)) {
    begun.set(
      path,
      new Promise((done, failed) => {
        const element = document.createElement("script");
        element.src = `/page/vendor/${path}`;
        element.async = false; // in the order in which they were asked for
        element.onload = done;
        element.onerror = () => {
          begun.delete(path);
          element.remove();
          failed(new Error(`a part of the page could not be loaded: ${path}`));
        };
        document.head.append(element);
      }),
    );
  }
  return begun.get(path);
}

function style(path) {
  if (begun.has(path)) return;
  begun.set(path, true);
  const element = document.createElement("link");
  element.rel = "stylesheet";
  element.href = `/page/vendor/${path}`;
  // in front of our own styles, which adapt it to the theme
  document.head.insertBefore(element, document.head.querySelector('link[rel="stylesheet"]'));
}

export async function uPlot() {
  style("uplot/uPlot.min.css");
  await script("uplot/uPlot.iife.min.js");
  return window.uPlot;
}

// XQuery as CodeMirror knows it, which takes every < for the beginning of a tag, but for comparisons.
function defineMode(Mirror) {
  Mirror.defineMode("anabranch", (config) => {
    const xquery = Mirror.getMode(config, "xquery");
    const between = xquery.startState().tokenize; // what reads where no tag, string or comment is open
    return {
      ...xquery,
      token(stream, state) {
        if (state.tokenize === between && stream.match(/^<(?==|\s|\d|\$|\()=?/)) return "keyword";
        return xquery.token(stream, state);
      },
    };
  });
}

export async function CodeMirror() {
  style("codemirror/codemirror.css");
  style("codemirror/show-hint.css");
  await Promise.all(
    ["codemirror", "xquery", "sql", "show-hint", "runmode", "matchbrackets"].map((name) => script(`codemirror/${name}.js`)),
  );
  if (!Object.hasOwn(window.CodeMirror.modes, "anabranch")) defineMode(window.CodeMirror);
  return window.CodeMirror;
}
