import { MCP_VERSIONS, type McpSessionVersion, type McpVersion } from '../../domain/mcp.ts'
import { packageVersion } from '../../domain/version.ts'

/** The revision without sessions, in which each request states its version. */
export const STATELESS: McpVersion = '2026-07-28'
/** The revision that `initialize` agrees on if the client requests one that the gateway does not know. */
export const USUAL_SESSION: McpSessionVersion = '2025-11-25'

/** Whether a revision has sessions, which begin with `initialize`. */
export function hasSessions(version: string): version is McpSessionVersion {
  return version !== STATELESS && MCP_VERSIONS.some((one) => one === version)
}

/** Members of `_meta` that the protocol defines. */
export const META = {
  version: 'io.modelcontextprotocol/protocolVersion',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  logLevel: 'io.modelcontextprotocol/logLevel',
  serverInfo: 'io.modelcontextprotocol/serverInfo',
} as const

/** Prefix of those members. */
const RESERVED = 'io.modelcontextprotocol/'

/** Error codes of JSON-RPC and of the protocol. */
export const CODES = {
  parse: -32_700,
  request: -32_600,
  method: -32_601,
  params: -32_602,
  /** Of clients and servers before 2026-07-28. */
  resource: -32_002,
  header: -32_020,
  capability: -32_021,
  version: -32_022,
} as const

/** An error for a client, as JSON-RPC states it. */
export class McpError extends Error {
  readonly code: number
  readonly data: unknown
  /** HTTP status of the answer. */
  readonly status: number

  constructor(
    code: number,
    message: string,
    { data, status = 200 }: { data?: unknown; status?: number } = {},
  ) {
    super(message)
    this.name = 'McpError'
    this.code = code
    this.data = data
    this.status = status
  }
}

/** An object of a message, whose members come from outside. */
export type Fields = Readonly<Record<string, unknown>>

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function asFields(value: unknown): Fields {
  return isObject(value) ? value : {}
}

/** Who the gateway is, towards clients and servers. */
export function gatewayInfo(): Fields {
  return { name: 'sluice', version: packageVersion() }
}

/** The members of a `_meta` that pass to the other side: trace context and foreign members. */
export function foreignMeta(meta: unknown): Fields {
  return Object.fromEntries(
    Object.entries(asFields(meta)).filter(([name]) => name !== 'progressToken' && !name.startsWith(RESERVED)),
  )
}

const ENCODED = /^=\?base64\?(.*)\?=$/s

/** A value as a header, in base64 if it cannot stand there as it is. */
export function headerValue(value: string): string {
  const isPlain = /^[\t -~]*$/.test(value) && value.trim() === value && !ENCODED.test(value)
  return isPlain ? value : `=?base64?${Buffer.from(value).toString('base64')}?=`
}

/** The value of a header; undefined if it is not valid base64. */
export function headerText(header: string): string | undefined {
  const encoded = ENCODED.exec(header)?.[1]
  if (encoded === undefined) return header
  const bytes = Buffer.from(encoded, 'base64')
  const text = bytes.toString()
  return bytes.toString('base64') === encoded && Buffer.from(text).equals(bytes) ? text : undefined
}

/** Severities of log messages, the least first. */
const LEVELS: readonly unknown[] = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
]

/** Whether a message of this level is sent to a client that wants messages from `least` on. */
export function isLogged(level: unknown, least: unknown): boolean {
  const from = LEVELS.indexOf(least)
  return from !== -1 && LEVELS.indexOf(level) >= from
}
