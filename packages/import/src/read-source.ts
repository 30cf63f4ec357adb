import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { type LitellmConfiguration, type VariableReader, readLitellm } from './litellm.ts'
import { type LitellmAccounts, readLitellmDatabase } from './litellm-database.ts'
import { type OtherGatewayDatabase, readOtherGateway } from './other-gateway.ts'
import { READ_LIMITS, type ReadLimits } from './read-limits.ts'
import type { SourceReaders } from './readers.ts'
import { openServer, type ServerTrust, type SourceDatabase } from './source.ts'

/** Everything that was read from a source, as it is there. */
export type ImportSource =
  | { readonly kind: 'database'; readonly database: OtherGatewayDatabase }
  | ({ readonly kind: 'litellm' } & LitellmSource)

/** A LiteLLM proxy: its configuration, its database, or both. */
export interface LitellmSource {
  readonly configuration?: LitellmConfiguration | undefined
  readonly accounts?: LitellmAccounts | undefined
}

/** Options for reading a source. */
export interface SourceReadingOptions extends ServerTrust, VariableReader {
  readonly readers: SourceReaders
  readonly limits?: ReadLimits
  /** Name of the file in messages; its path if absent. */
  readonly shown?: string
  /** URL of the database of a LiteLLM proxy, in addition to its configuration. */
  readonly database?: string | undefined
}

/** Maximum size of a configuration file in bytes. */
const MAX_CONFIGURATION_BYTES = 4 * 2 ** 20

/** First bytes of a SQLite file. */
const SQLITE = 'SQLite format 3\0'

/** Reads a file, or the database at a URL. Rejects with a sentence for the operator. */
export async function readSource(place: string, options: SourceReadingOptions): Promise<ImportSource> {
  const { readers, limits = READ_LIMITS, database } = options
  if (place === LITELLM)
    return litellmProxy(await litellmAccounts(database ?? '', undefined, options), options)
  const server = await openServer(place, { ...options, postgres: readers.postgres })
  if (server) return databaseSource(server, options)
  const path = resolve(place.replace(/^sqlite:/i, ''))
  const { shown = path } = options
  const found = statSync(path, { throwIfNoEntry: false })
  if (!found) throw new Error(`there is no file ${shown}`)
  if (!found.isFile()) throw new Error(`${shown} is not a file`)
  const { isDatabase, bytes } = lookInto(path)
  if (isDatabase) {
    const { openSqliteSource } = await import('./sqlite-source.ts')
    return databaseSource(openSqliteSource(path, limits, shown), options)
  }
  if (bytes > MAX_CONFIGURATION_BYTES) throw neither(shown)
  const text = textOf(path, shown, readers)
  const configuration = readLitellm(text, readers.configuration, options)
  if (!configuration) throw neither(shown)
  if (database === undefined) return { kind: 'litellm', configuration }
  return litellmProxy(await litellmAccounts(database, configuration.masterKey, options), options, text)
}

/** A LiteLLM proxy with what its database has of its configuration; `text`: its file, if it is known. */
function litellmProxy(
  accounts: LitellmAccounts,
  options: SourceReadingOptions,
  text = 'model_list: []',
): ImportSource {
  const configuration = readLitellm(text, options.readers.configuration, options, accounts.settings)
  return { kind: 'litellm', configuration, accounts }
}

/** Stands for the configuration of a LiteLLM proxy that has all of it in its database. */
const LITELLM = 'litellm'

/** Reads the database of a LiteLLM proxy. `masterKey`: its master key, if the configuration states it. */
async function litellmAccounts(
  place: string,
  masterKey: string | undefined,
  options: SourceReadingOptions,
): Promise<LitellmAccounts> {
  const source = await openServer(place, { ...options, postgres: options.readers.postgres })
  if (!source)
    throw new Error('--database: expected the URL of the database of LiteLLM: postgres://user@host/database')
  const master = masterKey ?? options.variable('LITELLM_MASTER_KEY')
  const accounts = await readLitellmDatabase(source, master).finally(() => source.close())
  if (!accounts)
    throw new Error(
      '--database: this is not a database of LiteLLM: it has no table "LiteLLM_VerificationToken"',
    )
  return accounts
}

async function databaseSource(source: SourceDatabase, options: SourceReadingOptions): Promise<ImportSource> {
  try {
    if (options.database !== undefined)
      throw new Error('--database belongs to the config.yaml of LiteLLM: this source is a database itself')
    const accounts = await readLitellmDatabase(source, options.variable('LITELLM_MASTER_KEY'))
    return accounts
      ? litellmProxy(accounts, options)
      : { kind: 'database', database: await readOtherGateway(source) }
  } finally {
    await source.close()
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

function textOf(path: string, shown: string, { configuration }: SourceReaders): string {
  try {
    return configuration.text(path)
  } catch (error) {
    throw neither(shown, error instanceof Error ? `: ${error.message}` : '')
  }
}

function neither(shown: string, reason = ''): Error {
  return new Error(
    `${shown} is neither a SQLite database of one-api or new-api nor a LiteLLM config.yaml with a model_list${reason}`,
  )
}
