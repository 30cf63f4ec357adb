import { statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Environment } from '../../config/environment.ts'
import { sqlitePath } from '../../domain/database-url.ts'
import {
  COMMAND_LOCK_TIMEOUT_MS,
  DatabaseInUse,
  type DataFolderHolder,
  DataFolderInUse,
  type DataFolderLock,
  lockDataFolder,
} from '../../store/data-folder.ts'
import { type CommandBackend, NoDatabase } from './command-backend.ts'
import { callGateway, checkGatewayListens, GatewayNotListening } from './call-gateway.ts'
import type { OpeningOptions } from './local-backend.ts'
import type { GatewayGreeting } from './messages.ts'

/** Milliseconds for which a gateway that is starting or stopping may hold the lock without listening. */
const SILENT_HOLDER_TIMEOUT_MS = 5_000
/** Milliseconds between attempts to lock the folder. */
const RETRY_INTERVAL_MS = 50

/**
 * Opens what runs commands for a data folder: the gateway that runs on it, over its control socket, or else
 * the database itself, with both locked until `close`. Waits while other commands have locked one of them. Refuses a
 * folder without a database unless `createsDatabase` is set, and a database that a gateway uses with another folder.
 * Rejects with an error message for the operator.
 */
export async function openCommandBackend(
  environment: Environment,
  { createsDatabase = false, report = () => {} }: Partial<OpeningOptions> = {},
): Promise<CommandBackend> {
  const { dataDir, databaseUrl } = environment
  const path = sqlitePath(databaseUrl)
  const hasDatabase = (): boolean => path === undefined || isThere(path, dataDir)
  if (!createsDatabase && !hasDatabase() && !isThere(join(dataDir, 'lock.db'), dataDir))
    throw new NoDatabase(environment)
  const deadlineMs = performance.now() + COMMAND_LOCK_TIMEOUT_MS
  let silenceDeadlineMs: number | undefined
  for (;;) {
    const opens = createsDatabase || hasDatabase()
    const lock = lockOrGetHolder(dataDir, opens ? path : undefined)
    if (typeof lock === 'object') {
      if (opens) {
        // The modules of the local backend are loaded on demand, because a command that a running gateway
        // handles needs none of them.
        const { localBackend } = await import('./local-backend.ts')
        return localBackend(environment, lock, { createsDatabase, report })
      }
      lock.release()
      throw new NoDatabase(environment)
    }
    if (lock === 'command') {
      silenceDeadlineMs = undefined
      if (performance.now() > deadlineMs) throw commandsBusy(dataDir)
    } else {
      const hello = await greetIfListening(dataDir)
      if (hello) return gatewayBackend(dataDir, hello)
      silenceDeadlineMs ??= performance.now() + SILENT_HOLDER_TIMEOUT_MS
      if (performance.now() > silenceDeadlineMs) throw holderSilent(dataDir)
    }
    await delay(RETRY_INTERVAL_MS)
  }
}

function lockOrGetHolder(dataDir: string, database: string | undefined): DataFolderLock | DataFolderHolder {
  try {
    return lockDataFolder(dataDir, 'command', database)
  } catch (error) {
    if (error instanceof DatabaseInUse && error.holder === 'gateway') throw error
    if (error instanceof DataFolderInUse) return error.holder
    throw notUsable(dataDir, error)
  }
}

/** Whether a file exists. One that cannot be looked for, as in a folder of another account, is an error. */
function isThere(path: string, dataDir: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined
  } catch (error) {
    throw notUsable(dataDir, error)
  }
}

function notUsable(dataDir: string, cause: unknown): Error {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new Error(
    `the data folder ${dataDir} cannot be used (${reason}): run the command as the user that the gateway runs as`,
    { cause },
  )
}

function commandsBusy(dataDir: string): Error {
  return new Error(
    `other commands have held the data folder ${dataDir} for ${COMMAND_LOCK_TIMEOUT_MS / 1000} seconds: ` +
      'run this one again when they have ended',
  )
}

function holderSilent(dataDir: string): Error {
  return new Error(
    `another process holds the data folder ${dataDir} and does not listen on its control.sock: ` +
      'a gateway that is starting or stopping may need a moment more; else stop that process',
  )
}

async function greetIfListening(dataDir: string): Promise<GatewayGreeting | undefined> {
  try {
    return await checkGatewayListens(dataDir)
  } catch (error) {
    if (error instanceof GatewayNotListening) return undefined
    throw error
  }
}

function gatewayBackend(dataDir: string, { display }: GatewayGreeting): CommandBackend {
  return {
    display: () => Promise.resolve(display),
    firstCredentials: () => Promise.resolve(undefined),
    run: (name, input) => callGateway(dataDir, name, input),
    close: () => Promise.resolve(),
  }
}
