import type { Decimal } from './decimal.ts'
import type { JsonObject } from './json.ts'
import type { RateLimit } from './rate-limit.ts'

/** Revisions of the Model Context Protocol that the gateway speaks, the newest first. */
export const MCP_VERSIONS = ['2026-07-28', '2025-11-25', '2025-06-18'] as const

export type McpVersion = (typeof MCP_VERSIONS)[number]

/** Revisions with sessions, which begin with `initialize`. */
export type McpSessionVersion = Exclude<McpVersion, '2026-07-28'>

/** How the gateway authenticates to a server. */
export type McpAuth =
  | { readonly kind: 'none' }
  | { readonly kind: 'header'; readonly headers: Readonly<Record<string, string>> }
  | {
      readonly kind: 'oauth_client'
      readonly token_url: string
      readonly client_id: string
      readonly client_secret: string
      readonly scope: string | undefined
    }

/** A server of tools behind the gateway: `docs/mcp.md: Servers`. */
export interface McpServer {
  readonly name: string
  readonly url: string
  /** The revision that the server speaks; `auto` if the gateway finds it out. */
  readonly era: 'auto' | McpVersion
  readonly auth: McpAuth
  /** Maximum milliseconds of a whole request. */
  readonly timeout: number
  /** Milliseconds for which the lists of a server without `ttlMs` are kept. */
  readonly list_ttl: number
  /** Maximum size of an answer in bytes. */
  readonly most_answer: number
  readonly price: McpPrice
  /** Limit on the calls of each API key. */
  readonly rate_limit: RateLimit
  readonly approve: McpApproval
}

/** Whose definitions of tools clients see: `first`, those first seen; `always`, those that an administrator approved. */
export const MCP_APPROVALS = ['first', 'always', 'never'] as const

export type McpApproval = (typeof MCP_APPROVALS)[number]

/** The approved definition of a tool. */
export interface ApprovedTool {
  readonly digest: string
  /** Empty if it is too large to be kept. */
  readonly definition: JsonObject
}

/** Prices in USD before the group's ratio. `tools` are named as the server names them. */
export interface McpPrice {
  readonly call: Decimal
  readonly tools: ReadonlyMap<string, Decimal>
}

/** Tools that some callers may use: `docs/mcp.md: Toolsets`. */
export interface McpToolset {
  readonly name: string
  /** Patterns `SERVER.NAME`, in which `*` stands for any characters. */
  readonly tools: readonly string[]
  /** Undefined if the toolset is not limited to groups; everybody has it if it is not limited to users either. */
  readonly groups: readonly string[] | undefined
  readonly users: readonly string[] | undefined
}

export interface McpSettings {
  readonly servers: readonly McpServer[]
  readonly toolsets: readonly McpToolset[]
  /** Whether callers without a toolset have no tools: there is a toolset, or was one. */
  readonly isRestricted: boolean
  /** The approved definitions of tools, by their listed names. */
  readonly approved: ReadonlyMap<string, ApprovedTool>
}

/** Splits an entry of a toolset, `SERVER.NAME`. */
export function splitPattern(pattern: string): { readonly server: string; readonly name: string } {
  const at = pattern.indexOf('.')
  return { server: pattern.slice(0, at), name: pattern.slice(at + 1) }
}
