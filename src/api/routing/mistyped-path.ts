import { nearest } from '../../domain/nearest.ts'
import type { Endpoint } from '../endpoint.ts'

/** Longer paths are no slips, and longer words are not misspelt ones. */
const MAX_LENGTH = 200
const MAX_MISSPELT_LENGTH = 48
const VERSION = /^v\d+(?:beta)?$/
/** Prefixes that base addresses have before the version, here or at the vendors. */
const PREFIXES = new Set(['api', 'openai', 'anthropic'])
const MODEL = '/v1/models/{model_id}'

/** A path of the API as it is compared. */
interface Candidate {
  readonly path: string
  readonly version: string
  /** The part behind the version: `chat/completions`. */
  readonly rest: string
}

/**
 * Finds the path of the API that a wrong one most probably stands for: a version that is missing, doubled or
 * another, a base address that is repeated, capitals and slashes too many, a letter wrong. `docs/api.md:
 * Errors`.
 */
export class PathSuggestions {
  readonly #candidates: readonly Candidate[]
  readonly #words: ReadonlySet<string>

  constructor(routes: readonly Endpoint[]) {
    this.#candidates = routes.flatMap(({ path }) => {
      const [, version = '', ...rest] = path.split('/')
      return VERSION.test(version) && !path.includes(':') ? [{ path, version, rest: rest.join('/') }] : []
    })
    this.#words = new Set(this.#candidates.flatMap(({ rest }) => rest.split('/')))
  }

  /** The path that was meant; undefined where none is near. */
  suggest(path: string): string | undefined {
    if (path.length > MAX_LENGTH) return undefined
    const segments = path.toLowerCase().split('/').filter(Boolean)
    return this.#repeated(segments) ?? modelPath(segments) ?? this.#misspelt(segments)
  }

  /**
   * The one that stands at the end, if nothing but versions, prefixes and words of the API stands before it.
   */
  #repeated(segments: readonly string[]): string | undefined {
    for (let start = 0; start < segments.length; start++) {
      const before = segments.slice(0, start)
      if (!before.every((word) => isPrefix(word) || this.#words.has(word))) return undefined
      const found = this.#at(segments.slice(start).join('/'), before)
      if (found !== undefined) return found
    }
    return undefined
  }

  /** The version that was written last, else the first in the table. */
  #at(rest: string, before: readonly string[]): string | undefined {
    const same = this.#candidates.filter((candidate) => candidate.rest === rest)
    const written = before.findLast((word) => VERSION.test(word))
    return (same.find(({ version }) => version === written) ?? same[0])?.path
  }

  #misspelt(segments: readonly string[]): string | undefined {
    const start = segments.findIndex((word) => !isPrefix(word))
    const given = start === -1 ? '' : segments.slice(start).join('/')
    if (given === '' || given.length > MAX_MISSPELT_LENGTH) return undefined
    const rest = nearest(
      given,
      this.#candidates.map((candidate) => candidate.rest),
    )
    return rest === undefined ? undefined : this.#at(rest, segments.slice(0, start))
  }
}

function isPrefix(word: string): boolean {
  return VERSION.test(word) || PREFIXES.has(word)
}

// Below `/v1beta` models have methods, which are not here.
function modelPath(segments: readonly string[]): string | undefined {
  const start = segments.findIndex((word) => !isPrefix(word))
  const isModel = segments[start] === 'models' && segments.length > start + 1
  return isModel && !segments.includes('v1beta') ? MODEL : undefined
}
