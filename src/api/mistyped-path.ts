import { findNearest } from '../domain/nearest.ts'
import type { Endpoint } from './endpoint.ts'

/** Maximum lengths, in characters, of a path and of a misspelt part for which a path is suggested. */
const MAX_LENGTH = 200
const MAX_MISSPELT_LENGTH = 48

/**
 * Maximum edit distance between a misspelt part and the right one. It is small, because other APIs have
 * similar paths.
 */
const MAX_EDITS = 3
const VERSION = /^v\d+(?:alpha|beta)?$/

/** Words that may precede the version in base URLs of this gateway or of vendors. */
const PREFIXES = new Set(['api', 'openai', 'anthropic'])
const MODEL = '/v1/models/{model_id}'

/** Path of a method of a model in `v1beta`, such as `:generateContent`; only this version has all methods. */
const METHOD = /^(\/v1beta\/models\/):model\*:(\w+)$/

/** The method of a model at the end of a path: `:generateContent`. */
const GIVEN_METHOD = /(?::|%3a)([^:/]+)$/

/** A path of the API, split for comparison. */
interface Candidate {
  readonly path: string
  readonly version: string
  /** The part of the path after the version: `chat/completions`. */
  readonly rest: string
}

/**
 * Suggests the path that was meant by a mistyped one, which may have a missing, doubled or different version,
 * a repeated base URL, capitals, extra slashes or a wrong letter. `docs/api.md: Errors`.
 */
export class PathSuggestions {
  readonly #candidates: readonly Candidate[]
  readonly #words: ReadonlySet<string>
  /** Paths of the methods of models, by method name such as `generateContent`. */
  readonly #methods: ReadonlyMap<string, string>

  constructor(routes: readonly Endpoint[]) {
    this.#candidates = routes.flatMap(({ path }) => {
      const [, version = '', ...rest] = path.split('/')
      return VERSION.test(version) && !path.includes(':') ? [{ path, version, rest: rest.join('/') }] : []
    })
    this.#methods = new Map(
      routes.flatMap(({ path }) => {
        const [, start, name] = METHOD.exec(path) ?? []
        return name === undefined ? [] : [[name, `${start}{model}:${name}`] as const]
      }),
    )
    this.#words = new Set(this.#candidates.flatMap(({ rest }) => rest.split('/')))
  }

  /** Returns the known path closest to a mistyped one; undefined if none is close. */
  suggest(path: string): string | undefined {
    if (path.length > MAX_LENGTH) return undefined
    const segments = path.toLowerCase().split('/').filter(Boolean)
    return (
      this.#repeated(segments) ??
      this.#modelPath(segments) ??
      this.#misspelt(segments) ??
      this.#prolonged(segments)
    )
  }

  /** A known path at the end of the given one, if only versions, prefixes and words of the API precede it. */
  #repeated(segments: readonly string[]): string | undefined {
    for (let start = 0; start < segments.length; start++) {
      const before = segments.slice(0, start)
      if (!before.every((word) => isPrefix(word) || this.#words.has(word))) return undefined
      const found = this.#at(segments.slice(start).join('/'), before)
      if (found !== undefined) return found
    }
    return undefined
  }

  /**
   * The known path that ends with `rest` and has the last version named in `before`; without such a path, the
   * first one that ends with `rest`.
   */
  #at(rest: string, before: readonly string[]): string | undefined {
    const same = this.#candidates.filter((candidate) => candidate.rest === rest)
    const version = before.findLast((word) => VERSION.test(word))
    return (same.find((candidate) => candidate.version === version) ?? same[0])?.path
  }

  #modelPath(segments: readonly string[]): string | undefined {
    const start = segments.findIndex((word) => !isPrefix(word))
    if (segments[start] !== 'models' || segments.length <= start + 1) return undefined
    const method = GIVEN_METHOD.exec(segments.at(-1) ?? '')?.[1]
    const name =
      method === undefined || method.length > MAX_MISSPELT_LENGTH
        ? undefined
        : findNearest(method, this.#methods.keys())
    if (name !== undefined) return this.#methods.get(name)
    return segments.includes('v1beta') ? undefined : MODEL
  }

  /** A known path at the start of the given one, if the given one has one segment too many at its end. */
  #prolonged(segments: readonly string[]): string | undefined {
    const start = segments.findIndex((word) => !isPrefix(word))
    const rest = segments.slice(start, -1)
    return start < 0 || rest.length < 2 ? undefined : this.#at(rest.join('/'), segments.slice(0, start))
  }

  #misspelt(segments: readonly string[]): string | undefined {
    const start = segments.findIndex((word) => !isPrefix(word))
    const given = start === -1 ? '' : segments.slice(start).join('/')
    if (given === '' || given.length > MAX_MISSPELT_LENGTH) return undefined
    const rest = findNearest(
      given,
      this.#candidates.map((candidate) => candidate.rest),
      Math.min(MAX_EDITS, Math.floor(given.length / 3)),
    )
    return rest === undefined ? undefined : this.#at(rest, segments.slice(0, start))
  }
}

function isPrefix(word: string): boolean {
  return VERSION.test(word) || PREFIXES.has(word)
}
