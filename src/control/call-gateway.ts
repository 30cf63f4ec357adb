import process from 'node:process'
import { type ErrorCode, ERRORS, GatewayError } from '../errors.ts'
import type { OperationInput, OperationName, OperationOutput } from '../management/operations.ts'
import type { ControlFailure, Hello } from './messages.ts'
import { socketPath } from './socket-path.ts'

/**
 * An import of it would load all that it exports, a client for the web among it: tens of milliseconds of each
 * command.
 */
const { request } = process.getBuiltinModule('node:http')

/** How long a gateway may take to say that it is there. */
const HELLO_TIMEOUT_MS = 5_000
/** How long an operation may take. */
const OPERATION_TIMEOUT_MS = 60_000

/** Nobody listens on the socket of a data folder. */
export class GatewayNotListening extends Error {
  constructor(dataDir: string, options: { cause?: unknown } = {}) {
    super(`the gateway on ${dataDir} has just stopped: run the command again`, options)
    this.name = 'NobodyListens'
  }
}

/** Asks the gateway that holds this data folder whether it is there; throws `NobodyListens` if it is not. */
export async function greetGateway(dataDir: string): Promise<Hello> {
  return (await requestJson(dataDir, 'GET', '/', undefined, HELLO_TIMEOUT_MS)) as Hello
}

/** Lets the gateway that holds this data folder do it. Its errors come back as they were thrown there. */
export async function callGateway<Name extends OperationName>(
  dataDir: string,
  operation: Name,
  input: OperationInput<Name>,
): Promise<OperationOutput<Name>> {
  // A copy takes as long as the database is large.
  const limitMs = operation === 'backup' ? undefined : OPERATION_TIMEOUT_MS
  return (await requestJson(dataDir, 'POST', `/${operation}`, input, limitMs)) as OperationOutput<Name>
}

async function requestJson(
  dataDir: string,
  method: string,
  path: string,
  input: unknown,
  limitMs: number | undefined,
): Promise<unknown> {
  const socket = socketPath(dataDir)
  try {
    const { status, text } = await send(socket.path, method, path, input, limitMs)
    const value: unknown = JSON.parse(text)
    if (status === 200) return value
    throw errorFrom(value as ControlFailure)
  } catch (error) {
    throw explainFailure(dataDir, error)
  } finally {
    socket.release()
  }
}

function send(
  path: string,
  method: string,
  url: string,
  input: unknown,
  limitMs: number | undefined,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request({
      socketPath: path,
      method,
      path: url,
      agent: false,
      ...(limitMs === undefined ? {} : { signal: AbortSignal.timeout(limitMs) }),
    })
    sent.on('error', reject)
    sent.on('response', (reply) => {
      const chunks: Buffer[] = []
      reply.on('data', (chunk: Buffer) => chunks.push(chunk))
      reply.on('error', reject)
      reply.on('end', () =>
        resolve({ status: reply.statusCode ?? 0, text: Buffer.concat(chunks).toString() }),
      )
    })
    sent.end(input === undefined ? undefined : JSON.stringify(input))
  })
}

function errorFrom({ error: { code, message } }: ControlFailure): Error {
  return Object.hasOwn(ERRORS, code) ? new GatewayError(code as ErrorCode, message) : new Error(message)
}

function explainFailure(dataDir: string, error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof GatewayError) return error
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOENT' || code === 'ECONNREFUSED') return new GatewayNotListening(dataDir, { cause: error })
  if (code === 'EACCES' || code === 'EPERM') {
    return new Error(
      `the gateway on ${dataDir} belongs to another user of this machine: run the command as that user`,
      { cause: error },
    )
  }
  const reason = error.name === 'AbortError' ? 'in time' : `(${error.message})`
  return new Error(
    `the gateway on ${dataDir} does not answer ${reason}: look at its log; the command can be run once it has stopped`,
    { cause: error },
  )
}
