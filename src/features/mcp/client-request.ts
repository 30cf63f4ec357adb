import { scanObject } from '@sluice/wire/json/json-scan'
import { parseExact } from '@sluice/wire/json/exact-json'
import { asGatewayError } from '../../errors.ts'
import { MCP_VERSIONS } from '../../domain/mcp.ts'
import type { Headers } from '../../http/request.ts'
import {
  asFields,
  CODES,
  type Fields,
  hasSessions,
  headerText,
  isObject,
  McpError,
  META,
  STATELESS,
} from './protocol.ts'
import { REQUEST_NAMES } from './server-call.ts'
import { NAMED_BY } from './server-connection.ts'

/** A message of a client. */
export interface ClientMessage {
  /** Undefined for a notification. */
  readonly id: string | number | undefined
  readonly method: string
  readonly params: Fields
}

/** Reads the message in a body. Throws `McpError`. */
export function readMessage(bytes: Buffer): ClientMessage {
  const first = bytes.toString('latin1', 0, 1_024).trimStart()[0]
  if (first === '[') throw invalid('expected one request: this revision has no batches')
  let message: Fields
  try {
    const scan = scanObject(bytes)
    REQUEST_NAMES.check(scan)
    message = asFields(parseExact(bytes.toString()))
  } catch (error) {
    const known = asGatewayError(error)
    if (!known) throw error
    if (isObject(parsed(bytes))) throw invalid(known.message)
    throw isJson(bytes)
      ? invalid('expected a JSON object')
      : new McpError(CODES.parse, known.message, { status: 400 })
  }
  const { jsonrpc, id, method, params } = message
  if (jsonrpc !== '2.0') throw invalid('expected jsonrpc "2.0"')
  if (typeof method !== 'string') throw invalid('expected a method: the gateway sends no requests')
  if ('result' in message || 'error' in message) throw invalid('expected a request without a result')
  if (params !== undefined && !isObject(params)) throw invalid('expected params to be an object')
  if ('id' in message && typeof id !== 'string' && !Number.isSafeInteger(id))
    throw invalid('expected id to be a text or a whole number')
  return { id: id as ClientMessage['id'], method, params: asFields(params) }
}

function invalid(message: string): McpError {
  return new McpError(CODES.request, message, { status: 400 })
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}

function isJson(bytes: Buffer): boolean {
  return parsed(bytes) !== undefined
}

/** Whether a request is one of 2026-07-28 or later, which states its revision itself. */
export function isStateless({ method, params }: ClientMessage, headers: Headers): boolean {
  const header = headers['mcp-protocol-version']
  if (asFields(params['_meta'])[META.version] !== undefined || header === STATELESS) return true
  return header !== undefined && !hasSessions(header) && method !== 'initialize'
}

/** Checks what a request without a session must state, in its headers and in `_meta`. Throws `McpError`. */
export function checkStateless({ method, params }: ClientMessage, headers: Headers): void {
  const meta = asFields(params['_meta'])
  const { [META.version]: version, [META.capabilities]: capabilities } = meta
  const header = headers['mcp-protocol-version']
  const given = headers['mcp-method']
  if (given === undefined) throw mismatch('the header Mcp-Method is missing')
  if (given !== method) throw mismatch('the header Mcp-Method differs from the method')
  const named = NAMED_BY.get(method)
  if (named !== undefined) {
    const name = headers['mcp-name']
    if (name === undefined) throw mismatch('the header Mcp-Name is missing')
    if (headerText(name) !== params[named]) throw mismatch(`the header Mcp-Name differs from ${named}`)
  }
  if (header === undefined) throw mismatch('the header MCP-Protocol-Version is missing')
  if (typeof version !== 'string') throw missing(META.version)
  if (header !== version) throw mismatch('the header MCP-Protocol-Version differs from _meta')
  if (version !== STATELESS)
    throw new McpError(CODES.version, 'Unsupported protocol version', {
      status: 400,
      data: { supported: [...MCP_VERSIONS], requested: version },
    })
  if (!isObject(capabilities)) throw missing(META.capabilities)
}

export function mismatch(reason: string): McpError {
  return new McpError(CODES.header, `Header mismatch: ${reason}`, { status: 400 })
}

function missing(name: string): McpError {
  return new McpError(CODES.params, `Invalid params: _meta has no ${name}`, { status: 400 })
}
