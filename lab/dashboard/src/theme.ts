// Light or dark: the system's setting, until the reader switches.

const KEY = "bulla-theme";
const THEMES = ["system", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

export function theme(): void {
  const inputs = document.querySelectorAll<HTMLInputElement>("input[name=theme]");
  const set = (theme: Theme) => {
    if (theme === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
  };
  const kept = THEMES.find((theme) => theme === recall()) ?? "system";
  set(kept);
  for (const input of inputs) {
    input.checked = input.value === kept;
    input.addEventListener("change", () => {
      const chosen = THEMES.find((theme) => theme === input.value) ?? "system";
      set(chosen);
      keep(chosen);
    });
  }
}

// If the browser stores nothing, as some do for pages from the file system, the switch still works.
function recall(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function keep(theme: Theme): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // As above.
  }
}
