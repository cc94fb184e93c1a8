// What the page keeps: in the storage of the browser, or in memory where a frame of another site has none.

function memory() {
  const kept = new Map();
  return {
    getItem: (name) => kept.get(name) ?? null,
    setItem: (name, value) => kept.set(name, value),
    removeItem: (name) => kept.delete(name),
  };
}

function found(name) {
  try {
    return window[name];
  } catch { // a SecurityError
    return memory();
  }
}

function lasts() {
  try {
    return Boolean(window.localStorage);
  } catch {
    return false;
  }
}

export const lasting = lasts(); // whether what is kept is there after a reload
export const ofSession = found("sessionStorage");
export const ofBrowser = found("localStorage");
