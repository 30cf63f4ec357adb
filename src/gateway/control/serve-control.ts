import { rmSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import process from 'node:process'
import { HttpServer, type Refusal, type Response } from '@sluice/http1'
import type { Logger } from 'pino'
import { asGatewayError, GatewayError } from '../../errors.ts'
import { gatewayErrorOf } from '../../http/gateway-error.ts'
import { HEADER_NAMES, type Request } from '../../http/request.ts'
import type { AdministrationServices } from '../../management/services.ts'
import { commandOrigin, withAuditOrigin } from '../../management/audit-origin.ts'
import { quotaDisplay } from '../../management/gateway-status.ts'
import { StoreUnavailable } from '../../store/store-unavailable.ts'
import type { ControlFailure, GatewayGreeting } from './messages.ts'
import { socketPath } from './socket-path.ts'

/** Maximum size of an operation's input, in bytes. */
const BODY_LIMIT = 1024 * 1024
const MAX_CONNECTIONS = 64
const JSON_HEADERS = { 'content-type': 'application/json' }
/** Milliseconds for which running operations may continue once the gateway stops. */
const GRACE_MS = 5_000

/** Services that the control server needs. */
export interface ControlServices extends AdministrationServices {
  /** Data folder, locked by this process. */
  readonly dataDir: string
  readonly log: Logger
}

type AnyOperation = (services: AdministrationServices, input: unknown) => Promise<unknown>

/**
 * Listens for commands on a socket in the data folder. Only the folder's owner, who is the operator, can open
 * it. `POST /OPERATION` accepts and returns JSON. The server must be closed before the database.
 */
export async function serveControl(services: ControlServices): Promise<{ close(): Promise<void> }> {
  const socket = socketPath(services.dataDir)
  const running = new Set<Promise<void>>()
  const server = new HttpServer({
    headerNames: HEADER_NAMES,
    listener(request, response) {
      const answered = respond(services, request, response).finally(() => running.delete(answered))
      running.add(answered)
    },
    refusalFor: (error) => errorResponse(gatewayErrorOf(error)),
    limits: { total: MAX_CONNECTIONS, perBlock: MAX_CONNECTIONS, reserve: 0 },
  })
  const listener = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (connected) =>
    server.accept(connected),
  )
  // A socket file at this path is stale: this process has locked the folder, so that no other process listens
  // in it.
  rmSync(socket.path, { force: true })
  await listenForOwner(listener, socket.path)
  return {
    async close() {
      const closed = new Promise<void>((resolve) => listener.close(() => resolve()))
      await Promise.race([Promise.all(running), graceTimeout()])
      server.close()
      await closed
      rmSync(socket.path, { force: true })
      socket.release()
    },
  }
}

// The umask makes the socket accessible only to its owner. It works from the start, because `listen` creates
// the file synchronously.
async function listenForOwner(server: Server, path: string): Promise<void> {
  const before = process.umask(0o177)
  const listening = new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.once('listening', resolve)
  })
  try {
    server.listen(path)
  } finally {
    process.umask(before)
  }
  await listening
}

async function respond(services: ControlServices, request: Request, response: Response): Promise<void> {
  response.closesConnection = true
  try {
    const value = JSON.stringify(await runOperation(services, request))
    response.writeHead(200, JSON_HEADERS).end(value)
  } catch (error) {
    const { status, headers, body } = errorResponse(gatewayErrorFrom(services.log, error))
    response.writeHead(status, headers).end(body)
  }
}

function errorResponse({ code, message, kind }: GatewayError): Refusal {
  const failure: ControlFailure = { error: { code, message } }
  return { status: kind.status, headers: JSON_HEADERS, body: Buffer.from(JSON.stringify(failure)) }
}

async function runOperation(services: ControlServices, request: Request): Promise<unknown> {
  const name = request.url.slice(1)
  if (name === '' && request.method === 'GET') {
    return { display: quotaDisplay(services.settings()) } satisfies GatewayGreeting
  }
  // The operations are loaded with the first command, to save memory until then.
  const { operations } = await import('../../management/operations.ts')
  if (request.method !== 'POST' || !Object.hasOwn(operations, name)) {
    throw new GatewayError(
      'not_found',
      'the running gateway does not know this operation: it may be of another version',
    )
  }
  const input: unknown = parseJson(await readBody(request))
  const recorded = withAuditOrigin(services, commandOrigin('operator', services.nowMs()))
  const output = await (operations[name as keyof typeof operations] as AnyOperation)(recorded, input)
  services.log.info({ operation: name }, 'command')
  return output
}

function readBody(request: Request): Promise<string> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = []
    let length = 0
    request.read({
      onChunk(bytes) {
        length += bytes.length
        if (length <= BODY_LIMIT) pieces.push(bytes)
        else reject(new GatewayError('request_too_large', `the input is larger than ${BODY_LIMIT} bytes`))
      },
      onEnd: () => resolve(Buffer.concat(pieces).toString()),
      onAbort: () => reject(new GatewayError('invalid_request', 'the input was cut short')),
    })
  })
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    throw new GatewayError('invalid_json', 'the input is not JSON')
  }
}

// Describes a database error to the operator; the details of an unexpected error go to the log only.
function gatewayErrorFrom(log: Logger, error: unknown): GatewayError {
  const known = asGatewayError(error)
  if (known) return known
  if (error instanceof StoreUnavailable) return new GatewayError('overloaded', error.message)
  log.error({ error }, 'unforeseen error of a command')
  return new GatewayError(
    'internal_error',
    'it failed for an unforeseen reason; the log of the gateway has the details',
  )
}

function graceTimeout(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, GRACE_MS).unref())
}
