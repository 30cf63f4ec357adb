import { byCodePoints, listedName, type ListName } from './listed-entries.ts'
import type { Fields } from './protocol.ts'
import type { KnownServer } from './servers.ts'
import type { ListReader } from './server-lists.ts'
import { ServerFailure } from './server-transport.ts'
import type { ToolApprovals } from './tool-approvals.ts'
import type { ToolAccess } from './toolsets.ts'

/** Milliseconds for which a list without entries of any server may be kept. */
const EMPTY_TTL_MS = 60_000

/** The lists of all servers as one. */
export interface GatheredList {
  readonly entries: readonly Fields[]
  readonly ttlMs: number
  /** Names of the servers that have failed, whose entries are missing. */
  readonly unavailable: readonly string[]
}

/** Gathers a list of these servers, which are in the order of their names. */
export async function gatherList(
  servers: readonly KnownServer[],
  list: ListName,
  reader: ListReader,
  access: ToolAccess,
  approvals: ToolApprovals,
): Promise<GatheredList> {
  const isNamed = list === 'tools' || list === 'prompts'
  // Callers must neither wait for servers of which they have nothing, nor learn that these fail.
  const asked = servers.filter(({ server }) =>
    isNamed ? access.hasAny(server.name) : access.hasAll(server.name),
  )
  const unavailable: string[] = []
  let ttlMs: number | undefined
  const lists = await allEnded(
    asked.map(async ({ server, lists: known }): Promise<readonly Fields[]> => {
      try {
        const { entries, untilMs } = await known.get(list, reader)
        ttlMs = Math.min(ttlMs ?? Infinity, Math.max(0, Math.floor(untilMs - performance.now())))
        if (!isNamed) return entries
        const visible = list === 'tools' ? await approvals.visible(server, entries) : entries
        return visible
          .filter(({ name }) => access.has(server.name, String(name)))
          .map((entry) => ({ ...entry, name: listedName(server.name, String(entry['name'])) }))
      } catch (error) {
        if (!(error instanceof ServerFailure)) throw error
        unavailable.push(server.name)
        return []
      }
    }),
  )
  const all = lists.flat()
  return {
    entries: isNamed
      ? all.toSorted((a, b) => byCodePoints(String(a['name']), String(b['name'])))
      : withoutRepeated(all, list === 'resources' ? 'uri' : 'uriTemplate'),
    ttlMs: unavailable.length > 0 ? 0 : (ttlMs ?? EMPTY_TTL_MS),
    unavailable: unavailable.toSorted(),
  }
}

/** Resolves like `Promise.all`, but not before all have ended: they take memory that is returned after the request. */
export async function allEnded<Value>(promises: readonly Promise<Value>[]): Promise<readonly Value[]> {
  await Promise.allSettled(promises)
  return Promise.all(promises)
}

// A resource is read from the first server that lists it.
function withoutRepeated(entries: readonly Fields[], member: string): readonly Fields[] {
  const seen = new Set<unknown>()
  return entries.filter((entry) => !seen.has(entry[member]) && seen.add(entry[member]))
}

const MAX_TEMPLATE = 1_024
const MAX_URI = 8_192
/** Maximum number of steps in which the templates of a server are compared with a URI, some 50 ms. */
const MAX_STEPS = 4_000_000

/**
 * Compares a URI with the templates of a server one after the other. Servers and clients choose both, so a server with many
 * long templates has only the first ones of them compared with a long URI.
 */
export function templateMatcher(uri: string): (template: string) => boolean {
  let left = MAX_STEPS
  return (template) => {
    if (template.length > MAX_TEMPLATE || uri.length > MAX_URI) return false
    const parts = template.split(/(\{[^{}]*\})/).filter((part) => part !== '')
    left -= parts.length * (uri.length + 1)
    return left >= 0 && partsFit(parts, uri)
  }
}

/** Whether a URI could have been made with a template (RFC 6570), given as its texts and expressions. */
function partsFit(parts: readonly string[], uri: string): boolean {
  /** The positions in the URI at which the parts of the template so far may end. */
  let ends = new Uint8Array(uri.length + 1)
  ends[0] = 1
  for (const part of parts) {
    const next = new Uint8Array(uri.length + 1)
    if (!part.startsWith('{')) {
      for (let at = 0; at < ends.length; at++)
        if (ends[at] && uri.startsWith(part, at)) next[at + part.length] = 1
    } else {
      const isWide = /^\{[+#/.;?&]/.test(part)
      let isOpen = false
      for (let at = 0; at < ends.length; at++) {
        if (ends[at]) isOpen = true
        if (isOpen) next[at] = 1
        if (!isWide && /[/?#]/.test(uri[at] ?? '')) isOpen = false
      }
    }
    ends = next
  }
  return ends[uri.length] === 1
}
