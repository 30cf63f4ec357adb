import { isDeepStrictEqual } from 'node:util'
import type { McpServer, McpSettings } from '../../domain/mcp.ts'
import { ServerConnection } from './server-connection.ts'
import { ServerLists } from './server-lists.ts'
import { ServerTransport } from './server-transport.ts'

/** Interval, in milliseconds, at which idle sessions are ended. */
const LOOK_MS = 10_000

/** A server with what the gateway knows of it. */
export interface KnownServer {
  readonly server: McpServer
  readonly connection: ServerConnection
  readonly lists: ServerLists
}

/** The servers of the configuration. A server stays connected while what its connection depends on does not change. */
export class McpServers {
  readonly #transport: ServerTransport
  readonly #timer: NodeJS.Timeout
  #settings: McpSettings | undefined
  #known: ReadonlyMap<string, KnownServer> = new Map()

  constructor(mark: string) {
    this.#transport = new ServerTransport(mark)
    this.#timer = setInterval(() => this.#endIdleSessions(performance.now()), LOOK_MS).unref()
  }

  /** The servers by name, in the order of their names. */
  of(settings: McpSettings): ReadonlyMap<string, KnownServer> {
    if (this.#settings === settings) return this.#known
    const before = this.#known
    const servers = settings.servers.toSorted((a, b) => (a.name < b.name ? -1 : 1))
    this.#known = new Map(servers.map((server) => [server.name, this.#keep(server)]))
    this.#settings = settings
    for (const [name, { connection }] of before)
      if (this.#known.get(name)?.connection !== connection) connection.close()
    return this.#known
  }

  #keep(server: McpServer): KnownServer {
    const known = this.#known.get(server.name)
    const { price, rate_limit, approve } = server
    if (known && isDeepStrictEqual({ ...known.server, price, rate_limit, approve }, server))
      return { ...known, server }
    const connection = new ServerConnection(server, this.#transport)
    return { server, connection, lists: new ServerLists(connection) }
  }

  #endIdleSessions(nowMs: number): void {
    for (const { connection } of this.#known.values()) connection.endIdleSessions(nowMs)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#transport.close()
  }
}
