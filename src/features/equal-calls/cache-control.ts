/** What the `cache-control` header of a request says about kept answers. `docs/answer-cache.md: By request`. */
export interface CacheControl {
  /** Whether kept answers must not be read, and the new answer must not be kept. */
  readonly noStore: boolean
  /** Whether the upstream must be asked again; its new answer is kept. */
  readonly noCache: boolean
  /** Maximum age of an answer in milliseconds; undefined if the request names none. */
  readonly maxAgeMs: number | undefined
}

const NOTHING_SAID: CacheControl = { noStore: false, noCache: false, maxAgeMs: undefined }
/** Maximum length of the header in characters; a longer one is ignored. */
const MAX_LENGTH = 1_024

/** Reads the header; directives that cannot be read are ignored. */
export function readCacheControl(header: string | undefined): CacheControl {
  if (header === undefined || header.length > MAX_LENGTH) return NOTHING_SAID
  const directives = header.split(',').map((one) => one.trim().toLowerCase())
  const ages = directives.flatMap((one) => {
    const digits = /^max-age\s*=\s*"?(\d{1,9})"?$/.exec(one)?.[1]
    return digits === undefined ? [] : [Number(digits) * 1_000]
  })
  const maxAgeMs = ages.length === 0 ? undefined : Math.min(...ages)
  return {
    noStore: directives.includes('no-store'),
    noCache: directives.includes('no-cache') || maxAgeMs === 0,
    maxAgeMs: maxAgeMs === 0 ? undefined : maxAgeMs,
  }
}
