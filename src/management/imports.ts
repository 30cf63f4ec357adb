import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import type { ChannelDefinition } from '../domain/records/channel.ts'
import {
  IMPORT_KINDS,
  IMPORT_OUTCOMES,
  IMPORT_SOURCES,
  type ImportCounts,
  type ImportKind,
  type ImportOutcome,
  type ImportSourceName,
  type RefusedLine,
  type ReportLine,
  withRefusedLines,
} from '../domain/import-line.ts'
import type { StoredSetting } from '../domain/settings.ts'
import { GatewayError } from '../errors.ts'
import type { GroupSpending } from '../store/operations/configuration.ts'
import type { ImportedAccount } from '../store/operations/seed-accounts.ts'
import { StoreUnavailable } from '../store/store-unavailable.ts'
import { toStoredChannel } from './channels/channel-definition.ts'
import { textField } from './input-fields.ts'
import type { AdministrationServices } from './services.ts'
import { isUploadKept, removeOldestUploads, removeUpload, UPLOAD_ID, uploadPath } from './uploads.ts'

/** Maximum size of an uploaded file in bytes. */
export const MAX_UPLOAD_BYTES = 512 * 2 ** 20

/** A user with its tokens to be imported, and their lines in the report. */
export interface PlannedAccount {
  readonly account: ImportedAccount
  readonly lines: readonly ReportLine[]
}

/** Everything that an import would write. */
export interface PlannedImport {
  readonly source: ImportSourceName
  readonly entries: readonly StoredSetting[]
  /** What the imported groups spent in the present periods of their budgets. */
  readonly spent: readonly Omit<GroupSpending, 'nowSeconds'>[]
  readonly channels: readonly ChannelDefinition[]
  /**
   * Lines of the report, those that need attention first. If there are very many lines, only the first ones.
   */
  readonly lines: readonly ReportLine[]
  /** Counts of all lines. */
  readonly counts: ImportCounts
  /** Number of users whose password cannot be imported. */
  readonly passwordsLeft: number
  /** A sentence about how amounts were converted; null if they were not. */
  readonly unitsConverted: string | null
  /** The users to be imported, in parts. */
  accounts(): AsyncIterable<readonly PlannedAccount[]>
}

/** Reads uploaded files and plans what their import would write. */
export interface ImportPlanner {
  /**
   * Calls `use` with the plan. Rejects with `invalid_request` and an explanation if the file cannot be
   * imported.
   */
  plan<Result>(
    upload: { readonly path: string; readonly shown: string; readonly apply: boolean },
    use: (plan: PlannedImport) => Promise<Result>,
  ): Promise<Result>
}

const count = z.object(
  Object.fromEntries(IMPORT_OUTCOMES.map((outcome) => [outcome, z.int()])) as Record<ImportOutcome, z.ZodInt>,
)

const importReportSchema = z.object({
  id: z.string(),
  source: z.enum(IMPORT_SOURCES),
  lines: z.array(
    z.object({
      kind: z.enum(IMPORT_KINDS),
      name: z.string(),
      fate: z.enum(IMPORT_OUTCOMES),
      remark: z.string(),
    }),
  ),
  lines_left_off: z.int(),
  counts: z.object(
    Object.fromEntries(IMPORT_KINDS.map((kind) => [kind, count])) as Record<ImportKind, typeof count>,
  ),
  passwords_left: z.int(),
  units_converted: z.string().nullable(),
})

/** The report on an uploaded file, before anything is written. */
export const importPlanSchema = importReportSchema

/** The report on what was written; `failed` is the number of accounts that could not be written. */
export const importResultSchema = importReportSchema.extend({ failed: z.int() })

type ImportReport = z.output<typeof importReportSchema>

/** Query parameters with the name of the file, which messages show. */
export const importQuery = z.object({ name: textField('expected a text').optional() })

/** Path parameters with the id of an upload. */
export const importParams = z.object({
  id: z.string().regex(UPLOAD_ID, { error: 'expected the id of an upload' }),
})

/** Reads an uploaded file and reports what its import would write. Nothing is written yet. */
export async function previewImport(
  { dataDir, imports }: Pick<AdministrationServices, 'dataDir' | 'imports'>,
  { name }: z.output<typeof importQuery>,
  receive: (path: string) => Promise<void>,
): Promise<ImportReport> {
  removeOldestUploads(dataDir)
  const id = randomBytes(16).toString('hex')
  const path = uploadPath(dataDir, id)
  try {
    await receive(path)
    const shown = name === undefined || name.trim() === '' ? 'the file' : name.trim()
    return await imports.plan({ path, shown, apply: false }, (plan) =>
      Promise.resolve(reportOf(id, plan, plan.lines, plan.counts)),
    )
  } catch (error) {
    removeUpload(dataDir, id)
    throw error
  }
}

/**
 * Imports an uploaded file, while calls continue: all settings in one step, all channels in one, and each
 * user with its tokens in one. What exists already stays unchanged, so that an import can be repeated.
 */
export async function applyImport(
  services: Pick<
    AdministrationServices,
    'apiKeys' | 'dataDir' | 'imports' | 'liveConfig' | 'nowMs' | 'store'
  >,
  id: string,
): Promise<ImportReport & { readonly failed: number }> {
  const { apiKeys, dataDir, imports, store } = services
  if (!isUploadKept(dataDir, id))
    throw new GatewayError(
      'not_found',
      'this node keeps no such upload: it is removed after 30 minutes; send the file again',
    )
  return imports.plan({ path: uploadPath(dataDir, id), shown: 'the file', apply: true }, async (plan) => {
    await writeConfiguration(services, plan)
    const refused: RefusedLine[] = []
    let failed = 0
    try {
      for await (const part of plan.accounts()) {
        for (const { account, lines } of part) {
          try {
            await store.write('importAccount', account)
          } catch (error) {
            // If one account fails, the others are still imported, unless the database is unavailable.
            if (error instanceof StoreUnavailable) throw error
            failed += 1
            const reason = error instanceof Error ? error.message : String(error)
            refused.push(...lines.map((planned) => ({ planned, reason })))
          }
        }
      }
    } finally {
      // An imported key may be cached as unknown, if it was used before the import.
      apiKeys.forgetUnknown()
    }
    const { lines, counts } = withRefusedLines(plan, refused)
    return { ...reportOf(id, plan, lines, counts), failed }
  })
}

async function writeConfiguration(
  { liveConfig, nowMs, store }: Pick<AdministrationServices, 'liveConfig' | 'nowMs' | 'store'>,
  { channels, entries, spent }: PlannedImport,
): Promise<void> {
  const nowSeconds = Math.floor(nowMs() / 1000)
  if (entries.length > 0) {
    await liveConfig.change(
      (stored) => ({ ...stored, entries: [...stored.entries, ...entries] }),
      () =>
        store.write('setStoredSettings', {
          changes: entries,
          spent: spent.map((one) => ({ ...one, nowSeconds })),
        }),
    )
  }
  if (channels.length > 0) {
    await liveConfig.change(
      (stored) => ({ ...stored, channels: [...stored.channels, ...channels.map(toStoredChannel)] }),
      () => store.write('createChannels', { channels, created_time: nowSeconds }),
    )
  }
}

function reportOf(
  id: string,
  { source, passwordsLeft, unitsConverted }: PlannedImport,
  lines: readonly ReportLine[],
  counts: ImportCounts,
): ImportReport {
  const all = Object.values(counts).flatMap((of) => Object.values(of))
  return {
    id,
    source,
    lines: lines.map(({ kind, name, fate, notes, wayOut }) => ({
      kind,
      name,
      fate,
      remark: [...notes, ...(wayOut === undefined ? [] : [wayOut])].join('; '),
    })),
    lines_left_off: all.reduce((sum, one) => sum + one, 0) - lines.length,
    counts,
    passwords_left: passwordsLeft,
    units_converted: unitsConverted,
  }
}
