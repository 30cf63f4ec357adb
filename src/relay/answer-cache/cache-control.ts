/** What the `cache-control` header of a request says about kept answers. `docs/answer-cache.md: By request`. */
export interface CacheControl {
  /** Neither read kept answers nor keep the new one. */
  readonly noStore: boolean
  /** Ask the upstream again, and keep the new answer. */
  readonly noCache: boolean
  /** Maximum age of an answer in milliseconds; undefined if the request names none. */
  readonly maxAgeMs: number | undefined
}

const NOTHING_SAID: CacheControl = { noStore: false, noCache: false, maxAgeMs: undefined }
/** Maximum length of the header; longer ones are ignored. */
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
