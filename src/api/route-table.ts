import type { Endpoint } from './endpoint.ts'
import type { Area } from './envelopes.ts'
import { type PathParams, pathPattern } from './routing/path-pattern.ts'

/** The endpoint that a request is for, and what stands in its path. */
export interface FoundEndpoint<Kind extends Endpoint> {
  readonly endpoint: Kind
  readonly params: PathParams
}

/** A path that takes other methods. */
export interface AllowedMethods {
  readonly methods: readonly string[]
  readonly area: Area
}

/** Finds endpoints by method and path; one whose path is the same for all goes before one with parameters. */
export class RouteTable<Kind extends Endpoint> {
  /** As they are found where nothing stands in the path. */
  readonly #byPath = new Map<string, FoundEndpoint<Kind>[]>()
  readonly #patterns: { readonly match: (path: string) => PathParams | undefined; readonly path: string }[] =
    []

  constructor(routes: readonly Kind[]) {
    for (const route of routes) {
      const found = { endpoint: route, params: {} }
      const same = this.#byPath.get(route.path)
      if (same) same.push(found)
      else {
        this.#byPath.set(route.path, [found])
        if (route.path.includes(':'))
          this.#patterns.push({ match: pathPattern(route.path), path: route.path })
      }
    }
  }

  /** Undefined where nothing is at the path. HEAD is answered where GET is (RFC 9110, 9.3.2). */
  find(method: string, path: string): FoundEndpoint<Kind> | AllowedMethods | undefined {
    const pattern = this.#byPath.has(path) ? undefined : this.#patterned(path)
    const found = this.#byPath.get(pattern?.path ?? path)
    if (!found) return undefined
    const same = found.find(({ endpoint }) => takes(endpoint, method))
    if (same) return pattern ? { ...same, params: pattern.params } : same
    const methods = found.flatMap(({ endpoint }) =>
      takes(endpoint, 'HEAD') ? [endpoint.method, 'HEAD'] : endpoint.method,
    )
    return { methods, area: found[0]?.endpoint.area ?? 'relay' }
  }

  #patterned(given: string): { path: string; params: PathParams } | undefined {
    for (const { match, path } of this.#patterns) {
      const params = match(given)
      if (params) return { path, params }
    }
    return undefined
  }
}

function takes({ method, hasEffect }: Endpoint, asked: string): boolean {
  return asked === method || (asked === 'HEAD' && method === 'GET' && !hasEffect)
}
