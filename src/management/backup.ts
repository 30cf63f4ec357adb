import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, lstatSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, isAbsolute, resolve } from 'node:path'
import { z } from 'zod'
import { sqlitePath } from '../domain/database-url.ts'
import { GatewayError } from '../errors.ts'
import { copyDatabase } from '../store/sqlite/backup.ts'
import type { BackupInputs } from './services.ts'
import { readInput } from './input-fields.ts'

const INPUT = z.object(
  {
    file: z.string({ error: 'expected the path of a file' }).refine(isAbsolute, {
      error: 'expected the path of a file, from the root',
    }),
    force: z.boolean({ error: 'expected true or false' }).default(false),
  },
  { error: 'expected an object that names a file' },
)

/** The result of a backup. */
export interface Backup {
  readonly file: string
  readonly bytes: number
  /**
   * File with the secret that is needed to use the copy, but is not part of it; null if GATEWAY_SECRET is
   * used.
   */
  readonly secret_file: string | null
}

/**
 * Copies the embedded database into a file that only its owner may read. The copy has another name until it
 * is complete and written to disk. An existing file is replaced only with `force`.
 */
export async function backup(
  { dataDir, databaseUrl, secretFile }: BackupInputs,
  given: z.input<typeof INPUT>,
): Promise<Backup> {
  const { file, force } = readInput(INPUT, given)
  const path = pathOf(databaseUrl)
  const target = resolve(file)
  try {
    refuseTarget(target, path, dataDir, force)
  } catch (error) {
    throw asFileError(target, error)
  }
  const unfinished = `${target}.${randomBytes(6).toString('hex')}.unfinished`
  try {
    closeSync(openSync(unfinished, 'wx', 0o600))
    await copyDatabase({ path, target: unfinished })
    if (!force && exists(target)) throw alreadyThere(target)
    renameSync(unfinished, target)
    syncFolder(dirname(target))
  } catch (error) {
    rmSync(unfinished, { force: true })
    throw asFileError(target, error)
  }
  return { file: target, bytes: statSync(target).size, secret_file: secretFile ?? null }
}

function pathOf(databaseUrl: string): string {
  const path = sqlitePath(databaseUrl)
  if (path !== undefined) return path
  throw new GatewayError(
    'invalid_request',
    'sluice backup copies the embedded database; a PostgreSQL server has tools of its own (pg_dump)',
  )
}

/** Matches the names of files that belong to a data folder, whether or not they exist yet. */
const DATA_FILES =
  /^(?:secret|secret\.unfinished|(?:sluice|node|lock)\.db(?:-wal|-shm|-journal)?|control\.sock)$/

function refuseTarget(target: string, path: string, dataDir: string, force: boolean): void {
  const ours = new Set(
    ['', '-wal', '-shm', '-journal', '.lock'].map((suffix) => `${basename(path)}${suffix}`),
  )
  if (isSame(dirname(target), dirname(path)) && ours.has(basename(target))) {
    throw new GatewayError('invalid_request', `${target} is the database itself; choose another file`)
  }
  const isInDataFolder = isSame(dirname(target), dataDir)
  if (isInDataFolder && (DATA_FILES.test(basename(target)) || exists(target)))
    throw new GatewayError('invalid_request', `${target} is a file of the data folder; choose another file`)
  if (!exists(target)) return
  if (!lstatSync(target).isFile()) throw new GatewayError('invalid_request', `${target} is not a file`)
  if (isSame(target, path)) throw new GatewayError('invalid_request', `${target} is the database itself`)
  if (!force) throw alreadyThere(target)
}

function alreadyThere(target: string): GatewayError {
  return new GatewayError('invalid_request', `${target} is there already; --force replaces it`)
}

function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [one, other].map((path) => statSync(path, { throwIfNoEntry: false }))
  return a !== undefined && b !== undefined && a.ino === b.ino && a.dev === b.dev
}

function syncFolder(path: string): void {
  const folder = openSync(path, 'r')
  fsyncSync(folder)
  closeSync(folder)
}

/** Converts an error with the source or target file to a message for the operator. */
function asFileError(target: string, error: unknown): unknown {
  if (error instanceof GatewayError) return error
  const reason = error instanceof Error ? error.message : String(error)
  return new GatewayError('internal_error', `the copy ${target} could not be made: ${reason}`, {
    cause: error,
  })
}
