import type { Endpoint } from './endpoint.ts'
import type { Area } from './envelopes.ts'
import { type PathParams, pathPattern } from './path-pattern.ts'

/** The endpoint that a request is for, and what stands in its path. */
export interface FoundEndpoint<Kind extends Endpoint> {
  readonly endpoint: Kind
  readonly params: PathParams
}

/** A path that takes other methods. */
export interface OtherMethods {
  readonly methods: readonly string[]
  readonly area: Area
}

/** Finds endpoints by method and path; one whose path is the same for all goes before one with parameters. */
export class RouteTable<Kind extends Endpoint> {
  readonly #byPath = new Map<string, Kind[]>()
  readonly #patterns: { readonly match: (path: string) => PathParams | undefined; readonly path: string }[] =
    []

  constructor(routes: readonly Kind[]) {
    for (const route of routes) {
      const same = this.#byPath.get(route.path)
      if (same) same.push(route)
      else {
        this.#byPath.set(route.path, [route])
        if (route.path.includes(':'))
          this.#patterns.push({ match: pathPattern(route.path), path: route.path })
      }
    }
  }

  /** Undefined where nothing is at the path. */
  find(method: string | undefined, path: string): FoundEndpoint<Kind> | OtherMethods | undefined {
    const pattern = this.#byPath.has(path) ? undefined : this.#patterned(path)
    const found = this.#byPath.get(pattern?.path ?? path)
    if (!found) return undefined
    const endpoint = found.find((one) => one.method === method)
    if (endpoint) return { endpoint, params: pattern?.params ?? {} }
    return { methods: found.map((one) => one.method), area: found[0]?.area ?? 'relay' }
  }

  #patterned(given: string): { path: string; params: PathParams } | undefined {
    for (const { match, path } of this.#patterns) {
      const params = match(given)
      if (params) return { path, params }
    }
    return undefined
  }
}
