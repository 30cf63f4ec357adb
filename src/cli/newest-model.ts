const DATE = /-20\d\d-?\d\d-?\d\d/

/** A version of one or two digits; not a size (`8b`, `8x7b`) or part of a date (`2508`). */
const VERSION = /(?<![\d.])(\d{1,2})(?:[.-](\d{1,2}))?(?![\d.a-z])/i

/** The model with the highest version in its name; of several, the one with the shortest name. */
export function newestModel(models: readonly string[]): string | undefined {
  return [...models].sort((a, b) => versionOf(b) - versionOf(a) || a.length - b.length)[0]
}

/** The version as a number: major × 100 + minor; 0 if there is none. */
function versionOf(model: string): number {
  const [, major = 0, minor = 0] = VERSION.exec(model.replace(DATE, '')) ?? []
  return Number(major) * 100 + Number(minor)
}
