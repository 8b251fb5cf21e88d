// The few functions for elements that the page needs.

type Child = Node | string | null | false;

/** An element with attributes and children; attributes that begin with `on` are listeners. */
export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Record<string, string | number | boolean | ((event: Event) => void)> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false) made.setAttribute(key, String(value));
  }
  made.append(...children.filter((child): child is Node | string => child !== null && child !== false));
  return made;
}

/** The page's element with this name, which must exist. */
export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no element ${id}`);
  return found;
}

export function fill(id: string, ...children: Child[]): void {
  byId(id).replaceChildren(...children.filter((child): child is Node | string => child !== null && child !== false));
}
