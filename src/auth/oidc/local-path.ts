const BASE = 'http://gateway.invalid'

/**
 * A path of this gateway with its query, as a browser would resolve it; `/` for anything that leads
 * elsewhere: `//host`, `/\host`, other schemes.
 */
export function localPath(given: string | undefined): string {
  if (given === undefined || !given.startsWith('/') || given.length > 2000) return '/'
  const url = URL.parse(given, BASE)
  // The path may have become `//host`, by segments such as `/.//host`.
  if (url?.origin !== BASE || url.pathname.startsWith('//')) return '/'
  return url.pathname + url.search + url.hash
}
