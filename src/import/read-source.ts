import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs'
import { resolve } from 'node:path'
import { readTextFile } from '../config/text-file.ts'
import { sqlitePath } from '../domain/database-url.ts'
import type { ImportSourceName, ReportLine } from '../domain/import-line.ts'
import { type OtherGatewayDatabase, readOtherGateway } from './other-gateway.ts'
import { listNotImported } from './not-imported.ts'
import { configurationIn, OtherGatewayOptions, type SourceConfiguration } from './plan-configuration.ts'
import { READ_LIMITS, type ReadLimits } from './read-limits.ts'
import { openServer, type SourceDatabase } from './source.ts'

/** Everything that was read from a source. */
export interface ImportSource {
  readonly name: ImportSourceName
  readonly configuration: SourceConfiguration
  /** Users and their tokens; empty if the source has none. */
  readonly accounts: Pick<OtherGatewayDatabase, 'users' | 'tokens'>
  /** Quota units per dollar as stored in the source; undefined if not stored. */
  readonly quotaUnit: string | undefined
  /** Report lines about what is never imported. */
  readonly left: readonly ReportLine[]
}

/** Options for reading a source. */
export interface SourceReadingOptions {
  readonly limits?: ReadLimits
  /** Whether a server gets the password in clear if it asks for it over an unencrypted connection. */
  readonly sendsClearPassword?: boolean | undefined
  /** Name of the file in messages; its path if absent. */
  readonly shown?: string
  /**
   * Reads an environment variable that a configuration refers to; undefined if it is not set or must not be
   * read.
   */
  readonly variable: (name: string) => string | undefined
  /** Why a variable is missing, as the end of a sentence: `is not set`. */
  readonly missing: string
}

/** Maximum size of a configuration file in bytes. */
const MAX_CONFIGURATION_BYTES = 4 * 2 ** 20

/** First bytes of a SQLite file. */
const SQLITE = 'SQLite format 3\0'

/** Reads a file, or the database at a URL. Rejects with a sentence for the operator. */
export async function readSource(place: string, options: SourceReadingOptions): Promise<ImportSource> {
  const server = await openServer(place, options)
  if (server) return familySource(server)
  const path = resolve(sqlitePath(place) ?? place)
  const { limits = READ_LIMITS, shown = path } = options
  if (!existsSync(path)) throw new Error(`there is no file ${shown}`)
  const { isDatabase, bytes } = lookInto(path)
  if (!isDatabase) {
    if (bytes > MAX_CONFIGURATION_BYTES) throw neither(shown)
    const { litellmSource } = await import('./litellm-source.ts')
    const source = litellmSource(textOf(path, shown), options)
    if (source) return source
    throw neither(shown)
  }
  const { openSqliteSource } = await import('./sqlite-source.ts')
  return familySource(openSqliteSource(path, limits, shown))
}

async function familySource(source: SourceDatabase): Promise<ImportSource> {
  const database = await readOtherGateway(source).finally(() => source.close())
  const options = new OtherGatewayOptions(database.options)
  const configuration = configurationIn(database, options)
  return {
    name: database.family,
    configuration,
    accounts: database,
    quotaUnit: options.text('QuotaPerUnit'),
    left: [...options.skipped, ...listNotImported(database)],
  }
}

function lookInto(path: string): { readonly isDatabase: boolean; readonly bytes: number } {
  const start = Buffer.alloc(SQLITE.length)
  const file = openSync(path, 'r')
  try {
    readSync(file, start, 0, start.length, 0)
    return { isDatabase: start.toString('latin1') === SQLITE, bytes: fstatSync(file).size }
  } finally {
    closeSync(file)
  }
}

function textOf(path: string, shown: string): string {
  try {
    return readTextFile(path)
  } catch (error) {
    throw neither(shown, error instanceof Error ? `: ${error.message}` : '')
  }
}

function neither(shown: string, reason = ''): Error {
  return new Error(
    `${shown} is neither a SQLite database of one-api or new-api nor a LiteLLM config.yaml with a model_list${reason}`,
  )
}
