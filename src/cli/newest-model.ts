const DATE = /-20\d\d-?\d\d-?\d\d/

/** One or two digits that are no size (`8b`, `8x7b`) and no part of a date (`2508`). */
const VERSION = /(?<![\d.])(\d{1,2})(?:[.-](\d{1,2}))?(?![\d.a-z])/i

/**
 * The model of the highest version that a name states; of several the shortest name, which is the plainest.
 */
export function newestModel(models: readonly string[]): string | undefined {
  return [...models].sort((a, b) => versionOf(b) - versionOf(a) || a.length - b.length)[0]
}

/** A version as one number: major × 100 + minor; 0 where the name states none. */
function versionOf(model: string): number {
  const [, major = 0, minor = 0] = VERSION.exec(model.replace(DATE, '')) ?? []
  return Number(major) * 100 + Number(minor)
}
