import process from 'node:process'
import { type ErrorCode, ERRORS, GatewayError } from '../../errors.ts'
import type { OperationInput, OperationName, OperationOutput } from '../../management/operations.ts'
import type { ControlFailure, GatewayGreeting } from './messages.ts'
import { socketPath } from './socket-path.ts'

/**
 * Taken from `node:http` without `import`, which would evaluate every export of the module, including a
 * WebSocket client, and add tens of milliseconds to each command.
 */
const { request } = process.getBuiltinModule('node:http')

/** Timeout in milliseconds of the request that checks whether a gateway listens. */
const HELLO_TIMEOUT_MS = 5_000
/** Timeout of an operation in milliseconds. */
const OPERATION_TIMEOUT_MS = 60_000

const USER = 'sluice user show'
const TOKENS = 'sluice token list'
const CHANNELS = 'sluice channel list'
const GROUPS = 'sluice group list'
const INVITATIONS = 'sluice user invitations'

/**
 * The command that shows whether an operation was carried out; null if it changes nothing, or if a second one replaces what
 * the first has done. An operation goes on although the command has stopped waiting.
 */
const SHOWN_BY: Readonly<Record<OperationName, string | null>> = {
  approveMcpTool: 'sluice mcp tools',
  backup: null,
  budgetUser: USER,
  cancelAnyBatch: 'sluice batch show',
  changeGroup: GROUPS,
  changeToken: TOKENS,
  createGroup: GROUPS,
  createToken: TOKENS,
  createUser: 'sluice user list',
  deleteGroup: GROUPS,
  deleteToken: TOKENS,
  disableChannel: CHANNELS,
  disableToken: TOKENS,
  disableUser: USER,
  enableChannel: CHANNELS,
  enableToken: TOKENS,
  enableUser: USER,
  inviteUser: INVITATIONS,
  issueAccessToken: null,
  listAllBatches: null,
  listAllChannels: null,
  listAllTokens: null,
  listCalls: null,
  listChannelStates: null,
  listGroups: null,
  listInvitations: null,
  listMcpServers: null,
  listPrices: null,
  listRefusals: null,
  listTokens: null,
  listToolsOfServers: null,
  listUsers: null,
  moveToGroup: USER,
  removeUser: 'sluice user list',
  rotateToken: null,
  setPassword: null,
  showAnyBatch: null,
  showCall: null,
  showGroup: null,
  showMcpTool: null,
  showUser: null,
  testNamedChannel: null,
  tokenWarnings: null,
  topUpUser: USER,
  usageByDimension: null,
  withdrawInvitation: INVITATIONS,
}

/** Thrown if no gateway listens on the control socket of a data folder. */
export class GatewayNotListening extends Error {
  constructor(dataDir: string, options: { cause?: unknown } = {}) {
    super(`the gateway on ${dataDir} has just stopped: run the command again`, options)
    this.name = 'GatewayNotListening'
  }
}

/**
 * Checks that a gateway listens on this data folder, and returns its answer. Rejects with
 * `GatewayNotListening` if none does.
 */
export async function checkGatewayListens(dataDir: string): Promise<GatewayGreeting> {
  return (await requestJson(dataDir, 'GET', '/', undefined, HELLO_TIMEOUT_MS)) as GatewayGreeting
}

/**
 * Runs an operation in the gateway that uses this data folder. Rejects with the error that the operation
 * threw. A backup takes as long as the database is large, so it has no timeout.
 */
export async function callGateway<Name extends OperationName>(
  dataDir: string,
  operation: Name,
  input: OperationInput<Name>,
  timeoutMs: number | undefined = operation === 'backup' ? undefined : OPERATION_TIMEOUT_MS,
): Promise<OperationOutput<Name>> {
  const shownBy = SHOWN_BY[operation]
  const value = await requestJson(dataDir, 'POST', `/${operation}`, input, timeoutMs, shownBy)
  return value as OperationOutput<Name>
}

async function requestJson(
  dataDir: string,
  method: string,
  path: string,
  input: unknown,
  timeoutMs: number | undefined,
  shownBy: string | null = null,
): Promise<unknown> {
  const socket = socketPath(dataDir)
  try {
    const { status, text } = await send(socket.path, method, path, input, timeoutMs)
    const value: unknown = JSON.parse(text)
    if (status === 200) return value
    throw errorFrom(value as ControlFailure)
  } catch (error) {
    throw explainFailure(dataDir, error, shownBy)
  } finally {
    socket.release()
  }
}

function send(
  path: string,
  method: string,
  url: string,
  input: unknown,
  timeoutMs: number | undefined,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request({
      socketPath: path,
      method,
      path: url,
      agent: false,
      ...(timeoutMs === undefined ? {} : { signal: AbortSignal.timeout(timeoutMs) }),
    })
    outgoing.on('error', reject)
    outgoing.on('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }),
      )
    })
    outgoing.end(input === undefined ? undefined : JSON.stringify(input))
  })
}

function errorFrom({ error: { code, message } }: ControlFailure): Error {
  return Object.hasOwn(ERRORS, code) ? new GatewayError(code as ErrorCode, message) : new Error(message)
}

function explainFailure(dataDir: string, error: unknown, shownBy: string | null): unknown {
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
  const then =
    shownBy === null
      ? 'the command can be run once it has stopped'
      : `what was commanded may have been done, or may still be: before the command is run again, check it with "${shownBy}"`
  return new Error(`the gateway on ${dataDir} does not answer ${reason}: look at its log; ${then}`, {
    cause: error,
  })
}
