import { LITELLM_UNITS_PER_DOLLAR } from '@sluice/import/litellm-database'
import type { OtherGatewayDatabase } from '@sluice/import/other-gateway'
import { type ImportSource, readSource, type SourceReadingOptions } from '@sluice/import/read-source'
import type { ImportSourceName, ReportLine } from '../domain/import-line.ts'
import { listNotImported } from './not-imported.ts'
import { configurationIn, OtherGatewayOptions, type SourceConfiguration } from './plan-configuration.ts'
import { planLitellm, withModelNames } from './plan-litellm.ts'
import { SOURCE_READERS } from './source-readers.ts'

/** What a source means to this gateway, before it is compared with what the gateway has. */
export interface InterpretedSource {
  readonly name: ImportSourceName
  readonly configuration: SourceConfiguration
  /** Users and their tokens; empty if the source has none. */
  readonly accounts: Pick<OtherGatewayDatabase, 'users' | 'tokens'>
  /** Quota units per dollar as stored in the source; undefined if not stored. */
  readonly quotaUnit: string | undefined
  /** Report lines about what is never imported. */
  readonly left: readonly ReportLine[]
}

/** Reads a file, or the database at a URL, and interprets it. Rejects with a sentence for the operator. */
export async function readImport(place: string, options: ImportReadingOptions): Promise<InterpretedSource> {
  return interpret(await readSource(place, { ...options, readers: SOURCE_READERS }), options)
}

/** Options for reading a source; `unitsHere` is the number of quota units per dollar in this gateway. */
export interface ImportReadingOptions extends Omit<SourceReadingOptions, 'readers'> {
  readonly unitsHere: number
}

function interpret(source: ImportSource, { missing, unitsHere }: ImportReadingOptions): InterpretedSource {
  if (source.kind === 'litellm') {
    const { accounts } = source
    const configuration = planLitellm(source, missing, unitsHere)
    return {
      name: 'litellm',
      configuration,
      accounts: {
        users: accounts?.users ?? [],
        tokens: withModelNames(accounts?.tokens ?? [], configuration, source.configuration?.accessGroups),
      },
      quotaUnit: LITELLM_UNITS_PER_DOLLAR,
      left: listNotImported({ users: [], leftTables: accounts?.leftTables ?? [] }),
    }
  }
  const { database } = source
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
