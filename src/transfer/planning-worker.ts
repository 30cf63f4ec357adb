import type { ReadLimits } from '@sluice/import/read-limits'
import { readConfig } from '../config/config.ts'
import { compareLines, countLines } from '../domain/import-line.ts'
import { serve } from '../ipc/serve.ts'
import type { PlannedAccount, PlannedImport } from '../management/imports.ts'
import { highestTokenId, planImport } from './import.ts'
import type { PlanningRequests, PlanningTask } from './planning.ts'
import { readImport } from './interpret-source.ts'
import { inspectTarget, reserve } from './target.ts'

/**
 * Limits on an uploaded file. They are low, because this process has little memory and a client is waiting.
 */
const UPLOAD_LIMITS: ReadLimits = { rows: 500_000, bytes: 128 * 2 ** 20, ms: 60_000 }

/** Maximum number of lines in a report. Further lines are counted but not listed. */
const MAX_LINES = 10_000

/** Maximum number of users and tokens in one message. */
const MAX_ACCOUNTS = 200

const NO_NAMES = { merge: new Set<string>(), role: new Set<string>() }

let parts = partsOf([])

serve<PlanningRequests>({ plan, nextAccounts: () => parts.next().value ?? [] })

/** Plans one import. Keeps the planned accounts, which are requested in parts. */
async function plan(task: PlanningTask): Promise<Omit<PlannedImport, 'accounts'>> {
  const { environment, texts, path, shown, apply } = task
  const config = readConfig(environment, texts)
  const source = await readImport(path, {
    limits: UPLOAD_LIMITS,
    shown,
    // Environment variables are not read: an uploaded file could otherwise send secrets of this machine to an
    // address of its choice.
    variable: () => undefined,
    missing: 'is not read over HTTP: give the channel its key',
    unitsHere: config.settings.options.quota_per_unit,
  })
  const { state, hashes } = await inspectTarget(environment, config.users)
  const planned = planImport(source, { config, stated: NO_NAMES }, state, hashes)
  const { configuration, accounts, passwords, units } = planned
  if (apply) await reserve(environment.databaseUrl, highestTokenId(accounts))
  const lines = [...planned.lines, ...accounts.flatMap((account) => account.lines)].toSorted(compareLines)
  parts = partsOf(accounts)
  return {
    source: source.name,
    entries: configuration.entries,
    spent: configuration.spent,
    channels: configuration.channels,
    lines: lines.slice(0, MAX_LINES),
    counts: countLines(lines),
    passwordsLeft: passwords,
    unitsConverted: units.areSame || source.name === 'litellm' ? null : units.description,
  }
}

function* partsOf(accounts: readonly PlannedAccount[]): Generator<readonly PlannedAccount[], undefined> {
  let part: PlannedAccount[] = []
  let size = 0
  for (const account of accounts) {
    part.push(account)
    size += 1 + account.account.tokens.length
    if (size < MAX_ACCOUNTS) continue
    yield part
    part = []
    size = 0
  }
  if (part.length > 0) yield part
  return undefined
}
