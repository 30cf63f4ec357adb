import { LRUCache } from 'lru-cache'
import { untilAborted } from '../../upstreams/until-aborted.ts'
import { LISTS, type ListName, validEntries } from './listed-entries.ts'
import { asFields, CODES, type Fields, isObject, STATELESS } from './protocol.ts'
import type { ServerConnection } from './server-connection.ts'
import { ServerFailure } from './server-transport.ts'

const MAX_PAGES = 100
const MAX_ENTRIES = 2_000
const MAX_BYTES = 4 * 1_048_576
const MAX_TTL_MS = 3_600_000
/** Maximum milliseconds for which a list waits for one server. */
const MAX_WAIT_MS = 10_000
/** Maximum bytes of the lists of single API keys that are kept for one server. */
const MAX_PRIVATE_BYTES = 16 * 1_048_576

/** A list of one server. */
export interface ServerList {
  /** Valid entries, as the server gave them. */
  readonly entries: readonly Fields[]
  /** Entries that are left out. */
  readonly invalid: readonly Fields[]
  /** When the list was read, and until when it may be shown, by `performance.now()`. */
  readonly readMs: number
  readonly untilMs: number
}

/** For whom a list is read. */
export interface ListReader {
  readonly tokenId: number
  /** Allocates memory for what the server sends. Throws if there is none. */
  readonly take?: (bytes: number) => void
}

interface KeptList extends ServerList {
  readonly bytes: number
}

/**
 * The lists of one server. Those that the server calls public are shared, all others belong to one API key.
 * `docs/mcp.md: Lists`.
 */
export class ServerLists {
  readonly #connection: ServerConnection
  readonly #shared = new Map<ListName, KeptList>()
  readonly #private = new LRUCache<string, KeptList>({
    maxSize: MAX_PRIVATE_BYTES,
    sizeCalculation: ({ bytes }) => bytes + 1_000,
  })
  readonly #asked = new Map<string, Promise<ServerList>>()

  constructor(connection: ServerConnection) {
    this.#connection = connection
  }

  /**
   * Resolves to a list as this API key may see it. Rejects with `ServerFailure`. `ageMs`: age up to which a list serves
   * that the server does not want to be kept, because it is not shown. Concurrent readers of an API key read once, with the
   * memory of the first.
   */
  async get(list: ListName, reader: ListReader, ageMs = 0): Promise<ServerList> {
    const key = `${list} ${reader.tokenId}`
    const known = this.#shared.get(list) ?? this.#private.get(key)
    const nowMs = performance.now()
    if (known && (nowMs < known.untilMs || nowMs - known.readMs < ageMs)) return known
    let asked = this.#asked.get(key)
    if (!asked) {
      asked = this.#read(list, reader).finally(() => this.#asked.delete(key))
      this.#asked.set(key, asked)
    }
    return asked
  }

  /** Whether a list that was read before, for any API key, has an entry of this name. */
  hasListed(list: 'tools' | 'prompts', name: string): boolean {
    const ofKeys = [...this.#private].flatMap(([key, one]) => (key.startsWith(`${list} `) ? one : []))
    return [this.#shared.get(list), ...ofKeys].some((one) =>
      one?.entries.some((entry) => entry['name'] === name),
    )
  }

  async #read(list: ListName, reader: ListReader): Promise<ServerList> {
    const { server } = this.#connection
    const waitMs = Math.min(server.timeout, MAX_WAIT_MS)
    const controller = new AbortController()
    const timer = setTimeout(
      () => controller.abort(new ServerFailure('server_timeout', `no list in ${waitMs} ms`)),
      waitMs,
    )
    try {
      return await this.#gather(list, reader, controller.signal)
    } finally {
      clearTimeout(timer)
    }
  }

  async #gather(list: ListName, { tokenId, take }: ListReader, signal: AbortSignal): Promise<ServerList> {
    const { method, member, capability } = LISTS[list]
    const { server } = this.#connection
    const beganMs = performance.now()
    const capabilities = await untilAborted(this.#connection.capabilities(tokenId), signal)
    const entries: unknown[] = []
    let bytes = 0
    let ttlMs = server.list_ttl
    let isShared = false
    let cursor: string | undefined
    let pages = 0
    let isLast = !capabilities.has(capability)
    while (!isLast) {
      if (pages === MAX_PAGES) throw new ServerFailure('server_unavailable', `more than ${MAX_PAGES} pages`)
      const params: Fields = cursor === undefined ? {} : { cursor }
      const reply = await this.#connection.request({ method, params, tokenId, signal, take })
      if (reply.error?.code === CODES.method) break
      if (!reply.result) throw new ServerFailure('server_unavailable', `${method} is an error`)
      const { [member]: found, nextCursor } = reply.result
      if (!Array.isArray(found)) throw new ServerFailure('server_answer', `${method} has no list`)
      // Counted before they are copied: a call cannot have as many arguments as a server can send entries.
      if (entries.length + found.length > MAX_ENTRIES)
        throw new ServerFailure('server_unavailable', 'its list has too many entries')
      entries.push(...(found as unknown[]))
      bytes += JSON.stringify(found).length
      if (bytes > MAX_BYTES) throw new ServerFailure('server_unavailable', 'its list is too large')
      if (reply.version === STATELESS) {
        ttlMs = Math.min(pages === 0 ? MAX_TTL_MS : ttlMs, ttlOf(reply.result))
        isShared = (isShared || pages === 0) && reply.result['cacheScope'] === 'public'
      }
      cursor = typeof nextCursor === 'string' && nextCursor !== '' ? nextCursor : undefined
      isLast = cursor === undefined
      pages += 1
    }
    const valid = validEntries(server.name, list, entries)
    const isValid = new Set(valid)
    const invalid = entries.filter(isObject).filter((one) => !isValid.has(one))
    const kept = { entries: valid, invalid, readMs: beganMs, untilMs: beganMs + ttlMs, bytes }
    const key = `${list} ${tokenId}`
    this.#shared.delete(list)
    this.#private.delete(key)
    if (isShared) this.#shared.set(list, kept)
    else this.#private.set(key, kept)
    return kept
  }
}

function ttlOf(result: Fields): number {
  const { ttlMs } = asFields(result)
  return typeof ttlMs === 'number' && ttlMs > 0 ? Math.min(ttlMs, MAX_TTL_MS) : 0
}
