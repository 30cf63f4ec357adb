import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Environment } from '../config/environment.ts'
import {
  COMMANDS_TAKE_MS,
  type DataFolderHolder,
  DataFolderInUse,
  type DataFolderLock,
  lockDataFolder,
} from '../store/data-folder.ts'
import type { Accounts } from './accounts.ts'
import { callGateway, greetGateway, NobodyListens } from './call-gateway.ts'
import type { Hello } from './messages.ts'

/** How long a folder may be locked by somebody who does not listen: a gateway that starts or stops. */
const PATIENCE_MS = 5_000
/** How often a held folder is tried again. */
const AGAIN_MS = 50

/**
 * The accounts in a data folder: of the gateway that runs on it, over its socket; or, where none runs, on the
 * database itself, with the folder locked until `close`. Where other commands hold it, this one waits its
 * turn. A folder without a database is refused, unless `makesDatabase`. Rejects with a sentence for the
 * operator.
 */
export async function openAccounts(
  environment: Environment,
  { makesDatabase = false }: { readonly makesDatabase?: boolean } = {},
): Promise<Accounts> {
  const { dataDir, databaseUrl } = environment
  const hasDatabase = (): boolean =>
    !databaseUrl.startsWith('sqlite:') || existsSync(databaseUrl.slice('sqlite:'.length))
  if (!makesDatabase && !hasDatabase() && !existsSync(join(dataDir, 'lock.db'))) throw noDatabase(dataDir)
  const turnEndMs = performance.now() + COMMANDS_TAKE_MS
  let silentUntilMs: number | undefined
  for (;;) {
    const lock = lockOrHolder(dataDir)
    if (typeof lock === 'object') {
      if (makesDatabase || hasDatabase()) {
        // With all that reads a configuration and opens a database: loaded where no gateway does it for us.
        const { ownAccounts } = await import('./own-accounts.ts')
        return ownAccounts(environment, lock)
      }
      lock.release()
      throw noDatabase(dataDir)
    }
    if (lock === 'command') {
      silentUntilMs = undefined
      if (performance.now() > turnEndMs) throw commandsTakeLong(dataDir)
    } else {
      const hello = await greeted(dataDir)
      if (hello) return gatewaysAccounts(dataDir, hello)
      silentUntilMs ??= performance.now() + PATIENCE_MS
      if (performance.now() > silentUntilMs) throw silent(dataDir)
    }
    await delay(AGAIN_MS)
  }
}

function lockOrHolder(dataDir: string): DataFolderLock | DataFolderHolder {
  try {
    return lockDataFolder(dataDir, 'command')
  } catch (error) {
    if (error instanceof DataFolderInUse) return error.holder
    const reason = error instanceof Error ? error.message : String(error)
    throw new Error(
      `the data folder ${dataDir} cannot be used (${reason}): run the command as the user that the gateway runs as`,
      { cause: error },
    )
  }
}

function commandsTakeLong(dataDir: string): Error {
  return new Error(
    `other commands have held the data folder ${dataDir} for ${COMMANDS_TAKE_MS / 1000} seconds: ` +
      'run this one again when they have ended',
  )
}

function silent(dataDir: string): Error {
  return new Error(
    `another process holds the data folder ${dataDir} and does not listen on its control.sock: ` +
      'a gateway that is starting or stopping may need a moment more; else stop that process',
  )
}

async function greeted(dataDir: string): Promise<Hello | undefined> {
  try {
    return await greetGateway(dataDir)
  } catch (error) {
    if (error instanceof NobodyListens) return undefined
    throw error
  }
}

function gatewaysAccounts(dataDir: string, { display }: Hello): Accounts {
  return {
    display: () => Promise.resolve(display),
    firstCredentials: () => Promise.resolve(undefined),
    run: (name, input) => callGateway(dataDir, name, input),
    close: () => Promise.resolve(),
  }
}

function noDatabase(dataDir: string): Error {
  return new Error(
    `there is no database of a gateway in ${dataDir}: set DATA_DIR to its folder, or start it once with "sluice start"`,
  )
}
